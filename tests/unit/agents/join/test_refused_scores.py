"""Scores that Opik refuses: a dead letter of the record they came from, no harm to neighbours, replays."""

from __future__ import annotations

from typing import Any

import pytest

from agents.join.counting import CONSUMED
from agents.ports import Refusal
from schemas.outcomes import Cause, Kind
from tests.unit.agents.builders import MINUTE, NOW, SECOND, change, reroll, thumb, trace
from tests.unit.agents.join.world import World


def refusing(world: World, *names: str, cause: Cause = Cause.OPIK_REJECTED) -> None:
    world.scores.refuse = lambda write: Refusal(cause, "400: no") if not names or write.name in names else None


@pytest.mark.parametrize("trace_first", [True, False])
async def test_a_refused_score_is_a_dead_letter_with_its_own_record_and_spoils_no_neighbour(trace_first: bool) -> None:
    world = World()
    world.scores.refuse = lambda w: Refusal(Cause.OPIK_REJECTED, "400: no") if w.value == -1.0 else None
    sent = world.send(Kind.THUMBS, thumb("a", "up"), thumb("b", "down"), thumb("c", "up"))
    world.send(Kind.TRACE, *[trace(rid) for rid in "abc"])
    for kind in (Kind.TRACE, Kind.THUMBS) if trace_first else (Kind.THUMBS, Kind.TRACE):
        await world.run(kind)
    assert [world.score(rid) for rid in "abc"] == [1.0, None, 1.0]
    assert [letter.record for letter in world.letters.letters] == [sent[1]]
    assert world.causes() == ["opik_rejected"]
    assert world.conservation(Kind.THUMBS) == {CONSUMED: 3, "done": 2, "dead_lettered:opik_rejected": 1}
    world.balance()


async def test_a_refused_signal_is_left_alone_by_what_else_happens_to_its_turn() -> None:
    world = World()
    await world.tell(Kind.TRACE, trace("r"))
    refusing(world, "user_signal_thumbs")
    await world.tell(Kind.THUMBS, thumb("r", "down"))
    refusing(world, "nothing")
    await world.tell(Kind.REROLL, reroll("r"))
    await world.tell(Kind.TRACE, trace("r", judges=["q"]))
    await world.revisit("r")
    assert world.signals("r") == (None, 1.0)
    assert world.causes() == ["opik_rejected"]
    world.balance()


@pytest.mark.parametrize("cause", [Cause.OPIK_REJECTED, Cause.OPIK_UNAVAILABLE])
async def test_a_refused_signal_is_tried_again_when_its_dead_letter_is_replayed(cause: Cause) -> None:
    world = World()
    await world.tell(Kind.TRACE, trace("r"))
    refusing(world, cause=cause)
    await world.tell(Kind.THUMBS, change("r", "down", 5))
    refusing(world, "nothing")
    (letter,) = world.letters.letters
    await world.tell(Kind.THUMBS, letter.record.value)
    assert world.signals("r") == (-1.0, 0.0)
    assert world.conservation(Kind.THUMBS) == {CONSUMED: 2, f"dead_lettered:{cause}": 1, "done": 1}
    world.balance()


async def test_a_replay_that_is_refused_again_comes_back_with_its_attempts_counted() -> None:
    world = World()
    await world.tell(Kind.TRACE, trace("r"))
    refusing(world)
    await world.tell(Kind.THUMBS, change("r", "down", 5))
    _, value, headers = world.letters.letters[0].encode(1_000_000)
    assert dict(headers)["rampgate.attempts"] == b"1"
    world.send(Kind.THUMBS, value, headers=headers)
    await world.run(Kind.THUMBS)
    _, value, headers = world.letters.letters[1].encode(1_000_000)
    assert dict(headers)["rampgate.attempts"] == b"2"
    assert [name for name, _ in headers].count("rampgate.attempts") == 1
    world.balance()


async def test_a_replayed_reroll_event_is_tried_again_too() -> None:
    world = World()
    await world.tell(Kind.TRACE, trace("r"))
    refusing(world)
    await world.tell(Kind.REROLL, reroll("r"))
    refusing(world, "nothing")
    await world.tell(Kind.REROLL, world.letters.letters[0].record.value)
    assert world.signals("r") == (None, 1.0)
    assert world.conservation(Kind.REROLL) == {CONSUMED: 2, "dead_lettered:opik_rejected": 1, "done": 1}
    world.balance()


async def test_a_refused_derived_reroll_is_a_dead_letter_of_the_trace_that_revealed_it_and_can_be_replayed() -> None:
    world = World()
    world.wait(30 * MINUTE)
    more: dict[str, Any] = {"session": "s", "said": "hello"}
    await world.tell(Kind.TRACE, trace("first", NOW, **more))
    refusing(world)
    (sent,) = world.send(Kind.TRACE, trace("second", NOW + MINUTE, **more))
    await world.run(Kind.TRACE)
    refusing(world, "nothing")
    assert [letter.record for letter in world.letters.letters] == [sent]
    await world.tell(Kind.TRACE, sent.value)
    assert world.signals("first") == (None, 1.0)
    world.balance()


async def test_a_refusal_long_after_the_signal_was_done_still_names_its_own_record() -> None:
    """A second trace takes the signals over, and Opik refuses: the dead letter holds the thumb, not the log's head."""
    world = World()
    await world.tell(Kind.THUMBS, thumb("other", "up"))
    (sent,) = world.send(Kind.THUMBS, thumb("r", "down"))
    await world.run(Kind.THUMBS)
    await world.tell(Kind.TRACE, trace("r", NOW, name="first"))
    refusing(world)
    await world.tell(Kind.TRACE, trace("r", NOW + SECOND, name="second"))
    assert [letter.record for letter in world.letters.letters] == [sent]
    assert world.conservation(Kind.THUMBS) == {
        CONSUMED: 2,
        "parked:no_trace": 1,
        "dead_lettered:opik_rejected": 1,
    }
    world.balance()
