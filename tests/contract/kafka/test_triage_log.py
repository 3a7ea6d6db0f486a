"""Triage items on a real Kafka: one for a breach, one change at a time, and nothing of them in Redis (PC5 §5.7)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import UTC, datetime

import pytest

from agents.keys import TRIAGE_LEASE
from agents.ports import Unavailable
from evalcore.gates.regression import Breach, Event, Response, Step
from evalcore.triage import overdue, reminder, taken
from rampgate.local.services.kafka import KafkaCluster
from schemas.checks.triage import TriageItem, TriageState
from schemas.settings import KafkaAccess
from streams.alerts import triage_log
from streams.alerts.triage_log import TriageLog
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
