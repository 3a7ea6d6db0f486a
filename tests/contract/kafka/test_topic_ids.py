"""Topic ids: each topic has one, and one that was made again has another; a broker without ids is no error."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from aiokafka.protocol.metadata import MetadataRequest_v5

from rampgate.local.services.kafka import KafkaCluster
from rampgate.local.services.topics import with_admin
from schemas.settings import KafkaAccess
from streams.kafka import offsets as asking
from streams.kafka.offsets import KafkaOffsets


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
