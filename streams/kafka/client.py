"""Kafka without Faust: our producer, topics, and records read back by their place."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, cast

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.errors import KafkaError

from agents.ports import Unavailable
from schemas.dead_letters import DeadLetter, Record
from schemas.settings import KafkaAccess

PRODUCE_SECONDS = 30.0


def client_options(access: KafkaAccess) -> dict[str, Any]:
    """aiokafka's connection options."""
    options: dict[str, Any] = {"bootstrap_servers": list(access.brokers), "security_protocol": access.protocol}
    if access.protocol.endswith("SSL"):
        options["ssl_context"] = ssl.create_default_context(cafile=access.ca_file)
    if access.protocol.startswith("SASL"):
        options |= {
            "sasl_mechanism": access.mechanism,
            "sasl_plain_username": access.user,
            "sasl_plain_password": access.password,
        }
    return options


class Producer:
    """Idempotent, acks=all. A producer that has fallen over is replaced, since aiokafka's can stay wedged."""

    def __init__(self, access: KafkaAccess, *, max_bytes: int = 1_048_576) -> None:
        self._options = client_options(access)
        self._max_bytes = max_bytes
        self._producer: AIOKafkaProducer | None = None
        self._lock = asyncio.Lock()

    async def _ready(self) -> AIOKafkaProducer:
        async with self._lock:
            if self._producer is None:
                producer = AIOKafkaProducer(
                    **self._options,
                    acks="all",
                    enable_idempotence=True,
                    request_timeout_ms=int(PRODUCE_SECONDS * 1000),
                    max_request_size=self._max_bytes + 65_536,
                    linger_ms=2,
                )
                try:
                    await producer.start()
                except BaseException:
                    await producer.stop()
                    raise
                self._producer = producer
            return self._producer

    async def send(
        self,
        messages: Sequence[tuple[str, bytes | None, bytes | None, Sequence[tuple[str, bytes]]]],
        partitions: Sequence[int | None] | None = None,
    ) -> list[tuple[str, int, int]]:
        """Send (topic, key, value, headers) and return where each landed, once all are durable; else Unavailable.

        `partitions`: where each has to go, None for the one its key says.
        """
        try:
            producer = await self._ready()
            pending = [
                await enqueue(producer, topic, key, value, list(headers), partition)
                for (topic, key, value, headers), partition in zip(
                    messages, partitions or [None] * len(messages), strict=True
                )
            ]
            done = await asyncio.wait_for(asyncio.gather(*pending), PRODUCE_SECONDS)
        except (KafkaError, OSError, TimeoutError) as error:
            await self.close()
            raise Unavailable(f"Kafka producer: {type(error).__name__}: {error}") from error
        return [(at.topic, at.partition, at.offset) for at in done]

    async def close(self) -> None:
        async with self._lock:
            producer, self._producer = self._producer, None
        if producer is not None:
            with suppress(KafkaError, OSError, TimeoutError):
                await asyncio.wait_for(producer.stop(), 5.0)


async def enqueue(
    producer: AIOKafkaProducer,
    topic: str,
    key: bytes | None,
    value: bytes | None,
    headers: list[tuple[str, bytes]],
    partition: int | None,
) -> asyncio.Future[Any]:
    """`send`, also for a record without key and value: Kafka takes one, aiokafka's `send` asserts that nobody has any.

    Such a record is a dead letter like another; without this it would stop every worker that reads it.
    """
    if key is not None or value is not None:
        return cast("asyncio.Future[Any]", await producer.send(topic, value, key, partition, headers=headers))
    await producer.client._wait_on_metadata(topic)
    number = producer._partition(topic, partition, None, None, None, None)
    place = TopicPartition(topic, number)
    sent = producer._message_accumulator.add_message(place, None, None, PRODUCE_SECONDS, headers=headers)
    return cast("asyncio.Future[Any]", await sent)


class KafkaDeadLetters:
    """Dead letters on their topic, with original key, bytes and headers."""

    def __init__(self, producer: Producer, topic: str, max_bytes: int) -> None:
        self._producer, self._topic, self._max_bytes = producer, topic, max_bytes

    async def put(self, letters: Sequence[DeadLetter]) -> None:
        messages = []
        for letter in letters:
            key, value, headers = letter.encode(self._max_bytes)
            messages.append((self._topic, key, value, headers))
        await self._producer.send(messages)


class KafkaRecords:
    """Reads single records back by place, with a consumer of its own that belongs to no group."""

    def __init__(self, access: KafkaAccess) -> None:
        self._options = client_options(access)
        self._consumer: AIOKafkaConsumer | None = None
        self._lock = asyncio.Lock()

    async def fetch(self, places: Sequence[tuple[str, int, int]]) -> list[Record | None]:
        """The record at each place, None where it is gone. Places of a partition are read in one pass."""
        async with self._lock:
            try:
                return await asyncio.wait_for(self._fetch(places), PRODUCE_SECONDS)
            except (KafkaError, OSError, TimeoutError) as error:
                await self._drop()
                raise Unavailable(f"Kafka: reading records back: {type(error).__name__}: {error}") from error

    async def _fetch(self, places: Sequence[tuple[str, int, int]]) -> list[Record | None]:
        consumer = await self._ready()
        wanted: dict[TopicPartition, set[int]] = {}
        for topic, number, offset in places:
            # Of a partition that its topic has no more (the topic was made anew), nobody could tell the bounds.
            if number in await consumer._client._wait_on_metadata(topic):
                wanted.setdefault(TopicPartition(topic, number), set()).add(offset)
        found: dict[tuple[str, int, int], Record] = {}
        first, end = await asyncio.gather(consumer.beginning_offsets(list(wanted)), consumer.end_offsets(list(wanted)))
        there = {
            partition: sorted(o for o in offsets if first[partition] <= o < end[partition])
            for partition, offsets in wanted.items()
        }
        held = {partition: offsets for partition, offsets in there.items() if offsets}
        # In one go: a partition that is assigned and has no place yet is given one first, which costs 200 ms at times.
        consumer.assign(list(held))
        for partition in list(held):
            _go_on(consumer, partition, held)
        while held:
            # A run of near offsets comes in one fetch; a far one is worth a seek.
            fetched = await consumer.getmany(*held, timeout_ms=5_000, max_records=1_000)
            if not fetched:
                raise TimeoutError(f"no records at {next(iter(held))}")
            for partition, batch in fetched.items():
                found |= {
                    (partition.topic, partition.partition, r.offset): r for r in batch if r.offset in wanted[partition]
                }
                held[partition] = [o for o in held[partition] if o > batch[-1].offset]
                _go_on(consumer, partition, held)
        return [found.get(place) for place in places]

    async def _ready(self) -> AIOKafkaConsumer:
        if self._consumer is None:
            # A fetch at the end of a partition is waited for before another is sent: its wait must be short.
            consumer = AIOKafkaConsumer(
                **self._options, enable_auto_commit=False, auto_offset_reset="earliest", fetch_max_wait_ms=50
            )
            try:
                await consumer.start()
            except BaseException:
                await consumer.stop()
                raise
            self._consumer = consumer
        return self._consumer

    async def _drop(self) -> None:
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            await consumer.stop()

    async def close(self) -> None:
        async with self._lock:
            await self._drop()


def _go_on(consumer: AIOKafkaConsumer, partition: TopicPartition, held: dict[TopicPartition, list[int]]) -> None:
    """To the next record that is wanted there; without one the partition is left alone, else the consumer goes on
    asking for what comes after."""
    if held[partition]:
        consumer.seek(partition, held[partition][0])
        consumer.resume(partition)
    else:
        del held[partition]
        consumer.pause(partition)
