"""Every accepted record of an ended trace is pooled, whatever was known of its turn: each way by which a turn can be
known before its record, rated and not rated, leads into the pool exactly once, by the turn's last record."""

from __future__ import annotations

import itertools
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from agents import thumbs
from agents.join.sweeping import Placed, bring, notice, peek
from agents.live.balance import Balance
from agents.live.judging import LiveJudging
from evalcore.scoring.cache import MemoryScoreCache
from schemas.outcomes import Kind
from schemas.signals import DECLARED
from tests.memory_ports import ManualClock, MemoryScoreEvents
from tests.samples.natural_orders import Dice
from tests.samples.product import HOUR, MINUTE, POLICY, SECOND, TOPICS, MemoryState, Product, registry
from tests.samples.turns import Ask, Copy, Post, Trace, Turn, record
from tests.unit.agents.builders import Rec
from tests.unit.agents.live.live_rig import Willing
from tests.unit.evalcore.scoring.scoring_rig import scorer

START = 1_800_000_000_000
LAST, STALE = "good, and the last", "bad, and stale"
VERSION = "v1"


@dataclass
class OneTurn:
    """A turn of ten seconds that ended just now, and everything around it."""

    turn: Turn = field(default_factory=lambda: Turn("r"))
    dice: Dice = field(default_factory=lambda: Dice(1))

    def __post_init__(self) -> None:
        clock = ManualClock(START)
        self.product = Product(clock, MemoryState(clock))
        self.ended = START - SECOND
        self.trace = self.another(VERSION, self.ended)

    def another(self, version: str, ended: int, environment: str = "production") -> Trace:
        one = Trace(self.dice.uuid7(ended - 10 * SECOND), version, ended - 10 * SECOND, environment)
        self.turn.traces.append(one)
        return one

    def in_opik(self, trace: Trace | None = None, ended: int | None = 0) -> None:
        at = self.ended if ended == 0 else ended
        self.product.opik.put(self.turn, trace or self.trace, Copy(START, at, LAST))

    async def posted(self, trace: Trace | None = None, output: str | None = LAST, **more: Any) -> Rec:
        """A record of a trace comes and is consumed."""
        trace = trace or self.trace
        ended = more.pop("ended", self.ended)
        said = record(self.turn, trace, Post(self.product.clock.ms, ended, output, **more))
        return await self.brought(Kind.TRACE, said)

    async def brought(self, kind: str, value: bytes, key: str = "r") -> Rec:
        sent = self.product.post(kind, key, value)
        await self.product.consume()
        return sent

    async def thumb(self, value: str | None = "down", sequence: int = 1, **more: Any) -> Rec:
        at = self.product.clock.ms / 1000
        event = {"event_id": f"t{sequence}", "response_id": "r", "value": value, "occurred_at": at, **more}
        return await self.brought(Kind.THUMBS, json.dumps({**event, "sequence": str(sequence)}).encode())

    async def reroll(self) -> None:
        at = self.product.clock.ms / 1000
        event = {"event_id": "e", "response_id": "r", "new_response_id": "r2", "elapsed_seconds": 5.0}
        await self.brought(Kind.REROLL, json.dumps({**event, "occurred_at": at}).encode())

    async def pass_time(self, ms: int = 2 * SECOND) -> None:
        await self.product.wait(self.product.clock.ms + ms)


Way = Callable[[OneTurn], Awaitable[None]]


async def never(one: OneTurn) -> None:
    """It is known by nothing before its record."""
    await one.posted()


async def thumbs_look_up(one: OneTurn) -> None:
    one.in_opik()
    await one.thumb()
    await one.pass_time()
    await one.posted()


async def look_up_of_a_running_trace(one: OneTurn) -> None:
    one.in_opik(ended=None)
    await one.thumb()
    await one.pass_time()
    await one.posted()


async def rerolls_look_up(one: OneTurn) -> None:
    one.in_opik()
    await one.reroll()
    await one.pass_time()
    await one.posted()


async def derived_from_traces(one: OneTurn) -> None:
    """The user says the same again in the session, and the turn's own end comes after that."""
    again = Turn("r2")
    again.traces.append(Trace(one.dice.uuid7(one.ended), VERSION, one.ended + 100))

    def in_session(turn: Turn, post: Post) -> bytes:
        event = json.loads(record(turn, turn.traces[0], post))
        event["metadata"]["session_id"] = "s"
        event["input"] = "the same"
        return json.dumps(event).encode()

    await one.brought(Kind.TRACE, in_session(one.turn, Post(START, None, None)))
    await one.brought(Kind.TRACE, in_session(again, Post(START, one.ended + 500, "good")), "r2")
    await one.brought(Kind.TRACE, in_session(one.turn, Post(START, one.ended, LAST)))


async def adopted_by_a_rebuild(one: OneTurn) -> None:
    one.in_opik()
    await one.posted(output=STALE)
    await one.thumb()
    await one.posted()
    await one.product.lose_state(adopted_first=True)


async def adopted_before_its_record(one: OneTurn) -> None:
    one.in_opik()
    await one.thumb()
    await one.pass_time()
    await one.product.lose_state(adopted_first=True)
    await one.pass_time()
    await one.posted()


async def adopted_after_its_record(one: OneTurn) -> None:
    one.in_opik()
    await one.thumb()
    await one.posted()
    await one.product.lose_state(adopted_first=False)


async def dead_thumb_replayed(one: OneTurn) -> None:
    """It waited in vain for its trace; then Opik has it."""
    sent = await one.thumb()
    await one.pass_time(16 * MINUTE)
    assert [letter.cause for letter in one.product.letters.letters] == ["missing_trace"]
    one.in_opik()
    await one.brought(Kind.THUMBS, sent.value or b"")
    await one.pass_time()
    await one.posted()


async def dead_trace_replayed(one: OneTurn) -> None:
    """A record that was too large is taken once the bound is raised."""
    sent = await one.posted(fate="too large")
    one.in_opik()
    await one.thumb()
    await one.pass_time()
    one.product.policy = replace(POLICY, max_record_bytes=1_000_000)
    await one.brought(
        Kind.TRACE, (sent.value or b"").replace(LAST.encode() + b" ", LAST.encode()).replace(b"x" * 64, b"")
    )


async def swept(one: OneTurn) -> None:
    """A sweep reads the table and Opik first."""
    one.in_opik()
    ports, at = one.product.workers[0], one.product.clock.ms
    event = {"event_id": "sweep:r", "response_id": "r", "user_id": "u", "value": "down", "occurred_at": at / 1000}
    sent = one.product.post(Kind.THUMBS, "r", json.dumps({**event, "observed_at": at / 1000}).encode())
    (item,) = thumbs.AGENT.decode([sent], at, POLICY).items
    (known,) = await peek([item], DECLARED[Kind.THUMBS], ports)
    assert known.news
    await bring([Placed(item, sent)], DECLARED[Kind.THUMBS], ports, POLICY, TOPICS)
    await notice(list((await one.product.opik.find({"r": 0})).values()), ports, POLICY, TOPICS)
    await one.product.consume()
    await one.posted()


async def another_trace_of_the_turn(one: OneTurn) -> None:
    await one.posted(one.another(VERSION, one.ended - MINUTE), STALE, ended=one.ended - MINUTE)
    await one.posted()


async def the_later_trace_first(one: OneTurn) -> None:
    await one.posted()
    await one.posted(one.another(VERSION, one.ended - MINUTE), STALE, ended=one.ended - MINUTE)


async def an_earlier_hours_trace(one: OneTurn) -> None:
    """A pool belongs to an hour; the turn moves."""
    await one.posted(one.another(VERSION, one.ended - 2 * HOUR), STALE, ended=one.ended - 2 * HOUR)
    await one.posted()


async def another_versions_trace(one: OneTurn) -> None:
    """Of a shadow that ended later and came first."""
    await one.posted(one.another("v2", one.ended + 500, "shadow"), STALE, ended=one.ended + 500)
    await one.posted()


async def its_start(one: OneTurn) -> None:
    await one.posted(output=STALE, ended=None)
    await one.posted()


async def its_start_in_the_same_millisecond(one: OneTurn) -> None:
    one.trace.started = one.ended
    await one.posted(output=STALE, ended=None)
    await one.posted()


async def the_same_end_again(one: OneTurn) -> None:
    await one.posted(output=STALE)
    await one.posted()


async def another_trace_that_ended_earlier_within_the_second(one: OneTurn) -> None:
    earlier = replace(one.another(VERSION, one.ended + 100), vertical="travel")
    await one.posted(ended=one.ended + 500)
    await one.posted(output=STALE, ended=one.ended + 300)
    await one.posted(earlier, output=STALE, ended=one.ended + 100)


async def null_first(one: OneTurn) -> None:
    await one.posted(output=None)
    await one.posted()


async def an_earlier_end_afterwards(one: OneTurn) -> None:
    await one.posted()
    await one.posted(output=STALE, ended=one.ended - 300)
    await one.posted(output=STALE, ended=None)


async def five_times(one: OneTurn) -> None:
    for _ in range(5):
        await one.posted()


async def redelivered(one: OneTurn) -> None:
    await one.posted(output=STALE)
    await one.posted()
    one.product.rewind(by=2)
    await one.product.consume()


class Uncounted:
    """Figures that no one looks at."""

    def __getattr__(self, name: str) -> Any:
        return lambda *_: None


async def live_judging_first(one: OneTurn) -> None:
    """Its judges score the trace as Opik has it, before the record comes."""
    one.in_opik()
    sent = await one.thumb()
    await one.pass_time()
    product, events = one.product, MemoryScoreEvents()
    live = LiveJudging(
        product.workers[0], POLICY, scorer(Willing(), MemoryScoreCache()), registry, product.opik.get, frozenset(),
        TOPICS.of(Kind.TRACE), events, Balance(Uncounted()),
    )  # fmt: skip
    await one.pass_time(MINUTE)
    await live.thumbs([sent])
    await one.posted()
    await live.traces(product.logs[Kind.TRACE, sent.partition])


async def late(one: OneTurn) -> None:
    """After the wait for a missing trace is over."""
    await one.thumb()
    await one.pass_time(20 * MINUTE)
    await one.posted()


async def after_a_restart(one: OneTurn) -> None:
    one.in_opik()
    await one.thumb()
    one.product.restart()
    await one.pass_time()
    one.product.restart()
    await one.posted()


WAYS: tuple[Way, ...] = (
    never, thumbs_look_up, look_up_of_a_running_trace, rerolls_look_up, derived_from_traces, adopted_by_a_rebuild,
    adopted_before_its_record, adopted_after_its_record, dead_thumb_replayed, dead_trace_replayed, swept,
    another_trace_of_the_turn, the_later_trace_first, an_earlier_hours_trace, another_versions_trace, its_start,
    its_start_in_the_same_millisecond, the_same_end_again, null_first, an_earlier_end_afterwards,
    another_trace_that_ended_earlier_within_the_second, five_times,
    redelivered, live_judging_first, late, after_a_restart,
)  # fmt: skip


async def came_to_pass(way: Way, *, rated: bool) -> OneTurn:
    """Rated in the end, or not: then its rating is taken back."""
    one = OneTurn()
    await way(one)
    await one.pass_time()
    await one.thumb("down" if rated else None, 5)
    await one.pass_time()
    return one


EACH_WAY = pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
RATED_OR_NOT = pytest.mark.parametrize("rated", [True, False], ids=["rated", "not rated"])
ASKS: list[tuple[Any, ...]] = [*itertools.product(("pre_ramp", "pre_full"), ("shop", None), ("version", "agent"))]


@EACH_WAY
@RATED_OR_NOT
async def test_a_turn_is_in_the_pool_exactly_once_by_its_last_record(way: Way, rated: bool) -> None:
    one = await came_to_pass(way, rated=rated)
    for milestone, vertical, scope in ASKS:
        told = await one.product.told(
            Ask(one.product.clock.ms, VERSION, milestone, vertical, scope), 1, registry(scope)
        )
        mine = [shown for shown in told.judged if shown.turn == "r"]
        where = f"{milestone}, {vertical or 'all verticals'}, {scope}"
        assert [shown.trace for shown in mine] == [one.trace.id], where
        assert str(mine[0].output).startswith(LAST), where


@EACH_WAY
@RATED_OR_NOT
async def test_a_turn_is_counted_once_as_eligible_and_pooled(way: Way, rated: bool) -> None:
    one = await came_to_pass(way, rated=rated)
    turns = 2 if way is derived_from_traces else 1
    for milestone, vertical, scope in ASKS:
        ask = Ask(one.product.clock.ms, VERSION, milestone, vertical, scope)
        told = await one.product.told(ask, 1, registry(scope))
        where = f"{milestone}, {vertical or 'all verticals'}, {scope}"
        assert (told.size, told.eligible, told.pooled) == (turns, turns, turns), where
        assert sum((told.left_out or {}).values()) == 0, where
        assert told.signals is not None, where
        assert told.signals["rated"] == (int(rated), int(rated)), where
