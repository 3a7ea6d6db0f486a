"""Topics read beside the join, by a consumer group of its own: for live judges, to tell operators (PC5 FR-11, AC-4).

Its offsets in Kafka say what was brought to its end, so neither a restart nor an emptied Redis makes it begin again;
and nothing that takes long here holds up the join, which reads on its own. One chunk of a partition at a time is in
work, so a backlog stays in Kafka. A record whose time has not come is parked, and those behind it go on (promise 6);
the group's offset stays below it, so that a restart reads it again.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import structlog
from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, TopicPartition
from aiokafka.errors import KafkaError

from agents.ports import Clock, Unauthorized, Unavailable
from schemas.dead_letters import Record, clean
from schemas.settings import KafkaAccess
from streams.kafka.client import client_options
from streams.retry import Retry

log = structlog.get_logger(__name__)
CHUNK = 100
LOOK_MS = 200
PARKED = 5_000
"""Records of a partition that may be parked: with so many nothing more is read of it until one has come to its end."""
PARKED_SECONDS = 5.0
"""From one look at what is parked to the next."""

Handle = Callable[[Sequence[Record]], Awaitable[Sequence[Record]]]
"""Brings records to their end, or returns those whose time has not come yet. Raises Unavailable."""


@dataclass
class _Place:
    """In a partition. `read`: all before it was handed in; what of that is not done is parked, in order."""

    read: int
    committed: int
    parked: list[Record] = field(default_factory=list)
    looked: float = 0.0

    @property
    def whole(self) -> int:
        """The offset before which everything is done."""
        return min((record.offset for record in self.parked), default=self.read)


class DelayedConsumer(ConsumerRebalanceListener):  # type: ignore[misc]  # aiokafka is without types
    """`handlers` by topic. Each record is handed in `delay` seconds after it came, in order, until it is done. A group
    that is new begins with what came since this was made, less the delay. `name` stands in logs and metrics."""

    def __init__(
        self,
        name: str,
        access: KafkaAccess,
        group: str,
        handlers: Mapping[str, Handle],
        clock: Clock,
        delay: float,
        *,
        session_seconds: float = 6.0,
        ready: Callable[[], bool] = lambda: True,
    ) -> None:
        self.name = name
        self._access, self._group, self._handlers, self._clock = access, group, handlers, clock
        self._delay, self._session, self._ready = round(delay * 1000), session_seconds, ready
        self._since = clock.now_ms() - self._delay
        self._consumer: AIOKafkaConsumer | None = None
        self._work: dict[TopicPartition, asyncio.Task[None]] = {}
        self._places: dict[TopicPartition, _Place] = {}

    @property
    def done(self) -> dict[TopicPartition, int]:
        """Of each assigned partition the next offset, less what is parked: as many as its end is ahead of this wait."""
        return {partition: place.read - len(place.parked) for partition, place in self._places.items()}

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            try:
                await self._follow()
            except (KafkaError, OSError, TimeoutError) as error:
                log.warning("delayed_consumer_waits", reader=self.name, reason=f"{type(error).__name__}: {error}")
                await asyncio.sleep(1.0)

    async def _follow(self) -> None:
        self._consumer = consumer = AIOKafkaConsumer(
            **client_options(self._access),
            group_id=self._group,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            session_timeout_ms=round(self._session * 1000),
            heartbeat_interval_ms=round(self._session * 1000 / 6),
            fetch_max_wait_ms=LOOK_MS,
        )
        try:
            consumer.subscribe(list(self._handlers), listener=self)
            await consumer.start()
            while True:
                for partition in [partition for partition, task in self._work.items() if task.done()]:
                    self._work.pop(partition).result()
                    if len(self._places[partition].parked) < PARKED:
                        consumer.resume(partition)
                await self._commit(self._places)
                for partition, records in (await consumer.getmany(timeout_ms=LOOK_MS, max_records=CHUNK)).items():
                    self._begin(consumer, partition, records)
                for partition, place in self._places.items():
                    if partition not in self._work and _look_due(place):
                        self._begin(consumer, partition, [])
        finally:
            await self._let_go()
            self._consumer = None
            with suppress(KafkaError, OSError, TimeoutError):
                await asyncio.wait_for(consumer.stop(), 5.0)

    async def on_partitions_assigned(self, assigned: Sequence[TopicPartition]) -> None:
        consumer: Any = self._consumer
        consumer.pause(*assigned)  # else it reads on from a place that is about to change
        for partition in assigned:
            start = await consumer.committed(partition)
            if start is None:
                start = await self._start(consumer, partition)
                consumer.seek(partition, start)
                # At once: whoever takes over before anything is done must not begin later than this.
                await consumer.commit({partition: start})
            self._places[partition] = _Place(start, start)
        consumer.resume(*assigned)

    async def _start(self, consumer: Any, partition: TopicPartition) -> int:
        end = int((await consumer.end_offsets([partition]))[partition])
        young = (await consumer.offsets_for_times({partition: self._since})).get(partition)
        if young is not None:
            return int(young.offset)
        if (await consumer.offsets_for_times({partition: 0})).get(partition) is not None:
            return end
        # The partition is empty, or the broker has no index by time: then all of it is judged.
        return int((await consumer.beginning_offsets([partition]))[partition])

    async def on_partitions_revoked(self, revoked: Sequence[TopicPartition]) -> None:
        """What is in work or parked is handed in again by whoever comes next; what judges answered by now is cached."""
        await self._let_go()

    async def _let_go(self) -> None:
        tasks, places = list(self._work.values()), self._places
        self._work, self._places = {}, {}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        with suppress(KafkaError, OSError, TimeoutError):
            await self._commit(places)

    async def _commit(self, places: Mapping[TopicPartition, _Place]) -> None:
        moved = {partition: place.whole for partition, place in places.items() if place.whole != place.committed}
        if moved and self._consumer is not None:
            await self._consumer.commit(moved)
            for partition, offset in moved.items():
                places[partition].committed = offset

    def _begin(self, consumer: AIOKafkaConsumer, partition: TopicPartition, records: Sequence[Record]) -> None:
        place = self._places.get(partition)
        if place is not None:  # else it was taken from us a moment ago
            consumer.pause(partition)
            self._work[partition] = asyncio.create_task(
                self._bring(partition, place, records), name=f"{self.name} {partition}"
            )

    async def _bring(self, partition: TopicPartition, place: _Place, records: Sequence[Record]) -> None:
        if _look_due(place):
            place.parked = await self._handed_in(partition, place.parked)
            place.looked = time.monotonic()
        rest = list(records)
        while rest:
            now = self._clock.now_ms()
            wait = max(rest[0].timestamp + self._delay - now, 0)
            if wait:
                # A producer's clock may run ahead: nobody waits longer than the delay for that.
                await asyncio.sleep(min(wait, self._delay) / 1000)
                now = max(now + wait, self._clock.now_ms())
            due = [record for record in rest if record.timestamp + self._delay <= now] or rest[:1]
            due = rest[: len(due)]
            place.parked += await self._handed_in(partition, due)
            place.read = due[-1].offset + 1
            rest = rest[len(due) :]

    async def _handed_in(self, partition: TopicPartition, records: Sequence[Record]) -> list[Record]:
        """Those to be handed in again, later. Parts that are away are waited for."""
        waiting: list[Record] = []
        for start in range(0, len(records), CHUNK):
            waiting += await self._chunk(partition, records[start : start + CHUNK])
        return waiting

    async def _chunk(self, partition: TopicPartition, records: Sequence[Record]) -> list[Record]:
        async def attempt() -> list[Record]:
            while not self._ready():  # noqa: ASYNC110 - a rebuild tells nobody
                await asyncio.sleep(LOOK_MS / 1000)
            return list(await self._handlers[partition.topic](records))

        def noticed(error: BaseException, failures: int, pause: float) -> None:
            log.warning(
                "delayed_consumer_waits",
                reader=self.name,
                topic=partition.topic,
                reason=clean(str(error)),
                seconds=pause,
            )

        try:
            return await Retry().call(attempt, (Unavailable, Unauthorized), noticed=noticed)
        except Exception:
            # A defect of ours: nothing is worth a partition that stands still, nor one record those beside it.
            first = records[0].offset
            log.exception(
                "delayed_consumer_failed",
                reader=self.name,
                topic=partition.topic,
                partition=partition.partition,
                offset=first,
            )
            if len(records) == 1:
                return []
            return [left for record in records for left in await self._chunk(partition, [record])]


def _look_due(place: _Place) -> bool:
    return bool(place.parked) and time.monotonic() - place.looked >= PARKED_SECONDS
