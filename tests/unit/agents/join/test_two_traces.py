"""Several traces of one response: the one that ended last carries the signals' scores, and no other does, whatever the
order in which traces and signals arrive (promise 2)."""

from __future__ import annotations

import itertools
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.codec import TraceFacts
from agents.join.join import MOST_LEFT
from agents.join.rebuilding import adopt
from agents.join.sweeping import notice
from agents.ports import Refusal
from schemas.outcomes import Cause, Kind
from tests.unit.agents.builders import (
    MINUTE,
    NOW,
    REROLL_SCORE,
    SECOND,
    THUMBS_SCORE,
    change,
    found_trace,
    reroll,
    trace,
    trace_id,
)
from tests.unit.agents.join.late_opik import DOUBT, LateOpik, late_world
from tests.unit.agents.join.world import World

EARLY: tuple[Kind, dict[str, Any]] = (Kind.TRACE, trace("r", NOW, name="early"))
LATE: tuple[Kind, dict[str, Any]] = (Kind.TRACE, trace("r", NOW + SECOND, name="late"))
UP: tuple[Kind, dict[str, Any]] = (Kind.THUMBS, change("r", "up", 1))
DOWN: tuple[Kind, dict[str, Any]] = (Kind.THUMBS, change("r", "down", 2))
GONE: tuple[Kind, dict[str, Any]] = (Kind.THUMBS, change("r", None, 3))
AGAIN: tuple[Kind, dict[str, Any]] = (Kind.REROLL, reroll("r"))


async def over(world: World, opik: LateOpik) -> None:
    """Until no doubt is left and maintenance has nothing to do about it."""
    for _ in range(3):
        await world.due()
        await opik.wait(DOUBT + SECOND)
        await world.due()


def on(name: str, thumb: float | None, again: float | None) -> dict[tuple[str, str], float]:
    """These scores on the trace of this name."""
    scores = {(trace_id(name), THUMBS_SCORE): thumb, (trace_id(name), REROLL_SCORE): again}
    return {key: value for key, value in scores.items() if value is not None}


@pytest.mark.parametrize("order", list(itertools.permutations([EARLY, LATE, UP])))
async def test_what_opik_ends_with_does_not_depend_on_the_order_of_arrival(order: Any) -> None:
    world, opik = late_world()
    for kind, event in order:
        await world.tell(kind, event)
        await world.due()
    await over(world, opik)
    assert world.scores.held == on("late", 1.0, 0.0)
    world.balance()


async def test_the_scores_leave_the_earlier_trace_at_once() -> None:
    """They need not wait until nothing can come late."""
    world, _ = late_world()
    for kind, event in (EARLY, UP, LATE):
        await world.tell(kind, event)
    await world.due()
    assert world.scores.held == on("late", 1.0, 0.0)


async def test_a_score_that_comes_late_on_the_earlier_trace_is_deleted_as_well() -> None:
    world, opik = late_world()
    await world.tell(*EARLY)
    opik.fates = ["again"]
    await world.tell(*UP)
    await world.tell(*LATE)
    await world.due()
    await opik.land()
    assert world.scores.held != on("late", 1.0, 0.0)
    await over(world, opik)
    assert world.scores.held == on("late", 1.0, 0.0)


@pytest.mark.parametrize("landing", ["at once", "late"])
async def test_the_mirrored_names_leave_the_earlier_trace_with_the_scores(landing: str) -> None:
    """Both names of a score are ours: what reads the old name must not find a thumb on two traces."""
    world, opik = late_world()
    world.switch(mirror_legacy_names=True)
    await world.tell(*EARLY)
    opik.fates = ["again"] if landing == "late" else []
    await world.tell(*UP)
    both = on("early", 1.0, 0.0) | {(trace_id("early"), "thumbs"): 1.0, (trace_id("early"), "reroll"): 0.0}
    assert world.scores.held == both
    await world.tell(*LATE)
    await world.due()
    await opik.land()
    await over(world, opik)
    late = {(trace_id("late"), name): value for (_, name), value in both.items()}
    assert world.scores.held == late


async def test_a_step_that_wrote_to_the_earlier_trace_while_the_later_one_came_leaves_nothing_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Our thumb is on its way to the only trace that we know; another worker records the later one meanwhile."""
    world, opik = late_world()
    await world.tell(*EARLY)
    plain, write = world.ports, opik.write

    async def meanwhile(writes: Any) -> Any:
        monkeypatch.undo()
        outcomes = await write(writes)
        await world.tell(*LATE)
        return outcomes

    monkeypatch.setattr(opik, "write", meanwhile)
    await world.tell(*UP)
    assert world.ports is plain
    await over(world, opik)
    assert world.scores.held == on("late", 1.0, 0.0)


async def test_what_opik_does_not_delete_is_tried_again() -> None:
    world, opik = late_world()
    for kind, event in (EARLY, UP):
        await world.tell(kind, event)
    world.scores.refuse = lambda w: Refusal(Cause.OPIK_UNAVAILABLE, "down") if w.value is None else None
    await world.tell(*LATE)
    await over(world, opik)
    assert world.scores.held == on("early", 1.0, 0.0) | on("late", 1.0, 0.0)
    world.scores.refuse = lambda w: None
    await over(world, opik)
    assert world.scores.held == on("late", 1.0, 0.0)
    assert not world.causes(), "the signal is written; what is left to do is no dead letter"


async def test_nothing_is_deleted_while_writing_is_off() -> None:
    world, opik = late_world()
    for kind, event in (EARLY, UP):
        await world.tell(kind, event)
    world.switch(write=False)
    await world.tell(*LATE)
    await over(world, opik)
    assert world.scores.held == on("early", 1.0, 0.0)
    world.switch(write=True)
    await world.revisit("r")
    await over(world, opik)
    assert world.scores.held == on("late", 1.0, 0.0)


async def test_traces_without_a_signal_cost_opik_nothing() -> None:
    world, opik = late_world()
    world.switch(judge_settle=0)
    await world.tell(*EARLY)
    await world.tell(*LATE)
    await over(world, opik)
    assert opik.calls == 0
    assert world.store.due == {}


async def test_of_a_flood_of_traces_for_one_response_a_bounded_number_is_remembered() -> None:
    world, opik = late_world()
    await world.tell(*UP)
    flood = [trace("r", NOW + at, name=f"one of many {at}") for at in range(200)]
    for event in flood:
        await world.tell(Kind.TRACE, event)
        await world.due()
    assert len(world.turn("r").left_traces) == MOST_LEFT
    await over(world, opik)
    assert world.scores.held == on("one of many 199", 1.0, 0.0)


def held(name: str, ended: int, **wrote: int) -> TraceFacts:
    """A trace of this response as Opik tells it, with these scores of ours."""
    facts = msgspec.structs.replace(found_trace("r", ended), wrote=wrote)
    facts.trace = bytes.fromhex(trace_id(name).replace("-", ""))
    return facts


@pytest.mark.parametrize("by", ["rebuild", "sweep"])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("together", [False, True])
async def test_scores_that_stand_on_two_traces_in_opik_end_on_the_later_one(
    by: str, reverse: bool, together: bool
) -> None:
    world, opik = late_world()
    found = [held("early", NOW, thumbs=1, reroll=1), held("late", NOW + SECOND, thumbs=-1, reroll=1)]
    for facts in found:
        for kind, name in (("thumbs", THUMBS_SCORE), ("reroll", REROLL_SCORE)):
            value = float(facts.wrote[kind]) if kind == "thumbs" else 0.0
            world.scores.held[trace_id("early" if facts.ended == NOW else "late"), name] = value
    if by == "sweep":
        await world.tell(*DOWN)
    found.sort(key=lambda one: one.ended, reverse=reverse)
    for page in [found] if together else [[one] for one in found]:
        if by == "sweep":
            await notice(page, world.ports, world.policy, world.topics)
        else:
            await adopt(page, world.ports, world.policy, world.clock.ms)
    await world.tell(*DOWN)
    await over(world, opik)
    assert world.scores.held == on("late", -1.0, 0.0)


TRACES = [EARLY, LATE, *((Kind.TRACE, trace("r", NOW + at * SECOND, name=name)) for name, at in
    (("early", 3), ("third", 2), ("late", 2)))]  # fmt: skip
SIGNALS = [UP, DOWN, GONE, AGAIN]


@settings(max_examples=150, deadline=None)
@given(
    told=st.lists(st.sampled_from(TRACES), min_size=1, max_size=5),
    said=st.lists(st.sampled_from(SIGNALS), max_size=4, unique_by=lambda one: str(one[1])),
    data=st.data(),
)
async def test_whatever_is_told_in_whatever_order_one_trace_has_the_scores(told: Any, said: Any, data: Any) -> None:
    events = data.draw(st.permutations([*told, *said]))
    fates = data.draw(st.lists(st.sampled_from(["ok", "again"]), min_size=len(events), max_size=len(events)))
    pauses = data.draw(st.lists(st.sampled_from([0, 1, 100]), min_size=len(events), max_size=len(events)))
    world, opik = late_world()
    for (kind, event), fate, pause in zip(events, fates, pauses, strict=True):
        opik.fates = [fate]
        await world.tell(kind, event)
        opik.fates = []
        await opik.wait(pause * SECOND)
        if pause:
            await world.due()
    await over(world, opik)
    await opik.wait(MINUTE)
    last = max((event for _, event in told), key=lambda one: (one["ended_at"], one["trace_id"]))
    thumbs = [event for kind, event in said if kind is Kind.THUMBS]
    newest = max(thumbs, key=lambda one: int(one["dynamodb"]["SequenceNumber"]), default=None)
    value = {UP[1]["eventID"]: 1.0, DOWN[1]["eventID"]: -1.0}.get(newest["eventID"]) if newest else None
    again = 1.0 if AGAIN in said else 0.0 if value is not None else None
    scores = {(last["trace_id"], THUMBS_SCORE): value, (last["trace_id"], REROLL_SCORE): again}
    assert world.scores.held == {key: one for key, one in scores.items() if one is not None}
    world.balance()
