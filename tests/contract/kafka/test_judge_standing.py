"""What checks found of judges, on a real Kafka: read whole and afresh by whoever asks, and kept in nothing else."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest
from aiokafka.errors import KafkaConnectionError

from agents.ports import Unavailable
from evalcore.canaries.suspensions import Suspensions
from rampgate.local.services.kafka import KafkaCluster
from schemas.checks.standing import CheckedFor, CheckVerdict, StandingRecord
from schemas.settings import KafkaAccess
from streams.gates.judge_standing import JudgeStandings, publish_standings, suspended_now
from streams.gates.verdict_log import VerdictLog
from streams.kafka.client import Producer
from tests.memory_ports import ManualClock, MemoryStore

VERSIONS = {"tone": "v1", "facts": "v1"}


def record(verdict: CheckVerdict, day: int = 1, judge: str = "tone") -> StandingRecord:
    return StandingRecord(
        event_id=f"{judge}-{day}", judge_id=judge, judge_version="v1", model="m", reason=CheckedFor.CANARIES,
        verdict=verdict, message="moved", at=datetime(2026, 11, day, tzinfo=UTC),
    )  # fmt: skip


@pytest.fixture
def access(kafka: KafkaCluster) -> KafkaAccess:
    return KafkaAccess((kafka.bootstrap,))


@pytest.fixture
def topic(kafka: KafkaCluster, topic_prefix: str) -> str:
    name = f"{topic_prefix}judge-standing"
    kafka.create_topics([name], 2)
    return name


@pytest.fixture
async def standings(access: KafkaAccess, topic: str) -> AsyncIterator[JudgeStandings]:
    seen: list[Suspensions] = []
    made = JudgeStandings(access, topic, ManualClock(), lambda: VERSIONS, seen.append)
    yield made
    assert seen, "what was read is told"
    await made.close()


async def test_a_suspension_and_its_end_are_known_to_who_reads_next(
    access: KafkaAccess, topic: str, standings: JudgeStandings
) -> None:
    assert standings.suspended is None, "before the first reading nobody is told that a judge is sound"
    await standings.read_on()
    assert standings.suspended == {}
    await publish_standings(access, topic, [record(CheckVerdict.SUSPENDED), record(CheckVerdict.PASSED, 1, "facts")])
    await standings.read_on()
    assert standings.suspended == {"tone": "by its check of canaries on 2026-11-01: moved"}
    await publish_standings(access, topic, [record(CheckVerdict.PASSED, 2)])
    await standings.read_on()
    assert standings.suspended == {}


async def test_what_is_no_record_is_passed_over(access: KafkaAccess, topic: str, standings: JudgeStandings) -> None:
    producer = Producer(access)
    await producer.send([(topic, b"k", b"no json", ()), (topic, b"k", b"{}", ()), (topic, b"k", None, ())])
    await producer.close()
    await publish_standings(access, topic, [record(CheckVerdict.SUSPENDED)])
    await standings.read_on()
    assert standings.suspended is not None
    assert standings.suspended.keys() == {"tone"}


async def test_a_command_reads_the_topic_once_and_refuses_to_know_nothing(access: KafkaAccess, topic: str) -> None:
    await publish_standings(access, topic, [record(CheckVerdict.SUSPENDED)])
    assert await suspended_now(access, topic, ManualClock(), VERSIONS) == {
        "tone": "by its check of canaries on 2026-11-01: moved"
    }
    with pytest.raises(Unavailable, match="no topic"):
        await suspended_now(access, f"{topic}-of-nobody", ManualClock(), VERSIONS)


async def test_while_kafka_can_not_be_read_nobody_is_told_that_a_judge_is_sound(
    access: KafkaAccess, topic: str, standings: JudgeStandings, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = VerdictLog(access, Producer(access), topic, ManualClock(), 1, MemoryStore(ManualClock()), standings)
    with pytest.raises(Unavailable, match="nobody knows yet"):
        await log.suspended("tone")
    await standings.read_on()
    assert await log.suspended("tone") == ""

    async def away(self: object, partitions: object) -> None:
        raise KafkaConnectionError

    monkeypatch.setattr("aiokafka.AIOKafkaConsumer.end_offsets", away)
    with pytest.raises(Unavailable):
        await standings.read_on()
    with pytest.raises(Unavailable, match="nobody knows yet"):
        await log.suspended("tone")
