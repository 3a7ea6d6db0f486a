"""Whatever comes first, a trace's start, its end, its texts or a thumb on it: each trace is judged once, by each judge
that applies, on its final text (PC5 §5.2, FR-11)."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from agents.live.balance import Balance, End
from agents.live.judging import STAGE
from agents.ports import Unavailable
from evalcore.scoring.cache import MemoryScoreCache
from evalcore.scoring.calls import CallFailed, Failure
from schemas.dead_letters import Record
from schemas.outcomes import Cause, Kind
from tests.unit.agents.builders import MINUTE, NOW, SECOND, thumb
from tests.unit.agents.live.live_rig import (
    JUDGES,
    RARE,
    MemoryFigures,
    Rig,
    Willing,
    bare,
    in_opik,
    live_trace,
    running_in_opik,
    started,
)

FINAL = "so r."
EVERY = {judge.id for judge in JUDGES if judge.fires}


WAYS = [
    ("end",),
    ("start", "end"),
    ("end", "start"),
    ("end", "again"),
    ("start", "end", "again"),
    ("bare", "opik"),
    ("opik", "bare"),
    ("start", "bare", "opik"),
    ("start", "opik", "bare"),
    ("bare", "end"),
    ("end", "bare"),
    ("bare", "bare", "opik"),
]
THUMBS: dict[str, tuple[str | None, ...]] = {
    "down": ("down",),
    "up": ("up",),
    "up, then down": ("up", "down"),
    "down, then taken back": ("down", None),
    "down, taken back, down": ("down", None, "down"),
}


def orders() -> Iterator[Any]:
    for way in WAYS:
        for each in (True, False):
            rhythm = "one by one" if each else "together"
            yield pytest.param(way, each, (), id=f"{' '.join(way)}, {rhythm}, not rated")
            for place in range(len(way) + 1):
                for name, values in THUMBS.items():
                    steps = (*way[:place], *(f"thumb {value}" for value in values), *way[place:])
                    yield pytest.param(steps, each, values, id=f"{' '.join(steps)}, {rhythm}: {name}")


@pytest.mark.parametrize(("steps", "each", "values"), list(orders()))
async def test_in_any_order_a_trace_is_judged_once_by_each_judge_that_applies_on_its_final_text(
    steps: tuple[str, ...], each: bool, values: tuple[str | None, ...]
) -> None:
    rig, event = Rig(), live_trace(sampled=False)
    for number, step in enumerate(steps):
        kind = Kind.THUMBS if step.startswith("thumb") else Kind.TRACE
        if kind == Kind.THUMBS:
            value = step.removeprefix("thumb ")
            sent = thumb("r", None if value == "None" else value, at=NOW + number * SECOND)
        elif step == "start":
            sent = started(event)
            rig.in_opik.setdefault(event["trace_id"], running_in_opik(event))
        elif step == "opik":
            rig.in_opik[event["trace_id"]] = in_opik(event)
            continue
        else:
            sent = bare(event) if step == "bare" else event
        await rig.come(kind, sent)
        if each:
            await rig.settle()
            rig.cache = MemoryScoreCache()  # what is asked again shows
    await rig.settle()
    await rig.age(3 * MINUTE)
    asked = Counter(said["judge_id"] for said in rig.events.events)
    down = bool(values) and values[-1] == "down"
    wanted = EVERY if down or ("down" in values and RARE.id in asked) else EVERY - {RARE.id}
    assert asked == dict.fromkeys(wanted, 1)
    assert len(rig.model.calls) == len(wanted), "no judge was asked twice"
    assert all(FINAL in text for text in rig.model.calls)
    assert rig.parked == {Kind.TRACE: [], Kind.THUMBS: []}
    assert rig.world.causes() == []
    assert rig.figures.differences() == {}


async def test_rated_turns_are_judged_as_often_as_others_though_the_thumb_falls_due_before_the_end() -> None:
    """Issue 31: 90 traces of which a third is rated down 1 s after its start record."""
    rig, events = Rig(), [live_trace(f"r{number}") for number in range(90)]
    rig.in_opik = {event["trace_id"]: running_in_opik(event) for event in events}
    await rig.come(Kind.TRACE, *(started(event) for event in events))
    await rig.come(Kind.THUMBS, *(thumb(event["response_id"]) for event in events[::3]))
    await rig.settle()
    assert rig.model.calls == []
    assert rig.figures.waits.total() == 30
    await rig.come(Kind.TRACE, *events)
    await rig.settle()
    await rig.age(MINUTE)
    asked = Counter(said["judge_id"] for said in rig.events.events)
    assert asked == dict.fromkeys(EVERY, 90)
    assert not any("so far" in text for text in rig.model.calls)
    assert rig.figures.ended_as(End.JUDGED, "yes") == 30
    assert rig.figures.ended_as(End.JUDGED, "no") == 60
    assert rig.figures.differences() == {}


def letters(rig: Rig) -> list[tuple[str, Record]]:
    """Topic and record of the letters that live judging wrote for want of a whole trace."""
    found = [one for one in rig.world.letters.letters if one.stage == STAGE]
    assert all(one.cause is Cause.MISSING_TRACE for one in found)
    return [(one.record.topic, one.record) for one in found]


async def test_a_voted_down_trace_that_never_ends_waits_and_is_a_dead_letter_and_its_later_end_is_judged() -> None:
    rig, event = Rig(), live_trace()
    rig.in_opik[event["trace_id"]] = running_in_opik(event)
    await rig.come(Kind.TRACE, started(event))
    await rig.come(Kind.THUMBS, thumb("r"))
    await rig.age(14 * MINUTE)
    assert letters(rig) == []
    assert rig.figures.waits.total() == 1
    await rig.age(3 * MINUTE)
    assert [topic for topic, _ in letters(rig)] == ["rampgate.thumbs"]
    assert rig.figures.ended_as(End.DEAD_LETTERED, "yes") == 1
    assert rig.model.calls == []
    await rig.come(Kind.TRACE, event)
    await rig.settle()
    assert Counter(said["judge_id"] for said in rig.events.events) == dict.fromkeys(EVERY, 1)
    assert rig.figures.differences() == {}


@pytest.mark.parametrize("copy", ["none", "running", "ended, no texts", "ended, no output"])
async def test_a_record_whose_texts_never_come_is_a_dead_letter_and_its_replay_is_judged(copy: str) -> None:
    rig, event = Rig(), live_trace()
    copies = {
        "running": running_in_opik(event),
        "ended, no texts": bare(in_opik(event)),
        "ended, no output": {**in_opik(event), "output": None},
    }
    if copy in copies:
        rig.in_opik[event["trace_id"]] = copies[copy]
    await rig.come(Kind.TRACE, bare(event))
    await rig.age(14 * MINUTE)
    assert letters(rig) == []
    await rig.age(2 * MINUTE)
    ((topic, record),) = letters(rig)
    assert (topic, rig.model.calls, rig.parked[Kind.TRACE]) == ("rampgate.traces", [], [])
    rig.in_opik[event["trace_id"]] = in_opik(event)
    sent: Any = record.value
    await rig.come(Kind.TRACE, sent)
    await rig.settle()
    assert len(rig.model.calls) == len(EVERY)
    assert rig.figures.differences() == {}


async def test_a_dead_lettered_thumb_is_judged_when_it_is_replayed_after_its_trace_ended_in_opik() -> None:
    rig, event = Rig(), live_trace()
    rig.in_opik[event["trace_id"]] = running_in_opik(event)
    await rig.come(Kind.TRACE, started(event))
    await rig.come(Kind.THUMBS, thumb("r"))
    await rig.age(17 * MINUTE)
    ((_, record),) = letters(rig)
    rig.in_opik[event["trace_id"]] = in_opik(event)
    sent: Any = record.value
    await rig.come(Kind.THUMBS, sent)
    await rig.settle()
    assert len(rig.model.calls) == len(EVERY)


async def test_a_thumb_whose_turn_has_no_trace_waits_as_long_as_in_the_join_whose_dead_letter_is_the_only_one() -> None:
    rig = Rig()
    await rig.come(Kind.THUMBS, thumb("gone"))
    await rig.age(20 * MINUTE)
    assert rig.parked[Kind.THUMBS] == []
    assert [(one.cause, one.stage != STAGE) for one in rig.world.letters.letters] == [(Cause.MISSING_TRACE, True)]
    assert rig.figures.ended_as(End.NO_TRACE) == 1
    event = live_trace("gone", sampled=False)
    await rig.come(Kind.TRACE, event)
    await rig.settle()
    assert len(rig.model.calls) == len(EVERY), "as one voted down, whenever it comes"


async def test_a_thumb_that_the_join_never_reaches_is_a_dead_letter() -> None:
    rig = Rig()
    rig.parked[Kind.THUMBS] = rig.world.send(Kind.THUMBS, thumb("r"))
    await rig.age(14 * MINUTE)
    assert letters(rig) == []
    await rig.age(2 * MINUTE)
    assert len(letters(rig)) == 1


async def test_of_a_trace_posted_again_before_it_was_judged_the_later_end_counts_and_else_the_later_record() -> None:
    for first, second, wanted in ((0, 0, "second"), (5, 0, "first"), (0, 5, "second")):
        rig, event = Rig(), live_trace()
        for text, seconds in (("first", first), ("second", second)):
            output = {"messages": [{"content": text}]}
            await rig.come(Kind.TRACE, {**event, "output": output, "ended_at": event["ended_at"] + seconds})
        await rig.settle()
        assert len(rig.model.calls) == len(EVERY)
        assert all(wanted in text for text in rig.model.calls)
        assert rig.figures.ended_as(End.SUPERSEDED) == 1


async def test_while_opik_is_away_nothing_is_lost_and_then_it_is_judged() -> None:
    rig, event = Rig(), live_trace()
    await rig.come(Kind.TRACE, bare(event))
    rig.opik_is_away = True
    for _ in range(3):
        with pytest.raises(Unavailable):
            await rig.settle()
    rig.opik_is_away = False
    rig.in_opik[event["trace_id"]] = in_opik(event)
    await rig.settle()
    assert len(rig.model.calls) == len(EVERY)
    assert rig.world.causes() == []
    assert rig.figures.differences() == {}


async def test_a_thumb_that_falls_due_while_its_trace_is_judged_has_no_judge_asked_twice() -> None:
    rig, event = Rig(), live_trace(sampled=False)
    rig.model.seconds = 0.05
    rig.in_opik[event["trace_id"]] = {**in_opik(event), "name": "another form"}
    await rig.come(Kind.TRACE, event)
    rig.world.wait(MINUTE)
    judging = rig.judging()
    work = asyncio.create_task(judging.traces(rig.parked[Kind.TRACE]))
    await asyncio.sleep(0.02)
    await rig.come(Kind.THUMBS, thumb("r"))
    waiting = await judging.thumbs(rig.parked[Kind.THUMBS])
    assert await work == []
    assert await judging.thumbs(waiting) == []
    assert Counter(said["judge_id"] for said in rig.events.events) == dict.fromkeys(EVERY, 1)


async def test_after_its_worker_was_killed_another_judges_what_waited() -> None:
    rig, event = Rig(), live_trace()
    await rig.come(Kind.TRACE, bare(event))
    await rig.settle()
    rig.figures = MemoryFigures()  # a process's counts go with it
    rig.balance = Balance(rig.figures)
    rig.in_opik[event["trace_id"]] = in_opik(event)
    await rig.settle()
    assert len(rig.model.calls) == len(EVERY)
    assert rig.figures.ended_as(End.JUDGED) == rig.figures.fell_due.total() == 1


async def test_a_model_that_answers_without_a_completion_makes_a_dead_letter_of_each_trace() -> None:
    rig = Rig(answers=CallFailed(Failure.UNAVAILABLE, "the model's server answers 200 without a chat completion"))
    await rig.come(Kind.TRACE, live_trace())
    await rig.settle()
    assert rig.world.causes() == [Cause.JUDGE_UNAVAILABLE]
    rig.model = Willing()
    await rig.come(Kind.TRACE, rig.world.letters.letters[0].record.value)
    await rig.settle()
    assert {said["judge_id"] for said in rig.events.events if said["score"] is not None} == EVERY
