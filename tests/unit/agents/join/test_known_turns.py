"""What hangs on whether a trace's record changes its turn, and what must not: a turn may be known before its record.

Its record changes nothing then. All that follows from the record must hold all the same, or have been done by the way
that the turn came to be known.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest

from agents.codec import TraceFacts
from agents.join.rebuilding import adopt
from agents.join.sweeping import notice
from schemas.outcomes import Kind
from tests.unit.agents.builders import MINUTE, NOW, SECOND, found_trace, reroll, thumb, trace
from tests.unit.agents.join.world import World

ASKED = {"text": "where is my parcel?"}
RECORD = trace("r", session="s", said=ASKED)
Way = Callable[[World], Awaitable[Any]]


def in_opik(**scores: int) -> TraceFacts:
    """The trace of the record, as Opik tells it, with these scores of ours."""
    facts = found_trace("r")
    facts.wrote = scores
    return facts


async def by_a_thumb(world: World) -> None:
    world.traces.known["r"] = in_opik()
    await world.tell(Kind.THUMBS, thumb("r", "up"))
    await world.revisit("r")


async def by_a_reroll(world: World) -> None:
    world.traces.known["r"] = in_opik()
    await world.tell(Kind.REROLL, reroll("r"))
    await world.revisit("r")


async def by_the_rebuild(world: World) -> None:
    await adopt([in_opik(thumbs=1, reroll=1)], world.ports, world.policy, world.clock.ms)


async def by_a_sweep(world: World) -> None:
    await notice([in_opik()], world.ports, world.policy, world.topics)


async def by_itself(world: World) -> None:
    await world.tell(Kind.TRACE, RECORD)


async def by_an_earlier_trace(world: World) -> None:
    await world.tell(Kind.TRACE, trace("r", NOW - SECOND, name="earlier", session="s", said=ASKED))


async def by_nothing(world: World) -> None:
    """Its record is the first that is heard of it."""


WAYS = [by_a_thumb, by_a_reroll, by_the_rebuild, by_a_sweep, by_itself, by_an_earlier_trace, by_nothing]
ways = pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)


def young() -> World:
    """The trace has ended a second ago: judges run yet."""
    world = World()
    world.clock.ms = NOW + SECOND
    return world


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
async def test_judges_scores_that_come_after_the_record_are_asked_for(way: Way) -> None:
    """Due checks must not hang on it: coverage counts a turn as judged once its scores are there (FR-11)."""
    world = young()
    await way(world)
    await world.tell(Kind.TRACE, RECORD)
    world.traces.known["r"] = msgspec.structs.replace(in_opik(), judged=True)
    await world.age(6 * MINUTE)
    assert world.turn("r").judged == 1
    assert not world.store.due


@ways
@pytest.mark.parametrize("first", [True, False])
async def test_a_reroll_is_derived_from_the_record(way: Way, first: bool) -> None:
    """Sessions must not hang on it: only a record tells the session, and what was said."""
    world = young()
    world.wait(10 * MINUTE)
    again = trace("again", NOW + MINUTE, session="s", said=ASKED)
    if not first:
        await world.tell(Kind.TRACE, again)
    await way(world)
    await world.tell(Kind.TRACE, RECORD)
    if first:
        await world.tell(Kind.TRACE, again)
    assert world.score("r", "user_signal_reroll") == 1.0


@ways
async def test_coverage_counts_the_turn_once_with_what_the_record_says_of_it(way: Way) -> None:
    """It may hang on it: a record that changes nothing says nothing that coverage counts."""
    world = young()
    await way(world)
    judged = trace("r", judges=["quality"], session="s", said=ASKED)
    for _ in range(2):
        await world.tell(Kind.TRACE, judged)
    rated = way in (by_a_thumb, by_a_reroll, by_the_rebuild)
    assert world.coverage() == {("shopping", "both_present" if rated else "missing_signal"): 1}


@ways
async def test_the_lag_runs_from_the_last_thing_that_the_score_needed(way: Way) -> None:
    """It may hang on it: where the turn was known, no score waited for the record."""
    world = young()
    await way(world)
    world.wait(MINUTE)
    report = await world.tell(Kind.TRACE, RECORD)
    assert report.lags_ms == {}, "the record led to no score"
    world.wait(MINUTE)
    report = await world.tell(Kind.THUMBS, thumb("r", "down", at=world.clock.ms - 20 * SECOND))
    assert report.lags_ms == {"thumbs": [20 * SECOND]}
