"""What real brokers, and the demo's in memory, say of topics and of their offsets: what they keep, how they grow, which
one a name means, what a group has committed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import NewPartitions
from aiokafka.consumer.fetcher import Fetcher
from aiokafka.errors import StaleMetadata
from aiokafka.protocol.metadata import MetadataRequest_v5
from faust.types import TP
from structlog.testing import capture_logs

from agents.ports import Unavailable
from rampgate.local.services.broker import MockBroker
from rampgate.local.services.kafka import KafkaCluster
from rampgate.local.services.topics import with_admin
from schemas.settings import KafkaAccess
from streams.kafka import offsets as asking
from streams.kafka.client import Producer
from streams.kafka.offsets import GroupOffsets, KafkaOffsets
from streams.kafka.topics import DAY_MS, wait_for_topics
from streams.maintenance import TopicGrowth
from streams.metrics import Metrics


async def told(bootstrap: str, keep: dict[str, int]) -> dict[str, float | None]:
    with capture_logs() as lines:
        await wait_for_topics(KafkaAccess((bootstrap,)), list(keep), keep=keep)
    return {line["topic"]: line["retention_days"] for line in lines if line["event"] == "topic_forgets"}


async def test_a_made_topic_keeps_baselines_and_one_that_forgets_earlier_is_told_of(
    kafka: KafkaCluster, topic_prefix: str
) -> None:
    """Kafka's own default is a week; it is set here, since the local brokers have another."""
    made, default, compacted = (f"{topic_prefix}{name}" for name in ("made", "default", "compacted"))
    kafka.create_topics([default], config={"retention.ms": str(7 * DAY_MS)})
    kafka.create_topics([compacted], config={"cleanup.policy": "compact", "retention.ms": "-1"})
    keep = dict.fromkeys((made, default, compacted), 90 * DAY_MS)
    assert await told(kafka.bootstrap, keep) == {default: 7.0, compacted: None}
    assert await told(kafka.bootstrap, {made: 91 * DAY_MS}) == {}
    assert await told(kafka.bootstrap, {made: 92 * DAY_MS}) == {made: 91.0}


async def test_a_broker_in_memory_holds_up_no_start(mock_broker: MockBroker, topic_prefix: str) -> None:
    assert await told(mock_broker.bootstrap, {f"{topic_prefix}verdicts": 90 * DAY_MS}) == {}


async def test_partitions_that_are_added_to_a_topic_are_told_once(kafka: KafkaCluster, topic_prefix: str) -> None:
    topics = [f"{topic_prefix}{name}" for name in ("thumbs", "verdicts")]
    kafka.create_topics(topics, 3)
    metrics, offsets = Metrics(), KafkaOffsets(KafkaAccess((kafka.bootstrap,)))
    growth = TopicGrowth(metrics)
    try:
        with capture_logs() as before:
            await growth.look(topics, offsets)
            await growth.look(topics, offsets)
        with_admin(kafka.bootstrap, lambda admin: admin.create_partitions({topics[1]: NewPartitions(7)}))
        with capture_logs() as after:
            while metrics.registry.get_sample_value("rampgate_topic_partitions", {"topic": topics[1]}) != 7:
                await growth.look(topics, offsets)
            await growth.look(topics, offsets)
    finally:
        await offsets.close()
    assert before == []
    assert [(line["event"], line["topic"], line["before"], line["now"]) for line in after] == [
        ("partitions_added", topics[1], 3, 7)
    ]
    assert metrics.registry.get_sample_value("rampgate_topic_partitions", {"topic": topics[0]}) == 3


async def test_a_broker_in_memory_tells_its_partitions_too(mock_broker: MockBroker, topic_prefix: str) -> None:
    mock_broker.create_topics([f"{topic_prefix}thumbs"])
    offsets = KafkaOffsets(KafkaAccess((mock_broker.bootstrap,)))
    try:
        assert await offsets.partitions(f"{topic_prefix}thumbs") == 4
    finally:
        await offsets.close()


@pytest.fixture
async def offsets(kafka: KafkaCluster) -> AsyncIterator[KafkaOffsets]:
    made = KafkaOffsets(KafkaAccess((kafka.bootstrap,)))
    yield made
    await made.close()


async def test_a_topic_made_again_has_another_id(kafka: KafkaCluster, topic_prefix: str, offsets: KafkaOffsets) -> None:
    one, two, none = (topic_prefix + name for name in ("one", "two", "none"))
    kafka.create_topics([one, two])
    first = await offsets.topic_ids([one, two, none])
    assert first.keys() == {one, two}
    assert first[one] != first[two]
    assert await offsets.topic_ids([one, two]) == first, "it stays as long as the topic"
    with_admin(kafka.bootstrap, lambda admin: admin.delete_topics([one]))
    second = first
    async with asyncio.timeout(60):
        while second.get(one, first[one]) == first[one]:  # Kafka deletes in its own time
            kafka.create_topics([one])
            second = await offsets.topic_ids([one, two])
    assert second[two] == first[two]


async def test_a_broker_before_kafka_2_8_tells_none(
    kafka: KafkaCluster, topic_prefix: str, offsets: KafkaOffsets, monkeypatch: pytest.MonkeyPatch
) -> None:
    kafka.create_topics([topic_prefix + "one"])
    beyond = type("FarVersion", (asking.TopicsByName,), {"API_VERSION": MetadataRequest_v5.API_VERSION + 100})
    monkeypatch.setattr(asking.TopicIds, "_CLASSES", (beyond,))
    assert await offsets.topic_ids([topic_prefix + "one"]) == {}


async def test_the_first_question_about_a_topic_is_not_asked_in_vain(
    kafka: KafkaCluster, topic_prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A question in vain costs a pause of 100 ms, for each topic, at each start of a worker."""
    unknown: list[StaleMetadata] = []
    ask = Fetcher._proc_offset_requests

    async def noted(self: Fetcher, timestamps: Any) -> Any:
        try:
            return await ask(self, timestamps)
        except StaleMetadata as error:
            unknown.append(error)
            raise

    monkeypatch.setattr(Fetcher, "_proc_offset_requests", noted)
    topics = [topic_prefix + "one", topic_prefix + "two"]
    kafka.create_topics(topics)
    offsets = KafkaOffsets(KafkaAccess((kafka.bootstrap,)))
    try:
        for topic in topics:
            assert await offsets.bounds([TP(topic, 0)]) == {TP(topic, 0): (0, 0)}
    finally:
        await offsets.close()
    assert unknown == []


@pytest.fixture(params=["kafka", "mock_broker"])
def broker(request: pytest.FixtureRequest) -> Any:
    return request.getfixturevalue(request.param)


async def test_what_was_committed_is_told_by_topic_and_partition(broker: Any, topic_prefix: str) -> None:
    topic, other, group = f"{topic_prefix}a", f"{topic_prefix}b", f"{topic_prefix}group"
    broker.create_topics([topic, other], 4)
    access = KafkaAccess((broker.bootstrap,))
    producer, asked = Producer(access), GroupOffsets(access, group, [topic], fresh=0.0)
    try:
        sent = [(name, None, b"x", ()) for name in (topic, topic, topic, other)]
        await producer.send(sent, [1, 1, 1, 0])
        assert await asked.committed() == {}
        consumer = AIOKafkaConsumer(bootstrap_servers=broker.bootstrap, group_id=group, enable_auto_commit=False)
        await consumer.start()
        try:
            consumer.assign([TopicPartition(topic, 1), TopicPartition(topic, 0), TopicPartition(other, 0)])
            await consumer.commit({TopicPartition(topic, 1): 3, TopicPartition(other, 0): 1})
        finally:
            await consumer.stop()
        assert await asked.committed() == {(topic, 1): 3}
    finally:
        await asked.close()
        await producer.close()


async def test_a_broker_that_is_away_is_said_and_asked_again() -> None:
    asked = GroupOffsets(KafkaAccess(("127.0.0.1:1",)), "group", ["t"])
    for _ in range(2):
        with pytest.raises(Unavailable):
            await asked.committed()
    await asked.close()
