"""A worker dies at any call it makes, before or after its effect. The records come again, in other batches, and the
end is the same: nothing lost, nothing doubled, and a dead letter sent twice is known by its replay id."""

from __future__ import annotations

import contextlib
from dataclasses import fields, replace
from typing import Any

import pytest

from agents.join.counting import CONSUMED
from agents.ports import Refusal
from schemas.outcomes import Cause, Kind
from tests.unit.agents.builders import MINUTE, NOW, change, reroll, thumb, trace
from tests.unit.agents.join.recounting import recount
from tests.unit.agents.join.world import World


class Crash(BaseException):
    """The process is gone: no one may catch this."""


class Mortal:
    """A port that counts its calls, together with the others, and dies at the chosen one."""

    def __init__(self, port: Any, fate: Fate) -> None:
        self._port, self._fate = port, fate

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._port, name)

        async def mortal(*args: Any) -> Any:
            self._fate.tick()
            result = await call(*args)
            self._fate.tick()
            return result

        return mortal


class Fate:
    def __init__(self, dies_at: int) -> None:
        self.left = dies_at

    def tick(self) -> None:
        self.left -= 1
        if self.left == 0:
            raise Crash


INSIDE = {"clock", "newcomers", "sealing"}
"""What a worker asks without leaving its process."""


def mortal(world: World, fate: Fate) -> None:
    ports = world.ports
    names = [f.name for f in fields(ports) if f.name not in INSIDE]
    world.ports = replace(ports, **{name: Mortal(getattr(ports, name), fate) for name in names})


SAID: dict[str, Any] = {"session": "s", "said": "hello"}
EVENTS: list[tuple[Kind, Any]] = [
    (Kind.TRACE, trace("a", NOW, judges=["q"], **SAID)),
    (Kind.THUMBS, change("a", "up", 1)),
    (Kind.THUMBS, b"{ bad"),
    (Kind.THUMBS, change("b", "up", 2)),
    (Kind.THUMBS, change("a", None, 3)),
    (Kind.THUMBS, change("c", "down", 4)),
    (Kind.THUMBS, change("c", "down", 4)),
    (Kind.THUMBS, change("never", "down", 4)),
    (Kind.REROLL, reroll("c")),
    (Kind.REROLL, reroll("a", elapsed=1000)),
    (Kind.REROLL, {"response_id": 1}),
    (Kind.TRACE, trace("c", NOW)),
    (Kind.TRACE, trace("b", NOW + MINUTE // 2, **SAID)),
]


async def life(world: World, size: int, again: bool) -> None:
    """What a worker does from its start: a trace, then all thumbs and rerolls, the other traces, maintenance."""
    await world.run(Kind.TRACE, count=1, doubtful=again)
    for kind in (Kind.THUMBS, Kind.REROLL, Kind.TRACE):
        while world.committed.get((kind, 0), 0) < len(world.logs[kind, 0]):
            await world.run(kind, count=size, doubtful=again)
    world.wait(20 * MINUTE)
    await world.revisit("a", "b", "c", "never")


async def end_of(dies_at: int, size: int, size_after: int, commit_lost: bool) -> tuple[World, bool]:
    """The world after one crash and one more life; and whether the worker died at all."""
    world = World()
    for kind, event in EVENTS:
        world.send(kind, event)
    plain, fate = world.ports, Fate(dies_at)
    mortal(world, fate)
    try:
        await life(world, size, again=False)
        died = False
    except Crash:
        died = True
    world.ports = plain
    if commit_lost:
        world.committed = dict.fromkeys(world.committed, 0)
    await life(world, size_after, again=True)
    return world, died


GOOD = [(kind, e) for kind, e in EVENTS if isinstance(e, dict) and len(e) > 1]


def right(world: World) -> None:
    expected = recount(GOOD)
    assert world.scores.held == expected.scores
    assert world.coverage() == dict(expected.coverage)
    counted = world.conservation(Kind.THUMBS)
    assert counted.pop(CONSUMED) == 7
    assert counted.pop("done") + counted.pop("superseded") == 5, "which of the two depends on who met whom in a batch"
    assert counted == {"dead_lettered:malformed": 1, "dead_lettered:missing_trace": 1}
    assert world.conservation(Kind.REROLL) == {
        CONSUMED: 3,
        "done": 1,
        "filtered:out_of_window": 1,
        "dead_lettered:malformed": 1,
    }
    assert world.conservation(Kind.TRACE) == {CONSUMED: 3, "done": 3}
    letters = {
        letter.record.offset: letter for letter in world.letters.letters if letter.record.topic.endswith("thumbs")
    }
    assert {offset: letter.cause for offset, letter in letters.items()} == {
        1: Cause.MALFORMED,
        6: Cause.MISSING_TRACE,
    }
    assert len(world.replay_ids()) == 3, "sent twice perhaps, yet each known by its id"
    world.balance()


@pytest.mark.parametrize("commit_lost", [False, True])
@pytest.mark.parametrize("size_after", [1, 3, 100])
@pytest.mark.parametrize("size", [1, 3, 100])
async def test_dying_at_any_call_changes_nothing_in_the_end(size: int, size_after: int, commit_lost: bool) -> None:
    dies_at, died = 0, True
    while died:
        dies_at += 1
        world, died = await end_of(dies_at, size, size_after, commit_lost)
        try:
            right(world)
        except AssertionError as error:
            raise AssertionError(f"died at tick {dies_at}") from error
    assert dies_at > 20


async def test_a_worker_that_overwrote_anothers_score_and_died_puts_it_right_when_it_comes_again() -> None:
    """Our 0.0 lands on their 1.0, and we die before we notice. The state says 1.0: only the mark `again` helps."""
    world = World()
    await world.tell(Kind.TRACE, trace("r"))
    plain = world.ports

    class Fatal:
        async def read(self, keys: Any) -> list[bytes]:
            found = await plain.store.read(keys)
            ours, world.ports = world.ports, plain
            await world.tell(Kind.REROLL, reroll("r"))
            world.ports = ours
            return found

        async def apply(self, step: Any) -> list[str]:
            raise Crash

    world.send(Kind.THUMBS, thumb("r", "down"))
    world.ports = replace(plain, store=Fatal())
    with pytest.raises(Crash):
        await world.run(Kind.THUMBS)
    assert world.signals("r") == (-1.0, 0.0)
    world.ports = plain
    await world.run(Kind.THUMBS, doubtful=True)
    assert world.signals("r") == (-1.0, 1.0)


async def test_scores_that_were_refused_before_the_crash_are_dead_letters_once_by_their_id() -> None:
    for dies_at in range(1, 12):
        world = World()
        await world.tell(Kind.TRACE, trace("r"))
        world.scores.refuse = lambda write: Refusal(Cause.OPIK_REJECTED, "no")
        plain = world.ports
        mortal(world, Fate(dies_at))
        world.send(Kind.THUMBS, thumb("r", "down"))
        with contextlib.suppress(Crash):
            await world.run(Kind.THUMBS)
        world.ports = plain
        await world.run(Kind.THUMBS, doubtful=True)
        assert len(world.replay_ids()) == 1
        assert world.conservation(Kind.THUMBS) == {CONSUMED: 1, "dead_lettered:opik_rejected": 1}
        world.balance()


@pytest.mark.parametrize("trace_first", [True, False])
async def test_a_withdrawal_deletes_what_a_step_wrote_that_was_never_recorded(trace_first: bool) -> None:
    """Thumb written, worker dead; it comes again in one batch with its withdrawal, which can't know of the score."""
    for lost_by in ("crash", "flush"):
        world = World()
        world.send(Kind.THUMBS, change("r", "up", 1))
        world.send(Kind.TRACE, trace("r"))
        await world.run(Kind.TRACE)
        if lost_by == "crash":
            plain = world.ports
            mortal(world, Fate(5))  # the call after the scores were written
            with pytest.raises(Crash):
                await world.run(Kind.THUMBS)
            world.ports = plain
        else:
            await world.run(Kind.THUMBS)
            world.lose_state()
        assert world.signals("r") == (1.0, 0.0)
        world.send(Kind.THUMBS, change("r", None, 2))
        for kind in (Kind.TRACE, Kind.THUMBS) if trace_first else (Kind.THUMBS, Kind.TRACE):
            await world.run(kind)
        assert world.signals("r") == (None, None), lost_by
        world.balance()
