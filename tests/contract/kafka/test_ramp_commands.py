"""Ramp-down commands on a real Kafka: one for a breach, also where no one remembers that it was given (PC5 §5.7)."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace

import pytest

from agents.ports import Unavailable
from evalcore.gates.regression import Breach, Event, Response, Step
from rampgate.local.services.kafka import KafkaCluster
from schemas.settings import KafkaAccess
from streams.alerts import ramp_commands
from streams.alerts.ramp_commands import RampCommands
from streams.kafka import reading
from streams.kafka.client import Producer
from tests.fault.ledger.kafka_log import KafkaLog

HOUR = 3_600_000
BREACH = Breach(
    "rampgate-k1", "jailbreaking", None, "assistant", "v7", True, 0.5, 0.98, 40, "2026-11-21T03:00:00+00:00"
)


def response(key: str = BREACH.key) -> Response:
    return Response(replace(BREACH, key=key), Event.BREACH, (Step.RAMP_DOWN, Step.PAGE, Step.LOG))


@dataclass
class Rig:
    access: KafkaAccess
    producer: Producer
    topic: str
    asleep: bool = False

    async def ours(self) -> bool:
        return not self.asleep

    async def send(self, key: str = BREACH.key, since: int | None = None) -> None:
        """By a process that remembers nothing."""
        lately = round(time.time() * 1000) - HOUR
        await RampCommands(self.access, self.producer, self.topic).send(
            response(key), lately if since is None else since, self.ours
        )

    async def commands(self) -> list[tuple[bytes | None, dict[str, object]]]:
        """All there are."""
        found = KafkaLog(self.access.brokers[0], "", 2).records(self.topic)
        return [(record.key, json.loads(record.value or b"")) for record in found]


@pytest.fixture
async def rig(kafka: KafkaCluster, topic_prefix: str) -> AsyncIterator[Rig]:
    topic = f"{topic_prefix}ramp-commands"
    kafka.create_topics([topic], 2)
    access = KafkaAccess((kafka.bootstrap,))
    found = Rig(access, Producer(access), topic)
    yield found
    await found.producer.close()


async def test_pc5_5_7_a_breach_is_commanded_once_whoever_asks_and_however_often(rig: Rig) -> None:
    await rig.send()
    await rig.send()
    await rig.send("rampgate-k2")
    await rig.send("rampgate-k2")
    found = await rig.commands()
    assert [key for key, _ in found] == [b"assistant", b"assistant"]
    assert found[0][1] == {
        "command": "ramp_down", "to_percent": 0, "agent_id": "assistant", "agent_version": "v7",
        "judge_id": "jailbreaking", "score": 0.5, "floor": 0.98, "detected_at": BREACH.detected_at,
        "n": 40, "upper_bound": None, "users": 0, "sessions": 0,
    }  # fmt: skip


async def test_a_new_breach_after_the_end_of_the_last_one_is_commanded_again(rig: Rig) -> None:
    await rig.send()
    await rig.send(since=round(time.time() * 1000) + 1_000)
    assert len(await rig.commands()) == 2


async def test_where_the_topic_can_not_be_read_the_command_goes_out(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    async def denied(*_: object) -> dict[str, int]:
        raise Unavailable("not allowed to read")

    monkeypatch.setattr(reading, "partitions_of", denied)
    await rig.send()
    assert len(await rig.commands()) == 1


async def test_a_topic_that_is_not_read_to_its_end_in_time_holds_up_no_command(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def silent(*_: object) -> dict[str, int]:
        await asyncio.sleep(3600)
        return {}

    monkeypatch.setattr(reading, "partitions_of", silent)
    monkeypatch.setattr(ramp_commands, "READ_SECONDS", 0.1)
    await rig.send()
    assert len(await rig.commands()) == 1


async def test_a_worker_that_slept_since_it_read_the_topic_sends_nothing(rig: Rig) -> None:
    rig.asleep = True
    with pytest.raises(Unavailable):
        await rig.send()
    rig.asleep = False
    await rig.send()
    assert len(await rig.commands()) == 1
