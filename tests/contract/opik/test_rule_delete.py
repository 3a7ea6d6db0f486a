"""`rules sync --delete`: a judge that is no longer in the registry leaves Opik, audited, and no other (PC5 §2)."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evalcore.registry.opik_rules import METADATA
from streams.opik.client import OpikClient
from streams.opik.rules import OpikRules
from tests.contract.opik.scripted_opik import ScriptedOpik
from tests.contract.opik.sync_rig import PROJECTS, Rig, made

OLD = "old_judge"


@pytest.fixture
async def rig(tmp_path: Path, opik: ScriptedOpik) -> Rig:
    """Each vertical's project has copies of its judges, and one of a judge whose file is gone."""
    found = await made(tmp_path / "registry", opik)
    assert (await found.sync()).code == 0
    for vertical in PROJECTS:
        await left_behind(found, vertical, vertical)
    return found


async def left_behind(rig: Rig, project: str, vertical: str, **changes: Any) -> None:
    rule = (await rig.there(project))["ux_quality"]
    metadata = {**rule.metadata, "judge_id": OLD, "vertical": vertical, **changes}
    metadata.pop("rule_id", None)  # as a sync left it that put no ids into rules
    client = OpikClient(rig.opik.url, "default", rig.key, 5.0, 2)
    try:
        gateway = OpikRules(client, 1.0)
        variables = {**rule.variables, METADATA: json.dumps(metadata)}
        await gateway.write(
            await gateway.project_id(PROJECTS[project]), replace(rule, id="", name=OLD, variables=variables)
        )
    finally:
        await client.close()


@pytest.fixture
def audit(tmp_path: Path) -> Path:
    return tmp_path / "audit.jsonl"


async def test_pc5_2_a_judge_without_a_file_is_deleted_from_each_project_and_audited(rig: Rig, audit: Path) -> None:
    before = {vertical: await rig.there(vertical) for vertical in PROJECTS}
    ran = await rig.run("rules", "sync", "--delete", "old-judge", "--audit", str(audit), "--yes", "--json")
    assert ran.code == 0, ran.err
    for vertical in PROJECTS:
        left = dict(before[vertical])
        gone = left.pop(OLD)
        assert await rig.there(vertical) == left, "no other rule is touched"
        assert gone.id in audit.read_text()
    entries = [json.loads(line) for line in audit.read_text().splitlines()]
    assert {(one["kind"], one["vertical"], bool(one["by"]), bool(one["at"])) for one in entries} == {
        ("rule_delete", vertical, True, True) for vertical in PROJECTS
    }
    again = await rig.run("rules", "sync", "--delete", OLD, "--audit", str(audit), "--yes")
    assert (again.code, "nothing to do" in again.out) == (0, True)


async def test_a_judge_that_has_a_file_is_refused_with_the_file_and_what_to_do(rig: Rig, audit: Path) -> None:
    before = await rig.writes()
    ran = await rig.run("rules", "sync", "--delete", "ux-quality", "--audit", str(audit), "--yes")
    assert ran.code == 2
    assert "rules/ux_quality.yaml" in ran.err
    assert "delete the file first" in ran.err
    assert await rig.writes() == before
    assert not audit.exists()


async def test_without_an_audit_or_a_yes_nothing_is_deleted(rig: Rig, audit: Path) -> None:
    before = await rig.writes()
    ran = await rig.run("rules", "sync", "--delete", OLD, "--yes")
    assert (ran.code, "--audit FILE" in ran.err) == (2, True)
    ran = await rig.run("rules", "sync", "--delete", OLD, "--audit", str(audit))
    assert (ran.code, "--yes" in ran.err) == (2, True)
    assert (await rig.run("rules", "sync", "--delete", OLD, "--dry-run")).code == 0
    assert await rig.writes() == before


async def test_one_verticals_copy_is_deleted_alone_and_anothers_in_its_project_is_left(rig: Rig, audit: Path) -> None:
    await left_behind(rig, "receipts", "somebody")
    ran = await rig.run(
        "rules", "sync", "--delete", OLD, "--vertical", "receipts", "--audit", str(audit), "--yes", "--json"
    )
    assert [[each["judge"] for each in one["delete"]] for one in ran.json["verticals"]] == [[OLD]]
    assert [one["written"] for one in ran.json["verticals"]] == [[OLD]]
    assert (await rig.there("receipts"))[OLD].metadata["vertical"] == "somebody"
    assert OLD in await rig.there("rewards_assistant")
