"""Two workers, one verdict a request, while Redis is emptied at the worst moment and partitions are added."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from typing import Any

import pytest
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions
from redis.asyncio import Redis

from rampgate.local.services.kafka import KafkaCluster
from rampgate.local.services.topics import with_admin
from rampgate.worker.worker import Worker
from streams.kafka.client import FencedProducer, Producer
from tests.stream.gates.ramp_rig import Rig, step, thumb
from tests.waiting import come


async def both(rig: Rig) -> None:
    """Two workers that share the requests."""
    workers = [await rig.start(), await rig.start()]

    def holds(worker: Worker) -> bool:
        consumer: Any = worker.consumption.app.consumer if worker.consumption is not None else None
        started = consumer is not None and consumer._thread._consumer is not None
        return started and any(tp.topic == rig.topic("ramp-steps") for tp in consumer.assignment())

    await come(lambda: all(map(holds, workers)))


async def everywhere(rig: Rig, *requests: dict[str, Any], partitions: int = 2) -> None:
    """As producers send them that do not agree on a partition."""
    values = [json.dumps(request).encode() for request in requests for _ in range(partitions)]
    places = [number for _ in requests for number in range(partitions)]
    await rig.producer.send([(rig.topic("ramp-steps"), b"k", value, ()) for value in values], places)


def between(name: str) -> dict[str, Any]:
    return step(name, experiment_id=f"e-{name}", from_percent=5, to_percent=25)


async def ids(rig: Rig, count: int) -> Counter[str]:
    return Counter(verdict["request_id"] for verdict in await rig.verdicts(count))


async def test_redis_is_emptied_between_a_workers_turn_and_the_ack_of_its_produce(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both workers have the request. One is about to publish when every lease is gone, and the other publishes."""
    held, go_on = asyncio.Event(), asyncio.Event()

    async def hold() -> None:
        if not held.is_set():
            held.set()
            await go_on.wait()

    fenced, plain = FencedProducer.send, Producer.send

    async def fenced_send(self: FencedProducer, *record: Any) -> None:
        await hold()
        await fenced(self, *record)

    async def plain_send(self: Producer, messages: Any, partitions: Any = None) -> Any:
        if messages[0][0] == rig.topic("verdicts"):
            await hold()
        return await plain(self, messages, partitions)

    await both(rig)
    monkeypatch.setattr(FencedProducer, "send", fenced_send)
    monkeypatch.setattr(Producer, "send", plain_send)
    await everywhere(rig, between("r"))
    await held.wait()
    async with Redis.from_url(rig.settings.redis) as client:
        await client.flushall()
    assert await ids(rig, 1) == Counter(["r"]), "the other worker's"
    go_on.set()
    await everywhere(rig, between("after"))
    assert await ids(rig, 2) == Counter(["r", "after"])
    balance = await rig.counted(4)
    assert (balance.done, balance.superseded) == (2, 2)


async def test_added_partitions_double_no_verdict_and_lose_no_signal(rig: Rig, kafka: KafkaCluster) -> None:
    """Of the verdicts, the requests and the thumbs, while two workers run."""
    await both(rig)
    names = [f"r{number}" for number in range(40)]
    before = [between(name) for name in names]
    await everywhere(rig, *before, partitions=1)
    assert await ids(rig, 40) == Counter(names)
    more = {rig.topic(name): NewPartitions(8) for name in ("verdicts", "ramp-steps", "thumbs")}
    with_admin(kafka.bootstrap, lambda admin: admin.create_partitions(more))
    await rig.producer.close()  # a new one knows of them
    later = [f"later{number}" for number in range(40)]
    every = before + [between(name) for name in later]
    await everywhere(rig, *every, partitions=8)
    events = [json.dumps(thumb(f"t{number}")).encode() for number in range(16)]
    await rig.producer.send(
        [(rig.topic("thumbs"), b"k", event, ()) for event in events], [number % 8 for number in range(16)]
    )
    await rig.joined(thumbs=16, ramp_step=40 + 8 * 80)
    assert await ids(rig, 80) == Counter([*names, *later])
    await rig.start()
    await everywhere(rig, *every, partitions=8)
    await rig.joined(ramp_step=40 + 2 * 8 * 80)
    assert await ids(rig, 80) == Counter([*names, *later])
    balance = await rig.balance()
    assert (balance.done, balance.superseded) == (80, 40 + 2 * 8 * 80 - 80)


async def test_what_comes_on_an_added_partition_waits_for_seconds(rig: Rig, kafka: KafkaCluster) -> None:
    """Three times, ten seconds apart: with looks half a minute apart, one of the three would wait for twenty."""
    await both(rig)
    admin = AIOKafkaAdminClient(bootstrap_servers=kafka.bootstrap)  # one for all: to connect again costs time, too
    await admin.start()
    try:
        for number in range(3):
            began = time.monotonic()
            await admin.create_partitions({rig.topic("thumbs"): NewPartitions(3 + number)})
            await asyncio.sleep(0.5)
            await rig.producer.close()  # a new one knows of it
            event = json.dumps(thumb(f"added-{number}")).encode()
            await rig.producer.send([(rig.topic("thumbs"), b"k", event, ())], [2 + number])
            await rig.joined(thumbs=number + 1)
            assert time.monotonic() - began < 9.5
            await asyncio.sleep(10.0 - (time.monotonic() - began))
    finally:
        await admin.close()
