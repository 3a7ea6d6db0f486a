"""Faust's consumer, made to hand an agent a partition's records as one message, and to commit by a stricter rule.

Faust spends 80-170 microseconds on each message, so a message here carries a batch. Faust supervises, rebalances and
says when to commit. This module says which offset: none beyond the oldest batch that is not settled, in whatever order
batches are acknowledged (Faust's own rule can pass an unsettled one by, faust-streaming/faust#606). What was fetched is
unpacked here as well, for all consumers of the process: bytes that no one can read become a record that says so.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import AsyncExitStack, suppress
from functools import partial
from itertools import islice
from typing import Any

import structlog
from aiokafka.consumer import consumer as consuming
from aiokafka.consumer import fetcher
from aiokafka.errors import (
    CorruptRecordException,
    IllegalStateError,
    KafkaError,
    NoOffsetForPartitionError,
    OffsetOutOfRangeError,
)
from aiokafka.record.memory_records import MemoryRecords
from faust.transport.drivers import aiokafka as driver
from faust.types import TP
from mode.threads import WorkerThread

from agents.join.batches import FetchedBatch
from agents.ports import Unavailable
from schemas.dead_letters import clean
from streams.kafka import inflation
from streams.kafka.clean_stops import leave_notes, take_notes
from streams.kafka.inflation import NotNow, bound_aiokafka, drain
from streams.kafka.record_batches import ReadByHand
from streams.retry import reason_of

log = structlog.get_logger(__name__)

Start = Callable[[TP, int | None, int | None], Awaitable[int]]
"""Returns the offset to read a partition from. Its arguments: the committed offset (None without one) and the offset up
to which this worker has settled the partition (None where it has just become ours)."""
KAFKA_ERRORS = (KafkaError, OSError, TimeoutError)
"""What calls of Kafka raise while it is out of reach."""
FETCH_WAIT_MS = 200
READ_COMMITTED = "read_committed"
"""What a transaction aborted is no record; what one has not committed yet waits in Kafka."""
BYTES_IN_FLIGHT = 64 * 1_048_576
"""From so many on in a topic's unsettled batches, no more of the topic is fetched. Sixteen batches of the largest size
would take a gigabyte, and those of one topic must not hold up the others."""
THREAD_SECONDS = 5.0
"""So long a thread that was told to end is waited for; the event loop stands still meanwhile."""
PAUSE = 0.1
"""Seconds until a partition is fetched again that could not be fetched."""


class BatchConsumer(driver.Consumer):
    """Fetches batches and commits their offsets. Takes `start_of_partition` and `batch_records` from its app.

    `_next`: the offset of the next batch. `_outstanding`: the last offset of each batch that is not acknowledged, and
    its first; `_sizes`: the bytes of its records. `_generation` counts rewinds and assignments: a batch of an earlier
    one is stale. `_adrift`: partitions that are read from their committed offset, wherever the next batch begins, until
    they are rewound. `_beyond`: how far a partition was read on without a record, over marks of transactions and what
    was aborted.
    """

    app: Any
    transport: Any
    _thread: Any

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._next: dict[TP, int] = {}
        self._adrift: set[TP] = set()
        self._generation: defaultdict[TP, int] = defaultdict(int)
        self._outstanding: defaultdict[TP, dict[int, int]] = defaultdict(dict)
        self._sizes: defaultdict[TP, dict[int, int]] = defaultdict(dict)
        self._settled_before: dict[TP, int] = {}
        self._beyond: dict[TP, int] = {}
        self._fetched_under: dict[TP, int] = {}
        self.fetches = 0
        """Fetches that have ended so far, with records or without."""
        self._halted: set[TP] = set()
        self._seeking: defaultdict[TP, asyncio.Lock] = defaultdict(asyncio.Lock)
        app = self.app
        self.start_at: Start = app.start_of_partition
        self._doubts: Mapping[TP, tuple[int, int]] = app.start_offsets.doubts
        self._new_logs: set[TP] = app.start_offsets.new_logs
        self._clean: dict[TP, int] = app.start_offsets.clean
        self._begun_to: Callable[[TP], int | None] = app.begun_to
        self._noted: dict[TP, int] = {}
        self._release: Callable[[TP], None] = app.start_offsets.quarantine.release
        self.max_records: int = app.batch_records

    async def perform_seek(self) -> None:
        """Seek where the state left off, which is at or before the committed offset.

        Where a rebalance takes partitions meanwhile, this does nothing: the same rebalance seeks those that it gives.
        """
        try:
            await self._seek_committed()
        except (IllegalStateError, AssertionError):  # aiokafka asserts that a partition is left
            log.info("seek_overtaken_by_a_rebalance")
            return
        for tp in sorted(self.assignment()):
            await self.return_to_state(tp)

    async def _seek_committed(self) -> None:
        """Seek the committed offsets, as Faust does, and hand on nothing of what is read there.

        Another such seek may have found the start of these partitions already: what is read at the committed offset
        would seem to follow a hole, and all records from the start up to there would be passed by.
        """
        async with AsyncExitStack() as stack:
            for tp in sorted(self.assignment()):
                await stack.enter_async_context(self._seeking[tp])
            self._adrift |= self.assignment()
            await super().perform_seek()
            await self._take_notes()

    async def return_to_state(self, tp: TP) -> None:
        """Read on from the state's watermark; wait for the state while it is unavailable and the partition is ours."""
        while not self.should_stop and tp in self.assignment():
            try:
                settled = self._settled(tp) if tp in self._next else None
                start = await self.start_at(tp, self._committed_offset[tp], settled)
            except Unavailable as error:
                log.warning("waiting_for_state", topic=tp.topic, partition=tp.partition, reason=clean(str(error)))
                await self.sleep(1.0)
            else:
                if tp in self._new_logs:
                    self._new_logs.discard(tp)
                    self._forget(tp)
                await self.rewind(tp, start)
                return

    def _forget(self, tp: TP) -> None:
        """Forget how far the partition was settled and committed, since that was another log."""
        self._generation[tp] += 1
        self._committed_offset[tp] = None
        self._acked[tp].clear()
        self._acked_index[tp].clear()
        self._outstanding[tp].clear()
        self._settled_before.pop(tp, None)
        self._beyond.pop(tp, None)

    async def rewind(self, tp: TP, offset: int) -> None:
        """Read the partition from `offset`. Batches that were fetched before are of an older generation and are
        dropped."""
        async with self._seeking[tp]:
            self._generation[tp] += 1
            self._settled_before[tp] = self._settled(tp)
            if not await self._seek_if_held(tp, offset):
                return
            self._generation[tp] += 1
            self._next[tp] = offset
            self._adrift.discard(tp)
            self._beyond.pop(tp, None)
            self._read_offset[tp] = None
            self._outstanding[tp].clear()
            self._halted.discard(tp)
            # All below is settled, but its commit may have failed: on a quiet partition nothing else commits it.
            self._acked[tp] = [offset - 1] if offset else []

    async def _return(self, tp: TP) -> None:
        """Seek the next batch again, after a fetch that must not be handed on."""
        async with self._seeking[tp]:
            if tp in self._next:
                await self._seek(tp, self._next[tp])

    def _settled(self, tp: TP) -> int:
        """The offset below which all records were settled once, as far as we know: a rewind does not lower it."""
        known = (self._committed_offset[tp], self._settled_before.get(tp), self._new_offset(tp))
        return max(offset or 0 for offset in known)

    def current(self, batch: FetchedBatch) -> bool:
        """True where the batch belongs to this assignment and was not fetched before a rewind."""
        return self._generation[TP(batch.topic, batch.partition)] == batch.generation

    def abandon(self, batch: FetchedBatch) -> None:
        """Give a batch up: it is read again, here or elsewhere. A rebalance must not wait for it."""
        place = batch.watermark_key, batch.base, batch.generation
        waiting: list[Any] = list(self._unacked_messages)
        for message in waiting:
            if (message.value.watermark_key, message.value.base, message.value.generation) == place:
                self._unacked_messages.discard(message)

    def halt(self, partition: TP) -> None:
        """Fetch no more of the partition until it is released, rewound, or assigned again."""
        self._halted.add(partition)

    def release(self, partition: TP) -> None:
        """Fetch the partition again, from where it was halted."""
        self._halted.discard(partition)

    def committed(self, tp: TP) -> int | None:
        """The committed offset, None without one."""
        return self._committed_offset[tp]

    def stands(self, tp: TP) -> int | None:
        """The offset of the next batch; None until the partition's start is known."""
        return self._next.get(tp)

    def unsettled_from(self, tp: TP) -> int | None:
        """The offset below which every record is settled; None until the partition's start is known."""
        stands = self._next.get(tp)
        return min([stands, *self._outstanding[tp].values()]) if stands is not None else None

    def read_to(self, tp: TP) -> int | None:
        """The offset below which no record waits: as `unsettled_from`, and beyond what is no record."""
        settled = self.unsettled_from(tp)
        return settled if settled is None or self._outstanding[tp] else max(settled, self._beyond.get(tp, 0))

    def replaying(self) -> bool:
        """True while records are read again that were settled before the state was lost."""
        return any(self._next.get(tp, until) < until for tp, until in self._settled_before.items())

    def _new_consumer_thread(self) -> Any:
        return BatchConsumerThread(self, loop=self.loop, beacon=self.beacon)

    async def _getmany(self, active_partitions: set[TP] | None, timeout: float) -> Any:
        self._fetched_under = dict(self._generation)
        shut = self._halted | self._full()
        if shut and active_partitions is not None:
            active_partitions = active_partitions - shut
            if not active_partitions:  # an empty set asks for all
                await self.sleep(timeout)
                return {}
        try:
            fetched = await super()._getmany(active_partitions, timeout)
            self._note_holes(fetched)
            self.fetches += 1
            return fetched
        except OffsetOutOfRangeError as error:
            await self._out_of_range(error.args[0])
        except NoOffsetForPartitionError:  # until the partition's first seek, which is under way
            await self.sleep(PAUSE)
        return {}

    def in_flight(self, topic: str) -> int:
        """The bytes of records of a topic that are handed on and not settled. What an operator has to look at first is
        not among them: it may stand for days, and the topic's other partitions go on."""
        return sum(
            size
            for tp, sizes in self._sizes.items()
            if tp.topic == topic and tp not in self._halted
            for last, size in sizes.items()
            if last in self._outstanding[tp]
        )

    def _full(self) -> set[TP]:
        """The partitions of topics of which enough is in flight."""
        topics = {tp.topic for tp, sizes in self._sizes.items() if sizes}
        full = {topic for topic in topics if self.in_flight(topic) >= BYTES_IN_FLIGHT}
        return {tp for tp in self._next if tp.topic in full} if full else set()

    def _note_holes(self, fetched: Mapping[TP, Any]) -> None:
        """Note where a fetch has moved on without giving a record. All that earlier ones gave was handed on by now."""
        consumer = self._thread._ensure_consumer()
        for tp, stands in self._next.items():
            state = state_of(consumer, tp) if tp not in fetched and tp not in self._adrift else None
            moved = state is not None and state.has_valid_position and state.position > stands
            if state is not None and moved and self._fetched_under.get(tp) == self._generation[tp]:
                self._beyond[tp] = state.position

    async def _out_of_range(self, places: Iterable[TP]) -> None:
        """Find the start again of partitions whose next record Kafka does not have, once the batches in flight, which
        it had, are settled. aiokafka would go on elsewhere by itself, and no one would know of the records in
        between."""
        for place in places:
            tp = TP(*place)
            if self._outstanding[tp]:
                await self.sleep(PAUSE)
            elif tp in self._next:
                await self.return_to_state(tp)

    async def getmany(self, timeout: float) -> AsyncIterator[tuple[TP, Any]]:
        """Yields one message per partition and batch: its value a `FetchedBatch`, its offset the batch's last."""
        records, _ = await self._wait_next_records(timeout)
        app_generation = self.app.consumer_generation_id
        if not records or self.should_stop:
            return
        if not self.flow_active:
            await self.perform_seek()
            return
        for tp, fetched in records.items():
            if self.app.consumer_generation_id != app_generation or not self.flow_active:
                return
            stands = self._next.get(tp)
            if stands is None or tp in self._adrift:
                continue
            stale = self._fetched_under.get(tp) != self._generation[tp]
            if fetched[0].offset < stands or (fetched[0].offset > stands and stale):
                # Fetched before a rewind. A later offset may also mean that compaction left a hole: that is handed on.
                await self._return(tp)
                continue
            generation = self._generation[tp]
            for start in range(0, len(fetched), self.max_records):
                if self._generation[tp] != generation:
                    break
                part = fetched[start : start + self.max_records]
                base, last = self._next[tp], part[-1].offset
                self._next[tp] = last + 1
                self._clean.pop(tp, None)
                self._outstanding[tp][last] = base
                sizes = {at: size for at, size in self._sizes[tp].items() if at in self._outstanding[tp]}
                self._sizes[tp] = sizes | {last: sum([len(record.value or b"") for record in part])}
                self._read_offset[tp] = None  # Faust drops records below it, which after a rewind are not stale
                settled = self._settled_before.get(tp, 0)
                message: Any = self._to_message(tp, part[-1])
                message.key = None
                doubtful = in_doubt(self._doubts, tp, base, last)
                message.value = FetchedBatch(tp.topic, tp.partition, base, part, generation, settled, doubtful)
                yield tp, message

    async def _seek(self, partition: TP, offset: int) -> None:
        await self._seek_if_held(partition, offset)

    async def _seek_if_held(self, partition: TP, offset: int) -> bool:
        """Seek in the consumer's own thread, and return when that is done. Two seeks at once may overtake one another.

        False where a rebalance took the partition meanwhile: that must not end the worker, and the next holder returns
        to the state.
        """
        consumer = self._thread._ensure_consumer()

        async def seek() -> bool:
            try:
                consumer.seek(partition, offset)
            except IllegalStateError:
                return False
            return True

        return bool(await self._thread.call_thread(seek))

    def ack(self, message: Any) -> bool:
        settled = bool(super().ack(message))
        self._outstanding[message.tp].pop(message.offset, None)
        return settled

    def _new_offset(self, tp: TP) -> int | None:
        """The offset to commit: after the last settled batch, yet never beyond the oldest unsettled one."""
        acked = self._acked[tp]
        if not acked:
            return None
        last = max(acked)
        acked[:] = [last]
        self._acked_index[tp].clear()
        unsettled = self._outstanding[tp]
        return min([last + 1, *unsettled.values()])

    async def _commit_offsets(self, offsets: Mapping[TP, int], start_new_transaction: bool = True) -> bool:
        """Commit; returns False where it failed, and keeps what was committed before, so that it is tried again.

        Faust takes a failed commit for done, and a quiet partition would never be committed then. Outside of the group
        nothing is committed: the brokers refuse a late commit, aiokafka takes the refusal for the loss of the
        membership that it has just got, and members would throw one another out for as long as they have something to
        commit.
        """
        coordinator = self._thread._ensure_consumer()._coordinator
        if not coordinator.member_id or coordinator._performed_join_prepare:
            return False
        before = {tp: self._committed_offset[tp] for tp in offsets}
        committed = bool(await super()._commit_offsets(offsets, start_new_transaction))
        if not committed:
            for tp, offset in before.items():
                if self._committed_offset.get(tp) == offsets[tp]:
                    self._committed_offset[tp] = offset
        return committed

    async def _add_gap(self, tp: TP, offset_from: int, offset_to: int) -> None:
        """Do nothing: offsets inside a batch are no gap, and `_new_offset` needs no list of compaction's holes."""

    async def _take_notes(self) -> None:
        """Learn of the partitions taken over which of them were left with nothing under way."""
        while not self.should_stop and (taken := self.assignment() - self._next.keys()):
            try:
                take = partial(take_notes, self._thread._ensure_consumer(), taken)
                self._clean.update(await self._thread.call_thread(take))
            except KAFKA_ERRORS as error:
                log.info("clean_stop_not_read", reason=reason_of(error), seconds=PAUSE)
                await self.sleep(PAUSE)
            else:
                return

    async def leave_cleanly(self, partitions: Iterable[TP]) -> None:
        """Note of each partition that nothing beyond its offset was begun, where that is so. Nothing must be begun from
        here on."""
        found = {tp: self._clean_at(tp) for tp in partitions}
        clean = {tp: at for tp, at in found.items() if at is not None and self._noted.get(tp) != at}
        if not clean:
            return
        try:
            noted = await self._thread.call_thread(partial(leave_notes, self._thread._ensure_consumer(), clean))
        except KAFKA_ERRORS as error:
            log.info("clean_stop_not_noted", reason=reason_of(error), consequence="the next doubts what was in flight")
            return
        self._noted.update(noted)
        self._committed_offset.update(noted)  # a later commit of the same offset would take the note away

    def _clean_at(self, tp: TP) -> int | None:
        """The offset below which all is settled, where nothing beyond it was begun, here or by whom we doubt."""
        settled, begun = self.unsettled_from(tp), self._begun_to(tp)
        if settled is None or begun is None or tp in self._adrift or settled < self._settled(tp):
            return None
        _, doubted = self._doubts.get(tp, (0, 0))
        return settled if settled >= max(begun, doubted) else None

    async def on_partitions_revoked(self, revoked: Iterable[TP]) -> None:
        await super().on_partitions_revoked(set(revoked))
        for tp in revoked:
            self._generation[tp] += 1
        await self.leave_cleanly(revoked)
        for tp in revoked:
            self._clean.pop(tp, None)
            self._noted.pop(tp, None)
            self._outstanding.pop(tp, None)
            self._next.pop(tp, None)
            self._settled_before.pop(tp, None)
            self._beyond.pop(tp, None)
            self._adrift.discard(tp)
            self._halted.discard(tp)
            self._release(tp)


def state_of(consumer: Any, tp: Any) -> Any:
    """What a consumer of aiokafka's knows of a partition: position, end and stable end; None where it has not got it.
    Its own methods wait where one of them is not known yet."""
    subscription = consumer._subscription.subscription
    assignment = subscription.assignment if subscription is not None else None
    return assignment.state_value(tp) if assignment is not None and tp in assignment.tps else None


def in_doubt(doubts: Mapping[TP, tuple[int, int]], tp: TP, base: int, last: int) -> bool:
    """True where one of these records may have been handled and not recorded: by a worker that died, or by a step that
    was under way when the state was lost. `doubts`: offsets of each partition, as `StartOffsets` keeps them."""
    since, until = doubts.get(tp, (0, 0))
    return since <= last and base < until


class FetchedBytes:
    """What one fetch brought of a partition: aiokafka's `MemoryRecords`, and the bytes themselves. aiokafka skips a
    batch of which only the beginning came, and raises; here that is left to the reading of the bytes."""

    def __init__(self, data: bytes | None) -> None:
        self.data = data or b""
        records = MemoryRecords(self.data)
        self.has_next, self.next_batch = records.has_next, records.next_batch
        self.size_in_bytes = records.size_in_bytes
        if self.data and not records.has_next():
            self.has_next, self.next_batch = lambda: True, self._broken

    def _broken(self) -> Any:
        raise CorruptRecordException("a fetch without a whole batch")


def drain_goes_on() -> bool:
    """False where the drain that is under way in this thread has inflated enough: what is left waits for the next."""
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        drain.spent = 0
        return True
    if getattr(drain, "of", None) is not loop:
        drain.spent, drain.of = 0, loop
        loop.call_soon(setattr, drain, "of", None)
    return bool(drain.spent < inflation.DRAIN_BYTES)


class FetchedRecords(fetcher.FetchResult):
    """What one fetch brought of a partition, unpacked bit by bit. Never raises: an `UnreadableRecord` takes the place
    of what can't be read, so that it ends as any record does, and neither this partition nor another stops for it."""

    _partition_records: Any

    def getall(self, max_records: int | None = None) -> list[Any]:
        """The next records, `max_records` at most."""
        if not self.check_assignment(self._topic_partition) or not self.has_more() or not drain_goes_on():
            return []
        fetched, found = self._partition_records, list[Any]()
        since = fetched.next_fetch_offset
        try:
            found.extend(islice(fetched, max_records))
        except NotNow:
            max_records = None  # what is left is fetched again, and these were handed on by then
        except Exception as error:
            fetched = self._by_hand(max(since, fetched.next_fetch_offset), error)
            found.extend(islice(fetched, None if max_records is None else max_records - len(found)))
        self._update_position()
        if max_records is None or len(found) < max_records:
            self._partition_records = None
        return found

    def getone(self) -> Any:
        return next(iter(self.getall(1)), None)

    def _by_hand(self, since: int, error: Exception) -> ReadByHand:
        """Read on in the batch at which aiokafka failed. What comes after it is fetched again."""
        tp, drain.spent = self._topic_partition, 0
        log.warning(
            "read_by_hand", topic=tp.topic, partition=tp.partition, since=since, reason=clean(reason_of(error), 200)
        )
        by_hand = ReadByHand(self._partition_records._records.data, tp.topic, tp.partition, since)
        self._partition_records = by_hand
        return by_hand


class LastingFetcher(fetcher.Fetcher):
    """aiokafka's fetcher. Where the routine that fetches for all partitions ends by an error, aiokafka's own logs it,
    and its consumer waits for ever: no partition is read, while the group takes it for alive."""

    def _set_error(self, tp: Any, error: Exception) -> None:
        """Hand an error on, unless one waits already. aiokafka asserts that none does, which ends the routine: of a
        partition without a committed offset, whose leader changes, two looks for it may be under way."""
        if tp not in self._records:
            super()._set_error(tp, error)

    async def fetched_records(self, *partitions: Any, **options: Any) -> Any:
        """Returns the next records by partition. Raises KafkaError where nothing is fetched any more."""
        if self.error_future.done():
            raise KafkaError("aiokafka fetches no more; a new consumer does")
        return await super().fetched_records(*partitions, **options)

    async def close(self) -> None:
        """Stop fetching. What the routine ended by was said above; raised here too, a thread would never end."""
        with suppress(KafkaError):
            await super().close()


def guard_consumers() -> None:
    """Have aiokafka's consumers of this process, Faust's and others, fetch and unpack by these classes and inflate
    within bounds. aiokafka has no setting for it and finds its own by these names."""
    if fetcher.FetchResult is not FetchedRecords:
        fetcher.MemoryRecords, fetcher.FetchResult = FetchedBytes, FetchedRecords
        consuming.Fetcher = LastingFetcher
        bound_aiokafka()


class BoundedThread(WorkerThread):
    """A thread of a Faust service. One that hangs, in a client that waits for its brokers, holds up neither the loop
    that stops it, which mode would let wait without end, nor the end of the process."""

    def __init__(self, service: Any, **options: Any) -> None:
        super().__init__(service, **options)
        self.daemon = True  # a process waits at its end for threads that are not

    def stop(self) -> None:
        """Wait for its end, within THREAD_SECONDS."""
        if self.is_stopped.wait(THREAD_SECONDS):
            self.join(THREAD_SECONDS)
        if self.is_alive():
            log.error("thread_hangs", thread=self.name, consequence="it ends with the process")


class BatchConsumerThread(driver.AIOKafkaConsumerThread):
    """The thread that talks to Kafka, with shorter fetches, and reads what was committed."""

    Worker = BoundedThread

    def _create_worker_consumer(self, transport: Any) -> Any:
        """Faust's consumer. Faust lets a fetch wait 1.5 s at the broker, and until it returns a seek has no effect."""
        guard_consumers()
        consumer = super()._create_worker_consumer(transport)
        consumer._fetch_max_wait_ms = FETCH_WAIT_MS
        consumer._isolation_level = READ_COMMITTED  # Faust has no setting for it
        return consumer


class BatchTransport(driver.Transport):
    """Faust's transport, with our consumer."""

    Consumer = BatchConsumer
