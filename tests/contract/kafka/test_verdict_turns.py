"""How long a turn to publish verdicts outlives its worker: seconds where brokers fence, else longer than a turn."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from aiokafka.protocol.metadata import MetadataRequest_v5

from evalcore.gates.requests import RampRequest, read
from evalcore.gates.verdict import Moment, of_gates
from rampgate.local.services.kafka import KafkaCluster
from schemas.settings import KafkaAccess
from schemas.verdicts import Verdict
from streams.gates.verdict_log import TURN_SECONDS, VerdictLog
from streams.kafka import offsets as asking
from streams.kafka.client import PRODUCE_SECONDS, FencedProducer, Producer
from tests.memory_ports import ManualClock, MemoryLease, MemoryStore
from tests.waiting import come

A_CRASH_MAY_COST = 4_000
"""Milliseconds of the lease; Kafka's session timeout runs beside it."""


def verdict() -> Verdict:
    asked = {"request_id": "r1", "experiment_id": "e", "agent_id": "a", "agent_version": "v", "from_percent": 5}
    request = read(json.dumps({**asked, "to_percent": 25, "requested_at": "2026-11-21T12:00:00Z"}).encode())
    assert isinstance(request, RampRequest)
    return of_gates(request, [], Moment("2026-11-21T12:00:01Z", 0.1))


class Leases(MemoryStore):
    """Leases whose durations are known, and how often they were renewed."""

    def __init__(self) -> None:
        super().__init__(ManualClock())
        self.durations: list[int] = []
        self.renewals = 0

    def lease(self, key: str, milliseconds: int, owner: str = "") -> MemoryLease:
        self.durations.append(milliseconds)
        lease: Any = super().lease(key, milliseconds, owner)
        renew = lease.renew

        async def counted() -> bool:
            self.renewals += 1
            return bool(await renew())

        lease.renew = counted
        return lease  # type: ignore[no-any-return] # a lease with another method


@pytest.fixture
async def log_at() -> AsyncIterator[Callable[[str, str], tuple[VerdictLog, Leases]]]:
    logs: list[VerdictLog] = []
    producers: list[Producer] = []

    def make(bootstrap: str, topic: str) -> tuple[VerdictLog, Leases]:
        access, leases = KafkaAccess((bootstrap,)), Leases()
        producers.append(Producer(access))
        logs.append(VerdictLog(access, producers[-1], topic, leases))  # type: ignore[arg-type] # the twin's keys are plain text
        return logs[-1], leases

    yield make
    for log in logs:
        await log.close()
    for producer in producers:
        await producer.close()


async def test_a_turn_that_brokers_fence_outlives_its_worker_by_seconds_and_lasts_as_long_as_it_takes(
    log_at: Callable[[str, str], tuple[VerdictLog, Leases]],
    kafka: KafkaCluster,
    topic_prefix: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    topic = f"{topic_prefix}verdicts"
    kafka.create_topics([topic], 2)
    log, leases = log_at(kafka.bootstrap, topic)
    send = FencedProducer.send

    async def slow(self: FencedProducer, *record: Any) -> None:
        await asyncio.sleep(2.5)
        await send(self, *record)

    monkeypatch.setattr(FencedProducer, "send", slow)
    await log.start()
    assert await log.publish(verdict(), "body", "t/0/1", "e") is not None
    assert max(leases.durations) <= A_CRASH_MAY_COST
    assert leases.renewals >= 2
    await come(lambda: not leases.values)  # it is given back at once
    renewals = leases.renewals
    await asyncio.sleep(1.5)
    assert leases.renewals == renewals, "and renewed no more"


async def test_a_turn_that_no_broker_fences_outlives_every_record_that_may_be_on_its_way(
    log_at: Callable[[str, str], tuple[VerdictLog, Leases]],
    kafka: KafkaCluster,
    topic_prefix: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Before Kafka 2.8. The lease is the only guard there: a worker that sleeps in its turn must be out of it before
    another one's begins."""
    beyond = type("FarVersion", (asking.TopicsByName,), {"API_VERSION": MetadataRequest_v5.API_VERSION + 100})
    monkeypatch.setattr(asking.TopicIds, "_CLASSES", (beyond,))
    topic = f"{topic_prefix}verdicts"
    kafka.create_topics([topic], 2)
    log, leases = log_at(kafka.bootstrap, topic)
    await log.start()
    assert await log.publish(verdict(), "body", "t/0/1", "e") is not None
    assert min(leases.durations) > 1_000 * max(TURN_SECONDS, PRODUCE_SECONDS)
