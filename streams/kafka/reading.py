"""Reads spans of topics with consumers that join no group and commit nothing."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from typing import TypeVar

import structlog
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient

from agents.ports import Unavailable
from schemas.dead_letters import Record
from schemas.settings import KafkaAccess
from streams.kafka.client import client_options, make_consumer, started
from streams.kafka.transport import KAFKA_ERRORS
from streams.retry import reason_of

log = structlog.get_logger(__name__)
T = TypeVar("T")
CHUNK = 500
LOG_APPEND_TIME = 1
SILENCE_SECONDS = 15.0
SLACK_MS = 300_000
"""How far the clocks of workers and brokers may differ before the index by time skips a record."""


def appended_ms(record: Record, now_ms: int) -> int:
    """When the record was appended, by its broker's clock; now, where the topic keeps what its producer said."""
    return record.timestamp if getattr(record, "timestamp_type", None) == LOG_APPEND_TIME else now_ms


async def partitions_of(access: KafkaAccess, topics: list[str]) -> dict[str, int]:
    """Number of partitions of each topic that exists. Raises Unavailable."""
    try:
        async with started(AIOKafkaAdminClient(**client_options(access), request_timeout_ms=10_000)) as admin:
            described = await admin.describe_topics(topics)
    except KAFKA_ERRORS as error:
        raise Unavailable(f"Kafka at {', '.join(access.brokers)}: {reason_of(error)}") from error
    return {topic["topic"]: len(topic["partitions"]) for topic in described if not topic["error_code"]}


async def spans_of(
    consumer: AIOKafkaConsumer, partitions: Sequence[TopicPartition], since: int | None, slack_ms: int = SLACK_MS
) -> dict[TopicPartition, tuple[int, int]]:
    """[start, end) of each partition: from its first record that is `slack_ms` older than `since` (ms), or younger, to
    its last. All of it without `since`.

    A broker without an index by time (librdkafka's built-in one) answers None for every time, even for 1970: then the
    span is the whole partition, and the caller has to look at each record's time.
    """
    first, last = await asyncio.gather(consumer.beginning_offsets(partitions), consumer.end_offsets(partitions))
    whole = {partition: (first[partition], last[partition]) for partition in partitions}
    if since is None or not any((await consumer.offsets_for_times(dict.fromkeys(partitions, 0))).values()):
        return whole
    found = await consumer.offsets_for_times(dict.fromkeys(partitions, max(since - slack_ms, 0)))
    spans = {}
    for partition, (begin, end) in whole.items():
        young = found.get(partition)
        spans[partition] = (min(max(young.offset, begin), end) if young is not None else end, end)
    return spans


async def parsed_now(access: KafkaAccess, topic: str, parse: Callable[[bytes], T]) -> list[T]:
    """What stands on a topic now, as `parse` makes it of each record's value; one that it raises ValueError for is
    logged and passed over. Raises Unavailable, also where there is no such topic."""
    found = []
    async for record in records_now(access, topic):
        try:
            found.append(parse(record.value or b""))
        except ValueError:
            log.warning("record_passed_over", topic=topic, partition=record.partition, offset=record.offset)
    return found


async def records_now(access: KafkaAccess, topic: str, since: int | None = None) -> AsyncIterator[Record]:
    """The records that stand on a topic now, as `pages_now` has them."""
    async for records in pages_now(access, topic, since):
        for record in records:
            yield record


async def pages_now(access: KafkaAccess, topic: str, since: int | None = None) -> AsyncGenerator[list[Record], None]:
    """The records that stand on a topic now, those since a time (ms) where one is given, but for tombstones. Raises
    Unavailable, also where there is no such topic."""
    count = (await partitions_of(access, [topic])).get(topic)
    if count is None:
        raise Unavailable(f"Kafka: there is no topic {topic}")
    try:
        async with started(make_consumer(access)) as consumer:
            spans = await spans_of(consumer, [TopicPartition(topic, number) for number in range(count)], since)
            async for _, records in records_of(consumer, spans):
                yield [record for record in records if record.value is not None]
    except (TimeoutError, *KAFKA_ERRORS) as error:
        raise Unavailable(f"Kafka: {topic}: {reason_of(error)}") from error


async def records_of(
    consumer: AIOKafkaConsumer, spans: dict[TopicPartition, tuple[int, int]]
) -> AsyncIterator[tuple[TopicPartition, list[Record]]]:
    """The records of the spans, in chunks. Raises TimeoutError where the brokers send nothing for SILENCE_SECONDS
    before the end."""
    left = {partition: end for partition, (start, end) in spans.items() if start < end}
    consumer.assign(list(left))
    for partition in left:
        consumer.seek(partition, spans[partition][0])
    heard = time.monotonic()
    while left:
        fetched = await consumer.getmany(*left, timeout_ms=500, max_records=CHUNK)
        for partition, records in fetched.items():
            inside = [record for record in records if record.offset < left[partition]]
            if inside:
                yield partition, inside
            heard = time.monotonic()
        for partition, end in list(left.items()):
            if await consumer.position(partition) >= end:  # the last offsets may be of no record
                del left[partition]
        if time.monotonic() - heard > SILENCE_SECONDS:
            raise TimeoutError(f"nothing came for {SILENCE_SECONDS:g} s")
