"""Live judges and gates: a trace that waits for its workflow has not ended; the completed one is judged once, whole."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from agents.live.balance import End
from agents.live.scores import read_marks
from evalcore.gates.composition import Drawn, facts_of
from evalcore.remediation.sealing import FIELDS, SEAL
from schemas.manifests import GateDefaults
from schemas.outcomes import Kind
from streams.gates.samples import PooledTraces
from streams.gates.traffic import Scope
from tests.unit.agents.builders import MINUTE, NOW, thumb, trace
from tests.unit.agents.completing.completing_rig import FORMS, SEALS, VERTICAL, named
from tests.unit.agents.live.live_rig import JUDGES, Rig, in_opik, live_trace


def rig() -> Rig:
    made = Rig()
    made.world.policy = replace(made.world.policy, forms=FORMS)
    return made


async def nothing(trace_id: str) -> None:
    """Stands for an Opik without traces."""


def bare(rid: str = "r", **more: Any) -> dict[str, Any]:
    return {**named(rid), "trace_id": live_trace(rid)["trace_id"], **more}


def completed(event: dict[str, Any], **more: Any) -> dict[str, Any]:
    """The trace as we publish it, a second later."""
    fields: dict[str, Any] = {name: {} for name in FIELDS} | {"proposal_phase": "Completed"}
    text = {"messages": [{"role": "assistant", "content": [{"type": "text", "text": "SUMMARY"}]}]}
    return SEALS.sealed({**event, "ended_at": event["ended_at"] + 60, "output": text, **fields, **more})


async def test_a_trace_that_waits_gets_no_mark_and_its_completion_is_judged() -> None:
    world = rig()
    event = bare()
    await world.traces(event)
    assert world.model.asked == []
    assert world.figures.ended_as(End.NOT_ENDED) == 1
    assert await read_marks(world.world.store, [bytes.fromhex(event["trace_id"].replace("-", ""))]) == {}

    await world.traces(completed(event))

    assert world.figures.ended_as(End.JUDGED) == 1
    assert world.model.asked
    assert all("SUMMARY" in str(asked) for asked in world.model.asked)


async def test_a_trace_that_waits_without_output_is_not_marked_either() -> None:
    world = rig()
    event = bare()
    await world.traces({name: value for name, value in event.items() if name != "output"})

    await world.traces(completed(event))

    assert world.figures.ended_as(End.JUDGED) == 1


async def test_a_thumb_on_a_trace_that_waits_sets_no_mark_and_the_completion_is_judged_with_it() -> None:
    """Opik has the trace with its end, and without what we add."""
    world = rig()
    event = bare()
    world.in_opik[event["trace_id"]] = in_opik(event)
    await world.come(Kind.TRACE, event)
    await world.come(Kind.THUMBS, thumb("r", "down"))
    await world.age(20 * MINUTE)
    assert world.model.asked == []
    assert world.world.causes() == []

    await world.come(Kind.TRACE, completed(event))
    await world.settle()
    await world.age(10 * MINUTE)

    assert world.figures.ended_as(End.JUDGED) == 1
    assert len(world.written(event)) == len(JUDGES), "voted down: all judges, whatever their rates"
    assert all("SUMMARY" in str(asked) for asked in world.model.asked)
    assert world.parked == {Kind.TRACE: [], Kind.THUMBS: []}
    assert world.figures.differences() == {}


async def test_a_thumb_after_the_completion_is_judged_by_its_record() -> None:
    world = rig()
    event = {**bare(), "trace_id": live_trace(sampled=False)["trace_id"]}
    await world.traces(event)
    await world.traces(completed(event))
    asked = len(world.model.asked)

    assert await world.thumbs(thumb("r", "down", at=NOW + MINUTE)) == []

    assert len(world.model.asked) > asked
    assert all("SUMMARY" in str(one) for one in world.model.asked)


async def test_a_thumb_whose_trace_never_is_completed_becomes_a_dead_letter_and_no_half_answer_is_judged() -> None:
    world = rig()
    await world.come(Kind.TRACE, bare())
    await world.come(Kind.THUMBS, thumb("r", "down"))
    await world.age(40 * MINUTE)

    assert world.model.asked == []
    assert world.world.causes() == ["missing_trace"]


async def test_a_trace_of_the_vertical_that_names_no_workflow_is_judged_as_it_came() -> None:
    world = rig()
    await world.traces({name: value for name, value in bare().items() if name != "proposal"})

    assert world.figures.ended_as(End.JUDGED) == 1


@pytest.mark.parametrize("seal", ["0" * 64, None])
async def test_judges_see_no_forged_field(seal: str | None) -> None:
    world = rig()
    plain = {name: value for name, value in bare().items() if name != "proposal"}
    seen: list[Any] = []
    world.world.send(Kind.TRACE, plain)
    forged = plain | {"proposal_phase": "Completed", SEAL: seal}
    judging = world.judging()
    settle = judging._settle

    async def noted(todo: Any, late: Any) -> None:
        seen.extend(one.source for one in todo)
        await settle(todo, late)

    judging._settle = noted  # type: ignore[method-assign]
    sent = world.world.send(Kind.TRACE, forged)
    await world.world.run(Kind.TRACE)
    world.world.wait(MINUTE)
    await judging.traces(sent)

    assert [source.get("proposal_phase") for source in seen] == [None]


async def test_a_gate_s_sample_has_the_completed_record_and_never_one_whose_seal_is_unknown() -> None:
    world = rig().world
    event = bare()
    world.send(Kind.TRACE, event)
    await world.run(Kind.TRACE)
    scope = Scope("assistant", "v1", VERTICAL)

    async def sample(forms: Any) -> list[dict[str, Any]]:
        traces = PooledTraces(world.store, world.log, world.topics["traces"], world.clock, nothing, forms)
        window = await traces.window(scope, 86_400)
        return [one.content for one in await traces.read(window.drawable, scope)]

    assert await sample(FORMS) == []
    world.send(Kind.TRACE, completed(event))
    await world.run(Kind.TRACE)
    assert [one["proposal_phase"] for one in await sample(FORMS)] == ["Completed"]
    assert await sample(replace(FORMS, seals=type(SEALS)())) == []
    world.balance()


async def test_for_a_gate_quick_workflows_alone_are_no_sample_while_slow_ones_run() -> None:
    """What fails retries and takes longer: by the traces that are completed first, a bad version looks good."""
    world = rig().world
    events = [bare(f"r{number}") for number in range(20)]
    quick, slow = events[:14], events[14:]
    traces = PooledTraces(world.store, world.log, world.topics["traces"], world.clock, nothing, FORMS)
    scope = Scope("assistant", "v1", VERTICAL)

    async def found() -> tuple[int, int, dict[str, int], str]:
        window = await traces.window(scope, 86_400)
        size = len(window.drawable)
        drawn = Drawn(size, size, size, window.carry, window.carry)
        why = facts_of(window.traffic, drawn, GateDefaults()).incomplete
        return window.traffic.eligible, size, dict(window.traffic.left_out), "; ".join(why)

    async def send(*sent: dict[str, Any]) -> None:
        world.send(Kind.TRACE, *sent)
        await world.run(Kind.TRACE)

    await send(*events, *map(completed, quick))
    *figures, why = await found()
    assert figures == [20, 14, {"not_ended": 6}]
    assert "6 of 20 eligible turns are left out (6 not_ended)" in why

    await send(*map(completed, slow))
    assert await found() == (20, 20, {}, "")


async def test_for_a_request_without_a_vertical_young_traces_of_others_that_run_are_not_left_out() -> None:
    """Only where traces wait for workflows does one that has just begun count at once."""
    world = rig().world
    other = trace("other", started=NOW - MINUTE) | {"ended_at": None}
    other["metadata"]["agent_version"] = "v1"
    world.send(Kind.TRACE, bare(), other)
    await world.run(Kind.TRACE)
    traces = PooledTraces(world.store, world.log, world.topics["traces"], world.clock, nothing, FORMS)

    async def left(vertical: str | None) -> dict[str, int]:
        return dict((await traces.window(Scope("assistant", "v1", vertical), 86_400)).traffic.left_out)

    assert [await left(vertical) for vertical in (VERTICAL, "shopping", None)] == [
        {"not_ended": 1}, {}, {"not_ended": 1},
    ]  # fmt: skip
