"""Automation rules in Opik's REST API, on a local Opik."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from agents.ports import Unauthorized, Unavailable
from evalcore.registry.opik_rules import Plan, desired, plan
from evalcore.registry.registry import Judge
from schemas.judges import Milestone
from streams.opik.client import OpikClient, Refused
from streams.opik.rules import NoProject, OpikRules
from tests.contract.opik.scripted_opik import ScriptedOpik
from tests.unit.evalcore.registry.built_judges import judge


@pytest.fixture
async def gateway(opik: ScriptedOpik) -> AsyncIterator[OpikRules]:
    made = OpikClient(opik.url, "default", None, 5.0, 4)
    yield OpikRules(made, 1.0)
    await made.close()


@pytest.fixture
async def project(opik: ScriptedOpik, gateway: OpikRules) -> str:
    await opik.call("POST", "/v1/private/projects", {"name": "receipts-eval"})
    return await gateway.project_id("receipts-eval")


async def sync(gateway: OpikRules, project: str, judges: list[Judge]) -> Plan:
    """As `rules sync`: what is made gets the id that Opik gave it."""
    made = plan(judges, "receipts", False, await gateway.rules(project), project)
    for rule in (*made.create, *(one.rule for one in made.update)):
        await gateway.write(project, rule)
    for one in plan(judges, "receipts", False, await gateway.rules(project), project).update:
        await gateway.write(project, one.rule)
    return made


async def test_what_is_synced_comes_back_whole(gateway: OpikRules, project: str) -> None:
    """PC5 AC-8, the round trip: floor, tolerance, classification and provenance too."""
    await sync(gateway, project, [judge(), judge("ux_quality")])
    there = {rule.metadata["judge_id"]: rule for rule in await gateway.rules(project)}
    wanted = desired(judge(), "receipts", False)
    wanted = wanted.with_id(there["response_quality"].id)
    assert replace(there["response_quality"], projects=()) == wanted
    assert there["response_quality"].metadata == wanted.metadata
    assert there["response_quality"].projects == (project,)
    assert not any(rule.enabled for rule in there.values())


async def test_syncing_the_prior_version_restores_the_judge(gateway: OpikRules, project: str) -> None:
    """PC5 AC-7: the prior files, synced again, are what Opik holds; the rule keeps its id."""
    await sync(gateway, project, [judge()])
    (good,) = await gateway.rules(project)
    bad = judge(prompt="Always say 5.", floor=1.0, filter=None, thresholds=dict.fromkeys(Milestone, 1.0))
    await sync(gateway, project, [bad])
    (broken,) = await gateway.rules(project)
    assert "Always say 5." in broken.messages[0][1]
    assert broken.filters == ()
    assert broken.metadata["floor"] == 1.0
    await sync(gateway, project, [judge()])
    assert await gateway.rules(project) == [good]


async def test_only_the_verticals_own_project_is_written(gateway: OpikRules, project: str, opik: ScriptedOpik) -> None:
    await opik.call("POST", "/v1/private/projects", {"name": "other"})
    other = await gateway.project_id("other")
    await sync(gateway, project, [judge()])
    assert await gateway.rules(other) == []


async def test_rules_of_another_kind_are_read_and_left_alone(
    gateway: OpikRules, project: str, opik: ScriptedOpik
) -> None:
    python = {
        "name": "by hand",
        "action": "evaluator",
        "type": "user_defined_metric_python",
        "project_ids": [project],
        "code": {"metric": "class M: ...", "arguments": {"output": "output"}},
    }
    await opik.call("POST", "/v1/private/automations/evaluators", python)
    made = await sync(gateway, project, [judge()])
    assert [left.name for left in made.left_alone] == ["by hand"]
    assert len(await gateway.rules(project)) == 2


async def test_all_pages_are_read(gateway: OpikRules, project: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streams.opik.rules.PAGE", 2)
    judges = [judge(f"judge_{number}") for number in range(5)]
    await sync(gateway, project, judges)
    assert len(await gateway.rules(project)) == 5
    assert (await sync(gateway, project, judges)).empty


async def test_reading_and_planning_need_no_right_to_write(
    gateway: OpikRules, project: str, opik: ScriptedOpik
) -> None:
    """PC5 AC-8: with credentials that may only read, rules are found; only a sync with something to do is refused."""
    await sync(gateway, project, [judge()])
    for method in ("POST", "PATCH"):
        await opik.fault(match={"path": "automations/evaluators", "method": method}, status=403)
    assert [rule.metadata["judge_id"] for rule in await gateway.rules(project)] == ["response_quality"]
    assert (await sync(gateway, project, [judge()])).empty
    with pytest.raises(Unauthorized):
        await sync(gateway, project, [judge(floor=3.0)])


async def test_a_project_that_is_not_there_is_not_made(gateway: OpikRules, opik: ScriptedOpik) -> None:
    with pytest.raises(NoProject, match="no-such"):
        await gateway.project_id("no-such")


async def test_a_create_without_an_answer_is_not_doubled(gateway: OpikRules, project: str, opik: ScriptedOpik) -> None:
    await opik.fault(match={"path": "automations/evaluators", "method": "POST"}, status=503, after_write=True, times=1)
    with pytest.raises(Unavailable):
        await sync(gateway, project, [judge()])
    assert not (await sync(gateway, project, [judge()])).create
    assert len(await gateway.rules(project)) == 1


async def test_a_create_that_opik_puts_off_is_tried_again(gateway: OpikRules, project: str, opik: ScriptedOpik) -> None:
    """429 says that nothing was done; Opik counts the writes of a minute."""
    limit = {"path": "automations/evaluators", "method": "POST"}
    await opik.fault(match=limit, status=429, headers={"Retry-After": "1"}, times=1)
    await sync(gateway, project, [judge()])
    assert len(await gateway.rules(project)) == 1


async def test_a_refusal_names_the_rule(gateway: OpikRules, project: str, opik: ScriptedOpik) -> None:
    body = {"errors": ["code.model must not be null"]}
    await opik.fault(match={"path": "automations/evaluators", "method": "POST"}, status=422, body=body)
    with pytest.raises(Refused, match=r"Response Quality.*code.model"):
        await sync(gateway, project, [judge()])


async def test_a_second_rule_of_a_name_is_numbered_by_opik_and_the_next_sync_has_nothing_to_do(
    gateway: OpikRules, project: str, opik: ScriptedOpik
) -> None:
    body = _body(project, name="response quality")
    await opik.call("POST", "/v1/private/automations/evaluators", body)
    await sync(gateway, project, [judge()])
    names = {rule.name for rule in await gateway.rules(project)}
    assert names == {"response quality", "Response Quality-1"}
    assert (await sync(gateway, project, [judge()])).empty


async def test_a_rate_comes_back_in_single_precision_and_the_next_sync_has_nothing_to_do(
    gateway: OpikRules, project: str
) -> None:
    await sync(gateway, project, [judge(sampling_rate=0.123456789)])
    (there,) = await gateway.rules(project)
    assert there.sampling_rate != 0.123456789
    assert (await sync(gateway, project, [judge(sampling_rate=0.123456789)])).empty


REFUSED: list[tuple[dict[str, Any], int]] = [
    ({"name": " "}, 422),
    ({"type": "llm"}, 400),
    ({"action": "annotate"}, 400),
    ({"sampling_rate": 1.5}, 422),
    ({"code": None}, 422),
    ({"code.model": None}, 422),
    ({"code.model": {"temperature": 1.0}}, 422),
    ({"code.messages": []}, 422),
    ({"code.messages": [{"role": "user", "content": "x"}]}, 400),
    ({"code.messages": [{"role": "USER"}]}, 422),
    ({"code.variables": {"input": 3}}, 400),
    ({"code.schema": [{"name": "a", "type": "FLOAT", "description": "b"}]}, 400),
    ({"code.schema": [{"name": "a", "type": "INTEGER"}]}, 422),
    ({"filters": [{"field": "sub_agent", "operator": "=", "value": "x"}]}, 400),
    ({"filters": [{"field": "metadata", "key": "a", "operator": "equals", "value": "x"}]}, 400),
    ({"filters": [{"field": "metadata", "key": "a", "operator": "="}]}, 400),
]


@pytest.mark.parametrize(("changes", "status"), REFUSED)
async def test_the_local_opik_refuses_what_opik_cannot_read(
    changes: dict[str, Any], status: int, project: str, opik: ScriptedOpik
) -> None:
    """Opik's records have enums for role, score type, field and operator, and non-null parts."""
    body = _body(project)
    for path, value in changes.items():
        *parents, last = path.split(".")
        part = body
        for name in parents:
            part = part[name]
        part[last] = value
    answer = await opik.http.post(opik.url + "/v1/private/automations/evaluators", json=body)
    assert answer.status_code == status, answer.text
    assert (await opik.http.post(opik.url + "/v1/private/automations/evaluators", json=_body(project))).is_success


def _body(project: str, **changes: Any) -> dict[str, Any]:
    code = {
        "model": {"name": "gpt-5-mini", "temperature": 1.0},
        "messages": [{"role": "USER", "content": "Rate {{input}}."}],
        "variables": {"input": "input.question"},
        "schema": [{"name": "a", "type": "INTEGER", "description": "b"}],
    }
    whole = {"name": "A", "type": "llm_as_judge", "action": "evaluator", "project_ids": [project], "code": code}
    return whole | changes
