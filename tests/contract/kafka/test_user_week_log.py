"""Weeks of users on a real Kafka (PF-9 FR-10): a compacted topic that a worker makes, and that has all there is to
know of them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType

from agents.ports import Unavailable
from evalcore.inversion.users import Week
from rampgate.local.services.kafka import KafkaCluster
from rampgate.local.services.topics import with_admin
from schemas.checks.user_week import JudgeWeek, UserWeek
from schemas.settings import KafkaAccess
from streams.alerts.user_weeks import UserWeekLog
from streams.kafka.client import Producer

TONE = JudgeWeek(judge_id="tone", vertical="receipts", n=60, effective_n=60.0, weeks_in_a_row=2)
RESULT = UserWeek(week="2026-W45", at=datetime(2026, 11, 16, tzinfo=UTC), judges=(TONE,))
TOLD = RESULT.model_copy(update={"told": "Slack"})


@pytest.fixture
async def producer(kafka: KafkaCluster) -> AsyncIterator[Producer]:
    made = Producer(KafkaAccess((kafka.bootstrap,)))
    yield made
    await made.close()


async def test_a_worker_makes_the_topic_which_keeps_the_last_record_of_each_key(
    kafka: KafkaCluster, producer: Producer, topic_prefix: str
) -> None:
    topic = f"{topic_prefix}user-weeks"
    weeks = UserWeekLog(KafkaAccess((kafka.bootstrap,)), producer, topic)
    with pytest.raises(Unavailable, match="no topic"):
        await weeks.weeks()
    await weeks.ready()
    assert await weeks.weeks() == {}
    asked = [ConfigResource(ConfigResourceType.TOPIC, topic, {"cleanup.policy": ""})]
    (answer,) = with_admin(kafka.bootstrap, lambda admin: admin.describe_configs(asked))
    assert [entry[1] for resource in answer.resources for entry in resource[4]] == ["compact"]


async def test_what_was_told_counts_whatever_comes_after_it_and_what_is_no_week_is_passed_over(
    kafka: KafkaCluster, producer: Producer, topic_prefix: str
) -> None:
    topic = f"{topic_prefix}user-weeks"
    weeks = UserWeekLog(KafkaAccess((kafka.bootstrap,)), producer, topic)
    await weeks.ready()
    no_such_week = RESULT.model_copy(update={"week": "2026-W99"})
    poison = [b"no json", b"{}", b"[]", no_such_week.model_dump_json().encode(), None]
    await producer.send([(topic, b"k", value, ()) for value in poison])
    before = RESULT.model_copy(update={"week": "2026-W44"})
    for record in (before, RESULT, TOLD, RESULT):
        await weeks.write(record)
    assert await weeks.weeks() == {Week(2026, 44): before, Week(2026, 45): TOLD}
