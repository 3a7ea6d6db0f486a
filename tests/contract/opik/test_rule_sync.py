"""`rampgate rules sync` on a local Opik (PC5 FR-7, FR-9, AC-7, AC-8, §2, §5.6, §5.7): what it writes, with each
vertical's key to Opik, and what `--delete` takes away, audited."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from aiohttp import web
from structlog.testing import capture_logs

from evalcore.registry.opik_rules import METADATA
from rampgate.http.routes import Side, make_app
from rampgate.local.opik.server import start
from rampgate.registry.serving import ServedRegistry
from schemas.answers import Health
from streams.metrics import Metrics
from streams.opik.client import OpikClient
from streams.opik.rules import OpikRules
from tests.contract.opik.scripted_opik import ScriptedOpik
from tests.contract.opik.sync_rig import EVALUATORS, PROJECTS, QUALITY, Files, Rig, made
from tests.unit.rampgate.cli.registry_copies import edit

SYNCED = 17
SAID = 10
"""Of 17 judges that ask a model; six are for some sub-agents, which Opik's filters can't say, and the score of one is
made of its dimensions: their copies are never enabled."""


async def test_pc5_ac8_each_vertical_gets_its_judges_in_its_own_project_disabled(rig: Rig) -> None:
    """Floor, tolerance, classification and provenance come back with each rule; Opik judges nothing a second time."""
    ran = await rig.sync("--json")
    assert (ran.code, ran.json["synced"]) == (0, True)
    for vertical, ramp in (("receipts", 3.2), ("rewards_assistant", 3.0)):
        there = await rig.there(vertical)
        assert len(there) == SYNCED
        assert not any(rule.enabled for rule in there.values())
        kept = there["response_quality"].metadata
        assert (kept["vertical"], kept["thresholds"]["pre_ramp"]) == (vertical, ramp)
        assert (kept["floor"], kept["tolerance"], kept["classification"]) == (2.5, 0.2, "quality")
        assert kept["baseline_source"] == "provisional_seed"
        assert kept["recalibration_due"] == "2027-02-18"
        assert there["jailbreaking"].metadata["classification"] == "safety_refusal"


async def test_a_second_sync_writes_nothing(rig: Rig) -> None:
    assert (await rig.sync()).code == 0
    before = await rig.writes()
    again = await rig.sync("--json")
    assert again.code == 0
    assert [part["written"] for part in again.json["verticals"]] == [[], []]
    assert await rig.writes() == before
    assert (await rig.run("rules", "sync")).code == 0, "there is nothing to ask about"


async def test_only_what_differs_is_changed(rig: Rig) -> None:
    await rig.sync()
    before = await rig.there()
    edit(rig.configs / QUALITY, "floor: 2.5", "floor: 2.75")
    ran = await rig.sync("--json")
    told = {part["vertical"]: part for part in ran.json["verticals"]}
    assert told["receipts"]["update"] == [{"judge": "response_quality", "changes": ["floor"]}]
    assert told["receipts"]["written"] == told["rewards_assistant"]["written"] == ["response_quality"]
    after = await rig.there()
    assert after["response_quality"].metadata["floor"] == 2.75
    assert after["response_quality"].id == before["response_quality"].id
    assert {name: rule for name, rule in after.items() if name != "response_quality"} == {
        name: rule for name, rule in before.items() if name != "response_quality"
    }


async def test_without_a_yes_or_a_terminal_the_plan_is_shown_and_nothing_is_written(rig: Rig) -> None:
    ran = await rig.run("rules", "sync", "--vertical", "receipts")
    assert ran.code == 2
    assert ran.out == ""
    assert re.search("create +response_quality", ran.err)
    assert "--yes" in ran.err
    dry = await rig.run("rules", "sync", "--dry-run", "--json")
    assert (dry.code, dry.json["synced"], len(dry.json["verticals"][0]["create"])) == (0, False, SYNCED)
    assert await rig.there() == {}
    assert not await rig.writes()


async def test_one_vertical_alone_is_synced(rig: Rig) -> None:
    assert (await rig.sync("--vertical", "receipts")).code == 0
    assert len(await rig.there("receipts")) == SYNCED
    assert await rig.there("rewards_assistant") == {}
    ran = await rig.sync("--vertical", "receits")
    assert ran.code == 2
    assert "did you mean receipts" in ran.err


async def test_rules_are_enabled_where_opik_is_the_verticals_one_live_judge(rig: Rig) -> None:
    file = rig.configs / "verticals/receipts.yaml"
    file.write_text(file.read_text() + "live_judge: opik\n")
    assert (await rig.sync()).code == 0
    assert sorted(await _enabled(rig, "receipts")) == [False] * (SYNCED - SAID) + [True] * SAID
    assert await _enabled(rig, "rewards_assistant") == [False] * SYNCED
    file.write_text(file.read_text().replace("live_judge: opik", "live_judge: rampgate"))
    assert (await rig.sync()).code == 0
    assert await _enabled(rig, "receipts") == [False] * SYNCED


async def _enabled(rig: Rig, vertical: str) -> list[bool]:
    return [rule.enabled for rule in (await rig.there(vertical)).values()]


async def test_rules_of_others_are_never_touched_and_none_is_deleted(rig: Rig) -> None:
    project = {rule["name"]: rule["id"] for rule in (await rig.opik.call("GET", "/v1/private/projects"))["content"]}
    code = {
        "model": {"name": "m", "temperature": 0.0},
        "messages": [{"role": "USER", "content": "x"}],
        "variables": {},
        "schema": [{"name": "a", "type": "INTEGER", "description": "b"}],
    }
    body = {"name": "by hand", "type": "llm_as_judge", "action": "evaluator", "code": code, "sampling_rate": 0.5}
    await rig.opik.call(
        "POST", "/v1/private/automations/evaluators", body | {"project_ids": [project["receipts-eval"]]}
    )
    by_hand = (await rig.there())["by hand"]
    await rig.sync()
    await _without(rig.configs, "privacy_location")
    ran = await rig.sync("--vertical", "receipts", "--json")
    assert ran.code == 0
    left = {one["name"]: one["reason"] for one in ran.json["verticals"][0]["left_alone"]}
    assert left["by hand"] == "not made by a sync"
    assert "judge privacy_location is no longer in the registry" in left.values()
    there = await rig.there()
    assert there["by hand"] == by_hand
    assert "privacy_location" in there
    assert not [name for name in await rig.opik.requests() if "delete" in name.lower()]


async def _without(configs: Path, judge: str) -> None:
    """The registry without one judge."""
    (configs / f"rules/{judge}.yaml").unlink()
    for file in (configs / "manifest-base.yaml", configs / "evaluation_manifest.yaml"):
        lines = [line for line in file.read_text().splitlines() if judge not in line]
        file.write_text("\n".join(lines) + "\n")
    for file in (*configs.parent.glob("prompts/components/*.xml"),):
        file.write_text("\n".join(line for line in file.read_text().splitlines() if judge not in line))


async def test_pc5_ac7_a_running_worker_serves_the_synced_version_without_a_restart(rig: Rig) -> None:
    """The sync asks the worker at RAMPGATE_HTTP to read the files again."""
    metrics, healthy = Metrics(), Health(ok=True, reasons=[], checks={})
    served = ServedRegistry(rig.configs, metrics, Files())
    app = make_app(Side(metrics, lambda: healthy, lambda: healthy, registry=served))
    await served.refresh("start")
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    address: Any = runner.addresses[0]
    edit(rig.configs / "rules/ux_quality.yaml", "tolerance: 0.05", "tolerance: 0.02")
    with capture_logs():  # the worker's, which shares this process
        ran = await rig.sync("--json", RAMPGATE_HTTP=f"127.0.0.1:{address[1]}")
    assert ran.code == 0
    assert ran.json["worker"]["outcome"] == "loaded"
    assert ran.json["worker"]["config_hash"] == ran.json["config_hash"]
    (now,) = [one for one in served.eval_config("receipts", "receipt_scan").judges if one.id == "ux_quality"]
    assert now.tolerance == 0.02
    await runner.cleanup()


async def test_where_no_worker_answers_the_command_says_how_to_tell_one(rig: Rig) -> None:
    ran = await rig.sync()
    assert ran.code == 0
    assert "rampgate refresh" in ran.out
    assert "every 300 s" in ran.out


async def test_a_sync_leaves_its_duration(rig: Rig, tmp_path: Path) -> None:
    left = tmp_path / "sync.prom"
    assert (await rig.sync("--metrics-file", str(left))).code == 0
    assert "rampgate_rules_sync_duration_seconds_count 1.0" in await asyncio.to_thread(left.read_text)


KEY = "the-operators-key"


@pytest.fixture
async def guarded(tmp_path: Path) -> AsyncIterator[Rig]:
    """An Opik that wants a key."""
    running = await start(api_key=KEY)
    headers = {"Authorization": KEY, "Comet-Workspace": "default"}
    async with httpx.AsyncClient(timeout=20, headers=headers) as http:
        yield await made(tmp_path, ScriptedOpik(running.url, http), KEY)
    await running.close()


async def test_read_only_credentials_are_told_with_vertical_and_setting_and_need_no_right_to_plan(rig: Rig) -> None:
    for method in ("POST", "PATCH"):
        await rig.opik.fault(match={"path": EVALUATORS, "method": method}, status=403)
    assert (await rig.run("rules", "sync", "--dry-run")).code == 0
    ran = await rig.sync("--vertical", "receipts", "--json")
    assert ran.code == 2
    told = ran.json["verticals"][0]["error"]
    assert "the key of vertical receipts may read and not write" in told
    assert "RAMPGATE_OPIK_API_KEY" in told
    assert "api_key_file in" in told
    assert await rig.there() == {}


async def test_missing_credentials_are_told_with_vertical_and_setting(guarded: Rig) -> None:
    ran = await guarded.sync("--vertical", "receipts", "--json")
    assert ran.code == 2
    told = ran.json["verticals"][0]["error"]
    assert all(word in told for word in ("vertical receipts", "RAMPGATE_OPIK_API_KEY", "api_key_file"))
    assert (await guarded.sync(RAMPGATE_OPIK_API_KEY=KEY)).code == 0


async def test_a_verticals_own_key_is_used_for_its_project(guarded: Rig, tmp_path: Path) -> None:
    file, secret = guarded.configs / "verticals/receipts.yaml", tmp_path / "receipts.key"
    file.write_text(f"{file.read_text()}api_key_file: {secret}\n")
    ran = await guarded.sync("--vertical", "receipts", "--json")
    assert ran.code == 2
    assert "receipts.yaml: api_key_file: can't read" in ran.json["verticals"][0]["error"]
    secret.write_text(KEY + "\n")
    ran = await guarded.sync("--json")
    assert ran.code == 2
    receipts, rewards = ran.json["verticals"]
    assert (len(receipts["written"]), receipts["error"]) == (17, None)
    assert "vertical rewards_assistant" in rewards["error"]
    assert KEY not in ran.out + ran.err


OLD = "old_judge"


@pytest.fixture
async def aged(tmp_path: Path, opik: ScriptedOpik) -> Rig:
    """Each vertical's project has copies of its judges, and one of a judge whose file is gone."""
    found = await made(tmp_path / "registry", opik)
    assert (await found.sync()).code == 0
    for vertical in PROJECTS:
        await left_behind(found, vertical, vertical)
    return found


async def left_behind(aged: Rig, project: str, vertical: str, **changes: Any) -> None:
    rule = (await aged.there(project))["ux_quality"]
    metadata = {**rule.metadata, "judge_id": OLD, "vertical": vertical, **changes}
    metadata.pop("rule_id", None)  # as a sync left it that put no ids into rules
    client = OpikClient(aged.opik.url, "default", aged.key, 5.0, 2)
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


async def test_pc5_2_a_judge_without_a_file_is_deleted_from_each_project_and_audited(aged: Rig, audit: Path) -> None:
    before = {vertical: await aged.there(vertical) for vertical in PROJECTS}
    ran = await aged.run("rules", "sync", "--delete", "old-judge", "--audit", str(audit), "--yes", "--json")
    assert ran.code == 0, ran.err
    for vertical in PROJECTS:
        left = dict(before[vertical])
        gone = left.pop(OLD)
        assert await aged.there(vertical) == left, "no other rule is touched"
        assert gone.id in audit.read_text()
    entries = [json.loads(line) for line in audit.read_text().splitlines()]
    assert {(one["kind"], one["vertical"], bool(one["by"]), bool(one["at"])) for one in entries} == {
        ("rule_delete", vertical, True, True) for vertical in PROJECTS
    }
    again = await aged.run("rules", "sync", "--delete", OLD, "--audit", str(audit), "--yes")
    assert (again.code, "nothing to do" in again.out) == (0, True)


async def test_a_judge_that_has_a_file_is_refused_with_the_file_and_what_to_do(aged: Rig, audit: Path) -> None:
    before = await aged.writes()
    ran = await aged.run("rules", "sync", "--delete", "ux-quality", "--audit", str(audit), "--yes")
    assert ran.code == 2
    assert "rules/ux_quality.yaml" in ran.err
    assert "delete the file first" in ran.err
    assert await aged.writes() == before
    assert not audit.exists()


async def test_without_an_audit_or_a_yes_nothing_is_deleted(aged: Rig, audit: Path) -> None:
    before = await aged.writes()
    ran = await aged.run("rules", "sync", "--delete", OLD, "--yes")
    assert (ran.code, "--audit FILE" in ran.err) == (2, True)
    ran = await aged.run("rules", "sync", "--delete", OLD, "--audit", str(audit))
    assert (ran.code, "--yes" in ran.err) == (2, True)
    assert (await aged.run("rules", "sync", "--delete", OLD, "--dry-run")).code == 0
    assert await aged.writes() == before


async def test_one_verticals_copy_is_deleted_alone_and_anothers_in_its_project_is_left(aged: Rig, audit: Path) -> None:
    await left_behind(aged, "receipts", "somebody")
    ran = await aged.run(
        "rules", "sync", "--delete", OLD, "--vertical", "receipts", "--audit", str(audit), "--yes", "--json"
    )
    assert [[each["judge"] for each in one["delete"]] for one in ran.json["verticals"]] == [[OLD]]
    assert [one["written"] for one in ran.json["verticals"]] == [[OLD]]
    assert (await aged.there("receipts"))[OLD].metadata["vertical"] == "somebody"
    assert OLD in await aged.there("rewards_assistant")
