"""What every ScoreEvents promises: the topic of judges' scores on a real Kafka, beside its twin (PC5 §9.4)."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass

import pytest

from agents.ports import Unavailable
from rampgate.local.services.kafka import KafkaCluster
from schemas.settings import KafkaAccess
from schemas.wire_forms import ScoreEvent
from streams.kafka.client import SCORES_AT_ONCE, JudgeScoresTopic, Producer
from tests.fault.ledger.kafka_log import KafkaLog
from tests.memory_ports import MemoryScoreEvents
from tests.unit.agents.live.live_rig import JUDGES, events

PARTITIONS = 2
TRACES = 2 * SCORES_AT_ONCE // len(JUDGES) + 1


@dataclass
class Rig:
    port: JudgeScoresTopic | MemoryScoreEvents
    kafka: KafkaCluster
    topic: str

    async def lying(self) -> dict[bytes, list[ScoreEvent]]:
        """All that a new reader finds, by key, in the order it lies there."""
        found: dict[bytes, list[ScoreEvent]] = {}
        if isinstance(self.port, MemoryScoreEvents):
            for event in self.port.events:
                found.setdefault((event["trace_id"] or "").encode(), []).append(event)
            return found
        for record in KafkaLog(self.kafka.bootstrap, "", PARTITIONS).records(self.topic):
            found.setdefault(record.key or b"", []).append(json.loads(record.value or b""))
        return found


@pytest.fixture(params=["kafka", "memory"])
async def rig(request: pytest.FixtureRequest, kafka: KafkaCluster, topic_prefix: str) -> AsyncIterator[Rig]:
    if request.param == "memory":
        yield Rig(MemoryScoreEvents(), kafka, "")
        return
    topic = topic_prefix + "judge-scores"
    kafka.create_topics([topic], PARTITIONS)
    producer = Producer(KafkaAccess((kafka.bootstrap,)))
    yield Rig(JudgeScoresTopic(producer, topic), kafka, topic)
    await producer.close()


async def test_pc5_9_4_what_was_put_is_there_for_a_new_reader_each_trace_in_order_under_its_id(rig: Rig) -> None:
    """More than are in flight at once."""
    await rig.port.put(events(TRACES))
    found = await rig.lying()
    assert len(found) == TRACES
    for key, lying in found.items():
        assert {event["trace_id"] for event in lying} == {key.decode()}
        assert [event["judge_id"] for event in lying] == [judge.id for judge in JUDGES]


async def test_what_is_put_again_lies_there_twice_under_the_ids_it_had(rig: Rig) -> None:
    await rig.port.put(events(3))
    await rig.port.put(events(3))
    ids = [event["event_id"] for lying in (await rig.lying()).values() for event in lying]
    assert len(ids) == 2 * len(set(ids)) == 6 * len(JUDGES)


async def test_nothing_to_put_is_done_at_once(rig: Rig) -> None:
    await rig.port.put(())
    assert await rig.lying() == {}


async def test_a_topic_that_takes_nothing_is_unavailable_and_never_half_done_in_silence() -> None:
    """No one listens at this address."""
    producer = Producer(KafkaAccess(("127.0.0.1:1",)))
    for port in (JudgeScoresTopic(producer, "judge-scores"), MemoryScoreEvents(down=True)):
        with pytest.raises(Unavailable):
            await port.put(events(1))


async def test_what_is_durable_is_told_and_what_is_not_is_not(kafka: KafkaCluster, topic_prefix: str) -> None:
    topic = topic_prefix + "judge-scores"
    kafka.create_topics([topic], PARTITIONS)
    told: list[ScoreEvent] = []
    for address, count in ((kafka.bootstrap, 2 * len(JUDGES)), ("127.0.0.1:1", 0)):
        told.clear()
        producer = Producer(KafkaAccess((address,)))
        with suppress(Unavailable):
            await JudgeScoresTopic(producer, topic, told.extend).put(events(2))
        await producer.close()
        assert len(told) == count
