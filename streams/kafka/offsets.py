"""Asks the brokers for offsets, of topics and of groups, over connections of its own.

On the connection that fetches, a question waits until the long poll before it ends (1.5 s while topics are quiet, with
Apache Kafka and librdkafka's broker alike), so that finding the start of twelve partitions took more than a minute.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from io import BytesIO
from typing import Any, TypeVar

import structlog
from aiokafka import TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import IncompatibleBrokerVersion, NodeNotReadyError
from aiokafka.protocol.abstract import AbstractType
from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.metadata import MetadataRequest
from aiokafka.protocol.types import Boolean, CompactArray, CompactString, Int16, Int32, Schema, TaggedFields
from faust.types import TP

from agents.ports import Unavailable
from schemas.settings import KafkaAccess
from streams.kafka.client import PARTITIONS_MS, Reconnecting, client_options, make_consumer
from streams.kafka.transport import KAFKA_ERRORS, READ_COMMITTED
from streams.retry import Retry, logged, reason_of

log = structlog.get_logger(__name__)
TEXT = CompactString("utf-8")
NO_ID = uuid.UUID(int=0)
T = TypeVar("T")
SECONDS = 10.0
ONE_BROKER_SECONDS = 2.0
"""For a question that each broker is asked: one that is away holds up the answer no longer."""
FRESH = 1.0
"""Seconds for which committed offsets are remembered: as long as workers take to commit what they have settled."""


class KafkaOffsets:
    """Joins no group and reads no records. Raises Unavailable when `tries` tries of SECONDS each gave no answer.

    A partition's end is the log's; with `committed` it is where the first transaction begins that is still open.
    """

    def __init__(self, access: KafkaAccess, *, tries: int = 4, committed: bool = False) -> None:
        level = READ_COMMITTED if committed else "read_uncommitted"
        self._consumer = Reconnecting(lambda: make_consumer(access, isolation_level=level))
        self._retry = Retry(tries=tries)
        self._lock = asyncio.Lock()

    async def first_after(self, moments: Mapping[TP, int]) -> dict[TP, int | None]:
        """The offset of the first record at or after a time (ms) in each partition; None where every record is
        older."""
        wanted = {TopicPartition(*partition): at for partition, at in moments.items()}
        found = await self._ask(lambda consumer: consumer.offsets_for_times(wanted), wanted)
        return {TP(*partition): (at.offset if at is not None else None) for partition, at in found.items()}

    async def bounds(self, partitions: Iterable[TP]) -> dict[TP, tuple[int, int]]:
        """The first offset and the one after the last record, for each partition."""
        wanted = [TopicPartition(*partition) for partition in partitions]
        first = await self._ask(lambda consumer: consumer.beginning_offsets(wanted), wanted)
        last = await self._ask(lambda consumer: consumer.end_offsets(wanted), wanted)
        return {TP(*partition): (first[partition], last[partition]) for partition in wanted}

    async def ends(self, partitions: Iterable[TP]) -> dict[TP, int]:
        """The offset after the last record, for each partition. Without partitions it asks only whether a broker
        answers."""
        wanted = [TopicPartition(*partition) for partition in partitions]
        if not wanted:
            await self._ask(lambda consumer: consumer.topics(), ())
            return {}
        found = await self._ask(lambda consumer: consumer.end_offsets(wanted), wanted)
        return {TP(*partition): offset for partition, offset in found.items()}

    async def topic_ends(self, topic: str) -> tuple[str, dict[TP, int]]:
        """The topic's id, "" from brokers that know none, and the offset after the last record of each partition, also
        of one that was added a moment ago."""

        async def ask(consumer: Any) -> tuple[str, dict[TopicPartition, int]]:
            client = consumer._client
            known = [TopicPartition(topic, number) for number in await client._wait_on_metadata(topic)]
            # At once: the other questions cost no time on top of the first.
            count, found, ids = await asyncio.gather(
                _most_partitions(client, topic), consumer.end_offsets(known), ask_topic_ids(client, [topic])
            )
            added = [
                TopicPartition(topic, number) for number in range(count) if number not in {p.partition for p in known}
            ]
            ends: dict[TopicPartition, int] = {**found, **(await consumer.end_offsets(added) if added else {})}
            return ids.get(topic, ""), ends

        topic_id, found = await self._ask(ask, [TopicPartition(topic, 0)])
        return topic_id, {TP(*partition): offset for partition, offset in found.items()}

    async def topic_ids(self, topics: Iterable[str]) -> dict[str, str]:
        """The id of each topic that exists; nothing from brokers that know no ids (before Kafka 2.8)."""
        wanted = sorted(set(topics))
        return await self._ask(lambda consumer: ask_topic_ids(consumer._client, wanted), ())

    async def partitions(self, topic: str) -> int:
        """How many partitions the topic has, as says who knows of most: brokers hear of an added one in turn, and who
        leads it has heard."""
        return await self._ask(lambda consumer: _most_partitions(consumer._client, topic), [TopicPartition(topic, 0)])

    async def close(self) -> None:
        async with self._lock:
            await self._consumer.drop()

    async def _ask(self, question: Callable[[Any], Awaitable[T]], about: Iterable[TopicPartition]) -> T:
        topics = {partition.topic for partition in about}

        async def answer() -> T:
            consumer = await self._consumer.get()
            for topic in topics:  # aiokafka fails once for a topic that it does not know yet, and pauses 100 ms
                await consumer._client._wait_on_metadata(topic)
            return await question(consumer)

        async def attempt() -> T:
            try:
                return await asyncio.wait_for(answer(), SECONDS)
            except BaseException:
                await self._consumer.drop()
                raise

        async with self._lock:
            try:
                return await self._retry.call(attempt, KAFKA_ERRORS, noticed=logged("offsets_retry"))
            except KAFKA_ERRORS as error:
                raise Unavailable(f"Kafka: {reason_of(error)}") from error


async def _most_partitions(client: Any, topic: str) -> int:
    async def ask(node: int) -> int:
        async with asyncio.timeout(ONE_BROKER_SECONDS):
            answer = await client.send(node, MetadataRequest([topic], False))
        return sum(len(found[-1]) for found in answer.topics)

    nodes = [broker.nodeId for broker in client.cluster.brokers()]
    told = await asyncio.gather(*map(ask, nodes), return_exceptions=True)
    counts = [count for count in told if isinstance(count, int)]
    if not counts:
        raise NodeNotReadyError("no broker tells of its topics")
    if max(counts) > len(client.cluster.partitions_for_topic(topic) or ()):
        await client.force_metadata_update()
    return max(counts)


class GroupOffsets:
    """Asks what a consumer group has committed, over a connection of its own; an answer serves for `fresh` seconds.
    Raises Unavailable."""

    def __init__(self, access: KafkaAccess, group: str, topics: Sequence[str], fresh: float = FRESH) -> None:
        self._fresh = fresh
        options, self._group, self._topics = client_options(access), group, list(topics)
        self._client = Reconnecting(lambda: AIOKafkaAdminClient(**options, metadata_max_age_ms=PARTITIONS_MS))
        self._lock = asyncio.Lock()
        self._known: dict[tuple[str, int], int] = {}
        self._until = 0.0

    async def committed(self) -> dict[tuple[str, int], int]:
        """The committed offset of each partition, (topic, partition), that has one."""
        async with self._lock:
            if time.monotonic() < self._until:
                return self._known
            until = time.monotonic() + self._fresh
            try:
                async with asyncio.timeout(SECONDS):
                    client, wanted = await self._client.get(), []
                    # By name: librdkafka's built-in broker can't be asked for all of them.
                    for topic in self._topics:
                        numbers = await client._client._wait_on_metadata(topic)
                        wanted += [TopicPartition(topic, number) for number in numbers]
                    found = await client.list_consumer_group_offsets(self._group, partitions=wanted)
            except KAFKA_ERRORS as error:
                await self._client.drop()
                raise Unavailable(f"Kafka: committed offsets: {reason_of(error)}") from error
            self._known = {
                (partition.topic, partition.partition): at.offset for partition, at in found.items() if at.offset > 0
            }
            self._until = until
            return self._known

    async def close(self) -> None:
        async with self._lock:
            await self._client.drop()


class Uuid(AbstractType[uuid.UUID]):
    """Sixteen bytes."""

    @classmethod
    def encode(cls, value: uuid.UUID) -> bytes:
        return value.bytes

    @classmethod
    def decode(cls, data: BytesIO) -> uuid.UUID:
        return uuid.UUID(bytes=data.read(16))


class TopicsWithIds(Response):
    """aiokafka speaks Metadata up to version 5. Ids of topics come with version 10, which brokers have since Kafka 2.8:
    each topic gets a new one when it is made, also where a topic of its name was before."""

    API_KEY = 3
    API_VERSION = 10
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        (
            "brokers",
            CompactArray(("node_id", Int32), ("host", TEXT), ("port", Int32), ("rack", TEXT), ("tags", TaggedFields)),
        ),
        ("cluster_id", TEXT),
        ("controller_id", Int32),
        (
            "topics",
            CompactArray(
                ("error_code", Int16),
                ("topic", TEXT),
                ("topic_id", Uuid),
                ("is_internal", Boolean),
                (
                    "partitions",
                    CompactArray(
                        ("error_code", Int16),
                        ("partition", Int32),
                        ("leader", Int32),
                        ("leader_epoch", Int32),
                        ("replicas", CompactArray(Int32)),
                        ("isr", CompactArray(Int32)),
                        ("offline_replicas", CompactArray(Int32)),
                        ("tags", TaggedFields),
                    ),
                ),
                ("authorized_operations", Int32),
                ("tags", TaggedFields),
            ),
        ),
        ("cluster_authorized_operations", Int32),
        ("tags", TaggedFields),
    )


class TopicsByName(RequestStruct):
    FLEXIBLE_VERSION = True
    API_KEY = 3
    API_VERSION = 10
    RESPONSE_TYPE = TopicsWithIds
    SCHEMA = Schema(
        ("topics", CompactArray(("topic_id", Uuid), ("topic", TEXT), ("tags", TaggedFields))),
        ("allow_auto_topic_creation", Boolean),
        ("include_cluster_authorized_operations", Boolean),
        ("include_topic_authorized_operations", Boolean),
        ("tags", TaggedFields),
    )


class TopicIds(Request[TopicsByName]):
    """Asks for topics by name, and makes none of them."""

    API_KEY = 3

    def __init__(self, topics: Iterable[str]) -> None:
        self._topics: list[tuple[uuid.UUID, str, dict[int, bytes]]] = [(NO_ID, topic, {}) for topic in topics]

    def build(self, request_struct_class: type[TopicsByName]) -> TopicsByName:
        return request_struct_class(self._topics, False, False, False, {})


async def ask_topic_ids(client: Any, topics: Iterable[str]) -> dict[str, str]:
    """The id of each topic that exists; nothing from brokers that know no ids. `client` is aiokafka's, connected.

    Raises KafkaError.
    """
    node = client.get_random_node()
    if node is None:
        raise NodeNotReadyError("no broker is known")
    try:
        answer = await client.send(node, TopicIds(topics))
    except (IncompatibleBrokerVersion, NotImplementedError):  # aiokafka raises either for a version not in common
        return {}
    return {topic: str(topic_id) for error, topic, topic_id, *_ in answer.topics if not error and topic_id != NO_ID}
