"""Readings of the table (a sweep, `observed_at`) beside the stream of its changes: one state, whatever comes first."""

from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.join.counting import CONSUMED
from agents.ports import Refusal
from schemas.outcomes import Cause, Kind
from tests.unit.agents.builders import HOUR, MINUTE, NOW, change, thumb, trace
from tests.unit.agents.join.world import World

VALUES = {"up": 1.0, "down": -1.0, None: None}


async def world_with_trace() -> World:
    world = World()
    world.wait(2 * HOUR)
    await world.tell(Kind.TRACE, trace("r"))
    return world


def reading(value: str | None, observed: int, created: int = NOW) -> dict[str, object]:
    return thumb("r", value, at=created, observed_at=observed / 1000)


async def test_a_reading_alone_sets_the_score() -> None:
    world = await world_with_trace()
    await world.tell(Kind.THUMBS, reading("down", NOW + HOUR))
    assert world.signals("r") == (-1.0, 0.0)
    assert world.conservation(Kind.THUMBS) == {CONSUMED: 1, "done": 1}


async def test_a_reading_that_tells_nothing_new_writes_nothing() -> None:
    world = await world_with_trace()
    await world.tell(Kind.THUMBS, change("r", "up", 1))
    puts = len(world.scores.log)
    for hour in range(1, 3):
        await world.tell(Kind.THUMBS, reading("up", NOW + hour * HOUR))
    assert len(world.scores.log) == puts
    assert world.conservation(Kind.THUMBS) == {CONSUMED: 3, "done": 1, "superseded": 2}


async def test_a_later_reading_repairs_what_the_stream_lost() -> None:
    world = await world_with_trace()
    await world.tell(Kind.THUMBS, change("r", "up", 1))
    await world.tell(Kind.THUMBS, reading("down", NOW + HOUR))
    assert world.signals("r") == (-1.0, 0.0)
    await world.tell(Kind.THUMBS, change("r", "up", 1))
    assert world.signals("r") == (-1.0, 0.0), "the change it overruled, once more"
    await world.tell(Kind.THUMBS, change("r", None, 9, at=NOW + HOUR + MINUTE))
    assert world.signals("r") == (None, None), "and a change after the reading counts"


@pytest.mark.parametrize("reading_first", [True, False])
@pytest.mark.parametrize(("before_ms", "stands"), [(6_000, "down"), (4_000, "up"), (-1_000, "up")])
async def test_a_change_up_to_5_s_before_a_reading_counts_as_later_whichever_comes_first(
    reading_first: bool, before_ms: int, stands: str
) -> None:
    """Clocks differ, and a reading may be a little stale."""
    world = await world_with_trace()
    observed = NOW + HOUR
    events = [change("r", "up", 7, at=observed - before_ms), reading("down", observed)]
    for event in reversed(events) if reading_first else events:
        await world.tell(Kind.THUMBS, event)
    assert world.score("r") == VALUES[stands]


@pytest.mark.parametrize("order", list(permutations(range(3))))
async def test_of_several_readings_the_latest_stands(order: tuple[int, ...]) -> None:
    world = await world_with_trace()
    readings = [reading(value, NOW + (n + 1) * 10 * MINUTE) for n, value in enumerate(("up", None, "down"))]
    for n in order:
        await world.tell(Kind.THUMBS, readings[n])
    assert world.score("r") == -1.0


async def test_a_reading_of_a_refused_thumb_tries_it_again() -> None:
    world = await world_with_trace()
    world.scores.refuse = lambda write: Refusal(Cause.OPIK_REJECTED, "no")
    await world.tell(Kind.THUMBS, change("r", "up", 1))
    world.scores.refuse = lambda write: None
    await world.tell(Kind.THUMBS, reading("up", NOW + HOUR))
    assert world.signals("r") == (1.0, 0.0)
    world.balance()


@settings(max_examples=150)
@given(data=st.data())
async def test_the_stream_whole_and_true_readings_in_any_order_end_at_the_last_value(data: st.DataObject) -> None:
    """The table's history is a list of changes a minute apart; readings are taken at any time from it."""
    history = data.draw(st.lists(st.sampled_from(["up", "down", None]), min_size=1, max_size=5))
    events = [change("r", value, 10 + n, at=NOW + n * MINUTE) for n, value in enumerate(history)]
    last = NOW + (len(history) - 1) * MINUTE
    for observed in data.draw(st.lists(st.integers(NOW, last + HOUR), max_size=4)):
        events.append(reading(history[min((observed - NOW) // MINUTE, len(history) - 1)], observed))
    world = await world_with_trace()
    for event in data.draw(st.permutations(events)):
        world.send(Kind.THUMBS, event)
    while world.committed.get((Kind.THUMBS, 0), 0) < len(events):
        await world.run(Kind.THUMBS, count=data.draw(st.integers(1, 3)))
    assert world.score("r") == VALUES[history[-1]]
    assert world.score("r", "user_signal_reroll") == (0.0 if history[-1] else None)
    world.balance()
