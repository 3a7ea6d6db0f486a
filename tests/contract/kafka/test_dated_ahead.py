"""A record dated ahead decides nothing: neither by a stranger's hand nor by a wrong clock is a judge or a gate out of
reach for who writes after it. Brokers stamp these topics; where one keeps its producers' times, the reader's clock
decides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType

from evalcore.canaries.suspensions import Suspensions
from evalcore.gates.skips import SkippedGate
from rampgate.local.services.kafka import KafkaCluster
from rampgate.local.services.topics import with_admin
from rampgate.overrides import Quarter, read, read_skips, report
from rampgate.settings import Settings
from schemas.publish.examples import EXAMPLES
from schemas.settings import KafkaAccess
from streams.gates.judge_standing import JudgeStandings
from streams.kafka.topics import wait_for_topics
from streams.retry import WallClock

STAMPED = ("gate-overrides", "judge-standing", "evaluations")
KEPT = {"message.timestamp.type": "CreateTime", "message.timestamp.after.max.ms": str(2**62)}
"""As an older installation's topics are, on brokers that let a producer date its records as it likes."""
NOW = datetime.now(UTC)
BY = [pytest.param(None, id="stamped by the broker"), pytest.param(KEPT, id="times of producers")]


def standing(verdict: str, at: datetime | str, judge: str = "tone", day: int = 1) -> dict[str, Any]:
    told = at if isinstance(at, str) else at.isoformat()
    about = {"event_id": f"{judge}-{verdict}-{told}", "judge_id": judge, "judge_version": "v1", "model": "m"}
    return {**about, "reason": "canaries", "verdict": verdict, "message": "moved", "at": told}


async def appended(kafka: KafkaCluster, topic: str, records: Sequence[Mapping[str, Any]]) -> None:
    """Each with its own time as that of its record, as a producer with a wrong clock, or a stranger, has it."""
    producer = AIOKafkaProducer(bootstrap_servers=kafka.bootstrap)
    await producer.start()
    try:
        for one in records:
            at = datetime.fromisoformat(one["at"])
            await producer.send_and_wait(topic, orjson.dumps(one), timestamp_ms=round(at.timestamp() * 1_000))
    finally:
        await producer.stop()


async def known(kafka: KafkaCluster, topic: str) -> tuple[Mapping[str, str], Suspensions]:
    """Which judges are suspended, and all that is known of them."""
    reader = await JudgeStandings(KafkaAccess((kafka.bootstrap,)), topic, WallClock()).read_once()
    return {judge: why for judge in ("tone", "facts") if (why := reader.why(judge, "v1"))}, reader.known


@pytest.mark.parametrize("config", BY)
async def test_a_pass_dated_ahead_keeps_no_judge_from_being_suspended(
    kafka: KafkaCluster, topic_prefix: str, config: dict[str, str] | None
) -> None:
    topic = f"{topic_prefix}judge-standing"
    kafka.create_topics([topic], 1, config=config)
    ahead = [standing("passed", NOW + timedelta(days=400)), standing("passed", NOW + timedelta(hours=10))]
    await appended(kafka, topic, [*ahead, standing("suspended", NOW), standing("suspended", NOW, "facts")])
    suspended, _ = await known(kafka, topic)
    assert suspended.keys() == {"tone", "facts"}


async def test_a_clock_that_is_a_little_ahead_is_no_fault(kafka: KafkaCluster, topic_prefix: str) -> None:
    topic = f"{topic_prefix}judge-standing"
    kafka.create_topics([topic], 1)
    soon = datetime.now(UTC) + timedelta(seconds=30)
    await appended(kafka, topic, [standing("suspended", NOW), standing("passed", soon)])
    assert (await known(kafka, topic))[0] == {}


async def test_a_time_without_a_zone_is_no_time_and_its_record_is_passed_over_alone(
    kafka: KafkaCluster, topic_prefix: str
) -> None:
    topic = f"{topic_prefix}judge-standing"
    kafka.create_topics([topic], 1)
    naive, beyond = NOW.replace(tzinfo=None).isoformat(), "0001-01-01T00:00:00+23:00"
    records = [standing("passed", naive), standing("suspended", NOW - timedelta(hours=1))]
    await appended(kafka, topic, records)
    producer = AIOKafkaProducer(bootstrap_servers=kafka.bootstrap)
    await producer.start()
    await producer.send_and_wait(topic, orjson.dumps(standing("passed", beyond, "facts")))
    await producer.stop()
    suspended, found = await known(kafka, topic)
    assert suspended.keys() == {"tone"}
    assert found.passed_at() == {}


def override(at: datetime | str, version: str) -> dict[str, Any]:
    (example,) = EXAMPLES["gate-override"]
    told = at if isinstance(at, str) else at.isoformat()
    until = (NOW + timedelta(days=3)).date().isoformat()
    return {**example, "event_id": version, "agent_version": version, "milestone": "pre_ramp", "at": told} | {
        "expires": until
    }


@pytest.mark.parametrize("config", BY)
async def test_an_override_dated_ahead_skips_no_gate_and_hides_in_no_other_quarter(
    kafka: KafkaCluster, topic_prefix: str, config: dict[str, str] | None
) -> None:
    kafka.create_topics([f"{topic_prefix}gate-overrides"], 1, config=config)
    settings = Settings(kafka=kafka.bootstrap, topic_prefix=topic_prefix)
    made = [override(NOW, "now"), override(NOW + timedelta(days=400), "ahead")]
    await appended(kafka, f"{topic_prefix}gate-overrides", [*made, override(NOW.replace(tzinfo=None).isoformat(), "x")])
    skips, agent = await read_skips(settings), made[0]["agent_id"]
    held = [v for v in ("now", "ahead", "x") if skips.of(SkippedGate("pre_ramp", agent, v), NOW.date()) is not None]
    assert held == ["now"]
    quarter = Quarter.of(f"{NOW.year}-Q{(NOW.month + 2) // 3}")
    told = report(await read(settings, quarter), quarter)["overrides"]
    assert {one["agent_version"] for one in told} == {"now", "ahead", "x"}, "the audit shows who wrote it"


async def test_these_topics_are_stamped_by_the_broker_whoever_makes_them(
    kafka: KafkaCluster, topic_prefix: str
) -> None:
    """By a worker, and by the local stack."""
    ours, theirs = ([f"{topic_prefix}{who}-{name}" for name in (*STAMPED, "traces")] for who in ("a", "b"))
    await wait_for_topics(KafkaAccess((kafka.bootstrap,)), ours, 1)
    kafka.create_topics(theirs, 1)
    asked = [ConfigResource(ConfigResourceType.TOPIC, name, {"message.timestamp.type": ""}) for name in ours + theirs]
    answers = with_admin(kafka.bootstrap, lambda admin: admin.describe_configs(asked))
    found = {one[3]: one[4][0][1] for answer in answers for one in answer.resources}
    assert {name for name, kind in found.items() if kind == "LogAppendTime"} == {
        name for name in ours + theirs if not name.endswith("traces")
    }
