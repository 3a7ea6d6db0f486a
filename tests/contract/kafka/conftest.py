"""The verdicts' topic, and workers' logs of it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import pytest

from rampgate.local.services.kafka import KafkaCluster
from schemas.settings import KafkaAccess
from streams.gates.verdict_log import VerdictLog
from streams.kafka.client import Producer
from tests.memory_ports import ManualClock, MemoryStore

PARTITIONS = 3


@pytest.fixture
async def topic(kafka: KafkaCluster, topic_prefix: str) -> str:
    name = f"{topic_prefix}verdicts"
    kafka.create_topics([name], PARTITIONS)
    return name


@pytest.fixture
async def log_of(kafka: KafkaCluster, topic: str) -> AsyncIterator[Callable[[], VerdictLog]]:
    """Workers' logs without leases in common, as if Redis were emptied all the time."""
    access = KafkaAccess((kafka.bootstrap,))
    producer = Producer(access)
    made: list[VerdictLog] = []

    def make() -> VerdictLog:
        made.append(VerdictLog(access, producer, topic, MemoryStore(ManualClock())))
        return made[-1]

    yield make
    for log in made:
        await log.close()
    await producer.close()
