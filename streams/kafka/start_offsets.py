"""Says where to read a partition from: at the state's own watermark, which is gone when the state is (promise 1).

Kafka is the record of truth. Each partition's watermark is kept beside the state that it describes and moves with it in
one atomic step, so an emptied or older Redis shows itself, and the records that it lacks are read again. Records that
Kafka lost before they were read are counted and reported.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

import structlog
from faust.types import TP

from agents.join.counting import count_gap
from agents.join.step import until_recorded
from agents.keys import FOREVER, LET_THROUGH, TAKEOVER, TOPIC_ID, WATERMARK
from agents.ports import Change, Clock, Unavailable
from schemas.signals import kinds
from schemas.topics import Topics
from streams.kafka.offsets import KafkaOffsets
from streams.metrics import Metrics
from streams.quarantine import Quarantine
from streams.rebuild import Rebuild
from streams.redis.state import RedisStore

log = structlog.get_logger(__name__)


class GapReason(StrEnum):
    RETENTION = "retention"
    NEW_LOG = "new_log"


@dataclass(frozen=True)
class Gap:
    """Offsets [since, until) of a partition that Kafka no longer had when they were to be read. `until` is None where
    the log they were in is gone, so that its end is unknown."""

    partition: TP
    since: int
    until: int | None
    reason: GapReason

    @property
    def offsets(self) -> int:
        """How many offsets were lost, 0 where that is unknown. With compaction or transactions fewer were records."""
        return max(self.until - self.since, 0) if self.until is not None else 0


class Gaps:
    """Counts and tells of gaps. The caller puts the count into the change that moves the watermark over the gap, so
    that it counts once, whichever worker finds it and however often."""

    def __init__(self, topics: Topics, metrics: Metrics, lookback_ms: int) -> None:
        self._kinds = {topics.of(kind): kind for kind in kinds()}
        self._metrics, self._lookback = metrics, lookback_ms

    def count(self, change: Change, gap: Gap, now: int) -> None:
        """Count the gap in `change`, in the hour in which it was found."""
        count_gap(change, self._kinds[gap.partition.topic], gap.offsets, now, self._lookback)

    def tell(self, gap: Gap) -> None:
        """Tell of a gap that is counted."""
        topic = gap.partition.topic
        log.error(
            "kafka_gap",
            topic=topic,
            partition=gap.partition.partition,
            since=gap.since,
            until=gap.until,
            reason=gap.reason.value,
            lost=f"at most {gap.offsets} records" if gap.until is not None else "no one can know how many records",
            remedy="rampgate sweep",
        )
        self._metrics.gaps.labels(topic, gap.reason.value).inc()
        self._metrics.gap_records.labels(topic).inc(gap.offsets)


class StartOffsets:
    """Finds the start of each partition. `rebuild` is told of a partition that has to be read again, since its state is
    lost. `in_flight`: the most records of a partition that a worker handles at once. `gaps` counts and tells of records
    that Kafka has dropped before they were read.

    `doubts`: the offsets of each partition, [since, until), whose records may have been handled and not recorded.
    `clean`: the offset of each partition beyond which nothing was begun, by its last holder and by the caller, who
    takes it out before it begins anything. `new_logs`: partitions whose start was found in another log than the one
    that the caller has read and committed.
    `quarantine` learns of each partition that is taken over.
    """

    def __init__(
        self,
        store: RedisStore,
        clock: Clock,
        lookback_ms: int,
        in_flight: int,
        rebuild: Rebuild,
        gaps: Gaps,
    ) -> None:
        self._store, self._clock, self._lookback, self._rebuild = store, clock, lookback_ms, rebuild
        self._in_flight, self._gaps = in_flight, gaps
        self.quarantine = Quarantine(store, in_flight)
        self.doubts: dict[TP, tuple[int, int]] = {}
        self.clean: dict[TP, int] = {}
        self.new_logs: set[TP] = set()
        self._ids: dict[TP, str] = {}
        self._suspected: dict[TP, str] = {}

    def _doubt(self, partition: TP, since: int, until: int, end: int) -> None:
        """Doubt these offsets up to `end`, since no later record existed; earlier doubts remain until they are read."""
        _, before = self.doubts.get(partition, (0, 0))
        self.doubts[partition] = (since, min(max(until, before), end))

    async def start(self, partition: TP, committed: int | None, settled: int | None, log_of: KafkaOffsets) -> int:
        """The offset to read from: the watermark or the committed offset, whichever is lower; without a watermark, the
        start of the lookback window. A topic that was deleted and made again has another id, and is read from its first
        record: what was committed and settled before was of another log.

        `settled`: the offset up to which the caller itself has settled this partition; None where others held it until
        now. They may have settled more than they committed; only the watermark tells how much. Raises Unavailable.
        """
        key, id_key = WATERMARK.key(*partition), TOPIC_ID.key(*partition)
        end = 0
        clean = self.clean.get(partition)
        await self._rebuild.join()

        async def ask_id() -> bytes:
            return (await log_of.topic_ids([partition.topic])).get(partition.topic, "").encode()

        async def attempt() -> int | None:
            nonlocal end
            topic_id = await ask_id()
            mark, known_id = await self._store.read([key, id_key])
            first, end = (await log_of.bounds([partition]))[partition]
            self._ids[partition] = (topic_id or known_id).decode()
            another = bool(topic_id and known_id) and topic_id != known_id
            if another and await ask_id() != topic_id:
                raise Unavailable(f"Kafka: its brokers disagree about the id of {partition.topic}")
            if another or int(mark or 0) > end:
                return await self._start_new_log(partition, (mark, known_id), topic_id, (first, end))
            if topic_id and not known_id:
                await self._store.apply(Change(checks={id_key: b""}, sets={id_key: (topic_id, FOREVER)}))
            if not mark:
                return await self._start_again(partition, committed, settled, (first, end), log_of)
            if int(mark) < first and not await self._pass_over(partition, committed, mark, first):
                return None
            start = min(int(mark), committed if committed is not None else int(mark))
            if int(mark) < (known := min(max(committed or 0, settled or 0), end)):
                await self._rebuild.read_again(partition, known)
            if int(mark) < (committed or 0):
                # The state is an older copy, which knows of no write since then.
                self._doubt(partition, int(mark), end if settled is None else settled + self._in_flight, end)
            elif int(mark) != clean:
                self._doubt(partition, int(mark), int(mark) + self._in_flight, end)
            return max(start, first)

        start = await until_recorded(attempt)
        if settled is None:
            await self.quarantine.taken_over(partition, start, end)
        return start

    async def remade(self, partitions: Iterable[TP], log_of: KafkaOffsets) -> list[TP]:
        """Those partitions whose topic was deleted and made again since their start was found. Raises Unavailable.

        A new id counts once two calls in a row have met it, since a broker may be late to know of it.
        """
        held = [tp for tp in partitions if self._ids.get(tp)]
        ids = await log_of.topic_ids({tp.topic for tp in held}) if held else {}
        other = {tp: ids[tp.topic] for tp in held if ids.get(tp.topic, self._ids[tp]) != self._ids[tp]}
        found = [tp for tp, topic_id in other.items() if self._suspected.get(tp) == topic_id]
        self._suspected = other
        return found

    async def _start_new_log(
        self, partition: TP, held: tuple[bytes, bytes], topic_id: bytes, bounds: tuple[int, int]
    ) -> int | None:
        """The start of a log that none of our offsets is of: its first record. What the old log had beyond the
        watermark is lost, and no one can know how much it was. None where another worker has changed `held`: watermark
        and topic id."""
        key, id_key = WATERMARK.key(*partition), TOPIC_ID.key(*partition)
        (mark, known_id), (first, end) = held, bounds
        change = Change(checks={key: mark, id_key: known_id}, sets={key: (str(first).encode(), FOREVER)})
        if topic_id:
            change.sets[id_key] = (topic_id, FOREVER)
        now = self._clock.now_ms()
        # These notes were of the old log's offsets.
        change.sets[LET_THROUGH.key(*partition)] = (b"0", now + self._lookback)
        change.sets[TAKEOVER.key(*partition)] = (b"", now)
        gap = Gap(partition, int(mark or 0), None, GapReason.NEW_LOG)
        self._gaps.count(change, gap, now)
        await self._rebuild.read_again(partition, 0)
        if await self._store.apply(change):
            return None
        self._gaps.tell(gap)
        self.doubts[partition] = (first, end)
        self.new_logs.add(partition)
        return first

    async def _pass_over(self, partition: TP, committed: int | None, mark: bytes, first: int) -> bool:
        """Move the watermark to the first record that Kafka still has, for waiting for those before has no end. Records
        that no worker has settled are a gap. False where another worker has moved the watermark."""
        key = WATERMARK.key(*partition)
        change = Change(checks={key: mark}, sets={key: (str(first).encode(), FOREVER)})
        gap = Gap(partition, max(int(mark), committed or 0), first, GapReason.RETENTION)
        if gap.offsets:
            self._gaps.count(change, gap, self._clock.now_ms())
        if await self._store.apply(change):
            return False
        if gap.offsets:
            self._gaps.tell(gap)
        return True

    async def _start_again(
        self,
        partition: TP,
        committed: int | None,
        settled: int | None,
        bounds: tuple[int, int],
        log_of: KafkaOffsets,
    ) -> int:
        """The start without a watermark: the start of the lookback window, or what no worker has settled, however
        old."""
        key, (first, end) = WATERMARK.key(*partition), bounds
        found = (await log_of.first_after({partition: self._clock.now_ms() - self._lookback}))[partition]
        if found is None and (await log_of.first_after({partition: 0}))[partition] is None:
            found = first  # the broker has no index by time (librdkafka's built-in one); older records are filtered
        start = end if found is None else found
        if committed is not None:
            start = max(min(start, committed), first)
        # What was settled agreed with Opik; what was in flight is in no state, and may be in Opik nevertheless.
        if settled is not None:
            self._doubt(partition, settled, settled + self._in_flight, end)
        else:  # without a committed offset no worker was here before: a first start doubts nothing
            self._doubt(partition, committed or 0, end if committed is not None else 0, end)
        known = max(committed or 0, settled or 0)
        if known > first and start < known:
            log.warning(
                "state_lost",
                topic=partition.topic,
                partition=partition.partition,
                reading_again_from=start,
                to=known,
            )
            await self._rebuild.lost(partition)
            await self._rebuild.read_again(partition, min(known, end))
        held = int(await self._store.start_at(key, str(start).encode(), FOREVER, b""))
        gap = Gap(partition, known, first, GapReason.RETENTION)
        if committed is not None and held == start and gap.offsets:
            change = Change()
            self._gaps.count(change, gap, self._clock.now_ms())
            await self._store.apply(change)
            self._gaps.tell(gap)
        return max(min(start, held), first)
