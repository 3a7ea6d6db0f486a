"""One verdict a request, whoever sleeps and wakes up where, on a real Kafka and without any help of Redis."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions
from faust.types import TP
from structlog.testing import capture_logs

from agents.ports import Unavailable
from evalcore.gates.requests import RampRequest, read
from evalcore.gates.verdict import Moment, of_gates
from rampgate.local.services.kafka import KafkaCluster
from rampgate.local.services.topics import with_admin
from schemas.settings import KafkaAccess
from schemas.verdicts import Verdict
from streams.gates.verdict_log import VerdictLog
from streams.kafka.client import FencedProducer, Producer
from streams.kafka.offsets import KafkaOffsets
from streams.retry import Retry
from tests.memory_ports import ManualClock, MemoryStore

PARTITIONS = 3
KEYS = [f"k{number}".encode() for number in range(24)]
"""Enough for each partition to have some."""


def verdict(request_id: str, experiment: str = "e") -> Verdict:
    request = read(
        json.dumps(
            {
                "request_id": request_id, "experiment_id": experiment, "agent_id": "a", "agent_version": "v",
                "from_percent": 5, "to_percent": 25, "requested_at": "2026-11-21T12:00:00Z",
            }
        ).encode()
    )  # fmt: skip
    assert isinstance(request, RampRequest)
    return of_gates(request, [], Moment("2026-11-21T12:00:01Z", 0.1))


@pytest.fixture
async def topic(kafka: KafkaCluster, topic_prefix: str) -> str:
    name = f"{topic_prefix}verdicts"
    kafka.create_topics([name], PARTITIONS)
    return name


@pytest.fixture
async def producer_of(kafka: KafkaCluster, topic: str) -> AsyncIterator[Callable[[], FencedProducer]]:
    made: list[FencedProducer] = []

    def make() -> FencedProducer:
        made.append(FencedProducer(KafkaAccess((kafka.bootstrap,)), topic, topic, 1_000_000))
        return made[-1]

    yield make
    for each in made:
        await each.drop()


@pytest.fixture
async def log_of(kafka: KafkaCluster, topic: str) -> AsyncIterator[Callable[[], VerdictLog]]:
    """Workers' logs without leases in common, as if Redis were emptied all the time."""
    access = KafkaAccess((kafka.bootstrap,))
    producer = Producer(access)
    made: list[VerdictLog] = []

    def make() -> VerdictLog:
        clock = ManualClock(1_000_000_000_000)
        made.append(VerdictLog(access, producer, topic, MemoryStore(clock)))
        return made[-1]

    yield make
    for log in made:
        await log.close()
    await producer.close()


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
    several = [verdict(f"r{number}", f"e{number}") for number in range(12)]
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
    several = [verdict(f"r{number}", f"e{number % 5}") for number in range(30)]
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
    before = [verdict(f"before-{number}", f"e{number}") for number in range(40)]
    await published(first, before)
    admin = AIOKafkaAdminClient(bootstrap_servers=kafka.bootstrap)
    await admin.start()
    try:
        await admin.create_partitions({topic: NewPartitions(PARTITIONS * 3)})
    finally:
        await admin.close()
    late = log_of()
    await late.start()
    after = [verdict(f"after-{number}", f"e{number}") for number in range(40)]
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


async def made_again(kafka: KafkaCluster, topic: str) -> None:
    """Delete the topic and make it again, as fast as Kafka does it."""
    offsets = KafkaOffsets(KafkaAccess((kafka.bootstrap,)))
    try:
        before = await offsets.topic_ids([topic])
        with_admin(kafka.bootstrap, lambda admin: admin.delete_topics([topic]))
        async with asyncio.timeout(60):
            while (await offsets.topic_ids([topic])).get(topic, before[topic]) == before[topic]:
                kafka.create_topics([topic], PARTITIONS)
    finally:
        await offsets.close()


async def test_a_verdicts_topic_that_is_made_again_while_workers_run_is_told_and_doubles_nothing(
    log_of: Callable[[], VerdictLog], kafka: KafkaCluster, topic: str
) -> None:
    """The new one has grown past the offsets that a worker has read of the old one. What was answered on either is not
    answered again."""
    first, second = log_of(), log_of()
    await first.start()
    await second.start()
    early = [verdict(f"early {number}", f"e{number}") for number in range(6)]
    late = [verdict(f"late {number}", f"e{number}") for number in range(24)]
    await published(first, early)
    await second.caught_up()
    await made_again(kafka, topic)
    with capture_logs() as told:
        assert None not in await published(second, late)
        assert await published(first, [*late, *early]) == [None] * 30
        assert await published(second, early) == [None] * 6
    assert [entry["event"] for entry in told].count("verdicts_topic_made_again") == 2, "each worker says so, once"
    assert await ids_on(kafka, topic) == Counter({each.request_id: 1 for each in late})
