"""`rampgate datasets`: the golden sets that the manifest wants beside those in Opik (PC5 §2, §5.6)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.contract.opik.scripted_opik import ScriptedOpik
from tests.contract.opik.sync_rig import Rig
from tests.unit.rampgate.cli.registry_copies import copied


@pytest.fixture
async def rig(tmp_path: Path, opik: ScriptedOpik, monkeypatch: pytest.MonkeyPatch) -> Rig:
    monkeypatch.setattr("rampgate.logs.configure_logs", lambda level, form: None)
    return Rig(copied(tmp_path), opik)


async def test_pc5_2_a_missing_dataset_is_told_and_nothing_is_written(rig: Rig) -> None:
    ran = await rig.run("datasets", "--json")
    assert ran.code == 1, ran.err
    first = ran.json["datasets"][0]
    assert (first["of"], first["there"], first["items"]) == ("platform", False, None)
    assert "has no dataset" in first["findings"][0]["message"]
    text = await rig.run("datasets")
    assert first["name"] in text.out
    assert "has no dataset" in text.out
    assert not [name for name in await rig.opik.requests() if name.startswith(("PUT", "PATCH", "DELETE"))]


async def test_an_opik_out_of_reach_and_a_vertical_that_nobody_registered_end_with_2(rig: Rig) -> None:
    ran = await rig.run("datasets", "--json", RAMPGATE_OPIK="http://127.0.0.1:9")
    assert ran.code == 2
    assert ran.json["datasets"][0]["error"]
    ran = await rig.run("datasets", "--vertical", "reciepts")
    assert (ran.code, "receipts" in ran.err) == (2, True)


async def test_one_dataset_is_shown_with_its_items_by_category_and_an_unknown_name_is_told(rig: Rig) -> None:
    listed = await rig.run("datasets", "--json")
    name = listed.json["datasets"][0]["name"]
    items = [{"source": "sdk", "data": {"input": "hi", "metadata": {"category": "gree\x1bting"}}} for _ in range(3)]
    await rig.opik.call("PUT", "/v1/private/datasets/items", {"dataset_name": name, "items": items})
    ran = await rig.run("datasets", name, "--json")
    (shown,) = [one for one in ran.json["datasets"] if one["of"] == "platform"]
    assert (ran.code, shown["items"], shown["categories"]) == (1, 3, {"gree\x1bting": 3}), "another size is a finding"
    text = await rig.run("datasets", name)
    assert "gree ting" in text.out, "no control character of Opik's reaches the terminal"
    ran = await rig.run("datasets", name[:-1])
    assert (ran.code, name in ran.err) == (2, True)
