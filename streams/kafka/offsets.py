"""Offsets asked of the brokers over a connection of our own.

On the connection that fetches, a question waits until the long poll before it ends (1.5 s when topics are quiet, on
Apache Kafka and on librdkafka's broker alike), so that finding the start of twelve partitions took more than a minute.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any, TypeVar

import structlog
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError
from faust.types import TP

from agents.ports import Unavailable
from schemas.settings import KafkaAccess
from streams.kafka.client import client_options
from streams.retry import Retry

log = structlog.get_logger(__name__)
T = TypeVar("T")
SECONDS = 10.0


class KafkaOffsets:
    """Belongs to no group and reads no records. Connects on first use, again after an error; raises Unavailable when
    `tries` attempts of ten seconds each gave no answer."""

    def __init__(self, access: KafkaAccess, *, tries: int = 4) -> None:
        self._options = client_options(access)
        self._retry = Retry(tries=tries)
        self._consumer: AIOKafkaConsumer | None = None
        self._lock = asyncio.Lock()

    async def first_after(self, moments: Mapping[TP, int]) -> dict[TP, int | None]:
        """The first offset at or after a time (ms) in each partition; None where every record is older."""
        wanted = {TopicPartition(*partition): at for partition, at in moments.items()}
        found = await self._ask(lambda consumer: consumer.offsets_for_times(wanted))
        return {TP(*partition): (at.offset if at is not None else None) for partition, at in found.items()}

    async def bounds(self, partitions: Iterable[TP]) -> dict[TP, tuple[int, int]]:
        """The log's first offset and the one after its last, per partition."""
        wanted = [TopicPartition(*partition) for partition in partitions]
        first = await self._ask(lambda consumer: consumer.beginning_offsets(wanted))
        last = await self._ask(lambda consumer: consumer.end_offsets(wanted))
        return {TP(*partition): (first[partition], last[partition]) for partition in wanted}

    async def ends(self, partitions: Iterable[TP]) -> dict[TP, int]:
        """The offset after the last record, per partition; without partitions only whether a broker answers."""
        wanted = [TopicPartition(*partition) for partition in partitions]
        if not wanted:
            await self._ask(lambda consumer: consumer.topics())
            return {}
        found = await self._ask(lambda consumer: consumer.end_offsets(wanted))
        return {TP(*partition): offset for partition, offset in found.items()}

    async def close(self) -> None:
        async with self._lock:
            await self._drop()

    async def _ask(self, question: Callable[[Any], Awaitable[T]]) -> T:
        def noticed(error: BaseException, failures: int, pause: float) -> None:
            log.warning("offsets_retry", attempt=failures, reason=_why(error), seconds=pause)

        async def attempt() -> T:
            try:
                return await asyncio.wait_for(self._once(question), SECONDS)
            except BaseException:
                await self._drop()
                raise

        async with self._lock:
            try:
                return await self._retry.call(attempt, (KafkaError, OSError, TimeoutError), noticed=noticed)
            except (KafkaError, OSError, TimeoutError) as error:
                raise Unavailable(f"Kafka: {_why(error)}") from error

    async def _once(self, question: Callable[[Any], Awaitable[T]]) -> T:
        if self._consumer is None:
            consumer = AIOKafkaConsumer(**self._options, enable_auto_commit=False)
            try:
                await consumer.start()
            except BaseException:
                await consumer.stop()
                raise
            self._consumer = consumer
        return await question(self._consumer)

    async def _drop(self) -> None:
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            with suppress(KafkaError, OSError, TimeoutError):
                await asyncio.wait_for(consumer.stop(), 2.0)


def _why(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".rstrip(": ")
