"""What time does to a turn: judges waited for, scores withheld and written later. A trace that does not come: sought,
given up, and what its coming late or a replay does then."""

from __future__ import annotations

from agents.join.counting import CONSUMED
from agents.keys import WITHHELD
from schemas.outcomes import Cause, Kind
from tests.unit.agents.builders import DAY, MINUTE, NOW, SECOND, change, found_trace, reroll, thumb, trace
from tests.unit.agents.join.world import WAIT, World, given_up

# Judges.


async def test_judge_scores_read_back_within_the_settle_time_make_a_trace_missing_signal() -> None:
    world = World()
    world.clock.ms = NOW + SECOND
    await world.tell(Kind.TRACE, trace("r"))
    assert world.coverage() == {}
    world.traces.known["r"] = found_trace("r", judged=True)
    await world.age(6 * MINUTE)
    assert world.coverage() == {("shopping", "missing_signal"): 1}
    assert not world.store.due


async def test_after_the_settle_time_nobody_asks_any_more() -> None:
    world = World()
    await world.tell(Kind.TRACE, trace("r"))
    await world.age(10 * MINUTE)
    assert not world.store.due
    assert world.coverage() == {}
    await world.age(MINUTE)


async def test_a_trace_far_older_than_the_settle_time_is_still_asked_about_once() -> None:
    world = World()
    world.wait(DAY)
    world.traces.known["r"] = found_trace("r", judged=True)
    await world.tell(Kind.TRACE, trace("r"))
    await world.age(MINUTE)
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


async def test_a_step_that_withholds_leaves_a_marker_of_its_own_in_the_same_change() -> None:
    """Nothing else tells a worker that there is something to write, so no crash may come between the two; and the
    marker of one step is not taken for that of another."""
    world = World()
    world.switch(write=False)
    await world.tell(Kind.TRACE, trace("r"), trace("q"))
    assert await world.store.read([WITHHELD.key()]) == [b""], "nothing is withheld yet"
    markers = []
    for response_id in "rq":
        await world.tell(Kind.THUMBS, thumb(response_id, "up"))
        markers += await world.store.read([WITHHELD.key()])
    assert all(markers)
    assert len(set(markers)) == 2


async def test_with_the_flag_on_no_marker_is_left() -> None:
    world = World()
    await world.tell(Kind.TRACE, trace("r"))
    await world.tell(Kind.THUMBS, thumb("r", "up"))
    assert await world.store.read([WITHHELD.key()]) == [b""]


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


async def test_a_trace_that_got_no_event_is_found_in_opik_and_the_signal_written() -> None:
    world = World()
    await world.tell(Kind.THUMBS, thumb("r", "up"))
    world.traces.known["r"] = found_trace("r", vertical="travel")
    await world.age(MINUTE)
    assert world.signals("r") == (1.0, 0.0)
    assert world.coverage() == {("travel", "both_present"): 1}
    assert world.conservation(Kind.THUMBS) == {CONSUMED: 1, "done": 1}
    assert not world.letters.letters
    world.balance()


async def test_the_search_backs_off_and_stops_with_a_dead_letter_of_the_original_record() -> None:
    world = World()
    (sent,) = world.send(Kind.THUMBS, thumb("r", "up"), headers=[("app", b"x")])
    await world.run(Kind.THUMBS)
    await world.age(WAIT - MINUTE)
    assert not world.letters.letters
    await world.age(2 * MINUTE)
    (letter,) = world.letters.letters
    assert letter.record is sent, "fetched back from Kafka, bytes and headers and all"
    assert letter.cause is Cause.MISSING_TRACE
    assert "900 s" in letter.detail
    searches = len(world.traces.asked)
    assert searches <= 14
    await world.age(10 * MINUTE)
    assert len(world.traces.asked) == searches, "nothing is sought any more"
    assert world.conservation(Kind.THUMBS) == {CONSUMED: 1, "dead_lettered:missing_trace": 1}
    assert world.coverage() == {("unknown", "missing_trace"): 1}
    world.balance()


async def test_each_signal_of_a_turn_waits_its_own_time_and_gets_its_own_dead_letter() -> None:
    world = World()
    await world.tell(Kind.THUMBS, thumb("r", "up"))
    await world.age(10 * MINUTE)
    await world.tell(Kind.REROLL, reroll("r"))
    await world.age(6 * MINUTE)
    assert [letter.record.topic for letter in world.letters.letters] == ["rampgate.thumbs"]
    await world.age(10 * MINUTE)
    assert [letter.record.topic for letter in world.letters.letters] == ["rampgate.thumbs", "rampgate.rerolls"]
    world.balance()


async def test_a_record_kafka_no_longer_has_still_gives_a_dead_letter_that_says_which_turn() -> None:
    world = World()
    await world.tell(Kind.THUMBS, thumb("r", "up"))
    world.log.records.clear()
    await world.age(WAIT + MINUTE)
    (letter,) = world.letters.letters
    assert (letter.record.key, letter.record.value) == (b"r", None)
    assert (letter.record.topic, letter.record.partition, letter.record.offset) == ("rampgate.thumbs", 0, 0)


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
    await world.age(WAIT + MINUTE)
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
    await world.age(WAIT + MINUTE)
    assert world.conservation(Kind.THUMBS) == before
    assert world.causes() == ["missing_trace"]
    world.balance()
