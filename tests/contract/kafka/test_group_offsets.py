"""What a group has committed, asked from outside of it, on a real Kafka and on the demo's broker."""

from __future__ import annotations

from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition

from agents.ports import Unavailable
from schemas.settings import KafkaAccess
from streams.kafka.client import Producer
from streams.kafka.offsets import GroupOffsets


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
