"""`rampgate rules sync` and `create` on a local Opik: PC5 FR-7, FR-9, AC-7, AC-8, §5.7."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from aiohttp import web
from structlog.testing import capture_logs

from rampgate.http.registry import add_registry
from rampgate.localopik import rules as local_rules
from rampgate.localopik.server import start
from rampgate.registry import ServedRegistry
from streams.metrics import Metrics
from tests.contract.scripted_opik import ScriptedOpik
from tests.contract.sync_rig import EVALUATORS, PROJECTS, Files, Rig
from tests.unit.registry_copies import copied, edit

QUALITY = "rules/response_quality.yaml"
CREATE = {"path": EVALUATORS, "method": "POST"}


@pytest.fixture
async def rig(tmp_path: Path, opik: ScriptedOpik) -> Rig:
    for project in PROJECTS.values():
        await opik.call("POST", "/v1/private/projects", {"name": project})
    return Rig(copied(tmp_path), opik)


async def test_pc5_ac8_each_vertical_gets_its_judges_in_its_own_project_disabled(rig: Rig) -> None:
    """Floor, tolerance, classification and provenance come back with each rule; Opik judges nothing a second time."""
    ran = await rig.sync("--json")
    assert (ran.code, ran.json["synced"]) == (0, True)
    for vertical, ramp in (("receipts", 3.2), ("rewards_assistant", 3.0)):
        there = await rig.there(vertical)
        assert len(there) == 16
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
    assert "create response_quality" in ran.out
    assert "--yes" in ran.err
    dry = await rig.run("rules", "sync", "--dry-run", "--json")
    assert (dry.code, dry.json["synced"], len(dry.json["verticals"][0]["create"])) == (0, False, 16)
    assert await rig.there() == {}
    assert not await rig.writes()


async def test_one_vertical_alone_is_synced(rig: Rig) -> None:
    assert (await rig.sync("--vertical", "receipts")).code == 0
    assert len(await rig.there("receipts")) == 16
    assert await rig.there("rewards_assistant") == {}
    ran = await rig.sync("--vertical", "receits")
    assert ran.code == 2
    assert "did you mean receipts" in ran.err


async def test_rules_are_enabled_where_opik_is_the_verticals_one_live_judge(rig: Rig) -> None:
    file = rig.configs / "verticals/receipts.yaml"
    file.write_text(file.read_text() + "live_judge: opik\n")
    assert (await rig.sync()).code == 0
    assert all(rule.enabled for rule in (await rig.there("receipts")).values())
    assert not any(rule.enabled for rule in (await rig.there("rewards_assistant")).values())
    file.write_text(file.read_text().replace("live_judge: opik", "live_judge: rampgate"))
    assert (await rig.sync()).code == 0
    assert not any(rule.enabled for rule in (await rig.there("receipts")).values())


async def test_a_refused_rule_is_reported_the_others_are_synced_and_the_next_run_finishes(rig: Rig) -> None:
    await rig.opik.fault(match=CREATE, delay_seconds=0.001, times=3)
    await rig.opik.fault(match=CREATE, status=422, body={"errors": ["code.model: unknown"]}, times=1)
    ran = await rig.sync("--vertical", "receipts", "--json")
    assert ran.code == 1
    (part,) = ran.json["verticals"]
    assert part["failed"] == [{"judge": "fetch_legal", "reason": "rule 'Fetch Legal Judge': code.model: unknown"}]
    assert len(part["written"]) == len(await rig.there()) == 15
    again = await rig.sync("--vertical", "receipts", "--json")
    assert (again.code, again.json["verticals"][0]["written"]) == (0, ["fetch_legal"])
    assert len(await rig.there()) == 16


async def test_an_outage_midway_is_told_and_the_next_run_finishes_without_doubles(rig: Rig) -> None:
    """A create that got no answer may have been done: the next plan looks."""
    await rig.opik.fault(match=CREATE, delay_seconds=0.001, times=3)
    await rig.opik.fault(match=CREATE, status=503, after_write=True, times=1)
    ran = await rig.sync("--json")
    assert ran.code == 2
    receipts, rewards = ran.json["verticals"]
    assert len(receipts["written"]) == 3
    assert "what was done stands, run it again" in receipts["error"]
    assert (len(rewards["written"]), rewards["error"]) == (16, None)
    again = await rig.sync("--json")
    assert (again.code, len(again.json["verticals"][0]["written"])) == (0, 12)
    assert len(await rig.there()) == 16


async def test_an_opik_that_is_away_is_told_once_and_nothing_is_written(rig: Rig) -> None:
    ran = await rig.sync("--json", RAMPGATE_OPIK="http://127.0.0.1:9/api")
    assert ran.code == 2
    assert all("http://127.0.0.1:9/api can't be reached" in part["error"] for part in ran.json["verticals"])


async def test_a_broken_registry_syncs_nothing_and_asks_opik_nothing(rig: Rig) -> None:
    edit(rig.configs / QUALITY, "tolerance: 0.2", "tolerance: -1")
    before = await rig.opik.requests()
    ran = await rig.sync("--json")
    assert ran.code == 1
    assert (ran.json["synced"], ran.json["valid"]) == (False, False)
    assert ran.json["errors"][0]["field"] == "tolerance"
    text = await rig.sync()
    assert (text.code, "nothing is synced" in text.out) == (1, True)
    after = await rig.opik.requests()
    assert {name for name in after if after[name] != before.get(name)} <= {"GET /_requests"}


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


async def test_a_project_that_is_not_there_stops_its_own_vertical_only(rig: Rig) -> None:
    edit(rig.configs / "verticals/receipts.yaml", "project: receipts-eval", "project: not-made-yet")
    ran = await rig.sync("--json")
    assert ran.code == 2
    receipts, rewards = ran.json["verticals"]
    assert "no project 'not-made-yet'" in receipts["error"]
    assert len(rewards["written"]) == 16


@pytest.fixture
async def guarded(tmp_path: Path) -> AsyncIterator[Rig]:
    """An Opik that wants a key."""
    running = await start(api_key="the-operators-key")
    async with httpx.AsyncClient(timeout=20, headers=HEADERS) as http:
        rig = Rig(copied(tmp_path), ScriptedOpik(running.url, http), "the-operators-key")
        for project in PROJECTS.values():
            await rig.opik.call("POST", "/v1/private/projects", {"name": project})
        yield rig
    await running.close()


HEADERS = {"Authorization": "the-operators-key", "Comet-Workspace": "default"}


async def test_missing_credentials_are_told_with_vertical_and_setting(guarded: Rig) -> None:
    ran = await guarded.sync("--vertical", "receipts", "--json")
    assert ran.code == 2
    told = ran.json["verticals"][0]["error"]
    assert all(word in told for word in ("vertical receipts", "RAMPGATE_OPIK_API_KEY", "api_key_file"))
    assert (await guarded.sync(RAMPGATE_OPIK_API_KEY="the-operators-key")).code == 0


async def test_a_verticals_own_key_is_used_for_its_project(guarded: Rig, tmp_path: Path) -> None:
    file, secret = guarded.configs / "verticals/receipts.yaml", tmp_path / "receipts.key"
    file.write_text(f"{file.read_text()}api_key_file: {secret}\n")
    ran = await guarded.sync("--vertical", "receipts", "--json")
    assert ran.code == 2
    assert "receipts.yaml: api_key_file: can't read" in ran.json["verticals"][0]["error"]
    secret.write_text("the-operators-key\n")
    ran = await guarded.sync("--json")
    assert ran.code == 2
    receipts, rewards = ran.json["verticals"]
    assert (len(receipts["written"]), receipts["error"]) == (16, None)
    assert "vertical rewards_assistant" in rewards["error"]
    assert "the-operators-key" not in ran.out + ran.err


async def test_what_opik_keeps_otherwise_is_noticed(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_rules, "_stored", lambda value: value | {"sampling_rate": 0.5})
    ran = await rig.sync("--vertical", "receipts", "--json")
    assert ran.code == 1
    reasons = {one["reason"] for one in ran.json["verticals"][0]["failed"]}
    assert reasons == {"Opik took it and keeps it otherwise: differs in sampling_rate"}


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
    await _without(rig.configs, "product_routing")
    ran = await rig.sync("--vertical", "receipts", "--json")
    assert ran.code == 0
    left = {one["name"]: one["reason"] for one in ran.json["verticals"][0]["left_alone"]}
    assert left["by hand"] == "not made by a sync"
    assert "judge product_routing is no longer in the registry" in left.values()
    there = await rig.there()
    assert there["by hand"] == by_hand
    assert "product_routing" in there
    assert not [name for name in await rig.opik.requests() if "delete" in name.lower()]


async def _without(configs: Path, judge: str) -> None:
    """The registry without one judge."""
    (configs / f"rules/{judge}.yaml").unlink()
    for file in (configs / "manifest-base.yaml", configs / "evaluation_manifest.yaml"):
        lines = [line for line in file.read_text().splitlines() if judge not in line]
        file.write_text("\n".join(lines) + "\n")
    for file in (*configs.parent.glob("prompts/components/*.xml"),):
        file.write_text("\n".join(line for line in file.read_text().splitlines() if judge not in line))


async def test_pc5_own_form_creates_and_restores_one_rule(rig: Rig) -> None:
    """AC-7: rules.py create --name <rule> --file configs/rules/<rule>.yaml, run again with the prior file."""
    form = ("rules", "create", "--name", "response_quality", "--file", str(rig.configs / QUALITY))
    ran = await rig.run(*form, "--json")
    assert ran.code == 0
    assert list(await rig.there("receipts")) == list(await rig.there("rewards_assistant")) == ["response_quality"]
    good = await rig.there()
    text = (rig.configs / QUALITY).read_text()
    edit(rig.configs / QUALITY, "## Scores", "Always answer 5.\n\n  ## Scores")
    assert (await rig.run(*form)).code == 0
    assert await rig.there() != good
    (rig.configs / QUALITY).write_text(text)
    assert (await rig.run(*form)).code == 0
    assert await rig.there() == good
    before = await rig.writes()
    assert (await rig.run(*form)).code == 0
    assert await rig.writes() == before


async def test_create_takes_the_name_in_any_spelling_and_refuses_anothers(rig: Rig, tmp_path: Path) -> None:
    file = str(rig.configs / "rules/ux_quality.yaml")
    for name in ("ux-quality", "UX_Quality", "UX Quality Judge"):
        assert (await rig.run("rules", "create", "--name", name, "--file", file, "--dry-run")).code == 0, name
    ran = await rig.run("rules", "create", "--name", "jailbreaking", "--file", file)
    assert (ran.code, "ux_quality" in ran.err) == (2, True)
    assert (await rig.run("rules", "create", "--name", "x", "--file", "no/such.yaml")).code == 2
    loose = tmp_path / "ux_quality.yaml"
    loose.write_text(Path(file).read_text())
    ran = await rig.run("rules", "create", "--name", "ux_quality", "--file", str(loose))
    assert (ran.code, "FR-9" in ran.err) == (2, True)
    assert not await rig.writes()


async def test_a_verticals_own_rule_file_is_created_in_its_project_alone(rig: Rig) -> None:
    form = ("rules", "create", "--name", "ux-quality", "--file", str(rig.configs / "rules/receipts/ux_quality.yaml"))
    assert (await rig.run(*form, "--vertical", "rewards_assistant")).code == 2
    assert (await rig.run(*form)).code == 0
    assert list(await rig.there("receipts")) == ["ux_quality"]
    assert await rig.there("rewards_assistant") == {}


async def test_a_broken_file_is_not_created(rig: Rig) -> None:
    edit(rig.configs / QUALITY, "tolerance: 0.2", "tolerance: -1")
    ran = await rig.run("rules", "create", "--name", "response_quality", "--file", str(rig.configs / QUALITY), "--json")
    assert (ran.code, ran.json["synced"]) == (1, False)
    assert not await rig.writes()


async def test_pc5_ac7_a_running_worker_serves_the_synced_version_without_a_restart(rig: Rig) -> None:
    """The sync asks the worker at RAMPGATE_HTTP to read the files again."""
    served, app = ServedRegistry(rig.configs, Metrics(), Files()), web.Application()
    add_registry(app, served)
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
