"""What checks found of judges, on a real Kafka: read whole and afresh by whoever asks, and kept in nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import pytest
from aiokafka.errors import KafkaConnectionError

from agents.ports import Unavailable
from evalcore.canaries.suspensions import Suspensions
from rampgate.local.services.kafka import KafkaCluster
from schemas.checks.standing import CheckedFor, CheckVerdict, StandingRecord
from schemas.settings import KafkaAccess
from streams.gates.judge_standing import JudgeStandings, publish_standings
from streams.gates.verdict_log import VerdictLog
from streams.kafka.client import Producer
from tests.contract.kafka.verdicts import made_again
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
    made = JudgeStandings(access, topic, ManualClock(), seen.append)
    yield made
    assert seen, "what was read is told"
    await made.close()


def suspended(standings: JudgeStandings) -> dict[str, str]:
    """Why judges that serve are suspended, by id."""
    return {judge: why for judge, version in VERSIONS.items() if (why := standings.why(judge, version))}


async def test_a_suspension_and_its_end_are_known_to_who_reads_next(
    access: KafkaAccess, topic: str, standings: JudgeStandings
) -> None:
    assert not standings.readable, "before the first reading no judge is called sound"
    await standings.read_on()
    assert suspended(standings) == {}
    await publish_standings(access, topic, [record(CheckVerdict.SUSPENDED), record(CheckVerdict.PASSED, 1, "facts")])
    await standings.read_on()
    assert suspended(standings) == {"tone": "by its check of canaries on 2026-11-01: moved"}
    await publish_standings(access, topic, [record(CheckVerdict.PASSED, 2)])
    await standings.read_on()
    assert suspended(standings) == {}


async def test_what_is_no_record_is_passed_over(access: KafkaAccess, topic: str, standings: JudgeStandings) -> None:
    producer = Producer(access)
    await producer.send([(topic, b"k", b"no json", ()), (topic, b"k", b"{}", ()), (topic, b"k", None, ())])
    await producer.close()
    await publish_standings(access, topic, [record(CheckVerdict.SUSPENDED)])
    await standings.read_on()
    assert suspended(standings).keys() == {"tone"}


async def test_a_command_reads_the_topic_once_and_refuses_to_know_nothing(access: KafkaAccess, topic: str) -> None:
    await publish_standings(access, topic, [record(CheckVerdict.SUSPENDED)])
    read = await JudgeStandings(access, topic, ManualClock()).read_once()
    assert suspended(read) == {"tone": "by its check of canaries on 2026-11-01: moved"}
    with pytest.raises(Unavailable, match="no topic"):
        await JudgeStandings(access, f"{topic}-of-nobody", ManualClock()).read_once()


async def test_while_kafka_can_not_be_read_nobody_is_told_that_a_judge_is_sound(
    access: KafkaAccess, topic: str, standings: JudgeStandings, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = VerdictLog(access, Producer(access), topic, MemoryStore(ManualClock()), standings)
    with pytest.raises(Unavailable, match="no one knows yet"):
        await log.suspended("tone", "v1")
    await standings.read_on()
    assert await log.suspended("tone", "v1") == ""

    async def away(self: object, partitions: object) -> None:
        raise KafkaConnectionError

    monkeypatch.setattr("aiokafka.AIOKafkaConsumer.end_offsets", away)
    with pytest.raises(Unavailable):
        await standings.read_on()
    with pytest.raises(Unavailable, match="no one knows yet"):
        await log.suspended("tone", "v1")


async def test_a_judge_is_asked_about_by_the_version_that_scored_whichever_serves_by_now(
    access: KafkaAccess, topic: str, standings: JudgeStandings
) -> None:
    """Between a judge's last answer and the verdict the registry may be reloaded: a version that scored while suspended
    decides nothing all the same, nor is one that passed suspended for the next one."""
    log = VerdictLog(access, Producer(access), topic, MemoryStore(ManualClock()), standings)
    old = record(CheckVerdict.SUSPENDED).model_copy(update={"judge_version": "v0", "event_id": "old"})
    await publish_standings(access, topic, [old, record(CheckVerdict.PASSED, 2)])
    await standings.read_on()
    assert suspended(standings) == {}, "what serves passed"
    assert "moved" in await log.suspended("tone", "v0")
    assert await log.suspended("tone", "v1") == ""
    assert "changed since its check" in await log.suspended("tone", "v2")


async def test_a_topic_made_again_and_grown_past_its_old_end_is_read_from_its_start(
    kafka: KafkaCluster, access: KafkaAccess, topic: str, standings: JudgeStandings
) -> None:
    """Between two looks. Read on from the old end, a suspension among the first records would not be known."""
    await publish_standings(access, topic, [record(CheckVerdict.PASSED, 1, "facts"), record(CheckVerdict.PASSED)])
    await standings.read_on()
    await made_again(kafka, topic, 2)
    passed = [record(CheckVerdict.PASSED, day, judge) for day in (3, 4) for judge in ("facts", "other")]
    await publish_standings(access, topic, [record(CheckVerdict.SUSPENDED, 2), *passed, *passed])
    assert "moved" in await until_known(standings)


async def test_a_topic_made_again_while_it_is_read_is_read_again_from_its_start(
    kafka: KafkaCluster, access: KafkaAccess, topic: str, standings: JudgeStandings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its end is asked for, then it is made again, then it is read."""
    await publish_standings(access, topic, [record(CheckVerdict.PASSED), record(CheckVerdict.PASSED, 1, "facts")])
    await standings.read_on()
    more = [record(CheckVerdict.PASSED, day, judge) for day in (3, 4) for judge in ("facts", "tones")]
    await publish_standings(access, topic, more)
    ask, asked = standings._asked_id, list[str]()

    async def first_of_the_old_one(consumer: Any) -> str:
        asked.append(await ask(consumer))
        if len(asked) == 1:
            await made_again(kafka, topic, 2)
            await publish_standings(access, topic, [record(CheckVerdict.SUSPENDED, 2), *more, *more])
        return asked[0] if len(asked) == 1 else asked[-1]

    monkeypatch.setattr(standings, "_asked_id", first_of_the_old_one)
    assert "moved" in await until_known(standings)


async def until_known(standings: JudgeStandings) -> str:
    """Why `tone` is suspended, as soon as a look at the topic ends well: the first says whether it is read right."""
    async with asyncio.timeout(60):
        while True:
            with suppress(Unavailable):
                await standings.read_on()
                return standings.why("tone", "v1")
            await asyncio.sleep(0.05)
