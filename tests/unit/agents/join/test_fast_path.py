"""The short way of the common thumb makes what the general way makes, byte for byte: state, scores, counts, report."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from agents import thumbs
from agents.join.batches import Batch
from agents.join.step_data import Report
from agents.join.turn import Mark, Signal, Turn, decode_turn, encode_turn, unsignalled, with_first_thumb
from agents.policy import Policy
from agents.ports import Refusal, Write
from schemas.outcomes import Cause, Kind
from schemas.signals import THUMBS
from tests.unit.agents.arbitrary_json import JSON, KEYS
from tests.unit.agents.builders import HOUR, MINUTE, NOW, SECOND, Rec, change, encode, reroll, thumb, trace
from tests.unit.agents.join.world import AGENTS, World

SHORT = thumbs.AGENT
LONG = replace(thumbs.AGENT, prepare=None)
RIDS = ("a", "b", "c", "d", "e")


def in_text(event: dict[str, Any]) -> dict[str, Any]:
    """The form that is expected of a producer: the time as a text."""
    return event | {"occurred_at": f"2027-01-15T08:00:{event.pop('second', 0):02d}.123456+00:00"}


@st.composite
def days(draw: st.DrawFn) -> tuple[list[dict[str, Any]], list[dict[str, Any]], list[dict[str, Any]]]:
    """Traces (some judged), rerolls of some turns, and thumbs of every kind, most of them a turn's first."""
    known = draw(st.lists(st.sampled_from(RIDS), unique=True))
    traces = [trace(rid, NOW - MINUTE, judges=draw(st.sampled_from([(), ("quality",)]))) for rid in known]
    rerolls = [reroll(rid) for rid in draw(st.lists(st.sampled_from(RIDS), max_size=1))]
    said = []
    for rid in draw(st.lists(st.sampled_from(RIDS), min_size=1, max_size=8)):
        value = draw(st.sampled_from(["up", "down", "down", None]))
        if draw(st.booleans()):
            said.append(in_text(thumb(rid, value, second=draw(st.integers(0, 9)))))
        else:
            said.append(change(rid, value, draw(st.integers(1, 300)), at=NOW + draw(st.integers(-9, 9)) * SECOND))
    return traces, rerolls, said


async def world_of(
    day: tuple[list[Any], list[Any], list[Any]], agent: Any, refuse: Callable[[Write], Any], again: bool = False
) -> Any:
    traces, rerolls, said = day
    world = World()
    await world.tell(Kind.TRACE, *traces)
    await world.tell(Kind.REROLL, *rerolls)
    world.scores.refuse = refuse
    world.wait(5 * SECOND)
    records = world.send(Kind.THUMBS, *said)
    batch = Batch("rampgate.thumbs", 0, 0, records)
    world.start(batch)
    report = await world.handle(batch, agent, doubtful=again)
    world.committed[Kind.THUMBS, 0] = batch.end
    world.balance()
    return world, report


def seen(world: World, report: Report) -> dict[str, Any]:
    return {
        "state": world.store.values,
        "counters": world.store.counters,
        "due": world.store.due,
        "scores": world.scores.held,
        "writes": sorted((w.trace_id, w.name, w.value, w.project, w.label) for w in world.scores.log),
        "letters": sorted((x.record.offset, x.cause, x.detail) for x in world.letters.letters),
        "report": (report.counts, report.written, sorted(report.lags_ms)),
    }


@settings(max_examples=300)
@given(day=days(), again=st.booleans())
async def test_the_short_way_ends_where_the_general_way_ends(day: Any, again: bool) -> None:
    """Also for records that may have been handled before."""
    short = seen(*await world_of(day, SHORT, lambda write: None, again))
    assert short == seen(*await world_of(day, LONG, lambda write: None, again))


@settings(max_examples=100)
@given(day=days(), number=st.integers(0, 4), name=st.sampled_from(["user_signal_thumbs", "user_signal_reroll"]))
async def test_also_where_opik_refuses_a_score(day: Any, number: int, name: str) -> None:
    """Nothing that Opik took is written a second time, and what it refused becomes the same letters."""

    def refuse(write: Write) -> Refusal | None:
        bad = write.name == name and write.trace_id == trace(RIDS[number])["trace_id"]
        return Refusal(Cause.OPIK_REJECTED, "no such score") if bad else None

    short = seen(*await world_of(day, SHORT, refuse))
    assert short == seen(*await world_of(day, LONG, refuse))


async def test_the_common_thumb_does_take_the_short_way() -> None:
    """Else the tests above would compare the general way with itself."""
    world = World()
    await world.tell(Kind.TRACE, *[trace(rid) for rid in RIDS])
    merged: list[Any] = []

    async def merge(batch: Any, items: Any, work: Any, ports: Any) -> Any:
        merged.extend(items)
        return await thumbs.AGENT.merge(batch, items, work, ports)

    records = world.send(Kind.THUMBS, *[in_text(thumb(rid)) for rid in RIDS])
    batch = Batch("rampgate.thumbs", 0, 0, records)
    world.start(batch)
    await world.handle(batch, replace(SHORT, merge=merge))
    assert merged == []
    assert [world.signals(rid) for rid in RIDS] == [(-1.0, 0.0)] * len(RIDS)


async def test_while_the_write_flag_is_off_nothing_takes_the_short_way() -> None:
    world = World()
    world.switch(write=False)
    await world.tell(Kind.TRACE, trace("a"))

    def prepare(*args: Any) -> Any:
        raise AssertionError("not now")

    records = world.send(Kind.THUMBS, thumb("a"))
    batch = Batch("rampgate.thumbs", 0, 0, records)
    world.start(batch)
    await world.handle(batch, replace(SHORT, prepare=prepare))
    assert world.score("a") is None


@given(
    turn=st.builds(
        Turn,
        trace=st.binary(min_size=16, max_size=16),
        project=st.text(max_size=40),
        vertical=st.text(max_size=20),
        sub_agent=st.text(max_size=20),
        category=st.text(max_size=20),
        time=st.integers(1, 1 << 42),
        judged=st.integers(0, 1),
    ),
    value=st.sampled_from([1, -1]),
    time=st.integers(1, 1 << 42),
    seq=st.binary(max_size=12),
    tie=st.integers(0, 0xFFFF),
    place=st.tuples(st.integers(0, 200), st.integers(0, 1 << 40)),
)
def test_the_stored_turn_is_the_one_the_encoder_makes(
    turn: Turn, value: int, time: int, seq: bytes, tie: int, place: tuple[int, int]
) -> None:
    blob = encode_turn(turn)
    assert unsignalled(blob)
    made = with_first_thumb(blob, value, time, seq, tie, *place)
    turn.thumbs = Signal(value, time, seq, Mark.DONE, THUMBS.origin, tie, 0, *place)
    turn.wrote_thumbs, turn.wrote_reroll = value, 1
    assert made == encode_turn(turn)
    assert decode_turn(made) == turn
    assert not unsignalled(made)


@given(
    fields=st.dictionaries(KEYS, JSON, max_size=2),
    base=st.sampled_from([thumb("r"), in_text(thumb("r")), in_text(thumb("r", "up", sequence="12"))]),
    dropped=st.lists(st.sampled_from(["event_id", "user_id", "value", "occurred_at"]), max_size=1),
    at=st.sampled_from(["2027-01-15T08:00:00Z", "2027-01-15 08:00", "2026-01-15T08:00:00.5+02:00", "20270115", ""]),
    raw=st.one_of(st.none(), st.tuples(st.integers(0, 300), st.binary(min_size=1, max_size=3))),
)
@settings(max_examples=600)
def test_the_quick_look_takes_nothing_that_the_long_one_would_not_and_makes_the_same_of_it(
    fields: dict[str, Any], base: dict[str, Any], dropped: list[str], at: str, raw: tuple[int, bytes] | None
) -> None:
    event = {name: value for name, value in (base | {"occurred_at": at} | fields).items() if name not in dropped}
    values = [json.dumps(event).encode(), json.dumps(base, ensure_ascii=False).encode(), encode(change("q"))]
    if raw is not None:
        place, junk = raw
        values.append(values[1][:place] + junk + values[1][place + 1 :])
    records = [Rec(value, offset=n) for n, value in enumerate(values)]
    quick = thumbs.decode(records, NOW + HOUR, Policy())
    long = thumbs.decode_at_length(list(enumerate(records)), NOW + HOUR, Policy())
    assert sorted(quick.items, key=str) == sorted(long.items, key=str)
    assert [item.index for item in quick.items] == sorted(item.index for item in quick.items)
    assert (quick.bad, quick.dropped) == (long.bad, long.dropped)


def test_the_expected_form_gets_the_quick_look() -> None:
    records = [Rec(encode(in_text(thumb(rid, sequence="7"))), offset=n) for n, rid in enumerate(RIDS)]
    items: list[Any] = []
    assert thumbs.decode_exact(records, NOW + HOUR, Policy(), items) == []
    assert [item.response_id for item in items] == list(RIDS)
    assert AGENTS[Kind.THUMBS].prepare is not None
