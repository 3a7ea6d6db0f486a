"""A stream of more open shards than are polled at once: all are read, and one that is not says so everywhere."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from agents.ports import Unavailable
from rampgate.worker.feed import FeedHealth
from streams.dynamodb.feed import Feed
from streams.dynamodb.ledger import ShardLease
from streams.dynamodb.shard_reader import STALE_MS
from streams.dynamodb.shards import Place, encode_place
from tests.memory_ports import ManualClock
from tests.unit.streams.dynamodb.fake_stream import NOW, FakeKafka, FakeLedger, FakeStream, change, feed
from tests.waiting import come

SHARDS = 40


class PartlyUnreachable(FakeLedger):
    """A ledger that cannot say who holds the shards in `out_of_reach`."""

    out_of_reach: frozenset[str] = frozenset()

    async def claim(self, arn: str, shard_id: str) -> ShardLease | None:
        if shard_id in self.out_of_reach:
            raise Unavailable("Redis is out of reach")
        return await super().claim(arn, shard_id)


def forty_open_shards() -> FakeStream:
    stream = FakeStream()
    for number in range(SHARDS):
        stream.shard(f"s{number:02}", [number * 10 + 1, number * 10 + 2])
    return stream


def readiness(job: Feed) -> Any:
    """What `/readyz` says of the shards."""
    parts: Any = SimpleNamespace(clock=job.clock)
    return FeedHealth(job, parts).ready().checks["shards"]


async def test_all_of_forty_open_shards_are_read_by_few_polls_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """An open shard has no end: a feed that waits for a reader's end before it begins another one leaves some out."""
    stream, kafka, ledger = forty_open_shards(), FakeKafka(), FakeLedger(lease_ms=60_000)
    at_once = most = 0
    read = stream.records

    async def watched(iterator: str) -> tuple[list[Any], str | None]:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        await asyncio.sleep(0)
        try:
            return await read(iterator)
        finally:
            at_once -= 1

    monkeypatch.setattr(stream, "records", watched)
    job = feed(stream, kafka, ledger, once=False, polls=4)
    running = asyncio.create_task(job.run())
    await come(lambda: len(kafka.sent) == 2 * SHARDS)
    await come(lambda: all(reader.at_tip for reader in job.readers.values()))
    stream.log["s39"].append(change(399))
    await come(lambda: len(kafka.sent) == 2 * SHARDS + 1)
    assert most == 4
    assert job.waiting == {}
    job.stop()
    await asyncio.wait_for(running, 30)
    assert ledger.held == {}


async def test_a_shard_that_waits_unread_is_behind_from_the_first_look_on_and_shown() -> None:
    stream, kafka, ledger = forty_open_shards(), FakeKafka(), PartlyUnreachable(lease_ms=60_000)
    ledger.out_of_reach = frozenset({"s39"})
    job = feed(stream, kafka, ledger, once=False)
    clock = job.clock
    assert isinstance(clock, ManualClock)
    running = asyncio.create_task(job.run())
    await come(lambda: len(kafka.sent) == 2 * (SHARDS - 1))
    assert job.waiting == {"s39": NOW}
    clock.ms += 3_600_000
    await come(lambda: job.metrics.feed_behind._value.get() == 3_600.0)
    assert job.metrics.feed_shards_waiting._value.get() == 1
    ready = readiness(job)
    assert not ready.ok
    assert "39 shards read, 1 waiting, 3600 s behind" in ready.detail
    ledger.out_of_reach = frozenset()
    await come(lambda: len(kafka.sent) == 2 * SHARDS)
    await come(lambda: job.metrics.feed_behind._value.get() == 0.0)
    assert job.metrics.feed_shards_waiting._value.get() == 0
    assert readiness(job).ok
    job.stop()
    await asyncio.wait_for(running, 30)


async def test_an_unread_shard_with_a_place_is_behind_by_the_age_of_that_place() -> None:
    """It was published up to there, by this feed or another one, and by no one since."""
    stream, ledger = FakeStream(), PartlyUnreachable(lease_ms=60_000)
    stream.shard("s", [1, 2, 3])
    ledger.raw["s"] = encode_place(Place("1", NOW - 7_200_000))
    ledger.out_of_reach = frozenset({"s"})
    job = feed(stream, FakeKafka(), ledger, once=False)
    running = asyncio.create_task(job.run())
    await come(lambda: job.metrics.feed_behind._value.get() == 7_200.0)
    job.stop()
    await asyncio.wait_for(running, 30)


async def test_a_shard_that_is_no_longer_polled_counts_as_behind_though_it_was_at_its_tip(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stream, ledger = FakeStream(), FakeLedger(lease_ms=60_000)
    stream.shard("s", [1])
    job = feed(stream, FakeKafka(), ledger, once=False)
    running = asyncio.create_task(job.run())
    await come(lambda: "s" in job.readers and job.readers["s"].at_tip)
    answering = asyncio.Event()
    read, asked = stream.records, asyncio.Event()

    async def held_up(iterator: str) -> tuple[list[Any], str | None]:
        asked.set()
        await answering.wait()
        return await read(iterator)

    monkeypatch.setattr(stream, "records", held_up)
    await asked.wait()
    clock = job.clock
    assert isinstance(clock, ManualClock)
    clock.ms += STALE_MS
    assert job.behind_seconds == 0.0
    clock.ms += 1
    assert job.behind_seconds == (STALE_MS + 1) / 1000
    answering.set()
    job.stop()
    await asyncio.wait_for(running, 30)
