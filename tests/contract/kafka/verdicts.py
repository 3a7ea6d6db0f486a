"""Verdicts of steps that fire no gate, and topics that are made again."""

from __future__ import annotations

import asyncio

from evalcore.gates.requests import RampRequest, read
from evalcore.gates.verdict import Moment, of_gates
from rampgate.local.services.kafka import KafkaCluster
from rampgate.local.services.topics import with_admin
from schemas.settings import KafkaAccess
from schemas.verdicts import Verdict
from streams.kafka.offsets import KafkaOffsets
from tests.unit.streams.gates.gate_world import request

MOMENT = Moment("2026-11-21T12:00:01Z", 0.1)


def asked(request_id: str, **changes: str | int) -> RampRequest:
    found = read(request(request_id, **changes))
    assert isinstance(found, RampRequest)
    return found


def verdict(request_id: str, **changes: str) -> Verdict:
    return of_gates(asked(request_id, **changes), [], MOMENT)


async def made_again(kafka: KafkaCluster, topic: str, partitions: int) -> None:
    """Deletes the topic and makes it again, as fast as Kafka does it."""
    offsets = KafkaOffsets(KafkaAccess((kafka.bootstrap,)))
    try:
        before = await offsets.topic_ids([topic])
        with_admin(kafka.bootstrap, lambda admin: admin.delete_topics([topic]))
        async with asyncio.timeout(60):
            while (await offsets.topic_ids([topic])).get(topic, before[topic]) == before[topic]:
                kafka.create_topics([topic], partitions)
    finally:
        await offsets.close()
