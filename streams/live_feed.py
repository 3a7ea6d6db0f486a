"""Traces and thumbs a second time, later, for the live judges: a consumer group of its own (PC5 FR-11).

Its offsets in Kafka say what was judged, so neither a restart nor an emptied Redis makes it judge again; and nothing
that judges take long for holds up the join, which reads the same topics on its own. One chunk of a partition at a time
is in work, so a backlog stays in Kafka.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import structlog
from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, TopicPartition
from aiokafka.errors import KafkaError

from agents.ports import Clock, Unauthorized, Unavailable
from schemas.dead_letters import Record, clean
from schemas.settings import KafkaAccess
from streams.kafka import client_options

log = structlog.get_logger(__name__)
CHUNK = 100
LOOK_MS = 200
PAUSES = (0.2, 0.5, 1.0, 2.0, 5.0)

Handle = Callable[[Sequence[Record]], Awaitable[Sequence[Record]]]
"""Brings records to their end, or returns those whose time has not come yet. Raises Unavailable."""


class LiveFeed(ConsumerRebalanceListener):  # type: ignore[misc]  # aiokafka is without types
    """`handlers` by topic. Each record is handed in `settle` seconds after it came, in order, until it is done. A group
    that is new begins with what came since this was made, less the settle time."""

    def __init__(
        self,
        access: KafkaAccess,
        group: str,
        handlers: Mapping[str, Handle],
        clock: Clock,
        settle: float,
        *,
        session_seconds: float = 6.0,
        ready: Callable[[], bool] = lambda: True,
    ) -> None:
        self._access, self._group, self._handlers, self._clock = access, group, handlers, clock
        self._settle, self._session, self._ready = round(settle * 1000), session_seconds, ready
        self._since = clock.now_ms() - self._settle
        self._consumer: AIOKafkaConsumer | None = None
        self._work: dict[TopicPartition, asyncio.Task[None]] = {}
        self._done: dict[TopicPartition, int] = {}

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            try:
                await self._follow()
            except (KafkaError, OSError, TimeoutError) as error:
                log.warning("live_judging_waits", reason=f"{type(error).__name__}: {error}")
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
                for tp in [tp for tp, task in self._work.items() if task.done()]:
                    self._work.pop(tp).result()
                    consumer.resume(tp)
                await self._commit()
                for tp, records in (await consumer.getmany(timeout_ms=LOOK_MS, max_records=CHUNK)).items():
                    consumer.pause(tp)
                    self._work[tp] = asyncio.create_task(self._bring(tp, records), name=f"live {tp}")
        finally:
            await self._let_go()
            with suppress(KafkaError, OSError, TimeoutError):
                await self._commit()
            self._consumer = None
            with suppress(KafkaError, OSError, TimeoutError):
                await asyncio.wait_for(consumer.stop(), 5.0)

    async def on_partitions_assigned(self, assigned: Sequence[TopicPartition]) -> None:
        consumer: Any = self._consumer
        consumer.pause(*assigned)  # else it reads on from a place that is about to change
        for tp in assigned:
            if await consumer.committed(tp) is None:
                start = await self._start(consumer, tp)
                consumer.seek(tp, start)
                # At once: whoever takes over before anything is done must not begin later than this.
                await consumer.commit({tp: start})
        consumer.resume(*assigned)

    async def _start(self, consumer: Any, tp: TopicPartition) -> int:
        end = int((await consumer.end_offsets([tp]))[tp])
        young = (await consumer.offsets_for_times({tp: self._since})).get(tp)
        if young is not None:
            return int(young.offset)
        if (await consumer.offsets_for_times({tp: 0})).get(tp) is not None:
            return end
        # The partition is empty, or the broker has no index by time: then all of it is judged.
        return int((await consumer.beginning_offsets([tp]))[tp])

    async def on_partitions_revoked(self, revoked: Sequence[TopicPartition]) -> None:
        """What is in work is handed in again by whoever comes next; what judges answered by now is cached."""
        await self._let_go()
        with suppress(KafkaError):
            await self._commit()

    async def _let_go(self) -> None:
        tasks = list(self._work.values())
        self._work.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _commit(self) -> None:
        done, self._done = self._done, {}
        if done and self._consumer is not None:
            await self._consumer.commit(done)

    async def _bring(self, tp: TopicPartition, records: Sequence[Record]) -> None:
        rest = list(records)
        while rest:
            now = self._clock.now_ms()
            wait = max(rest[0].timestamp + self._settle - now, 0)
            if wait:
                # A producer's clock may run ahead: nobody waits longer than the settle time for that.
                await asyncio.sleep(min(wait, self._settle) / 1000)
                now = max(now + wait, self._clock.now_ms())
            due = [record for record in rest if record.timestamp + self._settle <= now] or rest[:1]
            due = rest[: len(due)]
            await self._handed_in(tp, due)
            self._done[tp] = due[-1].offset + 1
            rest = rest[len(due) :]

    async def _handed_in(self, tp: TopicPartition, records: Sequence[Record]) -> None:
        open_, attempt = records, 0
        while open_:
            try:
                while not self._ready():  # noqa: ASYNC110 - a rebuild tells nobody
                    await asyncio.sleep(PAUSES[0])
                before, open_ = len(open_), await self._handlers[tp.topic](open_)
                attempt = attempt + 1 if len(open_) == before else 0
            except (Unavailable, Unauthorized) as error:
                attempt += 1
                log.warning("live_judging_waits", topic=tp.topic, reason=clean(str(error)))
            except Exception:
                # A defect of ours: no score is worth a partition that stands still, nor one record those beside it.
                log.exception("live_judging_broke", topic=tp.topic, partition=tp.partition, offset=open_[0].offset)
                for record in open_ if len(open_) > 1 else ():
                    await self._handed_in(tp, [record])
                return
            if open_:
                await asyncio.sleep(PAUSES[min(attempt, len(PAUSES) - 1)])
