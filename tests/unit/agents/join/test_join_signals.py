"""What Opik must hold after a user spoke about a turn: thumbs, withdrawals, rerolls, in whatever order they arrive
(PF-9 FR-6, §5.4)."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest

from agents.join.counting import CONSUMED
from schemas.outcomes import Kind
from tests.unit.agents.builders import MINUTE, NOW, SECOND, change, reroll, thumb, trace, trace_id
from tests.unit.agents.join.world import World

JUDGES = ("response_quality", "tool_compliance", "safety_refusal", "groundedness")


async def test_ac_4_a_thumbs_down_lands_on_the_trace_that_ran_four_judges() -> None:
    """PF-9 AC-4 and the example of §5.4: the thumbs, and a reroll of 0.0, each under its source's label."""
    world = World()
    await world.tell(Kind.TRACE, trace("resp_abc", judges=JUDGES))
    assert world.coverage() == {("shopping", "missing_signal"): 1}
    await world.tell(Kind.THUMBS, thumb("resp_abc", "down"))
    assert world.signals("resp_abc") == (-1.0, 0.0)
    assert {(w.name, w.value, w.label, w.project) for w in world.scores.log} == {
        ("user_signal_thumbs", -1.0, "user_mobile", "project"),
        ("user_signal_reroll", 0.0, "history_middleware", "project"),
    }
    assert world.coverage() == {("shopping", "both_present"): 1}
    assert world.conservation(Kind.THUMBS) == {CONSUMED: 1, "done": 1}
    world.balance()


@pytest.mark.parametrize("signals_first", [True, False])
async def test_signals_and_trace_meet_in_either_order(signals_first: bool) -> None:
    world = World()
    world.send(Kind.THUMBS, thumb("r", "up"))
    world.send(Kind.REROLL, reroll("r"))
    world.send(Kind.TRACE, trace("r"))
    for kind in (Kind.THUMBS, Kind.REROLL, Kind.TRACE) if signals_first else (Kind.TRACE, Kind.REROLL, Kind.THUMBS):
        await world.run(kind)
    assert world.signals("r") == (1.0, 1.0)
    assert world.coverage() == {("shopping", "both_present"): 1}
    assert world.conservation(Kind.THUMBS) == {CONSUMED: 1, "done": 1}
    assert world.conservation(Kind.REROLL) == {CONSUMED: 1, "done": 1}
    world.balance()


async def test_a_signal_without_its_trace_is_parked_and_counts_as_missing_trace_of_vertical_unknown() -> None:
    world = World()
    await world.tell(Kind.THUMBS, thumb("r", "up"))
    assert not world.scores.log
    assert world.coverage() == {("unknown", "missing_trace"): 1}
    assert world.conservation(Kind.THUMBS) == {CONSUMED: 1, "parked:no_trace": 1}
    assert "r" in world.store.due, "its trace is sought"
    world.balance()


async def test_the_same_record_twice_is_written_once_and_superseded_once() -> None:
    world = World()
    await world.tell(Kind.TRACE, trace("r"))
    event = thumb("r", "up")
    await world.tell(Kind.THUMBS, event, event)
    await world.tell(Kind.THUMBS, event)
    assert [(w.name, w.value) for w in world.scores.log] == [("user_signal_thumbs", 1.0), ("user_signal_reroll", 0.0)]
    assert world.conservation(Kind.THUMBS) == {CONSUMED: 3, "done": 1, "superseded": 2}
    await world.tell(Kind.TRACE, trace("r"))
    assert world.conservation(Kind.TRACE) == {CONSUMED: 2, "done": 1, "superseded": 1}
    assert len(world.scores.log) == 2


@pytest.mark.parametrize("sequences", [(1, 2, 3), (99, 100, 1000), (255, 256, 65536), (9, 10**30, 10**31)])
@pytest.mark.parametrize("order", list(permutations(range(3))))
@pytest.mark.parametrize("one_by_one", [True, False])
async def test_the_highest_sequence_number_wins_as_a_number(
    sequences: tuple[int, int, int], order: tuple[int, ...], one_by_one: bool
) -> None:
    """Not as text, not by time, not by arrival: the times here run the other way."""
    world = World()
    await world.tell(Kind.TRACE, trace("r"))
    versions = [change("r", value, sequences[n], at=NOW - n * MINUTE) for n, value in enumerate(("up", None, "down"))]
    for n in order:
        world.send(Kind.THUMBS, versions[n])
    for _ in range(3):
        await world.run(Kind.THUMBS, count=1 if one_by_one else None)
    assert world.signals("r") == (-1.0, 0.0)
    world.balance()


@pytest.mark.parametrize("order", list(permutations(range(3))))
async def test_without_sequence_numbers_the_later_time_wins(order: tuple[int, ...]) -> None:
    world = World()
    await world.tell(Kind.TRACE, trace("r"))
    versions = [thumb("r", value, at=NOW + n * SECOND) for n, value in enumerate(("up", None, "down"))]
    for n in order:
        await world.tell(Kind.THUMBS, versions[n])
    assert world.signals("r") == (-1.0, 0.0)


async def test_of_two_at_the_same_moment_the_same_one_wins_in_either_order() -> None:
    ends = []
    for events in ([thumb("r", "up"), thumb("r", "down")], [thumb("r", "down"), thumb("r", "up")]):
        world = World()
        await world.tell(Kind.TRACE, trace("r"))
        for event in events:
            await world.tell(Kind.THUMBS, event)
        ends.append(world.score("r"))
    assert ends[0] == ends[1]


async def test_a_withdrawal_deletes_the_thumbs_and_the_reroll_of_0() -> None:
    world = World()
    await world.tell(Kind.TRACE, trace("r", judges=JUDGES))
    await world.tell(Kind.THUMBS, change("r", "down", 1))
    assert world.signals("r") == (-1.0, 0.0)
    await world.tell(Kind.THUMBS, change("r", None, 2))
    assert world.signals("r") == (None, None)
    assert world.coverage() == {("shopping", "missing_signal"): 1}, "nothing the user said stands any more"
    assert world.conservation(Kind.THUMBS) == {CONSUMED: 2, "done": 2}
    await world.tell(Kind.THUMBS, change("r", "up", 3))
    assert world.signals("r") == (1.0, 0.0)
    world.balance()


async def test_a_withdrawal_leaves_a_reroll_standing() -> None:
    world = World()
    await world.tell(Kind.TRACE, trace("r"))
    await world.tell(Kind.THUMBS, change("r", "down", 1))
    await world.tell(Kind.REROLL, reroll("r"))
    assert world.signals("r") == (-1.0, 1.0), "a later reroll overwrites the 0.0"
    await world.tell(Kind.THUMBS, change("r", None, 2))
    assert world.signals("r") == (None, 1.0)
    assert world.coverage() == {("shopping", "both_present"): 1}


async def test_a_thumb_withdrawn_before_its_trace_came_leaves_nothing() -> None:
    world = World()
    await world.tell(Kind.THUMBS, change("r", "down", 1))
    await world.tell(Kind.THUMBS, change("r", None, 2))
    assert world.coverage() == {}
    assert world.conservation(Kind.THUMBS) == {CONSUMED: 2, "superseded": 1, "done": 1}
    await world.tell(Kind.TRACE, trace("r"))
    assert world.signals("r") == (None, None)
    world.balance()


async def test_an_older_thumb_after_a_withdrawal_brings_nothing_back() -> None:
    world = World()
    await world.tell(Kind.TRACE, trace("r"))
    await world.tell(Kind.THUMBS, change("r", None, 5))
    await world.tell(Kind.THUMBS, change("r", "up", 4))
    assert world.signals("r") == (None, None)


async def test_a_newer_thumb_takes_the_place_of_a_parked_one() -> None:
    world = World()
    await world.tell(Kind.THUMBS, change("r", "down", 1))
    await world.tell(Kind.THUMBS, change("r", "up", 2))
    assert world.conservation(Kind.THUMBS) == {CONSUMED: 2, "superseded": 1, "parked:no_trace": 1}
    await world.tell(Kind.TRACE, trace("r"))
    assert world.signals("r") == (1.0, 0.0)
    assert world.conservation(Kind.THUMBS) == {CONSUMED: 2, "superseded": 1, "done": 1}
    world.balance()


@pytest.mark.parametrize("order", list(permutations(range(3))))
async def test_of_two_traces_for_one_response_the_later_one_carries_the_signals(order: tuple[int, ...]) -> None:
    """All of the earlier trace's metadata goes with it, also what the later one does not say."""
    world = World()
    events: list[tuple[Kind, Any]] = [
        (Kind.TRACE, trace("r", NOW, name="first", vertical="shopping", judges=JUDGES)),
        (Kind.TRACE, trace("r", NOW + SECOND, name="second", vertical=None)),
        (Kind.THUMBS, change("r", "up", 1)),
    ]
    for n in order:
        await world.tell(events[n][0], events[n][1])
    assert world.scores.held[trace_id("second"), "user_signal_thumbs"] == 1.0
    assert world.turn("r").trace_id == trace_id("second")
    assert world.coverage() == {("", "both_present"): 1}
    world.balance()


async def test_a_trace_that_comes_again_with_judge_scores_becomes_missing_signal() -> None:
    world = World()
    await world.tell(Kind.TRACE, trace("r"))
    assert world.coverage() == {}, "a trace no judge looked at misses nothing"
    await world.tell(Kind.TRACE, trace("r", judges=JUDGES))
    assert world.coverage() == {("shopping", "missing_signal"): 1}
    assert world.conservation(Kind.TRACE) == {CONSUMED: 2, "done": 2}


async def test_a_vertical_nobody_registered_is_joined_and_counted_like_any_other() -> None:
    world = World()
    await world.tell(Kind.TRACE, trace("r", vertical="moon-travel"), trace("q", vertical=None))
    await world.tell(Kind.THUMBS, thumb("r", "up"), thumb("q", "down"))
    assert world.signals("r") == (1.0, 0.0)
    assert world.signals("q") == (-1.0, 0.0)
    assert world.coverage() == {("moon-travel", "both_present"): 1, ("", "both_present"): 1}


async def test_legacy_names_are_mirrored_when_asked_and_withdrawn_with_the_rest() -> None:
    world = World()
    world.switch(mirror_legacy_names=True)
    await world.tell(Kind.TRACE, trace("r"))
    await world.tell(Kind.THUMBS, change("r", "up", 1))
    names = {name: value for (_, name), value in world.scores.held.items()}
    assert names == {"user_signal_thumbs": 1.0, "thumbs": 1.0, "user_signal_reroll": 0.0, "reroll": 0.0}
    await world.tell(Kind.REROLL, reroll("r"))
    assert world.score("r", "reroll") == 1.0
    await world.tell(Kind.THUMBS, change("r", None, 2))
    assert {name for _, name in world.scores.held} == {"user_signal_reroll", "reroll"}


async def test_legacy_names_are_not_written_by_default() -> None:
    world = World()
    await world.tell(Kind.TRACE, trace("r"))
    await world.tell(Kind.THUMBS, change("r", "up", 1))
    assert all(name.startswith("user_signal_") for _, name in world.scores.held)
