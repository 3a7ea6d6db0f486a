"""Handles batches, several at once, and records and acknowledges them in order per partition (promises 1 and 6)."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import faust
import structlog
from faust.types import TP

from agents.codec import Bad, Decoded
from agents.join.batches import Agent, Batch, FetchedBatch, handle
from agents.join.step import Hold
from agents.join.step_data import Report
from agents.keys import LET_THROUGH
from agents.policy import Policy
from agents.ports import Ports, StateLost, Unauthorized, Unavailable
from schemas.dead_letters import KEYLESS, Record, carried_by, clean
from schemas.outcomes import Cause
from schemas.seals import Seal
from schemas.topics import Topics
from streams.kafka.transport import BatchConsumer
from streams.quarantine import DETAIL, Quarantine
from streams.retry import Retry

log = structlog.get_logger(__name__)


class TooManyBad(Exception):
    """Too many undecodable records came in a row: the producer is at fault, not a record. The partition pauses, and
    nothing of it goes to the dead letters, until an operator lets them through or raises the limit."""


class Abandoned(Exception):
    """The batch is no longer ours, or an earlier one of its partition failed; it is read again."""


@dataclass
class Flight:
    """A batch in flight. `done` is set once it is recorded; `before` is the partition's batch before it, where that is
    in flight too. `floor`: the base of the oldest batch that was in flight when this one began."""

    batch: FetchedBatch
    done: asyncio.Future[None]
    before: Flight | None
    floor: int


class Pipeline:
    """Handles the batches of one topic. `fatal` is told of an error that must stop the worker, `lost` of a lost state.
    `hold` says which turns must not be written while a lost state is rebuilt, `quarantine` which records may end the
    process. `now` tells the time (ms) by which
    records are decoded and filtered, and raises Unavailable while it can't be trusted; by default the ports' clock."""

    def __init__(
        self,
        agent: Agent,
        ports: Ports,
        policy: Policy,
        topics: Topics,
        *,
        in_flight: int,
        bad_in_a_row: int,
        consumer: Callable[[], BatchConsumer],
        observe: Callable[[Report], None],
        lost: Callable[[StateLost, FetchedBatch], Awaitable[None]],
        fatal: Callable[[BaseException], None],
        hold: Hold,
        quarantine: Quarantine,
        now: Callable[[], int] | None = None,
    ) -> None:
        self._now, self._quarantine = now or ports.clock.now_ms, quarantine
        self.agent, self.ports, self.policy, self.topics = agent, ports, policy, topics
        self._room = asyncio.Semaphore(in_flight)
        self._lanes: dict[TP, deque[Flight]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._bad: dict[TP, tuple[int, int, int]] = {}
        self._paused: dict[TP, tuple[FetchedBatch, str]] = {}
        self._let_through: dict[TP, int] = {}
        self._left: dict[TP, int] = {}
        self._stopping = self._begun = False
        self._made_at = time.monotonic()
        self._bad_limit = bad_in_a_row
        self._consumer, self._observe, self._lost, self._fatal, self._hold = consumer, observe, lost, fatal, hold

    @property
    def bad_in_a_row(self) -> int:
        """Undecodable records since the last good one, in the partition that has most."""
        return max((streak for _, _, streak in self._bad.values()), default=0)

    @property
    def paused(self) -> dict[TP, str]:
        """The partitions that pause for their bad records, with the reason; of those that are still ours."""
        current = self._consumer().current
        self._paused = {tp: (batch, why) for tp, (batch, why) in self._paused.items() if current(batch)}
        return {tp: why for tp, (_, why) in self._paused.items()}

    async def let_through(self) -> list[TP]:
        """The paused partitions whose bad records an operator lets through; they must be read again. Raises
        Unavailable."""
        waiting = [(tp, self._paused[tp][0].base) for tp in self.paused]
        return [tp for tp, base in waiting if await self._learn(tp) > base]

    @property
    def in_flight(self) -> int:
        """Batches in flight."""
        return len(self._tasks)

    def begun_to(self, tp: TP) -> int:
        """The offset beyond which no batch of the partition was begun that is not settled."""
        return max([self._left.get(tp, 0), *(flight.batch.end for flight in self._lanes.get(tp, ()))])

    async def stop(self, grace: float) -> None:
        """Let the batches in flight end within `grace` seconds; abandon the others, which are read again."""
        self._stopping = True
        if self._tasks:
            _, late = await asyncio.wait(set(self._tasks), timeout=grace)
            for task in late:
                task.cancel()
            if late:
                await asyncio.wait(late, timeout=5.0)

    async def submit(self, batch: FetchedBatch, ack: Callable[[], Any]) -> None:
        """Take a batch as soon as there is room; call `ack` once it and the partition's earlier ones are settled."""
        lane = self._lanes.setdefault(TP(batch.topic, batch.partition), deque())
        while lane and lane[-1].batch.generation != batch.generation and self._consumer().current(batch):
            # A batch read before a rewind may still be writing, and this one must write last. That batch ends by
            # itself: it waits for no later one, and since it is not current it is abandoned when its call returns.
            await asyncio.wait([lane[-1].done])
        await self._recall(batch)
        await self._room.acquire()
        if self._stopping or not self._consumer().current(batch) or self._pauses(batch):
            self._consumer().abandon(batch)
            self._room.release()
            return
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        floor = lane[0].batch.base if lane else batch.base
        flight = Flight(batch, done, lane[-1] if lane else None, floor)
        lane.append(flight)
        task = asyncio.create_task(self._fly(flight, lane, ack), name=f"{batch.watermark_key}@{batch.base}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _fly(self, flight: Flight, lane: deque[Flight], ack: Callable[[], Any]) -> None:
        batch = flight.batch
        try:
            if self._quarantine.suspects:
                await self._carefully(flight)
            else:
                self._quarantine.flying += 1
                try:
                    await self._handle(flight, batch, batch.doubtful)
                finally:
                    self._quarantine.flying -= 1
            flight.done.set_result(None)
            ack()
        except (Abandoned, asyncio.CancelledError):
            pass
        except TooManyBad as error:
            self._pause(batch, str(error))
        except StateLost as lost:
            asyncio.get_running_loop().call_soon(self._recover, lost, batch)
        except Exception as error:
            self._fatal(error)
        finally:
            if not flight.done.done():
                tp = TP(batch.topic, batch.partition)
                self._left[tp] = max(self._left.get(tp, 0), batch.end)
                self._consumer().abandon(batch)
                flight.done.set_exception(Abandoned())
                flight.done.exception()
            # Otherwise each flight keeps the one before it in memory, with its records, as long as the topic flows.
            flight.before = None
            lane.remove(flight)
            self._room.release()

    def _pauses(self, batch: FetchedBatch) -> bool:
        return bool(self._paused) and TP(batch.topic, batch.partition) in self.paused

    def _pause(self, batch: FetchedBatch, why: str) -> None:
        """Read no further in the batch's partition. Its later batches are abandoned; other partitions go on."""
        tp = TP(batch.topic, batch.partition)
        if self._consumer().current(batch):
            self._paused[tp] = replace(batch, records=()), why
            self._consumer().halt(tp)
            log.error("partition_paused", topic=tp.topic, partition=tp.partition, offset=batch.base, reason=why)

    def _recover(self, lost: StateLost, batch: FetchedBatch) -> None:
        task = asyncio.ensure_future(self._lost(lost, batch))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _carefully(self, flight: Flight) -> None:
        """Handle a flight while a record is suspected of ending the process: after the partition's earlier batches, and
        what is suspected with nothing else in flight."""
        if flight.before is not None:
            await asyncio.shield(flight.before.done)
        for part in self._quarantine.parts(flight.batch):
            async with self._quarantine.admitted(part) as deadly:
                await self._handle(flight, part, flight.batch.doubtful, deadly)

    async def _handle(self, flight: Flight, batch: Batch, doubtful: bool, deadly: bool = False) -> None:
        """Bring a flight's batch, or a part of it, to its end. Waits while a part is unavailable, as long as the
        partition is ours. A `deadly` record is dead-lettered as it is."""
        failures = 0
        while True:
            try:
                if deadly:
                    decoded: Decoded[Any] = Decoded(bad=[Bad(0, Cause.WORKER_DIED, DETAIL)])
                else:
                    decoded = self.agent.decode(batch.records, self._now(), self.policy)
                await self._limit_bad(flight.batch.generation, batch, decoded)
                await self._step(flight, batch, decoded, doubtful)
            except (StateLost, Unauthorized, Abandoned, TooManyBad):
                raise
            except Unavailable as error:
                failures += 1
                pause = round(Retry().pause(failures), 2)
                log.warning(
                    "waiting", batch=batch.watermark_key, base=batch.base, reason=clean(str(error)), seconds=pause
                )
                await asyncio.sleep(pause)
                doubtful = True
                consumer = self._consumer()
                if self._stopping or not consumer.flow_active or not consumer.current(flight.batch):
                    raise Abandoned from error
            except Exception:
                log.exception("step_failed", batch=batch.watermark_key, base=batch.base, records=len(batch.records))
                await self._divide(flight, batch, True)  # it may have written before it failed
                return
            else:
                return

    async def _step(self, flight: Flight, batch: Batch, decoded: Decoded[Any], doubtful: bool) -> None:
        """Handle decoded records; they are recorded after the partition's earlier batches."""

        async def earlier_recorded() -> None:
            if flight.before is not None:
                await asyncio.shield(flight.before.done)
            if not self._consumer().current(flight.batch):
                raise Abandoned

        report = await handle(
            batch,
            decoded,
            self.agent,
            self.ports,
            self.policy,
            self.topics,
            settled=flight.batch.settled,
            doubtful=doubtful,
            floor=min(flight.floor, batch.base),
            hold=self._hold,
            earlier_recorded=earlier_recorded,
        )
        self._observe(report)
        if not self._begun:
            self._begun = True
            seconds = round(time.monotonic() - self._made_at, 3)
            log.info("first_batch_settled", topic=batch.topic, seconds_from_start=seconds)

    async def _divide(self, flight: Flight, batch: Batch, doubtful: bool) -> None:
        """Halve a batch whose handling fails until the failing record is alone, and dead-letter that record."""
        records = batch.records
        if len(records) > 1:
            first, second = records[: len(records) // 2], records[len(records) // 2 :]
            for base, part in ((batch.base, first), (first[-1].offset + 1, second)):
                await self._handle(flight, Batch(batch.topic, batch.partition, base, part), doubtful)
            return
        broken = Bad(0, Cause.INTERNAL_ERROR, "handling it failed; the worker's log has the error")
        await self._step(flight, batch, Decoded(bad=[broken]), doubtful)

    async def _recall(self, batch: FetchedBatch) -> None:
        """Count the bad records right before the first batch since we took the partition, if it begins with one.

        Without that, a worker that is restarted again and again drains the topic after all, a few records each time.
        """
        partition = TP(batch.topic, batch.partition)
        if partition in self._bad and self._bad[partition][0] == batch.generation:
            return
        if partition in self._quarantine.suspects:  # not even decoded before it is noted
            return
        streak = 0
        now = self.ports.clock.now_ms()
        with suppress(Unavailable):
            since = await self._learn(partition)  # again, since it is of the log that was read then
            if batch.base and self.agent.decode(batch.records[:1], now, self.policy).bad:
                offsets = range(max(batch.base - self._bad_limit, 0), batch.base)
                found = await self.ports.records.fetch(
                    [(partition.topic, partition.partition, offset) for offset in offsets]
                )
                deadly = self._quarantine.deadly.get(partition, ())
                before = [record for record in found if record is not None and record.offset not in deadly]
                seal = await self.ports.sealing()
                streak = self._tail(before, self.agent.decode(before, now, self.policy), seal, since)
        self._bad[partition] = (batch.generation, batch.base, streak)

    @staticmethod
    def _tail(records: Sequence[Record], decoded: Decoded[Any], seal: Seal, since: int = 0) -> int:
        """Number of bad records at the end, from the offset `since` on, without replayed dead letters; copies of one
        count."""
        good = max((event.index for event in (*decoded.items, *decoded.dropped)), default=-1)
        bad = [record for record in records[good + 1 :] if record.offset >= since]
        carried = [carried_by(record, seal) for record in bad]
        return len(bad) - len(set(filter(None, carried)))

    async def _limit_bad(self, generation: int, batch: Batch, decoded: Decoded[Any]) -> None:
        """Raise TooManyBad where undecodable records reach the limit (promise 6).

        A repeated batch counts once. Replayed dead letters don't count: an operator sent them and knows what they are,
        and a thousand of them must not pause a partition. Nor do records that an operator has let through.
        """
        partition = TP(batch.topic, batch.partition)
        seal = await self.ports.sealing() if decoded.bad else KEYLESS
        known, counted, streak = self._bad.get(partition, (generation, -1, 0))
        if generation == known and batch.end <= counted:
            return
        if generation != known or not decoded.bad:
            streak = 0
        if decoded.bad:
            since = self._let_through.get(partition, 0)
            tail = self._tail(batch.records, decoded, seal, since)
            streak = tail if decoded.items or decoded.dropped else streak + tail
            if streak >= self._bad_limit and await self._learn(partition) > since:
                since = self._let_through[partition]
                tail = self._tail(batch.records, decoded, seal, since)
                streak = tail if since >= batch.base else streak
        if streak >= self._bad_limit:
            raise TooManyBad(
                f"{batch.topic}/{batch.partition}: {streak} records in a row can't be decoded, the last at offset "
                f"{batch.end - 1} ({decoded.bad[-1].detail}). The partition pauses rather than draining into the dead "
                f"letters: mend the producer, then `rampgate resume {batch.topic}/{batch.partition}`, or raise "
                "bad_records_in_a_row and restart"
            )
        self._bad[partition] = (generation, batch.end, streak)

    async def _learn(self, partition: TP) -> int:
        """The offset below which an operator lets bad records through, 0 where none was named. Raises Unavailable."""
        (stored,) = await self.ports.store.read([LET_THROUGH.key(*partition)])
        self._let_through[partition] = int(stored) if stored else 0
        return self._let_through[partition]


Submit = Callable[[FetchedBatch, Callable[[], Any]], Awaitable[None]]
"""Takes a batch of one topic; calls the second argument once it is settled."""


def register(app: faust.App, topic: str, name: str, submit: Submit) -> None:
    """Make a Faust agent that hands batches to `submit`, which acknowledges: an error can't acknowledge anything."""

    async def agent(stream: Any) -> None:
        async for event in stream.noack().events():
            await submit(event.value, event.ack)

    app.agent(app.topic(topic, key_serializer="raw", value_serializer="raw"), name=name, concurrency=1)(agent)
