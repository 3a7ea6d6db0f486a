"""Compacted topics on a real Kafka that have all there is to know of triage items (PC5 §5.7) and of users' weeks (PF-9
FR-10): one item for a breach, one change at a time, nothing of them in Redis."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import UTC, datetime

import pytest
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType

from agents.keys import TRIAGE_LEASE
from agents.ports import Unavailable
from evalcore.gates.regression import Breach, Event, Response, Step
from evalcore.inversion.users import Week
from evalcore.triage import overdue, reminder, taken
from rampgate.local.services.kafka import KafkaCluster
from rampgate.local.services.topics import with_admin
from schemas.checks.triage import TriageItem, TriageState
from schemas.checks.user_week import JudgeWeek, UserWeek
from schemas.settings import KafkaAccess
from streams.alerts import triage_log
from streams.alerts.triage_log import TriageLog
from streams.alerts.user_weeks import UserWeekLog
from streams.kafka.client import Producer
from tests.memory_ports import ManualClock, MemoryStore

BREACH = Breach("rampgate-k1", "ux_quality", None, "assistant", "v7", False, 3.0, 3.5, 40, "2026-11-21T03:00:00+00:00")
RESPONSE = Response(BREACH, Event.BREACH, (Step.MESSAGE, Step.ANNOTATION, Step.TRIAGE, Step.LOG))


@dataclass
class Rig:
    access: KafkaAccess
    producer: Producer
    topic: str
    store: MemoryStore = field(default_factory=lambda: MemoryStore(ManualClock()))

    def log(self) -> TriageLog:
        """By a process that remembers nothing."""
        return TriageLog(self.access, self.producer, self.topic, self.store)

    async def only(self) -> TriageItem:
        (item,) = (await self.log().items()).values()
        return item


@pytest.fixture
async def rig(kafka: KafkaCluster, topic_prefix: str) -> AsyncIterator[Rig]:
    topic = f"{topic_prefix}triage"
    kafka.create_topics([topic], 2, config={"cleanup.policy": "compact"})
    access = KafkaAccess((kafka.bootstrap,))
    found = Rig(access, Producer(access), topic)
    yield found
    await found.producer.close()


async def test_pc5_5_7_a_breach_opens_one_item_whoever_asks_and_also_after_redis_was_emptied(rig: Rig) -> None:
    await rig.log().open(RESPONSE, 0)
    rig.store.flush()
    await rig.log().open(RESPONSE, 0)
    item = await rig.only()
    assert (item.judge_id, item.state) == ("ux_quality", TriageState.OPEN)
    async with rig.log().alone() as items:
        await rig.log().write(taken(items[item.item_id], "dana", "dana", "", datetime.now(UTC)))
    rig.store.flush()
    assert (await rig.only()).owner == "dana"


async def test_two_who_take_an_item_at_once_do_not_both_have_it(rig: Rig) -> None:
    await rig.log().open(RESPONSE, 0)
    name = (await rig.only()).item_id

    async def take(owner: str) -> bool:
        async with rig.log().alone() as items:
            if items[name].owner is not None:
                return False
            await rig.log().write(taken(items[name], owner, owner, "", datetime.now(UTC)))
            return True

    assert sorted(await asyncio.gather(*map(take, ("dana", "kim", "lee")))) == [False, False, True]
    assert len((await rig.only()).history) == 2


async def test_who_finds_the_items_in_use_for_long_is_told_so(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(triage_log, "WAIT_SECONDS", 0.3)
    await rig.store.lease(TRIAGE_LEASE.key(), 60_000).acquire()
    with pytest.raises(Unavailable, match="somebody else"):
        await rig.log().open(RESPONSE, 0)


async def test_what_is_no_item_is_passed_over_and_a_missing_topic_is_said(rig: Rig) -> None:
    await rig.producer.send(
        [(rig.topic, b"k", b"no json", ()), (rig.topic, b"k", b"{}", ()), (rig.topic, b"k", None, ())]
    )
    assert await rig.log().items() == {}
    with pytest.raises(Unavailable, match="no topic"):
        await TriageLog(rig.access, rig.producer, f"{rig.topic}-of-nobody", rig.store).items()


async def test_an_item_with_a_time_that_can_not_be_compared_is_passed_over_alone(rig: Rig) -> None:
    """One such record ended `triage list` and every reminder."""
    await rig.log().open(RESPONSE, 0)
    fine = (await rig.only()).model_dump(mode="json")
    no_zone = {"due": "2026-01-01T00:00:00", "opened": "2026-01-01T00:00:00"}
    beyond = {"due": "0001-01-01T00:00:00+23:00"}
    for number, bad in enumerate((no_zone, beyond, {"history": []}, {"n": 2**70})):
        value = json.dumps({**fine, **bad, "item_id": f"bad-{number}"}).encode()
        await rig.producer.send([(rig.topic, b"k", value, ())])
    found = await rig.log().items()
    assert [one.item_id for one in overdue(found.values(), datetime(2100, 1, 1, tzinfo=UTC))] == [fine["item_id"]]
    assert [reminder(one) for one in found.values()]


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
