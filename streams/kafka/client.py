"""Kafka without Faust: clients that are replaced after errors, our producer, and records read back by their place."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from itertools import islice
from typing import Any, cast

import orjson
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.partitioner import DefaultPartitioner

from agents.ports import Unavailable
from schemas.dead_letters import DeadLetter, Header, Headers, Record, Sealing, keyless
from schemas.settings import KafkaAccess
from schemas.wire_forms import ScoreEvent
from streams.kafka.transport import KAFKA_ERRORS, READ_COMMITTED, guard_consumers, state_of
from streams.retry import reason_of

PRODUCE_SECONDS = 30.0
STOP_SECONDS = 5.0
SCORES_AT_ONCE = 500
"""Events in flight: a gate of a thousand items and sixteen judges must not hold all of its own."""
PARTITIONS_MS = 5_000
"""Between two looks of a consumer at its topics' partitions: what comes on an added one waits for the next."""


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


def make_consumer(access: KafkaAccess, **options: Any) -> AIOKafkaConsumer:
    """A consumer beside Faust's. All are made here: like Faust's, it steps past what can't be read and inflates within
    bounds. It reads from the start of a topic unless told otherwise, only what transactions have committed, and commits
    only when told to."""
    guard_consumers()
    defaults = client_options(access) | {
        "enable_auto_commit": False,
        "auto_offset_reset": "earliest",
        "isolation_level": READ_COMMITTED,
        "metadata_max_age_ms": PARTITIONS_MS,
    }
    return AIOKafkaConsumer(**defaults | options)


async def stop(client: Any) -> None:
    """Stop a consumer, producer or admin client, within STOP_SECONDS and whatever the brokers do."""
    end = client.stop if hasattr(client, "stop") else client.close  # aiokafka's admin client has only `close`
    with suppress(*KAFKA_ERRORS):
        await asyncio.wait_for(end(), STOP_SECONDS)


@asynccontextmanager
async def started(client: Any) -> AsyncIterator[Any]:
    """Start a client, and stop it at the end."""
    try:
        await client.start()
        yield client
    finally:
        await stop(client)


class Reconnecting:
    """A client that is started on first use and replaced after an error, since aiokafka's can stay wedged."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        self._client: Any = None
        self._lock = asyncio.Lock()

    async def get(self) -> Any:
        """The client, started. Raises KAFKA_ERRORS."""
        async with self._lock:
            if self._client is None:
                client = self._make()
                try:
                    await client.start()
                except BaseException:
                    await stop(client)
                    raise
                self._client = client
            return self._client

    async def drop(self) -> None:
        """Stop the client; the next `get` starts a new one."""
        async with self._lock:
            client, self._client = self._client, None
        if client is not None:
            await stop(client)


def producer_options(access: KafkaAccess, max_bytes: int) -> dict[str, Any]:
    """aiokafka's options of every producer of ours."""
    return client_options(access) | {
        "acks": "all",
        "request_timeout_ms": int(PRODUCE_SECONDS * 1000),
        "max_request_size": max_bytes + 65_536,
        "linger_ms": 2,
    }


class Producer:
    """Sends records, idempotent and with acks=all."""

    def __init__(self, access: KafkaAccess, *, max_bytes: int = 1_048_576) -> None:
        self.max_bytes = max_bytes
        options = producer_options(access, max_bytes)
        self._producer = Reconnecting(lambda: AIOKafkaProducer(**options, enable_idempotence=True))

    async def send(
        self,
        messages: Sequence[tuple[str, bytes | None, bytes | None, Headers]],
        partitions: Sequence[int | None] | None = None,
    ) -> list[tuple[str, int, int]]:
        """Send (topic, key, value, headers); returns the place of each once all are durable. Raises Unavailable.

        `partitions`: the partition of each, None for the one that its key selects.
        """
        try:
            producer = await self._producer.get()
            pending = [
                await enqueue(producer, topic, key, value, list(headers), partition)
                for (topic, key, value, headers), partition in zip(
                    messages, partitions or [None] * len(messages), strict=True
                )
            ]
            done = await asyncio.wait_for(asyncio.gather(*pending), PRODUCE_SECONDS)
        except KAFKA_ERRORS as error:
            await self.close()
            raise Unavailable(f"Kafka producer: {reason_of(error)}") from error
        return [(at.topic, at.partition, at.offset) for at in done]

    async def close(self) -> None:
        await self._producer.drop()


class FencedProducer:
    """Sends records to one topic as the only one of its name that may. `take` shuts out whoever took it before, also a
    process that sleeps with a record in its hands and wakes up later: the topic refuses the record.

    A transactional id gives its producer ever higher epochs. Whoever takes it aborts an empty transaction over all
    partitions: the markers bring its epoch to each, and from there on Kafka refuses lower ones. Records are sent
    outside transactions, so every reader sees each at once and none is ever taken back.
    """

    def __init__(self, access: KafkaAccess, name: str, topic: str, max_bytes: int) -> None:
        self._options, self._name, self._topic = producer_options(access, max_bytes), name, topic
        self._producer: AIOKafkaProducer | None = None
        self._partitions: list[int] = []

    @property
    def taken(self) -> bool:
        """True from `take` until `drop`, or until a record is refused. Another process may have taken it meanwhile."""
        return self._producer is not None

    async def take(self, partitions: int) -> None:
        """Return once no one who took it before can write to the topic, which has so many partitions. Raises
        KAFKA_ERRORS."""
        await self.drop()
        while True:
            number, epoch = await self._next_epoch(partitions)
            if not epoch:
                break  # the first of all: no one was before
            # Markers are written after the transaction's end is promised. The next epoch comes once they are.
            if await self._next_epoch(0) == (number, epoch + 1):
                epoch += 1
                break
        producer = AIOKafkaProducer(**self._options, enable_idempotence=True)
        producer._txn_manager.set_pid_and_epoch(number, epoch)
        try:
            await producer.start()
        except BaseException:
            await stop(producer)
            raise
        # Not those that are added later: a partition that the next taker does not fence must not be written to.
        self._producer, self._partitions = producer, list(range(partitions))

    async def _next_epoch(self, marked: int) -> tuple[int, int]:
        """The producer id and an epoch above every earlier one; from the second on with markers in so many
        partitions."""
        async with started(AIOKafkaProducer(**self._options, transactional_id=self._name)) as producer:
            manager = producer._txn_manager
            if marked and manager.producer_epoch:
                await producer.begin_transaction()
                for partition in range(marked):
                    manager.maybe_add_partition_to_txn(TopicPartition(self._topic, partition))
                await producer.abort_transaction()
            return manager.producer_id, manager.producer_epoch

    async def send(self, key: bytes | None, value: bytes, headers: Sequence[tuple[str, bytes]]) -> None:
        """Return once the record is durable. Raises Unavailable, also where somebody else has taken it since."""
        producer = self._producer
        if producer is None:
            raise Unavailable("Kafka producer: another record failed just now")
        partition = DefaultPartitioner()(key, self._partitions, self._partitions)
        try:
            async with asyncio.timeout(PRODUCE_SECONDS):
                await (await producer.send(self._topic, value, key, partition, headers=list(headers)))
        except KAFKA_ERRORS as error:
            if self._producer is producer:
                await self.drop()
            raise Unavailable(f"Kafka producer: {reason_of(error)}") from error

    async def drop(self) -> None:
        """Give it up, without a word to Kafka."""
        producer, self._producer = self._producer, None
        if producer is not None:
            await stop(producer)


async def enqueue(
    producer: AIOKafkaProducer,
    topic: str,
    key: bytes | None,
    value: bytes | None,
    headers: list[Header],
    partition: int | None,
) -> asyncio.Future[Any]:
    """Send a record, also one without key and value, which Kafka takes and aiokafka's `send` refuses.

    Such a record is a dead letter like any other; if it could not be sent, it would stop every worker that reads it.
    """
    if key is not None or value is not None:
        return cast("asyncio.Future[Any]", await producer.send(topic, value, key, partition, headers=headers))
    await producer.client._wait_on_metadata(topic)
    number = producer._partition(topic, partition, None, None, None, None)
    place = TopicPartition(topic, number)
    sent = producer._message_accumulator.add_message(place, None, None, PRODUCE_SECONDS, headers=headers)
    return cast("asyncio.Future[Any]", await sent)


class KafkaDeadLetters:
    """Puts dead letters on their topic, with original key, bytes and headers."""

    def __init__(self, producer: Producer, topic: str, max_bytes: int, sealing: Sealing = keyless) -> None:
        self._producer, self._topic, self._max_bytes, self._sealing = producer, topic, max_bytes, sealing

    async def put(self, dead_letters: Sequence[DeadLetter]) -> None:
        """Return once they are durable. Raises Unavailable."""
        seal = await self._sealing()
        messages = [(self._topic, *dead_letter.encode(self._max_bytes, seal)) for dead_letter in dead_letters]
        await self._producer.send(messages)


class JudgeScoresTopic:
    """Sends what judges say to `rampgate.judge-scores`, from where PS-5 takes it (PC5 §9.4). `sent` is told of events
    that are durable."""

    def __init__(
        self, producer: Producer, topic: str, sent: Callable[[Sequence[ScoreEvent]], None] = lambda events: None
    ) -> None:
        self._producer, self._topic, self._sent = producer, topic, sent

    async def put(self, events: Iterable[ScoreEvent]) -> None:
        """Return once all are durable, under their trace's id, or their item's. Raises Unavailable; some may be durable
        then, and come again with the rest."""
        left = iter(events)
        while some := list(islice(left, SCORES_AT_ONCE)):
            keys = [(event["trace_id"] or event.get("item_id") or "").encode() for event in some]
            messages = [(self._topic, key, orjson.dumps(event), ()) for key, event in zip(keys, some, strict=True)]
            await self._producer.send(messages)
            self._sent(some)


class KafkaRecords:
    """Reads single records back by their place, with a consumer of its own that joins no group."""

    def __init__(self, access: KafkaAccess) -> None:
        # A fetch at the end of a partition is waited for before another is sent: its wait must be short.
        self._consumer = Reconnecting(lambda: make_consumer(access, fetch_max_wait_ms=50))
        self._lock = asyncio.Lock()

    async def fetch(self, places: Sequence[tuple[str, int, int]]) -> list[Record | None]:
        """The record at each place, None where it is gone. Raises Unavailable."""
        async with self._lock:
            try:
                return await asyncio.wait_for(self._fetch(places), PRODUCE_SECONDS)
            except KAFKA_ERRORS as error:
                await self._consumer.drop()
                raise Unavailable(f"Kafka: reading records back: {reason_of(error)}") from error

    async def close(self) -> None:
        async with self._lock:
            await self._consumer.drop()

    async def _fetch(self, places: Sequence[tuple[str, int, int]]) -> list[Record | None]:
        """The records, those of a partition in one pass."""
        consumer = await self._consumer.get()
        wanted: dict[TopicPartition, set[int]] = {}
        for topic, number, offset in places:
            # Kafka tells no bounds of a partition that its topic has no more, after it was deleted and made again.
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
            moved = [partition for partition in held if partition not in fetched and _passed(consumer, partition, held)]
            if not fetched and not moved:
                raise TimeoutError(f"no records at {next(iter(held))}")
            for partition in moved:
                _go_on(consumer, partition, held)
            for partition, batch in fetched.items():
                found |= {
                    (partition.topic, partition.partition, r.offset): r for r in batch if r.offset in wanted[partition]
                }
                held[partition] = [o for o in held[partition] if o > batch[-1].offset]
                _go_on(consumer, partition, held)
        return [found.get(place) for place in places]


def _passed(consumer: AIOKafkaConsumer, partition: TopicPartition, held: dict[TopicPartition, list[int]]) -> bool:
    """Leave out offsets that the consumer has passed without a record, and tell whether there were any: they are a
    transaction's marks, or of one that was aborted."""
    ahead = [offset for offset in held[partition] if offset >= state_of(consumer, partition).position]
    passed, held[partition] = len(ahead) < len(held[partition]), ahead
    return passed


def _go_on(consumer: AIOKafkaConsumer, partition: TopicPartition, held: dict[TopicPartition, list[int]]) -> None:
    """Seek the next record that is wanted of the partition. Where there is none, pause the partition, since the
    consumer would go on fetching what comes after."""
    if held[partition]:
        consumer.seek(partition, held[partition][0])
        consumer.resume(partition)
    else:
        del held[partition]
        consumer.pause(partition)
