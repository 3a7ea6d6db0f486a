"""One verdict a request, wherever a process sleeps and wakes, on a real Kafka and without any help of Redis. How long a
turn to publish verdicts outlives its worker: seconds where brokers fence, else longer than a turn."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import NewPartitions
from aiokafka.protocol.metadata import MetadataRequest_v5
from faust.types import TP
from structlog.testing import capture_logs

from agents.ports import Unavailable
from rampgate.local.services.kafka import KafkaCluster
from rampgate.local.services.topics import with_admin
from schemas.settings import KafkaAccess
from schemas.verdicts import Verdict
from streams.gates.verdict_log import TURN_SECONDS, VerdictLog
from streams.kafka import offsets as asking
from streams.kafka.client import PRODUCE_SECONDS, FencedProducer, Producer
from streams.kafka.offsets import KafkaOffsets
from streams.retry import Retry
from tests.contract.kafka.verdicts import made_again, verdict
from tests.memory_ports import ManualClock, MemoryLease, MemoryStore
from tests.waiting import come

PARTITIONS = 3
KEYS = [f"k{number}".encode() for number in range(24)]
"""Enough for each partition to have some."""


@pytest.fixture
async def producer_of(kafka: KafkaCluster, topic: str) -> AsyncIterator[Callable[[], FencedProducer]]:
    made: list[FencedProducer] = []

    def make() -> FencedProducer:
        made.append(FencedProducer(KafkaAccess((kafka.bootstrap,)), topic, topic, 1_000_000))
        return made[-1]

    yield make
    for each in made:
        await each.drop()


async def on(kafka: KafkaCluster, topic: str, isolation: str = "read_uncommitted") -> list[bytes]:
    """All that a plain consumer reads."""
    consumer = AIOKafkaConsumer(bootstrap_servers=kafka.bootstrap, isolation_level=isolation)
    await consumer.start()
    try:
        partitions = [TopicPartition(topic, number) for number in await consumer._client._wait_on_metadata(topic)]
        consumer.assign(partitions)
        await consumer.seek_to_beginning(*partitions)
        ends = await consumer.end_offsets(partitions)
        found: list[bytes] = []
        while any([await consumer.position(partition) < end for partition, end in ends.items()]):
            for records in (await consumer.getmany(timeout_ms=200)).values():
                found += [record.value for record in records]
        return found
    finally:
        await consumer.stop()


async def ids_on(kafka: KafkaCluster, topic: str) -> Counter[str]:
    return Counter(json.loads(value)["request_id"] for value in await on(kafka, topic))


async def published(log: VerdictLog, verdicts: Sequence[Verdict]) -> list[Verdict | None]:
    """As a worker publishes them: again after every failure."""

    async def one(verdict: Verdict) -> Verdict | None:
        return await Retry(first=0.05).call(
            lambda: log.publish(verdict, "body", "t/0/1", verdict.experiment_id), Unavailable
        )

    return await asyncio.gather(*map(one, verdicts))


async def test_who_was_shut_out_can_write_to_no_partition(
    producer_of: Callable[[], FencedProducer], kafka: KafkaCluster, topic: str
) -> None:
    first, second = producer_of(), producer_of()
    await first.take(PARTITIONS)
    for key in KEYS:
        await first.send(key, b"first", [])
    await second.take(PARTITIONS)
    refused = 0
    for key in KEYS:
        zombie = first._producer
        with pytest.raises(Unavailable):
            await first.send(key, b"zombie", [])
        refused += 1
        first._producer = zombie  # it sleeps with another record in its hands
    await second.send(b"k", b"second", [])
    assert refused == len(KEYS)
    assert Counter(await on(kafka, topic)) == Counter({b"first": len(KEYS), b"second": 1})
    assert Counter(await on(kafka, topic, "read_committed")) == Counter({b"first": len(KEYS), b"second": 1})


async def test_of_many_who_take_it_at_once_the_last_one_can_write_and_the_others_are_refused(
    producer_of: Callable[[], FencedProducer], kafka: KafkaCluster, topic: str
) -> None:
    every = [producer_of() for _ in range(4)]
    taken = await asyncio.gather(*(each.take(PARTITIONS) for each in every), return_exceptions=True)
    holders = [each for each, error in zip(every, taken, strict=True) if error is None]
    assert holders, taken
    await every[0].take(PARTITIONS)
    for each in holders:
        if each is not every[0]:
            with pytest.raises(Unavailable):
                await each.send(b"k", b"zombie", [])
    await every[0].send(b"k", b"last", [])
    assert await on(kafka, topic) == [b"last"]


async def test_a_first_worker_leaves_nothing_but_its_records_on_the_topic(
    producer_of: Callable[[], FencedProducer], kafka: KafkaCluster, topic: str
) -> None:
    """Readers that take the topic's end for the number of records are right until somebody takes over."""
    only = producer_of()
    await only.take(PARTITIONS)
    for key in KEYS:
        await only.send(key, b"x", [])
    offsets = KafkaOffsets(KafkaAccess((kafka.bootstrap,)))
    try:
        assert sum((await offsets.ends(TP(topic, number) for number in range(PARTITIONS))).values()) == len(KEYS)
    finally:
        await offsets.close()


async def test_a_worker_that_sleeps_between_its_look_and_its_produce_doubles_nothing(
    log_of: Callable[[], VerdictLog], kafka: KafkaCluster, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lease has long ended meanwhile, or Redis was emptied, and another worker has published."""
    sleeper, other = log_of(), log_of()
    await sleeper.start()
    await other.start()
    await published(sleeper, [verdict("before")])
    send, asleep, awake = FencedProducer.send, asyncio.Event(), asyncio.Event()

    async def slow(self: FencedProducer, *record: Any) -> None:
        if self is sleeper._fenced:
            asleep.set()
            await awake.wait()
        await send(self, *record)

    monkeypatch.setattr(FencedProducer, "send", slow)
    several = [verdict(f"r{number}", experiment_id=f"e{number}") for number in range(12)]
    sleeping = asyncio.create_task(published(sleeper, several))
    await asleep.wait()
    assert None not in await published(other, several)
    awake.set()
    assert await sleeping == [None] * 12
    assert await ids_on(kafka, topic) == Counter(["before", *(one.request_id for one in several)])


async def test_workers_that_all_publish_the_same_without_taking_turns_publish_it_once(
    log_of: Callable[[], VerdictLog], kafka: KafkaCluster, topic: str
) -> None:
    logs = [log_of() for _ in range(3)]
    for log in logs:
        await log.start()
    several = [verdict(f"r{number}", experiment_id=f"e{number % 5}") for number in range(30)]
    results = await asyncio.gather(*(published(log, several) for log in logs))
    assert max(sum(result is not None for result in of_one) for of_one in zip(*results, strict=True)) == 1
    assert await ids_on(kafka, topic) == Counter(one.request_id for one in several)


async def test_partitions_that_are_added_to_the_topic_double_nothing(
    log_of: Callable[[], VerdictLog], kafka: KafkaCluster, topic: str
) -> None:
    """Neither of what was answered before, by whoever, nor of what a worker answers that took the topic later, on
    partitions that the others have not heard of."""
    first, second = log_of(), log_of()
    await first.start()
    await second.start()
    before = [verdict(f"before-{number}", experiment_id=f"e{number}") for number in range(40)]
    await published(first, before)
    with_admin(kafka.bootstrap, lambda admin: admin.create_partitions({topic: NewPartitions(PARTITIONS * 3)}))
    late = log_of()
    await late.start()
    after = [verdict(f"after-{number}", experiment_id=f"e{number}") for number in range(40)]
    assert None not in await published(late, after)
    for log in (first, second, late):
        assert await published(log, [*before, *after]) == [None] * 80
    assert await ids_on(kafka, topic) == Counter(one.request_id for one in [*before, *after])
    offsets = KafkaOffsets(KafkaAccess((kafka.bootstrap,)))
    try:
        ends = await offsets.ends(TP(topic, number) for number in range(PARTITIONS, PARTITIONS * 3))
    finally:
        await offsets.close()
    assert any(end > 1 for end in ends.values()), "the later worker's verdicts are on added partitions"


async def test_a_verdicts_topic_that_is_made_again_while_workers_run_is_told_and_doubles_nothing(
    log_of: Callable[[], VerdictLog], kafka: KafkaCluster, topic: str
) -> None:
    """The new one has grown past the offsets that a worker has read of the old one. What was answered on either is not
    answered again."""
    first, second = log_of(), log_of()
    await first.start()
    await second.start()
    early = [verdict(f"early {number}", experiment_id=f"e{number}") for number in range(6)]
    late = [verdict(f"late {number}", experiment_id=f"e{number}") for number in range(24)]
    await published(first, early)
    await second.caught_up()
    await made_again(kafka, topic, PARTITIONS)
    with capture_logs() as told:
        assert None not in await published(second, late)
        assert await published(first, [*late, *early]) == [None] * 30
        assert await published(second, early) == [None] * 6
    assert [entry["event"] for entry in told].count("verdicts_topic_made_again") == 2, "each worker says so, once"
    assert await ids_on(kafka, topic) == Counter({each.request_id: 1 for each in late})


A_CRASH_MAY_COST = 4_000
"""Milliseconds of the lease; Kafka's session timeout runs beside it."""


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
    assert await log.publish(verdict("r1"), "body", "t/0/1", "e") is not None
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
    assert await log.publish(verdict("r1"), "body", "t/0/1", "e") is not None
    assert min(leases.durations) > 1_000 * max(TURN_SECONDS, PRODUCE_SECONDS)
