"""Rerolls: as events, and found in completed traces (PF-9 §5.4). The score goes to the turn rerolled away from."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest

from agents.join.counting import CONSUMED
from schemas.outcomes import Kind
from tests.unit.agents.builders import MINUTE, NOW, SECOND, reroll, thumb, trace
from tests.unit.agents.join.world import World

ASKED = [{"role": "user", "content": "where is my parcel?"}]


def turn(rid: str, started: int, seconds: int = 5, **more: Any) -> dict[str, Any]:
    """A completed turn of session `s` that asked the same as the others, `started` ms after NOW."""
    more = {"session": "s", "said": ASKED, **more}
    return trace(rid, NOW + started + seconds * SECOND, started=NOW + started, **more)


def world_later() -> World:
    world = World()
    world.wait(30 * MINUTE)
    return world


async def rerolled(*turns: dict[str, Any], one_by_one: bool = True, **policy: Any) -> set[str]:
    world = world_later()
    world.switch(**policy)
    for event in turns:
        await world.tell(Kind.TRACE, event) if one_by_one else world.send(Kind.TRACE, event)
    await world.run(Kind.TRACE)
    world.balance()
    assert not world.conservation(Kind.REROLL), "no record carried a derived reroll"
    rids = {event["response_id"] for event in turns}
    return {rid for rid in rids if world.score(rid, "user_signal_reroll") == 1.0}


@pytest.mark.parametrize("one_by_one", [True, False])
@pytest.mark.parametrize("order", list(permutations(range(3))))
async def test_asking_the_same_three_times_rerolls_all_but_the_last(order: tuple[int, ...], one_by_one: bool) -> None:
    """The chain A A A: in whatever order the traces come, and in one batch or several."""
    chain = [turn("first", 0), turn("second", MINUTE), turn("third", 2 * MINUTE)]
    assert await rerolled(*[chain[n] for n in order], one_by_one=one_by_one) == {"first", "second"}


@pytest.mark.parametrize(
    ("gap_ms", "is_reroll"), [(-1, False), (0, True), (1, True), (300_000, True), (300_001, False)]
)
async def test_the_window_runs_from_the_end_of_the_previous_response_and_includes_both_edges(
    gap_ms: int, is_reroll: bool
) -> None:
    found = await rerolled(turn("first", 0), turn("second", 5 * SECOND + gap_ms))
    assert found == ({"first"} if is_reroll else set())


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
async def test_each_vertical_has_its_own_window_and_the_turn_rerolled_away_from_decides(order: tuple[int, int]) -> None:
    windows = {"shopping": 60_000, "travel": 600_000}
    for vertical, found in (("shopping", set()), ("travel", {"first"}), ("unheard-of", {"first"})):
        other = "travel" if vertical == "shopping" else "shopping"
        pair = [turn("first", 0, vertical=vertical), turn("second", 2 * MINUTE, vertical=other)]
        assert await rerolled(*[pair[n] for n in order], reroll_windows=windows) == found


@pytest.mark.parametrize(
    "other",
    [
        {"session": "another"},
        {"session": None},
        {"said": [{"role": "user", "content": "where is my PARCEL?"}]},
        {"said": None},
    ],
)
async def test_only_the_same_input_in_the_same_session_is_a_reroll(other: dict[str, Any]) -> None:
    assert await rerolled(turn("first", 0), turn("second", MINUTE, **other)) == set()


async def test_the_order_of_an_inputs_keys_makes_no_difference() -> None:
    one, two = {"a": 1, "b": [2]}, {"b": [2], "a": 1}
    assert await rerolled(turn("first", 0, said=one), turn("second", MINUTE, said=two)) == {"first"}


async def test_the_same_trace_twice_is_no_reroll_of_itself() -> None:
    assert await rerolled(turn("first", 0), turn("first", 0), turn("first", MINUTE)) == set()


STARTED = turn("first", 0, ended_at=None)
ENDED = turn("first", 0, seconds=60)
BY_A_SHADOW = turn("first", 0, seconds=59, said="what a shadow version was told", name="shadow")
STARTED_OTHERWISE = turn("first", 0, said="a part of what the user said", ended_at=None)
AGAIN = turn("second", 60 * SECOND + 290 * SECOND)


@pytest.mark.parametrize("earlier", [STARTED, BY_A_SHADOW, STARTED_OTHERWISE])
@pytest.mark.parametrize("order", list(permutations(range(3))))
@pytest.mark.parametrize("one_by_one", [True, False])
async def test_of_a_turns_records_and_traces_the_one_that_ended_last_says_what_was_rerolled(
    earlier: dict[str, Any], order: tuple[int, ...], one_by_one: bool
) -> None:
    """Its end, from which the window runs, and its input: in whatever order a start record, an end record, another
    version's trace of the same turn, and the turn that repeats it come."""
    three = [earlier, ENDED, AGAIN]
    assert await rerolled(*[three[n] for n in order], one_by_one=one_by_one) == {"first"}


@pytest.mark.parametrize(
    "first",
    [
        [turn("first", 0, ended_at=None), turn("first", 0, seconds=60)],
        [turn("first", 0, ended_at=None), turn("first", 0, said="what the user said in the end")],
        [turn("first", 0, name="shadow"), turn("first", 0, seconds=6, said="what the user was answered about")],
        [turn("first", 0), turn("first", 0, said="the same end, and what was posted last")],
    ],
)
async def test_what_an_earlier_record_said_of_a_turn_invents_no_reroll(first: list[dict[str, Any]]) -> None:
    assert await rerolled(*first, turn("second", 30 * SECOND)) == set()


async def test_a_derived_reroll_overwrites_the_0_of_a_thumb() -> None:
    world = world_later()
    await world.tell(Kind.TRACE, turn("first", 0))
    await world.tell(Kind.THUMBS, thumb("first", "down"))
    assert world.signals("first") == (-1.0, 0.0)
    await world.tell(Kind.TRACE, turn("second", MINUTE))
    assert world.signals("first") == (-1.0, 1.0)
    assert world.signals("second") == (None, None)
    assert world.coverage() == {("shopping", "both_present"): 1}


@pytest.mark.parametrize("event_first", [True, False])
async def test_a_reroll_both_reported_and_derived_is_one_reroll(event_first: bool) -> None:
    world = world_later()
    await world.tell(Kind.TRACE, turn("first", 0))
    if event_first:
        await world.tell(Kind.REROLL, reroll("first", by="second"))
    await world.tell(Kind.TRACE, turn("second", MINUTE))
    if not event_first:
        await world.tell(Kind.REROLL, reroll("first", by="second"))
    assert world.signals("first") == (None, 1.0)
    assert len(world.scores.log) == 1
    assert world.conservation(Kind.REROLL) == {CONSUMED: 1, "done": 1}
    world.balance()


@pytest.mark.parametrize("order", list(permutations(range(3))))
async def test_several_reports_of_one_reroll_are_done_once(order: tuple[int, ...]) -> None:
    world = World()
    await world.tell(Kind.TRACE, trace("r"))
    reports = [reroll("r", at=NOW + n * SECOND) for n in range(3)]
    for n in order:
        await world.tell(Kind.REROLL, reports[n])
    assert world.conservation(Kind.REROLL) == {CONSUMED: 3, "done": 1, "superseded": 2}
    assert len(world.scores.log) == 1


@pytest.mark.parametrize(
    ("elapsed", "vertical", "counts"),
    [(0, None, True), (300, None, True), (300.001, None, False), (400, "travel", True), (601, "travel", False)],
)
async def test_a_reported_reroll_outside_its_verticals_window_is_filtered(
    elapsed: float, vertical: str | None, counts: bool
) -> None:
    world = World()
    world.switch(reroll_windows={"travel": 600_000})
    await world.tell(Kind.TRACE, trace("r"))
    await world.tell(Kind.REROLL, reroll("r", elapsed=elapsed, vertical=vertical))
    assert world.signals("r") == (None, 1.0 if counts else None)
    state = "done" if counts else "filtered:out_of_window"
    assert world.conservation(Kind.REROLL) == {CONSUMED: 1, state: 1}


async def test_a_thumb_after_a_reroll_leaves_the_reroll_at_1() -> None:
    world = World()
    await world.tell(Kind.TRACE, trace("r"))
    await world.tell(Kind.REROLL, reroll("r"))
    await world.tell(Kind.THUMBS, thumb("r", "down"))
    assert world.signals("r") == (-1.0, 1.0)
    assert [(w.name, w.value) for w in world.scores.log] == [("user_signal_reroll", 1.0), ("user_signal_thumbs", -1.0)]
