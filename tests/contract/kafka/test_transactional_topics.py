"""Every reader of a topic passes over what a transaction aborted, and over its marks at the end, on a real Kafka."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from aiokafka import TopicPartition
from confluent_kafka import Producer
from faust.types import TP

from rampgate.local.services.kafka import KafkaCluster
from schemas.dead_letters import Record
from schemas.settings import KafkaAccess
from streams.dead_letters.reader import DeadLetterFilter, read_dead_letters
from streams.kafka.client import KafkaRecords, make_consumer, started
from streams.kafka.delayed_consumer import DelayedConsumer
from streams.kafka.offsets import KafkaOffsets
from streams.kafka.reading import records_of, spans_of
from streams.retry import WallClock
from tests.waiting import come


@pytest.fixture
async def access(kafka: KafkaCluster) -> KafkaAccess:
    return KafkaAccess((kafka.bootstrap,))


@pytest.fixture
async def topic(kafka: KafkaCluster, topic_prefix: str) -> str:
    """0 counts, 1 is its mark; 2 and 3 are aborted, 4 is their mark; 5 counts, 6 is its mark; 7 is aborted, 8 is its
    mark."""
    name = f"{topic_prefix}letters"
    kafka.create_topics([name], 1)
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "transactional.id": name, "log_level": 0})
    producer.init_transactions(30)
    for values, commit in ((["a"], True), (["x", "y"], False), (["b"], True), (["z"], False)):
        producer.begin_transaction()
        for value in values:
            producer.produce(name, value, "k")
        producer.flush(30)
        (producer.commit_transaction if commit else producer.abort_transaction)(30)
    return name


@pytest.fixture
async def opened(kafka: KafkaCluster, topic: str) -> Producer:
    """A producer whose transaction on the topic is open, with one record at 9."""
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "transactional.id": topic + "2", "log_level": 0})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, "later", "k")
    producer.flush(30)
    return producer


async def test_a_span_is_read_to_its_end(access: KafkaAccess, topic: str) -> None:
    async with started(make_consumer(access)) as consumer:
        spans = await spans_of(consumer, [TopicPartition(topic, 0)], None)
        found = [record.value async for _, records in records_of(consumer, spans) for record in records]
    assert (list(spans.values()), found) == ([(0, 9)], [b"a", b"b"])


async def test_dead_letters_are_listed(access: KafkaAccess, topic: str) -> None:
    chunks = read_dead_letters(access, topic, DeadLetterFilter())
    assert [letter.record.offset async for chunk in chunks for letter in chunk] == [0, 5]


async def test_a_record_is_read_back_by_its_place_and_what_is_none_is_not(access: KafkaAccess, topic: str) -> None:
    records = KafkaRecords(access)
    try:
        found = await records.fetch([(topic, 0, offset) for offset in range(9)])
    finally:
        await records.close()
    assert [one and one.value for one in found] == [b"a", None, None, None, None, b"b", None, None, None]


async def test_a_delayed_consumer_hands_in_what_counts(access: KafkaAccess, topic: str, topic_prefix: str) -> None:
    seen: list[bytes | None] = []

    async def handle(records: Sequence[Record]) -> Sequence[Record]:
        seen.extend(record.value for record in records)
        return []

    consumer = DelayedConsumer("news", access, f"{topic_prefix}news", {topic: handle}, WallClock(), 0.0)
    consumer._since = 0  # a new group begins with what came since it was made
    task = asyncio.create_task(consumer.run())
    try:
        await come(lambda: len(seen) >= 2)
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert seen == [b"a", b"b"]


async def test_what_is_not_committed_yet_is_no_record_and_comes_once_it_is(
    access: KafkaAccess, topic: str, opened: Producer
) -> None:
    """Readers end before it; whoever asks for the log's end is told of it."""
    all_, stable = KafkaOffsets(access), KafkaOffsets(access, committed=True)
    records = KafkaRecords(access)
    try:
        assert await all_.ends([TP(topic, 0)]) == {TP(topic, 0): 10}
        assert await stable.ends([TP(topic, 0)]) == {TP(topic, 0): 9}
        assert await records.fetch([(topic, 0, 9)]) == [None]
        await test_a_span_is_read_to_its_end(access, topic)
        opened.commit_transaction(30)
        found = None
        async with asyncio.timeout(30):
            while found is None:  # Kafka marks the partitions after it has answered
                (found,) = await records.fetch([(topic, 0, 9)])
        assert found.value == b"later"
        assert await stable.ends([TP(topic, 0)]) == {TP(topic, 0): 11}
    finally:
        for one in (all_, stable, records):
            await one.close()
