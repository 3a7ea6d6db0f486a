"""`rampgate datasets list`: what the manifest wants of its golden sets beside what Opik holds (PC5 §2, §5.6)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.contract.opik.scripted_opik import ScriptedOpik
from tests.contract.opik.sync_rig import Rig
from tests.unit.rampgate.cli.registry_copies import copied


@pytest.fixture
async def rig(tmp_path: Path, opik: ScriptedOpik, monkeypatch: pytest.MonkeyPatch) -> Rig:
    monkeypatch.setattr("rampgate.cli.jobs.datasets.configure_logs", lambda level, form: None)
    return Rig(copied(tmp_path), opik)


async def test_pc5_2_a_missing_dataset_is_told_and_nothing_is_written(rig: Rig) -> None:
    ran = await rig.run("datasets", "list", "--json")
    assert ran.code == 1, ran.err
    first = ran.json["datasets"][0]
    assert (first["of"], first["there"], first["items"]) == ("platform", False, None)
    assert "has no dataset" in first["findings"][0]["message"]
    text = await rig.run("datasets", "list")
    assert first["name"] in text.out
    assert "has no dataset" in text.out
    assert not [name for name in await rig.opik.requests() if name.startswith(("PUT", "PATCH", "DELETE"))]


async def test_an_opik_out_of_reach_and_a_vertical_that_nobody_registered_end_with_2(rig: Rig) -> None:
    ran = await rig.run("datasets", "list", "--json", RAMPGATE_OPIK="http://127.0.0.1:9")
    assert ran.code == 2
    assert ran.json["datasets"][0]["error"]
    ran = await rig.run("datasets", "list", "--vertical", "reciepts")
    assert (ran.code, "receipts" in ran.err) == (2, True)
