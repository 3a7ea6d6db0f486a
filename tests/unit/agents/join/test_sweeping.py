"""A sweep's readings beside the stream's records: whichever comes first, nothing doubles and the counts balance.
Readings of the table (a sweep, `observed_at`) beside the stream of its changes: one state, whatever comes first."""

from __future__ import annotations

import itertools
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents import rerolls, thumbs
from agents.codec import TraceFacts
from agents.join.batches import Agent
from agents.join.counting import CONSUMED
from agents.join.sweeping import Placed, bring, notice, peek, still_waiting
from agents.policy import Policy
from agents.ports import Refusal
from schemas.outcomes import Cause, Kind
from schemas.signals import DECLARED
from streams.sweep.events import Sessions, reroll_event
from tests.unit.agents.builders import DAY, HOUR, MINUTE, NOW, SECOND, change, reroll, thumb, trace, trace_id
from tests.unit.agents.join.world import World

READ = NOW + 30 * SECOND


def reading(value: str | None = "down", *, at: int = READ, rid: str = "r") -> dict[str, Any]:
    return thumb(rid, value, at=NOW, observed_at=at / 1000, event_id=f"sweep:m-{rid}:{value}:{at}")


async def sweep(world: World, event: dict[str, Any], kind: Kind = Kind.THUMBS) -> bool:
    """Peek; publish and bring through what is news. Whether it was."""
    agent: Agent = thumbs.AGENT if kind == Kind.THUMBS else rerolls.AGENT
    (record,) = world.send(kind, event)
    (item,) = agent.decode([record], world.clock.ms, world.policy).items
    (known,) = await peek([item], DECLARED[kind], world.ports)
    if not known.news:
        world.logs[kind, 0].pop()
        return False
    await bring([Placed(item, record)], DECLARED[kind], world.ports, world.policy, world.topics)
    return True


async def test_a_sweep_alone_writes_and_its_record_is_counted_once_when_a_consumer_comes() -> None:
    world = World()
    await world.tell(Kind.TRACE, trace("r"))
    assert await sweep(world, reading())
    assert world.signals("r") == (-1.0, 0.0)
    assert world.conservation(Kind.THUMBS) == {}
    writes = len(world.scores.log)
    await world.run(Kind.THUMBS)
    assert len(world.scores.log) == writes, "the consumer's copy writes nothing"
    assert world.conservation(Kind.THUMBS) == {"consumed": 1, "done": 1}
    assert world.turn("r").thumbs is not None
    assert world.turn("r").thumbs.origin == DECLARED[Kind.THUMBS].origin
    world.balance()


async def test_what_the_state_has_is_no_news() -> None:
    world = World()
    await world.tell(Kind.TRACE, trace("r"))
    await world.tell(Kind.THUMBS, change(value="down"))
    writes = len(world.scores.log)
    assert not await sweep(world, reading("down"))
    assert not await sweep(world, reading(None, rid="never-heard-of"))
    assert len(world.scores.log) == writes


async def test_a_change_the_stream_lost_is_news() -> None:
    world = World()
    await world.tell(Kind.TRACE, trace("r"))
    await world.tell(Kind.THUMBS, change(value="up"))
    assert await sweep(world, reading("down"))
    assert world.signals("r") == (-1.0, 0.0)
    await world.run(Kind.THUMBS)
    assert world.conservation(Kind.THUMBS) == {"consumed": 2, "done": 2}
    world.balance()


async def test_a_sweep_twice_is_a_sweep_once() -> None:
    world = World()
    await world.tell(Kind.TRACE, trace("r"))
    assert await sweep(world, reading())
    assert not await sweep(world, reading(at=READ + HOUR))
    assert len(world.scores.log) == 2


async def test_a_swept_signal_without_a_trace_waits_and_its_consumer_parks_it_under_its_own_name() -> None:
    world = World()
    assert await sweep(world, reading())
    assert still_waiting([world.store.values["t2:r"][0]]) == 1
    await world.run(Kind.THUMBS)
    assert world.conservation(Kind.THUMBS) == {"consumed": 1, "parked:no_trace": 1}
    await world.tell(Kind.TRACE, trace("r"))
    assert world.conservation(Kind.THUMBS) == {"consumed": 1, "done": 1}
    assert world.signals("r") == (-1.0, 0.0)
    world.balance()


async def test_a_swept_signal_that_is_given_up_is_lettered_with_its_own_bytes() -> None:
    world = World()
    assert await sweep(world, reading())
    world.wait(world.policy.missing_trace + MINUTE)
    await world.revisit("r")
    (letter,) = world.letters.letters
    assert letter.record.value == world.logs[Kind.THUMBS, 0][0].value
    world.balance()


async def test_switched_off_it_is_withheld_and_written_once_it_is_on() -> None:
    world = World()
    world.switch(write=False)
    await world.tell(Kind.TRACE, trace("r"))
    assert await sweep(world, reading())
    await world.run(Kind.THUMBS)
    assert world.scores.log == []
    assert world.conservation(Kind.THUMBS) == {"consumed": 1, "parked:withheld": 1}
    world.switch(write=True)
    await world.revisit("r")
    assert world.signals("r") == (-1.0, 0.0)
    assert world.conservation(Kind.THUMBS) == {"consumed": 1, "done": 1}


@pytest.mark.parametrize("order", list(itertools.permutations(["stream", "sweep", "trace"])))
@pytest.mark.parametrize("value", ["up", "down"])
async def test_in_any_order_the_end_is_the_same(order: tuple[str, ...], value: str) -> None:
    world = World()
    for what in order:
        if what == "stream":
            await world.tell(Kind.THUMBS, change(value=value, sequence=7))
        elif what == "trace":
            await world.tell(Kind.TRACE, trace("r"))
        else:
            await sweep(world, reading(value))
    await world.drain()
    assert world.signals("r") == (1.0 if value == "up" else -1.0, 0.0)
    assert len(world.scores.log) == 2
    world.balance()


async def test_after_the_state_was_lost_reading_the_topics_again_gives_the_same() -> None:
    world = World()
    await world.tell(Kind.TRACE, trace("r"))
    await world.tell(Kind.THUMBS, change(value="up"))
    await sweep(world, reading("down"))
    await world.drain()
    before, held = world.coverage(), dict(world.scores.held)
    world.lose_state()
    await world.drain()
    assert (world.coverage(), world.scores.held) == (before, held)
    assert world.conservation(Kind.THUMBS)["consumed"] == 2
    world.balance()


async def test_a_swept_reroll_yields_to_its_record_and_to_the_middlewares() -> None:
    world = World()
    await world.tell(Kind.TRACE, trace("r"))
    assert await sweep(world, reroll("r", "r2"), Kind.REROLL)
    assert world.score("r", "user_signal_reroll") == 1.0
    writes = len(world.scores.log)
    assert not await sweep(world, reroll("r", "r3", at=NOW + SECOND), Kind.REROLL)
    await world.drain()
    assert len(world.scores.log) == writes
    assert world.conservation(Kind.REROLL) == {"consumed": 1, "done": 1}
    world.balance()


async def test_traces_read_from_opik_settle_signals_count_in_coverage_and_are_not_written_twice() -> None:
    world = World()
    await world.tell(Kind.THUMBS, change("waits"))
    found = [
        facts("waits"),
        facts("judged", judged=True),
        facts("known", wrote={"thumbs": -1, "reroll": 1}),
        facts("ancient", at=NOW - 8 * DAY, judged=True),
    ]
    await notice(found, world.ports, world.policy, world.topics)
    assert world.signals("waits") == (-1.0, 0.0)
    assert world.coverage() == {("shopping", "both_present"): 1, ("shopping", "missing_signal"): 1}
    writes = len(world.scores.log)
    assert await sweep(world, reading("down", rid="known"))
    assert len(world.scores.log) == writes, "Opik holds it already"


async def test_a_sweep_writes_over_a_score_that_opik_holds_otherwise_than_it_had_confirmed() -> None:
    """A write was applied after all doubt was over, or somebody changed the score by hand."""
    world = World()
    await world.tell(Kind.TRACE, trace("r"), trace("gone"), trace("withdrawn"), trace("right"))
    await world.tell(Kind.THUMBS, change("r", "down", 1), change("gone", "up", 1), change("right", "up", 1))
    await world.tell(Kind.THUMBS, change("withdrawn", "up", 1), change("withdrawn", None, 2))
    held = {"r": {"thumbs": 1, "reroll": 1}, "withdrawn": {"thumbs": 1}, "gone": {}}
    for rid, codes in held.items():
        for kind, name in (("thumbs", "user_signal_thumbs"), ("reroll", "user_signal_reroll")):
            world.scores.held.pop((trace_id(rid), name), None)
            if kind in codes:
                world.scores.held[trace_id(rid), name] = {"thumbs": 1.0, "reroll": 0.0}[kind]
    writes = len(world.scores.log)
    found = [facts(rid, wrote=codes) for rid, codes in held.items()]
    found.append(facts("right", wrote={"thumbs": 1, "reroll": 1}))
    report = await notice(found, world.ports, world.policy, world.topics)
    assert world.signals("r") == (-1.0, 0.0)
    assert world.signals("gone") == (1.0, 0.0)
    assert world.signals("withdrawn") == (None, None)
    assert len(world.scores.log) == writes + 4, "and nothing else is written"
    assert report.late == {"thumbs": 3, "reroll": 1}
    world.balance()


def facts(rid: str, at: int = NOW, **more: Any) -> TraceFacts:
    values = {"judged": False, "started": at - SECOND, "ended": at} | more
    return TraceFacts(rid, bytes.fromhex(trace_id(rid).replace("-", "")), "project", "shopping", "", "", **values)


def test_rerolls_are_timed_from_the_previous_turns_end_and_by_the_verticals_window() -> None:
    """PF-9 §5.4, in any order of the pages."""
    policy = Policy(reroll_window=300_000, reroll_windows={"slow": 600_000})

    def turn(rid: str, start: int, end: int, said: str = "hello", session: str = "s", vertical: str = "") -> TraceFacts:
        return TraceFacts(
            rid, b"", "p", vertical, "", "", start * SECOND, end * SECOND, False, session=session, said=said.encode()
        )

    turns = [
        turn("a", 0, 100),
        turn("b", 350, 400),  # 250 s after a's end, though 350 s after its start
        turn("c", 800, 810),  # 400 s after b's end: too late
        turn("other words", 360, 370, said="bye"),
        turn("elsewhere", 120, 130, session="t"),
        turn("d", 2000, 2010, session="v", vertical="slow"),
        turn("e", 2500, 2510, session="v", vertical="slow"),
    ]
    for page in (turns, turns[::-1]):
        sessions = Sessions(policy)
        sessions.add(page)
        found = sorted((pair.before.response_id, pair.after.response_id) for pair in sessions.rerolls())
        assert found == [("a", "b"), ("d", "e")]


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_of_a_turns_traces_in_opik_the_one_that_ended_last_says_what_was_rerolled(order: tuple[int, ...]) -> None:
    """As the stream derives it, in whatever order the pages come."""
    sessions = Sessions(Policy())
    read = [("a", NOW, NOW + SECOND, b"a shadow's"), ("a", NOW, NOW + MINUTE, b"hi")]
    read.append(("b", NOW + 5 * MINUTE, NOW + 6 * MINUTE, b"hi"))
    traces = [
        TraceFacts(rid, b"", "p", "shopping", "", "", start, end, False, session="s", said=said)
        for rid, start, end, said in read
    ]
    for number in order:
        sessions.add([traces[number]])
    assert [(pair.before.response_id, pair.before.ended) for pair in sessions.rerolls()] == [("a", NOW + MINUTE)]


def test_a_derived_reroll_is_an_event_like_the_middlewares() -> None:
    world, sessions = World(), Sessions(Policy())
    for rid, start, end in (("a", NOW, NOW + SECOND), ("b", NOW + 11 * SECOND, NOW + 12 * SECOND)):
        sessions.add([TraceFacts(rid, b"", "p", "shopping", "", "", start, end, False, session="s", said=b"hi")])
    (pair,) = sessions.rerolls()
    record = reroll_event(pair, sessions.vertical("a"), "rampgate.rerolls")
    decoded = rerolls.decode([record], world.clock.ms, world.policy)
    assert [(item.response_id, item.time) for item in decoded.items] == [("a", NOW + 11 * SECOND)]
    assert b'"elapsed_seconds":10.0' in record.value


VALUES = {"up": 1.0, "down": -1.0, None: None}


async def world_with_trace() -> World:
    world = World()
    world.wait(2 * HOUR)
    await world.tell(Kind.TRACE, trace("r"))
    return world


def read_again(value: str | None, observed: int, created: int = NOW) -> dict[str, object]:
    return thumb("r", value, at=created, observed_at=observed / 1000)


async def test_a_reading_alone_sets_the_score() -> None:
    world = await world_with_trace()
    await world.tell(Kind.THUMBS, read_again("down", NOW + HOUR))
    assert world.signals("r") == (-1.0, 0.0)
    assert world.conservation(Kind.THUMBS) == {CONSUMED: 1, "done": 1}


async def test_a_reading_that_tells_nothing_new_writes_nothing() -> None:
    world = await world_with_trace()
    await world.tell(Kind.THUMBS, change("r", "up", 1))
    puts = len(world.scores.log)
    for hour in range(1, 3):
        await world.tell(Kind.THUMBS, read_again("up", NOW + hour * HOUR))
    assert len(world.scores.log) == puts
    assert world.conservation(Kind.THUMBS) == {CONSUMED: 3, "done": 1, "superseded": 2}


async def test_a_later_reading_repairs_what_the_stream_lost() -> None:
    world = await world_with_trace()
    await world.tell(Kind.THUMBS, change("r", "up", 1))
    await world.tell(Kind.THUMBS, read_again("down", NOW + HOUR))
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
    events = [change("r", "up", 7, at=observed - before_ms), read_again("down", observed)]
    for event in reversed(events) if reading_first else events:
        await world.tell(Kind.THUMBS, event)
    assert world.score("r") == VALUES[stands]


@pytest.mark.parametrize("order", list(permutations(range(3))))
async def test_of_several_readings_the_latest_stands(order: tuple[int, ...]) -> None:
    world = await world_with_trace()
    readings = [read_again(value, NOW + (n + 1) * 10 * MINUTE) for n, value in enumerate(("up", None, "down"))]
    for n in order:
        await world.tell(Kind.THUMBS, readings[n])
    assert world.score("r") == -1.0


async def test_a_reading_of_a_refused_thumb_tries_it_again() -> None:
    world = await world_with_trace()
    world.scores.refuse = lambda write: Refusal(Cause.OPIK_REJECTED, "no")
    await world.tell(Kind.THUMBS, change("r", "up", 1))
    world.scores.refuse = lambda write: None
    await world.tell(Kind.THUMBS, read_again("up", NOW + HOUR))
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
        events.append(read_again(history[min((observed - NOW) // MINUTE, len(history) - 1)], observed))
    world = await world_with_trace()
    for event in data.draw(st.permutations(events)):
        world.send(Kind.THUMBS, event)
    while world.committed.get((Kind.THUMBS, 0), 0) < len(events):
        await world.run(Kind.THUMBS, count=data.draw(st.integers(1, 3)))
    assert world.score("r") == VALUES[history[-1]]
    assert world.score("r", "user_signal_reroll") == (0.0 if history[-1] else None)
    world.balance()
