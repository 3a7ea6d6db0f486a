"""Batches in flight: side by side up to Opik, then recorded and acknowledged in order (promises 1 and 6)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from faust.types import TP
from structlog.testing import capture_logs

from agents import thumbs
from agents.join.batches import FetchedBatch
from agents.join.step import Hold
from agents.keys import FOREVER, LET_THROUGH
from agents.ports import Refusal, StateLost, Unauthorized, Unavailable, Write
from schemas.outcomes import Kind
from streams.pipeline import Pipeline
from streams.quarantine import Quarantine
from streams.retry import WallClock
from tests.unit.agents.builders import thumb, trace, trace_id
from tests.unit.agents.join.world import World

CELL = "w2:rampgate.thumbs:0"
PLACE, OTHER = TP("rampgate.thumbs", 0), TP("rampgate.thumbs", 1)


class Held:
    """Opik, which holds back the scores of some traces until they are let go, or fails for them."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.waits: dict[str, asyncio.Event] = {}
        self.errors: dict[str, list[Exception]] = {}
        self.begun: list[str] = []

    def hold(self, response_id: str) -> asyncio.Event:
        return self.waits.setdefault(trace_id(response_id), asyncio.Event())

    def fail(self, response_id: str, *errors: Exception) -> None:
        self.errors[trace_id(response_id)] = list(errors)

    async def write(self, writes: Sequence[Write]) -> list[Refusal | None]:
        for name in dict.fromkeys(write.trace_id for write in writes):
            self.begun.append(name)
            if name in self.waits:
                await self.waits[name].wait()
            if self.errors.get(name):
                raise self.errors[name].pop(0)
        return await self._world.scores.write(writes)


class Stage:
    """A pipeline of thumbs over ten turns whose traces are known: `submit(2, 3)` hands on the records 2 and 3."""

    def __init__(self, in_flight: int = 4, bad_in_a_row: int = 1_000) -> None:
        self.world = World()
        self.scores = Held(self.world)
        self.generation, self.flow_active = 0, True
        self.acked: list[int] = []
        self.abandoned: list[int] = []
        self.lost: list[int | None] = []
        self.fatal: list[BaseException] = []
        self.halted: list[TP] = []
        self.pipeline = self.started(in_flight, bad_in_a_row)

    def started(self, in_flight: int, bad_in_a_row: int, now: Callable[[], int] | None = None) -> Pipeline:
        """A pipeline as a worker has it that starts now."""
        return Pipeline(
            thumbs.AGENT,
            replace(self.world.ports, scores=self.scores),
            self.world.policy,
            self.world.topics,
            in_flight=in_flight,
            bad_in_a_row=bad_in_a_row,
            consumer=lambda: self,
            observe=lambda *_: None,
            lost=self._lost,
            fatal=self.fatal.append,
            hold=Hold(),
            quarantine=Quarantine(self.world.store, 8_000),
            now=now,
        )

    async def __aenter__(self) -> Stage:
        await self.world.tell(Kind.TRACE, *(trace(f"r{number}") for number in range(10)))
        self.world.send(Kind.THUMBS, *(thumb(f"r{number}", "up") for number in range(10)))
        self.world.start(self.batch(0))
        return self

    async def __aexit__(self, *_: object) -> None:
        for event in self.scores.waits.values():
            event.set()
        await self.end()

    # What the pipeline asks of its consumer.

    def current(self, batch: FetchedBatch) -> bool:
        return batch.generation == self.generation

    def release(self, partition: TP) -> None:
        raise AssertionError("a paused partition is rewound")

    def abandon(self, batch: FetchedBatch) -> None:
        self.abandoned.append(batch.base)

    def halt(self, partition: TP) -> None:
        self.halted.append(partition)

    async def _lost(self, lost: StateLost, batch: FetchedBatch) -> None:
        self.lost.append(lost.resume_at)

    # What a test does and sees.

    def batch(self, first: int, last: int | None = None) -> FetchedBatch:
        records = self.world.logs[Kind.THUMBS, 0][first : (first if last is None else last) + 1]
        return FetchedBatch("rampgate.thumbs", 0, first, records, generation=self.generation)

    async def submit(self, first: int, last: int | None = None) -> None:
        batch = self.batch(first, last)
        await self.pipeline.submit(batch, lambda: self.acked.append(batch.base))

    async def end(self) -> None:
        while self.pipeline.in_flight:
            await asyncio.wait(set(self.pipeline._tasks), timeout=30.0)

    @property
    def recorded(self) -> int:
        """Below which record the state has all."""
        return int(self.world.store.values[CELL][0])


async def turns() -> None:
    for _ in range(50):
        await asyncio.sleep(0)


async def test_a_later_batch_that_is_done_first_is_recorded_after_the_earlier_one() -> None:
    async with Stage() as stage:
        slow = stage.scores.hold("r0")
        await stage.submit(0, 1)
        await stage.submit(2)
        await stage.submit(3, 4)
        await turns()
        assert stage.world.score("r2") == stage.world.score("r4") == 1.0, "they write side by side"
        assert (stage.recorded, stage.acked) == (0, [])
        slow.set()
        await stage.end()
        assert (stage.recorded, stage.acked) == (5, [0, 2, 3])
    assert (stage.lost, stage.fatal, stage.abandoned) == ([], [], [])


async def test_a_batch_is_acknowledged_once_it_is_in_the_state() -> None:
    async with Stage() as stage:
        seen: list[int] = []
        await stage.pipeline.submit(stage.batch(0, 2), lambda: seen.append(stage.recorded))
        await stage.end()
        assert seen == [3]


async def test_what_comes_after_a_batch_that_failed_is_not_recorded() -> None:
    """It would be committed, and the one that failed with it."""
    async with Stage() as stage:
        stage.scores.fail("r0", Unauthorized("the key is refused"))
        slow = stage.scores.hold("r0")
        await stage.submit(0)
        await stage.submit(1)
        await turns()
        slow.set()
        await stage.end()
        assert [type(error) for error in stage.fatal] == [Unauthorized]
        assert (stage.recorded, stage.acked, stage.abandoned) == (0, [], [0, 1])


async def test_a_batch_that_is_no_longer_ours_when_its_turn_comes_is_not_recorded() -> None:
    async with Stage() as stage:
        slow = stage.scores.hold("r0")
        await stage.submit(0)
        await stage.submit(1)
        await turns()
        stage.generation += 1
        slow.set()
        await stage.end()
        assert (stage.recorded, stage.acked, stage.abandoned) == (0, [], [0, 1])


async def test_a_batch_counts_as_begun_until_it_is_settled_also_once_it_is_given_up() -> None:
    """What it wrote may be in Opik, and in no state."""
    async with Stage() as stage:
        place, slow = TP("rampgate.thumbs", 0), stage.scores.hold("r2")
        assert stage.pipeline.begun_to(place) == 0
        await stage.submit(0, 1)
        await stage.submit(2)
        await turns()
        assert stage.pipeline.begun_to(place) == 3
        stage.generation += 1
        slow.set()
        await stage.end()
        assert stage.abandoned == [2]
        assert stage.pipeline.begun_to(place) == 3
        await stage.submit(2)
        await stage.end()
        assert (stage.pipeline.begun_to(place), stage.recorded) == (3, 3)


async def test_a_batch_that_is_not_ours_is_not_begun() -> None:
    async with Stage() as stage:
        stale = stage.batch(0)
        stage.generation += 1
        await stage.pipeline.submit(stale, lambda: stage.acked.append(5))
        await stage.submit(0)
        await stage.end()
        assert (stage.abandoned, stage.acked, stage.recorded) == ([0], [0], 1)
        assert stage.scores.begun == [trace_id("r0")], "only the second one writes"


async def test_no_more_than_so_many_batches_are_in_flight() -> None:
    async with Stage(in_flight=2) as stage:
        slow = stage.scores.hold("r0")
        await stage.submit(0)
        await stage.submit(1)
        third = asyncio.create_task(stage.submit(2))
        await turns()
        assert not third.done()
        assert trace_id("r2") not in stage.scores.begun
        slow.set()
        await asyncio.wait_for(third, 30.0)
        await stage.end()
        assert stage.acked == [0, 1, 2]


async def test_batches_that_are_given_up_leave_their_room_to_others() -> None:
    async with Stage(in_flight=1) as stage:
        for _ in range(3):
            stale = stage.batch(0)
            stage.generation += 1
            await asyncio.wait_for(stage.pipeline.submit(stale, lambda: None), 30.0)
        stage.scores.fail("r0", Unauthorized("the key is refused"))
        await stage.submit(0)
        await stage.end()
        await asyncio.wait_for(stage.submit(0), 30.0)
        await stage.end()
        assert stage.acked == [0]


async def test_a_state_that_lacks_earlier_records_is_made_anew_before_anything_is_recorded() -> None:
    async with Stage() as stage:
        await stage.submit(3)
        await stage.end()
        await turns()
        assert (stage.lost, stage.acked, stage.abandoned) == ([0], [], [3])
        assert stage.fatal == []


async def test_a_part_that_is_away_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streams.retry.Retry.pause", lambda *_: 0.0)
    async with Stage() as stage:
        stage.scores.fail("r1", Unavailable("Opik is away"), Unavailable("Opik is away"))
        with capture_logs():
            await stage.submit(0, 2)
            await stage.end()
        assert (stage.acked, stage.recorded) == ([0], 3)
        assert [stage.world.score(f"r{number}") for number in range(3)] == [1.0] * 3


@pytest.mark.parametrize("why", ["rewound", "no flow"])
async def test_a_part_that_is_away_is_not_waited_for_once_the_batch_is_not_ours(
    monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    monkeypatch.setattr("streams.retry.Retry.pause", lambda *_: 0.0)
    async with Stage() as stage:
        slow = stage.scores.hold("r0")
        stage.scores.fail("r0", Unavailable("Opik is away"))
        with capture_logs():
            await stage.submit(0)
            await turns()
            if why == "rewound":
                stage.generation += 1
            else:
                stage.flow_active = False
            slow.set()
            await stage.end()
        assert (stage.acked, stage.abandoned, stage.recorded) == ([], [0], 0)
        assert stage.scores.begun == [trace_id("r0")], "it is tried once"


async def test_records_wait_for_a_clock_that_can_be_trusted_and_none_is_filtered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A clock eight days ahead takes every record for one that is older than the lookback window."""
    monkeypatch.setattr("streams.retry.Retry.pause", lambda *_: 0.0)
    async with Stage() as stage:
        right = stage.world.clock.ms
        wrong, asked = right + 8 * 86_400_000, 0
        clock = WallClock()
        monkeypatch.setattr(clock, "now_ms", lambda: wrong)
        clock.compare(right, time.monotonic())

        def now() -> int:
            nonlocal asked, wrong
            asked += 1
            if asked == 3:
                wrong = right
            return clock.trusted_ms()

        stage.pipeline = stage.started(4, 1_000, now)
        with capture_logs() as logs:
            await stage.submit(0, 2)
            await stage.end()
        assert [line["event"] for line in logs].count("waiting") == 2
        assert (stage.acked, stage.recorded) == ([0], 3)
        assert stage.world.conservation(Kind.THUMBS) == {"consumed": 3, "done": 3}


async def test_a_stop_lets_what_is_in_flight_end_and_takes_nothing_new() -> None:
    async with Stage() as stage:
        slow = stage.scores.hold("r0")
        await stage.submit(0)
        await turns()
        stop = asyncio.create_task(stage.pipeline.stop(30.0))
        await turns()
        assert not stop.done()
        slow.set()
        await stop
        await stage.submit(1)
        assert (stage.acked, stage.abandoned, stage.recorded) == ([0], [1], 1)


# Records that can't be decoded.


@pytest.mark.parametrize("sizes", [(10,), (4, 6), (1,) * 10])
async def test_bad_records_in_a_row_pause_their_partition_however_they_are_cut_into_batches(
    sizes: tuple[int, ...],
) -> None:
    async with Stage(bad_in_a_row=10) as stage:
        stage.world.send(Kind.THUMBS, *[b"{bad"] * 10)
        at = 10
        stage.world.store.values[CELL] = (b"10", 1 << 46)
        for size in sizes:
            await stage.submit(at, at + size - 1)
            await stage.end()
            at += size
        assert (stage.fatal, stage.halted) == ([], [PLACE])
        assert "10 records in a row can't be decoded" in stage.pipeline.paused[PLACE]
        assert stage.recorded == 20 - sizes[-1], "the batch that paused it is not recorded"
        assert len(stage.world.letters.letters) == 10 - sizes[-1], "nor is it dead-lettered"


async def test_a_paused_partition_holds_up_no_other_and_takes_no_more_of_its_own() -> None:
    async with Stage(bad_in_a_row=10) as stage:
        stage.world.send(Kind.THUMBS, *[b"{bad"] * 12, thumb("r0", "down"))
        stage.world.store.values[CELL] = (b"10", FOREVER)
        await stage.submit(10, 20)
        await stage.submit(21, 22)
        await stage.end()
        assert stage.abandoned == [10, 21]
        await stage.submit(21, 22)
        assert (stage.abandoned, stage.pipeline.in_flight) == ([10, 21, 21], 0)
        sent = stage.world.send(Kind.THUMBS, thumb("r1", "down"), partition=1)
        there = FetchedBatch(*OTHER, 0, sent, generation=stage.generation)
        stage.world.start(there)
        await stage.pipeline.submit(there, lambda: stage.acked.append(0))
        await stage.end()
        assert (stage.world.score("r1"), stage.acked, stage.fatal) == (-1.0, [0], [])


async def test_an_operator_lets_bad_records_through_and_later_ones_count_anew() -> None:
    async with Stage(bad_in_a_row=10) as stage:
        stage.world.send(Kind.THUMBS, *[b"{bad"] * 30)
        stage.world.store.values[CELL] = (b"10", FOREVER)
        await stage.submit(10, 24)
        await stage.end()
        assert await stage.pipeline.let_through() == []
        stage.world.store.values[LET_THROUGH.key(*PLACE)] = (b"25", FOREVER)
        assert await stage.pipeline.let_through() == [PLACE]
        stage.generation += 1  # as a rewind does
        assert stage.pipeline.paused == {}
        await stage.submit(10, 24)
        await stage.end()
        assert (stage.recorded, len(stage.world.letters.letters)) == (25, 15)
        await stage.submit(25, 33)
        await stage.end()
        assert (stage.recorded, stage.pipeline.bad_in_a_row) == (34, 9)
        await stage.submit(34, 39)
        await stage.end()
        assert (stage.recorded, list(stage.pipeline.paused)) == (34, [PLACE])


async def test_what_an_operator_lets_through_before_the_partition_pauses_does_not_count() -> None:
    async with Stage(bad_in_a_row=10) as stage:
        stage.world.send(Kind.THUMBS, *[b"{bad"] * 25)
        stage.world.store.values[CELL] = (b"10", FOREVER)
        await stage.submit(10, 18)
        await stage.end()
        stage.world.store.values[LET_THROUGH.key(*PLACE)] = (b"19", FOREVER)
        await stage.submit(19, 24)
        await stage.end()
        assert (stage.recorded, stage.pipeline.bad_in_a_row, stage.pipeline.paused) == (25, 6, {})


async def test_a_note_of_an_operators_that_is_gone_lets_nothing_through_in_the_next_assignment() -> None:
    """As where the topic was made again: its offsets begin again."""
    async with Stage(bad_in_a_row=10) as stage:
        stage.world.send(Kind.THUMBS, thumb("r0", "up"), *[b"{bad"] * 20)
        stage.world.store.values |= {CELL: (b"0", FOREVER), LET_THROUGH.key(*PLACE): (b"20", FOREVER)}
        await stage.submit(0, 20)
        await stage.end()
        assert (stage.recorded, list(stage.pipeline.paused)) == (21, [])
        stage.world.store.values |= {CELL: (b"0", FOREVER), LET_THROUGH.key(*PLACE): (b"0", FOREVER)}
        stage.generation += 1
        await stage.submit(0, 20)
        await stage.end()
        assert list(stage.pipeline.paused) == [PLACE]


async def test_what_an_operator_let_through_does_not_count_after_a_restart() -> None:
    async with Stage(bad_in_a_row=10) as stage:
        stage.world.send(Kind.THUMBS, *[b"{bad"] * 20)
        stage.world.store.values |= {CELL: (b"19", FOREVER), LET_THROUGH.key(*PLACE): (b"19", FOREVER)}
        await stage.submit(19, 27)
        await stage.end()
        assert (stage.recorded, stage.pipeline.bad_in_a_row) == (28, 9)


async def test_a_partition_that_paused_goes_on_after_a_restart_with_a_higher_limit_and_not_without() -> None:
    async with Stage(bad_in_a_row=10) as stage:
        stage.world.send(Kind.THUMBS, *[b"{bad"] * 15)
        stage.world.store.values[CELL] = (b"10", FOREVER)
        for limit, recorded in ((10, 10), (10, 10), (16, 25)):
            stage.generation += 1
            stage.pipeline = stage.started(4, limit)
            await stage.submit(10, 24)
            await stage.end()
            assert stage.recorded == recorded


async def test_one_less_does_not_stop_it_and_a_good_one_between_starts_the_count_anew() -> None:
    async with Stage(bad_in_a_row=10) as stage:
        stage.world.send(Kind.THUMBS, *[b"{bad"] * 9, thumb("r0", "down"), *[b"{bad"] * 9)
        await stage.submit(0, 9)
        await stage.end()
        assert stage.pipeline.bad_in_a_row == 0
        for first, last in ((10, 14), (15, 18)):
            await stage.submit(first, last)
            await stage.end()
        assert stage.pipeline.bad_in_a_row == 9
        await stage.submit(19, 22)
        await stage.submit(23, 28)
        await stage.end()
        assert (stage.fatal, stage.recorded) == ([], 29)
        assert stage.pipeline.bad_in_a_row == 9


@pytest.mark.parametrize("before", [4, 5])
async def test_bad_records_right_before_where_a_worker_starts_count_too(before: int) -> None:
    """Else a worker that is started again and again drains the topic a few records at a time."""
    async with Stage(bad_in_a_row=10) as stage:
        stage.world.send(Kind.THUMBS, *[b"{bad"] * (before + 5))
        stage.world.store.values[CELL] = (str(10 + before).encode(), 1 << 46)
        await stage.submit(10 + before, 14 + before)
        await stage.end()
        assert list(stage.pipeline.paused) == ([PLACE] if before == 5 else [])


async def test_what_can_not_be_handled_is_dead_lettered_alone_and_its_batch_is_recorded_whole() -> None:
    async with Stage() as stage:
        stage.scores.fail("r2", *[ZeroDivisionError()] * 10)
        with capture_logs():
            await stage.submit(0, 4)
            await stage.end()
        assert (stage.acked, stage.recorded) == ([0], 5)
        (letter,) = stage.world.letters.letters
        assert letter.record.offset == 2
        assert [number for number in range(5) if stage.world.score(f"r{number}") is None] == [2]
