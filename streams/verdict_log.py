"""The verdicts' topic, written once for each request and read back as the memory of what was decided (promise 2).

Each process follows the whole topic: that is how it knows that a request was answered, by whomever, and how a crash
between a verdict and its commit does no harm. Verdicts are few; Redis is not needed to remember them.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import orjson
import structlog
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError

from agents.ports import Clock, Unavailable
from evalcore.gates.verdict import as_json
from schemas.settings import KafkaAccess
from schemas.verdicts import Verdict
from streams.kafka import Producer, client_options

log = structlog.get_logger(__name__)
BODY = "rampgate.request-body"
"""Header: the hash of the request that a verdict answers."""
KEPT = 20_000
"""Verdicts held in memory; of older ones a repeated request is decided again, and its verdict id tells."""
ASKED_AGAIN = 0.05
PATIENCE = 10.0
"""Seconds for reading to the end of the topic."""


@dataclass(frozen=True)
class Known:
    """A verdict that was published: the request's body hash, and the record's value as it stands on the topic."""

    body: str
    value: dict[str, Any]

    @property
    def verdict_id(self) -> str:
        return str(self.value.get("verdict_id", ""))


class VerdictLog:
    """`start` reads what is there and goes on reading; `caught_up` returns once all that was there when it was called
    has been read. Raises Unavailable."""

    def __init__(self, access: KafkaAccess, producer: Producer, topic: str, clock: Clock, lookback_ms: int) -> None:
        self._access, self._producer, self._topic = access, producer, topic
        self._clock, self._lookback = clock, lookback_ms
        self._known: OrderedDict[str, Known] = OrderedDict()
        self._next: dict[TopicPartition, int] = {}
        self._consumer: AIOKafkaConsumer | None = None
        self._task: asyncio.Task[None] | None = None
        self._asking = asyncio.Lock()
        self.patience = PATIENCE

    async def start(self) -> None:
        self._task = asyncio.create_task(self._follow(), name="verdict-log")

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def known(self, request_id: str) -> Known | None:
        return self._known.get(request_id)

    def latest(self) -> Iterator[Known]:
        """Newest first."""
        return reversed(self._known.values())

    async def caught_up(self) -> None:
        try:
            ends = await asyncio.wait_for(self._ends(), self.patience)
        except (KafkaError, OSError, TimeoutError) as error:
            raise Unavailable(f"Kafka: verdicts: {type(error).__name__}: {error}") from error
        for _ in range(int(self.patience / ASKED_AGAIN)):
            if all(self._next.get(tp, -1) >= end for tp, end in ends.items()):
                return
            await asyncio.sleep(ASKED_AGAIN)
        raise Unavailable("Kafka: the verdicts' topic can't be read to its end")

    async def publish(self, verdict: Verdict, body: str, key: str | None) -> None:
        """Durable on return. The caller sees to it that nobody else publishes for this request."""
        value = as_json(verdict)
        headers = [(BODY, body.encode())]
        await self._producer.send([(self._topic, key.encode() if key else None, orjson.dumps(value), headers)])
        self._remember(verdict.request_id, Known(body, value))

    def _remember(self, request_id: str, known: Known) -> None:
        self._known.setdefault(request_id, known)
        while len(self._known) > KEPT:
            self._known.popitem(last=False)

    async def _ends(self) -> dict[TopicPartition, int]:
        async with self._asking:
            consumer = self._consumer
            while consumer is None or not consumer.assignment():
                await asyncio.sleep(ASKED_AGAIN)
                consumer = self._consumer
            found: dict[TopicPartition, int] = await consumer.end_offsets(list(consumer.assignment()))
            return found

    async def _follow(self) -> None:
        while True:
            try:
                await self._read()
            except (KafkaError, OSError, TimeoutError) as error:
                log.warning("waiting_for_verdicts", reason=f"{type(error).__name__}: {error}")
                await asyncio.sleep(1.0)

    async def _read(self) -> None:
        consumer = AIOKafkaConsumer(
            **client_options(self._access),
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            fetch_max_wait_ms=100,
        )
        try:
            await consumer.start()
            partitions = await consumer._client._wait_on_metadata(self._topic)
            tps = [TopicPartition(self._topic, partition) for partition in partitions]
            consumer.assign(tps)
            await self._stand(consumer, tps)
            self._consumer = consumer
            while True:
                for tp, records in (await consumer.getmany(timeout_ms=1_000)).items():
                    for record in records:
                        self._take(record)
                    self._next[tp] = records[-1].offset + 1
        finally:
            self._consumer = None
            with suppress(KafkaError, OSError, TimeoutError):
                await asyncio.wait_for(consumer.stop(), 5.0)

    async def _stand(self, consumer: AIOKafkaConsumer, tps: list[TopicPartition]) -> None:
        since = self._clock.now_ms() - self._lookback
        first = await consumer.offsets_for_times(dict.fromkeys(tps, since))
        begin = await consumer.beginning_offsets(tps)
        for tp in tps:
            found = first.get(tp)
            # The built-in broker has no index by time and says None: then all of the topic is read.
            self._next[tp] = max(self._next.get(tp, 0), found.offset if found is not None else begin[tp])
            consumer.seek(tp, self._next[tp])

    def _take(self, record: Any) -> None:
        headers = dict(record.headers)
        try:
            value = orjson.loads(record.value)
            request_id = value["request_id"]
        except (TypeError, ValueError, KeyError):
            log.warning("no_verdict", topic=record.topic, partition=record.partition, offset=record.offset)
            return
        self._remember(request_id, Known(bytes(headers.get(BODY, b"")).decode("ascii", "replace"), value))
