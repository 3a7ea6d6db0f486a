"""Every reader of a topic, on a real Kafka, steps past what can't be read, what a transaction aborted and its marks,
and reads what comes behind."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from aiokafka import TopicPartition
from confluent_kafka import Producer as ConfluentProducer
from faust.types import TP

from rampgate.local.services.kafka import KafkaCluster
from schemas.dead_letters import Record, UnreadableRecord
from schemas.settings import KafkaAccess
from streams.dead_letters.reader import DeadLetterFilter, read_dead_letters
from streams.gates.verdict_log import VerdictLog
from streams.kafka.client import KafkaRecords, Producer, make_consumer, started
from streams.kafka.delayed_consumer import DelayedConsumer
from streams.kafka.offsets import KafkaOffsets
from streams.kafka.reading import records_of, spans_of
from streams.retry import WallClock
from tests.memory_ports import ManualClock, MemoryStore
from tests.raw_batches import PLACEHOLDER, batch, corrupt, log_of, produce, record
from tests.waiting import come

END = 8


@pytest.fixture
async def access(kafka: KafkaCluster) -> KafkaAccess:
    return KafkaAccess((kafka.bootstrap,))


@pytest.fixture
async def topic(kafka: KafkaCluster, topic_prefix: str) -> str:
    """Offsets 0 and 7 are good, 1 has a header with a bad name, 2 is good, the batch from 3 to 6 is corrupt."""
    name = f"{topic_prefix}verdicts"
    kafka.create_topics([name], 1)
    three = record(b"a"), record(b"b", b"k", (PLACEHOLDER, b"x")), record(b"c")
    assert await produce(kafka.bootstrap, name, 0, batch(*three)) == 0
    assert await produce(kafka.bootstrap, name, 0, batch(*[record(b"lost")] * 4, compression="lz4")) == 3
    assert await produce(kafka.bootstrap, name, 0, batch(record(b"z"), compression="zstd")) == 7
    corrupt(log_of(kafka, name), 3)
    return name


async def test_records_are_read_back_from_before_and_behind_it(access: KafkaAccess, topic: str) -> None:
    records = KafkaRecords(access)
    try:
        found = await records.fetch([(topic, 0, offset) for offset in (0, 1, 2, 4, 7)])
    finally:
        await records.close()
    assert [one and one.value for one in found] == [b"a", None, b"c", None, b"z"]
    assert isinstance(found[1], UnreadableRecord)


async def test_a_delayed_consumer_hands_it_in_and_goes_on(access: KafkaAccess, topic: str, topic_prefix: str) -> None:
    seen: list[Record] = []

    async def handle(records: Sequence[Record]) -> Sequence[Record]:
        seen.extend(records)
        return []

    consumer = DelayedConsumer("news", access, f"{topic_prefix}news", {topic: handle}, WallClock(), 0.0)
    consumer._since = 0  # a new group begins with what came since it was made
    task = asyncio.create_task(consumer.run())
    try:
        await come(lambda: any(one.offset == END - 1 for one in seen), 30.0)
        await come(lambda: set(consumer.done.values()) == {END}, 30.0)
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert [(one.offset, one.value) for one in seen] == [(0, b"a"), (1, None), (2, b"c"), (6, None), (7, b"z")]


async def test_dead_letters_are_read_to_the_end(access: KafkaAccess, topic: str) -> None:
    chunks = read_dead_letters(access, topic, DeadLetterFilter())
    found = [letter.record.offset async for chunk in chunks for letter in chunk]
    assert found == [0, 1, 2, 6, 7]


async def test_the_verdicts_topic_is_read_to_its_end(access: KafkaAccess, topic: str) -> None:
    producer = Producer(access)
    log = VerdictLog(access, producer, topic, MemoryStore(ManualClock()))
    try:
        await log.start()
        await log.caught_up()
    finally:
        await log.close()
        await producer.close()


async def test_questions_about_offsets_are_answered(access: KafkaAccess, topic: str) -> None:
    offsets = KafkaOffsets(access)
    try:
        assert await offsets.bounds([TP(topic, 0)]) == {TP(topic, 0): (0, END)}
    finally:
        await offsets.close()


@pytest.fixture
async def transactional(kafka: KafkaCluster, topic_prefix: str) -> str:
    """0 counts, 1 is its mark; 2 and 3 are aborted, 4 is their mark; 5 counts, 6 is its mark; 7 is aborted, 8 is its
    mark."""
    name = f"{topic_prefix}letters"
    kafka.create_topics([name], 1)
    producer = ConfluentProducer({"bootstrap.servers": kafka.bootstrap, "transactional.id": name, "log_level": 0})
    producer.init_transactions(30)
    for values, commit in ((["a"], True), (["x", "y"], False), (["b"], True), (["z"], False)):
        producer.begin_transaction()
        for value in values:
            producer.produce(name, value, "k")
        producer.flush(30)
        (producer.commit_transaction if commit else producer.abort_transaction)(30)
    return name


@pytest.fixture
async def opened(kafka: KafkaCluster, transactional: str) -> ConfluentProducer:
    """A producer whose transaction on the topic is open, with one record at 9."""
    producer = ConfluentProducer(
        {"bootstrap.servers": kafka.bootstrap, "transactional.id": transactional + "2", "log_level": 0}
    )
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(transactional, "later", "k")
    producer.flush(30)
    return producer


async def test_a_span_is_read_to_its_end(access: KafkaAccess, transactional: str) -> None:
    async with started(make_consumer(access)) as consumer:
        spans = await spans_of(consumer, [TopicPartition(transactional, 0)], None)
        found = [record.value async for _, records in records_of(consumer, spans) for record in records]
    assert (list(spans.values()), found) == ([(0, 9)], [b"a", b"b"])


async def test_dead_letters_are_listed(access: KafkaAccess, transactional: str) -> None:
    chunks = read_dead_letters(access, transactional, DeadLetterFilter())
    assert [letter.record.offset async for chunk in chunks for letter in chunk] == [0, 5]


async def test_a_record_is_read_back_by_its_place_and_what_is_none_is_not(
    access: KafkaAccess, transactional: str
) -> None:
    records = KafkaRecords(access)
    try:
        found = await records.fetch([(transactional, 0, offset) for offset in range(9)])
    finally:
        await records.close()
    assert [one and one.value for one in found] == [b"a", None, None, None, None, b"b", None, None, None]


async def test_a_delayed_consumer_hands_in_what_counts(
    access: KafkaAccess, transactional: str, topic_prefix: str
) -> None:
    seen: list[bytes | None] = []

    async def handle(records: Sequence[Record]) -> Sequence[Record]:
        seen.extend(record.value for record in records)
        return []

    consumer = DelayedConsumer("news", access, f"{topic_prefix}news", {transactional: handle}, WallClock(), 0.0)
    consumer._since = 0  # a new group begins with what came since it was made
    task = asyncio.create_task(consumer.run())
    try:
        await come(lambda: len(seen) >= 2)
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert seen == [b"a", b"b"]


async def test_what_is_not_committed_yet_is_no_record_and_comes_once_it_is(
    access: KafkaAccess, transactional: str, opened: ConfluentProducer
) -> None:
    """Readers end before it; a question for the log's end reports it."""
    all_, stable = KafkaOffsets(access), KafkaOffsets(access, committed=True)
    records = KafkaRecords(access)
    try:
        assert await all_.ends([TP(transactional, 0)]) == {TP(transactional, 0): 10}
        assert await stable.ends([TP(transactional, 0)]) == {TP(transactional, 0): 9}
        assert await records.fetch([(transactional, 0, 9)]) == [None]
        await test_a_span_is_read_to_its_end(access, transactional)
        opened.commit_transaction(30)
        found = None
        async with asyncio.timeout(30):
            while found is None:  # Kafka marks the partitions after it has answered
                (found,) = await records.fetch([(transactional, 0, 9)])
        assert found.value == b"later"
        assert await stable.ends([TP(transactional, 0)]) == {TP(transactional, 0): 11}
    finally:
        for one in (all_, stable, records):
            await one.close()
