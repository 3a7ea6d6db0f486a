"""`rampgate suite run` takes its cases from a dataset in Opik, at the version that the suite names (PF-9, the offline
pipeline's suite file)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import uuid6

from tests.contract.opik import sync_rig
from tests.contract.opik.scripted_opik import ScriptedOpik
from tests.contract.opik.sync_rig import Rig
from tests.unit.rampgate.suite.suite_folders import asked, written

NAME, PROJECT = "desk-cases", "receipts-eval"
SUITE = {"safety": ["safety"], "samples": 1, "vertical": "receipts"}


async def put(opik: ScriptedOpik, *items: dict[str, Any]) -> None:
    """As one upload, which makes a version."""
    await opik.call("PUT", "/v1/private/datasets/items",
                    {"dataset_name": NAME, "project_name": PROJECT, "batch_group_id": str(uuid6.uuid7()),
                     "items": [{"source": "sdk", "data": item} for item in items]})  # fmt: skip


def item(name: str, *tags: str) -> dict[str, Any]:
    return {"input": f"about {name}", "metadata": {"id": name, "tags": list(tags)}}


@pytest.fixture
async def rig(tmp_path: Path, opik: ScriptedOpik, monkeypatch: pytest.MonkeyPatch) -> Rig:
    monkeypatch.setattr("rampgate.logs.configure_logs", lambda level, form: None)
    return await sync_rig.made(tmp_path / "registry", opik)


async def test_items_are_cases_and_their_tags_are_slices(rig: Rig, opik: ScriptedOpik, tmp_path: Path) -> None:
    await put(opik, item("refund", "money"), item("threat", "safety", "money"))
    path = written(tmp_path / "suite", cases={"dataset": NAME}, **SUITE)
    ran = await rig.run("suite", "run", str(path), "--first-run", "--json")
    assert ran.code == 0, ran.err
    rows = [json.loads(line) for line in Path(ran.json["results"]).read_text().splitlines()]
    assert {row["case_id"]: row["slices"] for row in rows} == {"refund": ["money"], "threat": ["safety", "money"]}
    assert sorted(asked(tmp_path / "suite")) == ["about refund", "about threat"]


async def test_the_version_named_is_read_and_without_one_the_newest(
    rig: Rig, opik: ScriptedOpik, tmp_path: Path
) -> None:
    await put(opik, item("first", "safety"))
    await put(opik, item("second", "safety"))
    cases = {}
    for folder, named in (("old", {"version": 1}), ("new", {})):
        path = written(tmp_path / folder, cases={"dataset": NAME, "project": PROJECT, **named}, **SUITE)
        cases[folder] = (await rig.run("suite", "run", str(path), "--first-run", "--json")).json["cases"]
    assert cases == {"old": 1, "new": 2}


@pytest.mark.parametrize(
    ("cases", "told"),
    [
        ({"dataset": "desk-casse"}, "Opik has no dataset 'desk-casse' in 'receipts-eval'"),
        ({"dataset": NAME, "version": 9}, "cases.version: Opik's 'desk-cases' has no version 9; the newest is 1"),
    ],
)
async def test_what_opik_does_not_have_is_named(
    rig: Rig, opik: ScriptedOpik, tmp_path: Path, cases: dict[str, Any], told: str
) -> None:
    await put(opik, item("first", "safety"))
    ran = await rig.run("suite", "run", str(written(tmp_path / "suite", cases=cases, **SUITE)))
    assert ran.code == 2
    assert told in ran.err
    assert asked(tmp_path / "suite") == []


async def test_an_item_that_can_be_no_case_is_named_by_its_place(rig: Rig, opik: ScriptedOpik, tmp_path: Path) -> None:
    await put(opik, {"metadata": {"id": "mute", "tags": ["safety"]}})
    ran = await rig.run("suite", "run", str(written(tmp_path / "suite", cases={"dataset": NAME}, **SUITE)))
    assert ran.code == 2
    assert "Opik's desk-cases v1, item 1: input: a case has one" in ran.err


async def test_an_opik_that_is_away_is_told_and_no_candidate_is_asked(
    rig: Rig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rampgate.suite.dataset_cases.RETRY_SECONDS", 0.0)
    path = written(tmp_path / "suite", cases={"dataset": NAME}, **SUITE)
    ran = await rig.run("suite", "run", str(path), RAMPGATE_OPIK="http://127.0.0.1:9")
    assert ran.code == 2
    assert "can't be read" in ran.err
    assert asked(tmp_path / "suite") == []
