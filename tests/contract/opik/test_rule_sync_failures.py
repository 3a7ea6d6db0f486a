"""A sync that can't do all that was asked tells what went wrong and does the rest; the next run finishes (PC5 FR-9)."""

from __future__ import annotations

import pytest

from rampgate.command import read_registry, read_tree
from rampgate.local.opik import rules as local_rules
from rampgate.registry.rule_sync import RuleSync
from rampgate.registry.verticals import load_verticals
from rampgate.settings import Settings
from tests.contract.opik.sync_rig import EVALUATORS, PROJECTS, QUALITY, Rig
from tests.unit.rampgate.cli.registry_copies import edit

CREATE = {"path": EVALUATORS, "method": "POST"}


async def test_a_refused_rule_is_reported_the_others_are_synced_and_the_next_run_finishes(rig: Rig) -> None:
    await rig.opik.fault(match=CREATE, delay_seconds=0.001, times=3)
    await rig.opik.fault(match=CREATE, status=422, body={"errors": ["code.model: unknown"]}, times=1)
    ran = await rig.sync("--vertical", "receipts", "--json")
    assert ran.code == 1
    (part,) = ran.json["verticals"]
    assert part["failed"] == [{"judge": "fetch_legal", "reason": "rule 'Fetch Legal Judge': code.model: unknown"}]
    assert len(part["written"]) == len(await rig.there()) == 16
    again = await rig.sync("--vertical", "receipts", "--json")
    assert (again.code, again.json["verticals"][0]["written"]) == (0, ["fetch_legal"])
    assert len(await rig.there()) == 17


async def test_what_opik_keeps_otherwise_is_noticed(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_rules, "_stored", lambda value: value | {"sampling_rate": 0.5})
    ran = await rig.sync("--vertical", "receipts", "--json")
    assert ran.code == 1
    reasons = {one["reason"] for one in ran.json["verticals"][0]["failed"]}
    assert reasons == {"Opik accepted it and stored other values: differs in sampling_rate"}


async def test_an_outage_midway_is_told_and_the_next_run_finishes_without_doubles(rig: Rig) -> None:
    """A create that got no answer may have been done: the next plan looks."""
    await rig.opik.fault(match=CREATE, delay_seconds=0.001, times=3)
    await rig.opik.fault(match=CREATE, status=503, after_write=True, times=1)
    ran = await rig.sync("--json")
    assert ran.code == 2
    receipts, rewards = ran.json["verticals"]
    assert len(receipts["written"]) == 3
    assert "what was written stays, run it again" in receipts["error"]
    assert (len(rewards["written"]), rewards["error"]) == (17, None)
    again = await rig.sync("--json")
    assert (again.code, len(again.json["verticals"][0]["create"])) == (0, 13)
    assert len(await rig.there()) == 17


async def test_an_opik_that_is_away_is_told_for_each_vertical_and_nothing_is_written(rig: Rig) -> None:
    ran = await rig.sync("--json", RAMPGATE_OPIK="http://127.0.0.1:9/api")
    assert ran.code == 2
    assert [part["vertical"] for part in ran.json["verticals"]] == sorted(PROJECTS)
    assert all("http://127.0.0.1:9/api can't be reached" in part["error"] for part in ran.json["verticals"])
    text = await rig.sync(RAMPGATE_OPIK="http://127.0.0.1:9/api")
    told = [line for line in text.out.splitlines() if "http://127.0.0.1:9/api can't be reached" in line]
    assert (text.code, len(told)) == (2, 1), "once, and not for each rule"
    assert ", ".join(sorted(PROJECTS)) in told[0]
    assert not await rig.writes()


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


async def test_a_project_that_is_not_there_stops_its_own_vertical_only(rig: Rig) -> None:
    edit(rig.configs / "verticals/receipts.yaml", "project: receipts-eval", "project: not-made-yet")
    ran = await rig.sync("--json")
    assert ran.code == 2
    receipts, rewards = ran.json["verticals"]
    assert "no project 'not-made-yet'" in receipts["error"]
    assert len(rewards["written"]) == 17


async def test_two_syncs_at_once_leave_doubles_and_each_look_says_so_until_they_are_gone(rig: Rig) -> None:
    """Both planned before either wrote. What looks last sees every judge twice, and so does each sync that follows."""
    settings = Settings(opik=rig.opik.url, configs=rig.configs)
    registry, _ = read_registry(read_tree(rig.configs))
    assert registry is not None
    verticals = [load_verticals(rig.configs)["receipts"]]
    one, two = RuleSync(settings, registry, verticals), RuleSync(settings, registry, verticals)
    await one.look()
    await two.look()
    await one.carry_out()
    await two.carry_out()
    assert (one.exit_code, two.exit_code) == (0, 1)
    after = await rig.sync("--vertical", "receipts", "--json")
    assert (after.code, after.json["synced"]) == (1, False)
    failed = after.json["verticals"][0]["failed"]
    assert len(failed) == 17
    assert {one["reason"] for one in failed} == {
        f"a second copy of {one['judge']}; delete it in Opik" for one in failed
    }
    listed = await rig.opik.call("GET", f"/v1/private/{EVALUATORS}?size=100")
    doubles = [rule["id"] for rule in listed["content"] if rule["name"].endswith("-1")]
    await rig.opik.call("POST", f"/v1/private/{EVALUATORS}/delete", {"ids": doubles})
    assert (await rig.sync("--vertical", "receipts")).code == 0


async def test_a_copy_that_somebody_made_in_opik_is_not_written_over(rig: Rig) -> None:
    """It carries our metadata, since it was copied whole. What a sync made is known by the id that Opik gave it."""
    await rig.sync("--vertical", "receipts")
    listed = await rig.opik.call("GET", f"/v1/private/{EVALUATORS}?size=100")
    rule = next(one for one in listed["content"] if "response_quality" in str(one["code"]["variables"]))
    body = {name: rule[name] for name in ("type", "action", "code", "sampling_rate", "enabled", "filters")}
    body["code"]["messages"] = [{"role": "USER", "content": "a trial of somebody's"}]
    body |= {"name": "a trial", "project_ids": [one["project_id"] for one in rule["projects"]]}
    await rig.opik.call("POST", f"/v1/private/{EVALUATORS}", body)
    await rig.opik.call("POST", f"/v1/private/{EVALUATORS}/delete", {"ids": [rule["id"]]})
    ran = await rig.sync("--vertical", "receipts", "--json")
    assert ran.code == 0
    assert ran.json["verticals"][0]["written"] == ["response_quality"]
    listed = await rig.opik.call("GET", f"/v1/private/{EVALUATORS}?size=100")
    trial = next(one for one in listed["content"] if one["name"] == "a trial")
    assert trial["code"]["messages"][0]["content"] == "a trial of somebody's"
    assert len(listed["content"]) == 18
    again = await rig.sync("--vertical", "receipts", "--json")
    assert (again.code, again.json["verticals"][0]["written"]) == (0, [])
