"""Others change the same turns between our read and our record: the right scores in the end, and exact counts.

What we wrote may have landed on top of theirs, so it is written again until state and Opik agree.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from agents.join.counting import CONSUMED
from agents.ports import Refusal, Unavailable
from schemas.outcomes import Cause, Kind
from tests.unit.agents.builders import DAY, MINUTE, NOW, SECOND, change, reroll, thumb, trace
from tests.unit.agents.join.recounting import recount
from tests.unit.agents.join.world import World

Event = tuple[Kind, dict[str, Any]]
Action = Callable[[], Awaitable[Any]]


class Meddled:
    """A store that lets others act at our first, second, ... read (after it) or apply (before it)."""

    def __init__(self, world: World, after_read: list[Action], before_apply: list[Action]) -> None:
        self.world, self.after_read, self.before_apply = world, after_read, before_apply
        self.plain = world.ports
        world.ports = replace(world.ports, store=self)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.plain.store, name)

    async def read(self, keys: Any) -> list[bytes]:
        found = await self.plain.store.read(keys)
        await self.act(self.after_read)
        return found

    async def apply(self, step: Any) -> list[str]:
        await self.act(self.before_apply)
        return await self.plain.store.apply(step)

    async def act(self, actions: list[Action]) -> None:
        if actions:
            action = actions.pop(0)
            ours, self.world.ports = self.world.ports, self.plain
            await action()
            self.world.ports = ours


UP1: Event = (Kind.THUMBS, change("r", "up", 1))
DOWN2: Event = (Kind.THUMBS, change("r", "down", 2))
GONE2: Event = (Kind.THUMBS, change("r", None, 2))
UP3: Event = (Kind.THUMBS, change("r", "up", 3))
REROLL: Event = (Kind.REROLL, reroll("r"))
TRACE: Event = (Kind.TRACE, trace("r", said="hello", session="s"))
JUDGED: Event = (Kind.TRACE, trace("r", said="hello", session="s", judges=["q"]))
NEXT: Event = (Kind.TRACE, trace("next", NOW + 30 * SECOND, said="hello", session="s"))

MEETINGS: dict[str, tuple[list[Event], Event, list[Event]]] = {
    "a thumb meets its trace": ([], UP1, [TRACE]),
    "a trace meets its thumb": ([], TRACE, [UP1]),
    "a thumb meets a newer one": ([TRACE], UP1, [DOWN2]),
    "a thumb meets an older one": ([TRACE], DOWN2, [UP1]),
    "a thumb meets its withdrawal": ([TRACE], UP1, [GONE2]),
    "a withdrawal meets the thumb it takes back": ([TRACE], GONE2, [UP1]),
    "a thumb meets a withdrawal and a newer thumb": ([TRACE], UP1, [GONE2, UP3]),
    "a thumb meets a reroll": ([TRACE], UP1, [REROLL]),
    "a reroll meets a thumb": ([TRACE], REROLL, [UP1]),
    "a withdrawal meets a reroll": ([TRACE, UP1], GONE2, [REROLL]),
    "a reroll meets a withdrawal": ([TRACE, UP1], REROLL, [GONE2]),
    "a trace meets a parked thumb's successor": ([UP1], TRACE, [DOWN2]),
    "a trace meets a parked thumb's withdrawal": ([UP1], TRACE, [GONE2]),
    "a trace meets itself with scores": ([UP1], TRACE, [JUDGED]),
    "two traces of a session meet": ([], NEXT, [TRACE]),
    "a derived reroll meets a thumb": ([TRACE], NEXT, [UP1]),
    "a thumb meets a derived reroll": ([TRACE], UP1, [NEXT]),
    "a derived reroll meets a withdrawal": ([TRACE, UP1], NEXT, [GONE2]),
    "a thumb meets all there is": ([], UP1, [TRACE, DOWN2, NEXT, REROLL]),
}


async def tell(world: World, events: list[Event], partition: int) -> None:
    for kind, event in events:
        await world.tell(kind, event, partition=partition)


def right(world: World, events: list[Event]) -> None:
    expected = recount(events)
    assert world.scores.held == expected.scores
    assert world.coverage() == dict(expected.coverage)
    world.balance()
    for kind in Kind:
        assert world.conservation(kind).get(CONSUMED, 0) == sum(1 for of, _ in events if of is kind)


@pytest.mark.parametrize("moment", ["after our read", "before our record"])
@pytest.mark.parametrize("meeting", MEETINGS)
async def test_whoever_meets_in_a_turn_the_end_is_right(meeting: str, moment: str) -> None:
    before, ours, theirs = MEETINGS[meeting]
    world = World()
    await tell(world, before, 0)
    actions: list[Action] = [lambda: tell(world, theirs, 1)]
    Meddled(world, actions if moment == "after our read" else [], actions if moment != "after our read" else [])
    await tell(world, [ours], 0)
    assert not actions
    right(world, [*before, ours, *theirs])


async def test_our_stale_score_is_overwritten_also_when_our_own_record_lost() -> None:
    """We write +1 on top of their -1, lose, and have nothing to change any more: theirs is put again."""
    world = World()
    await world.tell(Kind.TRACE, TRACE[1])
    Meddled(world, [lambda: tell(world, [DOWN2], 1)], [])
    await tell(world, [UP1], 0)
    assert [w.value for w in world.scores.log if w.name == "user_signal_thumbs"] == [-1.0, 1.0, -1.0]


async def test_what_we_put_again_may_be_overtaken_again() -> None:
    world = World()
    await world.tell(Kind.TRACE, TRACE[1])
    Meddled(world, [lambda: tell(world, [DOWN2], 1), lambda: tell(world, [(Kind.THUMBS, change("r", None, 3))], 1)], [])
    await tell(world, [UP1], 0)
    right(world, [TRACE, UP1, DOWN2, (Kind.THUMBS, change("r", None, 3))])


async def test_a_turn_changed_after_our_failed_record_is_put_again_too() -> None:
    """Their write came before ours, their record after our first one failed for another turn's sake."""
    world = World()
    await world.tell(Kind.TRACE, TRACE[1], trace("q"))
    their_turn, ours_failed = asyncio.Event(), asyncio.Event()

    class Late(Meddled):
        async def apply(self, step: Any) -> list[str]:
            their_turn.set()
            await ours_failed.wait()
            return await self.plain.store.apply(step)

    class Ours(Meddled):
        async def apply(self, step: Any) -> list[str]:
            stale = await super().apply(step)
            if stale and not ours_failed.is_set():
                ours_failed.set()
                await theirs
            return stale

    async def their_write() -> None:
        nonlocal theirs
        Late(world, [], [])
        theirs = asyncio.create_task(world.tell(Kind.THUMBS, DOWN2[1], partition=1))
        await their_turn.wait()

    theirs: asyncio.Task[Any]
    q = (Kind.REROLL, reroll("q"))
    Ours(world, [their_write], [lambda: tell(world, [q], 1)])
    up_q = (Kind.THUMBS, change("q", "up", 1))
    await world.tell(Kind.THUMBS, UP1[1], up_q[1])
    right(world, [TRACE, (Kind.TRACE, trace("q")), UP1, up_q, DOWN2, q])


async def test_what_nobody_else_touched_is_not_written_again_when_a_step_repeats() -> None:
    world = World()
    await world.tell(Kind.TRACE, trace("a"), trace("b"), trace("c"))
    Meddled(world, [], [lambda: tell(world, [(Kind.REROLL, reroll("b"))], 1)])
    await world.tell(Kind.THUMBS, thumb("a"), thumb("b"), thumb("c"))
    puts = [w.trace_id for w in world.scores.log if w.name == "user_signal_thumbs"]
    assert len(puts) == 4, "a and c once, b twice"


async def test_another_worker_that_handles_the_same_records_first_leaves_us_nothing_to_count() -> None:
    """A zombie: the watermark moved, and with it all that these records did."""
    world = World()
    await world.tell(Kind.TRACE, TRACE[1])
    world.send(Kind.THUMBS, UP1[1], b"{", change("r", "down", 2))

    async def first() -> None:
        await world.run(Kind.THUMBS, count=2)

    Meddled(world, [], [first])
    await world.run(Kind.THUMBS)
    assert world.signals("r") == (-1.0, 0.0)
    assert world.conservation(Kind.THUMBS) == {CONSUMED: 3, "done": 2, "dead_lettered:malformed": 1}
    assert len(world.replay_ids()) == 1
    world.balance()


async def test_another_worker_first_with_records_that_change_no_turn_leaves_nothing_to_count_either() -> None:
    """Only the watermark tells: duplicates, filtered and bad records leave no other trace."""
    world = World()
    await world.tell(Kind.TRACE, TRACE[1])
    await world.tell(Kind.THUMBS, UP1[1])
    world.send(Kind.THUMBS, UP1[1], b"{", thumb("old", at=NOW - 9 * DAY))
    Meddled(world, [], [lambda: world.run(Kind.THUMBS)])
    await world.run(Kind.THUMBS, count=3)
    assert world.conservation(Kind.THUMBS) == {
        CONSUMED: 4,
        "done": 1,
        "superseded": 1,
        "dead_lettered:malformed": 1,
        "filtered:out_of_window": 1,
    }
    world.balance()


async def test_a_letter_is_sent_once_however_often_its_step_repeats() -> None:
    world = World()
    await world.tell(Kind.TRACE, TRACE[1])
    world.scores.refuse = lambda w: Refusal(Cause.OPIK_REJECTED, "no") if w.value == -1.0 else None
    Meddled(world, [], [lambda: tell(world, [REROLL], 1), lambda: tell(world, [JUDGED], 1)])
    await world.tell(Kind.THUMBS, DOWN2[1], b"{")
    assert sorted(world.causes()) == ["malformed", "opik_rejected"]
    world.balance()


async def test_a_step_that_can_never_win_gives_up_and_acknowledges_nothing() -> None:
    world = World()
    moves = iter(range(10_000))

    async def again() -> None:
        world.store.values["t2:r"] = (b"", 0) if next(moves) % 2 else (b"\x90", NOW * 2)

    class Restless(Meddled):
        async def apply(self, step: Any) -> list[str]:
            await again()
            return await self.plain.store.apply(step)

    Restless(world, [], [])
    with pytest.raises(Unavailable, match="50 attempts"):
        await tell(world, [UP1], 0)
    assert world.conservation(Kind.THUMBS) == {}
    assert world.committed == {}


async def test_a_turn_that_is_revisited_while_a_newer_thumb_comes_ends_at_the_newer_one() -> None:
    world = World()
    world.switch(write=False)
    await tell(world, [TRACE, UP1], 0)
    world.switch(write=True)
    Meddled(world, [lambda: tell(world, [GONE2], 1)], [])
    await world.revisit("r")
    right(world, [TRACE, UP1, GONE2])


async def test_a_trace_that_comes_while_its_signal_is_given_up_wins() -> None:
    world = World()
    await tell(world, [UP1], 0)
    world.wait(16 * MINUTE)
    Meddled(world, [], [lambda: tell(world, [TRACE], 1)])
    await world.revisit("r")
    right(world, [UP1, TRACE])
    assert world.conservation(Kind.THUMBS) == {CONSUMED: 1, "done": 1}


async def test_a_score_that_is_put_again_makes_the_record_fail_of_who_wrote_another_before_it() -> None:
    """We lose to our own thumb's repetition and put +1 again: nothing changes for us. Who put -1 just before and
    records it now must fail, or Opik would keep the +1."""
    world = World()
    await tell(world, [TRACE], 0)
    written, recorded = asyncio.Event(), asyncio.Event()
    theirs: list[asyncio.Task[None]] = []

    async def until_we_recorded() -> None:
        written.set()
        await recorded.wait()

    async def before_our_record() -> None:
        await tell(world, [UP1], 1)
        Meddled(world, [], [until_we_recorded])
        theirs.append(asyncio.create_task(tell(world, [DOWN2], 2)))
        await written.wait()

    Meddled(world, [], [before_our_record])
    await tell(world, [UP1], 0)
    recorded.set()
    await asyncio.gather(*theirs)
    assert [w.value for w in world.scores.log if w.name == "user_signal_thumbs"] == [1.0, 1.0, -1.0, 1.0, -1.0]
    assert world.scores.held == recount([TRACE, UP1, UP1, DOWN2]).scores


async def test_a_look_up_that_writes_again_makes_the_record_fail_of_who_wrote_another_before_it() -> None:
    """A look-up lost to another and writes the reroll's 0 again; its note that it was about to write is taken back.
    Who wrote 1 meanwhile, and read the turn before that note, must not find the turn as it was."""
    world = World()
    world.switch(write=False)
    await tell(world, [TRACE, UP1], 0)
    world.switch(write=True)
    written, recorded = asyncio.Event(), asyncio.Event()
    theirs: list[asyncio.Task[None]] = []

    async def nothing() -> None: ...

    async def until_we_recorded() -> None:
        written.set()
        await recorded.wait()

    async def after_our_second_read() -> None:
        world.wait(1)
        Meddled(world, [], [until_we_recorded])
        theirs.append(asyncio.create_task(tell(world, [REROLL], 1)))
        await written.wait()

    Meddled(world, [nothing, after_our_second_read], [nothing, lambda: world.revisit("r")])
    await world.revisit("r")
    recorded.set()
    await asyncio.gather(*theirs)
    assert [w.value for w in world.scores.log if w.name == "user_signal_reroll"] == [0.0, 0.0, 1.0, 0.0, 1.0]
    right(world, [TRACE, UP1, REROLL])
