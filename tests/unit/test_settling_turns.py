"""What time does to a turn: traces sought and given up, judges waited for, scores withheld and written later."""

from __future__ import annotations

from typing import Any

import pytest
from builders import DAY, MINUTE, NOW, SECOND, change, found_trace, reroll, thumb, trace
from world import World

from agents.counting import CONSUMED
from agents.ports import Refusal
from schemas.outcomes import Cause, Kind

WAIT = 15 * MINUTE
"""The default wait for a missing trace."""


async def age(world: World, ms: int, step: int = 20 * SECOND) -> None:
    """Let time pass with upkeep running."""
    for _ in range(ms // step):
        world.wait(step)
        await world.due()


# A trace that does not come.


async def test_a_trace_that_got_no_event_is_found_in_opik_and_the_signal_written() -> None:
    world = World()
    await world.tell(Kind.THUMBS, thumb("r", "up"))
    world.traces.known["r"] = found_trace("r", vertical="travel")
    await age(world, MINUTE)
    assert world.signals("r") == (1.0, 0.0)
    assert world.coverage() == {("travel", "both_present"): 1}
    assert world.conservation(Kind.THUMBS) == {CONSUMED: 1, "done": 1}
    assert not world.letters.letters
    world.balance()


async def test_the_search_backs_off_and_stops_with_a_dead_letter_of_the_original_record() -> None:
    world = World()
    (sent,) = world.send(Kind.THUMBS, thumb("r", "up"), headers=[("app", b"x")])
    await world.run(Kind.THUMBS)
    await age(world, WAIT - MINUTE)
    assert not world.letters.letters
    await age(world, 2 * MINUTE)
    (letter,) = world.letters.letters
    assert letter.record is sent, "fetched back from Kafka, bytes and headers and all"
    assert letter.cause is Cause.MISSING_TRACE
    assert "900 s" in letter.detail
    searches = len(world.traces.asked)
    assert searches <= 14
    await age(world, 10 * MINUTE)
    assert len(world.traces.asked) == searches, "nothing is sought any more"
    assert world.conservation(Kind.THUMBS) == {CONSUMED: 1, "dead_lettered:missing_trace": 1}
    assert world.coverage() == {("unknown", "missing_trace"): 1}
    world.balance()


async def test_each_signal_of_a_turn_waits_its_own_time_and_gets_its_own_dead_letter() -> None:
    world = World()
    await world.tell(Kind.THUMBS, thumb("r", "up"))
    await age(world, 10 * MINUTE)
    await world.tell(Kind.REROLL, reroll("r"))
    await age(world, 6 * MINUTE)
    assert [letter.record.topic for letter in world.letters.letters] == ["rampgate.thumbs"]
    await age(world, 10 * MINUTE)
    assert [letter.record.topic for letter in world.letters.letters] == ["rampgate.thumbs", "rampgate.rerolls"]
    world.balance()


async def test_a_record_kafka_no_longer_has_still_gives_a_dead_letter_that_says_which_turn() -> None:
    world = World()
    await world.tell(Kind.THUMBS, thumb("r", "up"))
    world.log.records.clear()
    await age(world, WAIT + MINUTE)
    (letter,) = world.letters.letters
    assert (letter.record.key, letter.record.value) == (b"r", None)
    assert (letter.record.topic, letter.record.partition, letter.record.offset) == ("rampgate.thumbs", 0, 0)


async def given_up(world: World) -> None:
    await world.tell(Kind.THUMBS, thumb("r", "up"))
    await age(world, WAIT + MINUTE)
    assert world.causes() == ["missing_trace"]


async def test_a_trace_that_comes_after_the_signal_was_given_up_is_written_after_all() -> None:
    world = World()
    await given_up(world)
    await world.tell(Kind.TRACE, trace("r"))
    assert world.signals("r") == (1.0, 0.0)
    assert world.conservation(Kind.THUMBS) == {CONSUMED: 1, "done": 1}
    assert world.coverage() == {("shopping", "both_present"): 1}
    world.balance()


async def test_what_a_later_trace_resolved_is_not_written_again_by_a_replay() -> None:
    world = World()
    await given_up(world)
    await world.tell(Kind.TRACE, trace("r"))
    puts = len(world.scores.log)
    await world.tell(Kind.THUMBS, world.letters.letters[0].record.value)
    assert len(world.scores.log) == puts
    assert world.conservation(Kind.THUMBS) == {CONSUMED: 2, "done": 1, "superseded": 1}
    world.balance()


async def test_a_replay_while_the_trace_is_still_missing_waits_again_and_dies_again() -> None:
    world = World()
    await given_up(world)
    await world.tell(Kind.THUMBS, world.letters.letters[0].record.value)
    assert world.conservation(Kind.THUMBS) == {
        CONSUMED: 2,
        "dead_lettered:missing_trace": 1,
        "parked:no_trace": 1,
    }
    await age(world, WAIT + MINUTE)
    assert world.causes() == ["missing_trace", "missing_trace"]
    assert len(world.replay_ids()) == 2, "a new record, a new dead letter"
    world.balance()
    await world.tell(Kind.TRACE, trace("r"))
    assert world.signals("r") == (1.0, 0.0)
    world.balance()


async def test_given_up_and_delivered_again_changes_nothing() -> None:
    """The batch comes once more after a crash of the consumer; its record is in the state, dead. No count may move."""
    world = World()
    await given_up(world)
    before = world.conservation(Kind.THUMBS)
    world.rewind(Kind.THUMBS)
    await world.run(Kind.THUMBS)
    assert world.conservation(Kind.THUMBS) == before
    await age(world, WAIT + MINUTE)
    assert world.conservation(Kind.THUMBS) == before
    assert world.causes() == ["missing_trace"]
    world.balance()


# Judges.


async def test_judge_scores_read_back_within_the_settle_time_make_a_trace_missing_signal() -> None:
    world = World()
    world.clock.ms = NOW + SECOND
    await world.tell(Kind.TRACE, trace("r"))
    assert world.coverage() == {}
    world.traces.known["r"] = found_trace("r", judged=True)
    await age(world, 6 * MINUTE)
    assert world.coverage() == {("shopping", "missing_signal"): 1}
    assert not world.store.due


async def test_after_the_settle_time_nobody_asks_any_more() -> None:
    world = World()
    await world.tell(Kind.TRACE, trace("r"))
    await age(world, 10 * MINUTE)
    assert not world.store.due
    assert world.coverage() == {}
    await age(world, MINUTE)


async def test_a_trace_far_older_than_the_settle_time_is_still_asked_about_once() -> None:
    world = World()
    world.wait(DAY)
    world.traces.known["r"] = found_trace("r", judged=True)
    await world.tell(Kind.TRACE, trace("r"))
    await age(world, MINUTE)
    assert world.coverage() == {("shopping", "missing_signal"): 1}


# The feature flag.


async def test_with_the_flag_off_all_is_joined_and_counted_and_nothing_written() -> None:
    world = World()
    world.switch(write=False)
    await world.tell(Kind.TRACE, trace("r", judges=["q"]))
    await world.tell(Kind.THUMBS, thumb("r", "up"))
    await world.tell(Kind.THUMBS, thumb("early", "down"))
    await world.tell(Kind.TRACE, trace("early"))
    assert not world.scores.log
    assert world.conservation(Kind.THUMBS) == {CONSUMED: 2, "parked:withheld": 2}
    assert world.coverage() == {("shopping", "both_present"): 2}
    world.balance()


async def test_what_was_withheld_is_written_once_the_flag_is_on() -> None:
    world = World()
    world.switch(write=False)
    await world.tell(Kind.TRACE, trace("r"), trace("q"), trace("w"))
    await world.tell(Kind.THUMBS, thumb("r", "up"), change("w", "up", 1))
    await world.tell(Kind.THUMBS, change("w", None, 2))
    await world.tell(Kind.REROLL, reroll("q"))
    world.switch(write=True)
    await world.revisit("r", "q", "w")
    assert world.signals("r") == (1.0, 0.0)
    assert world.signals("q") == (None, 1.0)
    assert world.signals("w") == (None, None)
    assert world.conservation(Kind.THUMBS) == {CONSUMED: 3, "done": 2, "superseded": 1}
    assert world.conservation(Kind.REROLL) == {CONSUMED: 1, "done": 1}
    puts = len(world.scores.log)
    await world.revisit("r", "q", "w")
    assert len(world.scores.log) == puts, "once is enough"
    world.balance()


async def test_a_withdrawal_while_the_flag_is_off_is_carried_out_when_it_goes_on() -> None:
    world = World()
    await world.tell(Kind.TRACE, trace("r"))
    await world.tell(Kind.THUMBS, change("r", "up", 1))
    world.switch(write=False)
    await world.tell(Kind.THUMBS, change("r", None, 2))
    assert world.signals("r") == (1.0, 0.0)
    world.switch(write=True)
    await world.revisit("r")
    assert world.signals("r") == (None, None)
    world.balance()


async def test_a_second_trace_while_the_flag_is_off_gets_the_signals_when_it_goes_on() -> None:
    """The signal was done on the first trace; on the second it is owed again, and counted as withheld until then."""
    world = World()
    await world.tell(Kind.TRACE, trace("r", NOW, name="first"))
    await world.tell(Kind.THUMBS, thumb("r", "up"))
    world.switch(write=False)
    await world.tell(Kind.TRACE, trace("r", NOW + SECOND))
    assert world.conservation(Kind.THUMBS) == {CONSUMED: 1, "parked:withheld": 1}
    world.switch(write=True)
    await world.revisit("r")
    assert world.signals("r") == (1.0, 0.0)
    assert world.conservation(Kind.THUMBS) == {CONSUMED: 1, "done": 1}
    world.balance()


async def test_with_the_flag_off_a_missing_trace_is_still_a_dead_letter() -> None:
    world = World()
    world.switch(write=False)
    await given_up(world)
    await world.tell(Kind.TRACE, trace("r"))
    assert world.conservation(Kind.THUMBS) == {CONSUMED: 1, "parked:withheld": 1}
    world.balance()


# Scores that Opik refuses.


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
