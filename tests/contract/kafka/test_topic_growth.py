"""Partitions that are added to a topic in use are told of, once, with what it means; on a real Kafka."""

from __future__ import annotations

from aiokafka.admin import AIOKafkaAdminClient, NewPartitions
from structlog.testing import capture_logs

from rampgate.local.services.broker import MockBroker
from rampgate.local.services.kafka import KafkaCluster
from schemas.settings import KafkaAccess
from streams.kafka.offsets import KafkaOffsets
from streams.maintenance import TopicGrowth
from streams.metrics import Metrics


async def test_partitions_that_are_added_to_a_topic_are_told_once(kafka: KafkaCluster, topic_prefix: str) -> None:
    topics = [f"{topic_prefix}{name}" for name in ("thumbs", "verdicts")]
    kafka.create_topics(topics, 3)
    metrics, offsets = Metrics(), KafkaOffsets(KafkaAccess((kafka.bootstrap,)))
    growth = TopicGrowth(metrics)
    admin = AIOKafkaAdminClient(bootstrap_servers=kafka.bootstrap)
    await admin.start()
    try:
        with capture_logs() as before:
            await growth.look(topics, offsets)
            await growth.look(topics, offsets)
        await admin.create_partitions({topics[1]: NewPartitions(7)})
        with capture_logs() as after:
            while metrics.registry.get_sample_value("rampgate_topic_partitions", {"topic": topics[1]}) != 7:
                await growth.look(topics, offsets)
            await growth.look(topics, offsets)
    finally:
        await admin.close()
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
