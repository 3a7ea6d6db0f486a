"""What every Records promises: one suite on KafkaRecords with a real Kafka, and on its twin in memory."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest
from aiokafka.admin import RecordsToDelete
from aiokafka.structs import TopicPartition

from agents.ports import Unavailable
from rampgate.local.services.kafka import KafkaCluster
from rampgate.local.services.topics import with_admin
from schemas.settings import KafkaAccess
from streams.kafka.client import KafkaRecords, Producer
from tests.fault.ledger.kafka_log import Record as KafkaRecord
from tests.memory_ports import MemoryLog

Place = tuple[str, int, int]


@dataclass
class Rig:
    records: KafkaRecords | MemoryLog
    kafka: KafkaCluster
    topic: str
    producer: Producer | None

    async def put(self, partition: int, *values: bytes | None, key: bytes | None = b"k", headers: Any = ()) -> None:
        if self.producer is not None:
            messages = [(self.topic, key, value, headers) for value in values]
            await self.producer.send(messages, [partition] * len(values))
            return
        assert isinstance(self.records, MemoryLog)
        at = sum(1 for place in self.records.records if place[1] == partition)
        for offset, value in enumerate(values, at):
            record = KafkaRecord(self.topic, partition, offset, key, value, tuple(headers))
            self.records.records[self.topic, partition, offset] = record

    async def drop(self, partition: int, before: int) -> None:
        """What retention does."""
        if isinstance(self.records, MemoryLog):
            for offset in range(before):
                del self.records.records[self.topic, partition, offset]
            return
        gone = {TopicPartition(self.topic, partition): RecordsToDelete(before)}
        with_admin(self.kafka.bootstrap, lambda admin: admin.delete_records(gone))

    async def values(self, *places: tuple[int, int]) -> list[bytes | None]:
        found = await self.records.fetch([(self.topic, *place) for place in places])
        for place, record in zip(places, found, strict=True):
            assert record is None or (record.topic, record.partition, record.offset) == (self.topic, *place)
        return [record and record.value for record in found]


@pytest.fixture(params=["kafka", "memory"])
async def rig(request: pytest.FixtureRequest, kafka: KafkaCluster, topic_prefix: str) -> AsyncIterator[Rig]:
    topic = topic_prefix + "log"
    if request.param == "memory":
        yield Rig(MemoryLog(), kafka, topic, None)
        return
    kafka.create_topics([topic], 6)
    access = KafkaAccess((kafka.bootstrap,))
    records, producer = KafkaRecords(access), Producer(access)
    yield Rig(records, kafka, topic, producer)
    await records.close()
    await producer.close()


async def test_records_come_in_the_order_asked_for_also_twice(rig: Rig) -> None:
    await rig.put(0, *(b"%d" % n for n in range(50)))
    assert await rig.values((0, 40), (0, 3), (0, 49), (0, 3), (0, 0)) == [b"40", b"3", b"49", b"3", b"0"]
    assert await rig.values() == []


async def test_a_record_comes_whole(rig: Rig) -> None:
    headers = [("a", b"1"), ("a", b"2"), ("ü", bytes(range(256)))]
    await rig.put(0, b"\x00\xff value", key=b"\x00key", headers=headers)
    (record,) = await rig.records.fetch([(rig.topic, 0, 0)])
    assert record is not None
    assert (record.key, record.value, list(record.headers)) == (b"\x00key", b"\x00\xff value", headers)


async def test_a_record_without_key_and_value_is_a_record(rig: Rig) -> None:
    await rig.put(0, None, b"next", key=None)
    found = await rig.records.fetch([(rig.topic, 0, 0), (rig.topic, 0, 1)])
    assert [(r.key, r.value) if r else None for r in found] == [(None, None), (None, b"next")]


async def test_records_of_many_partitions_come_in_one_call(rig: Rig) -> None:
    for partition in range(6):
        await rig.put(partition, *(b"%d/%d" % (partition, n) for n in range(300)))
    places = [(partition, offset) for partition in range(6) for offset in (0, 1, 150, 299)]
    random.Random(1).shuffle(places)
    assert await rig.values(*places) == [b"%d/%d" % place for place in places]


async def test_what_retention_took_or_what_was_never_there_is_none(rig: Rig) -> None:
    await rig.put(0, *(b"%d" % n for n in range(20)))
    await rig.drop(0, 10)
    assert await rig.values((0, 9), (0, 10), (0, 0), (0, 19), (0, 20), (1, 0)) == [
        None,
        b"10",
        None,
        b"19",
        None,
        None,
    ]


async def test_records_far_apart_and_more_than_one_fetch_are_found(rig: Rig) -> None:
    await rig.put(0, *(b"%d" % n for n in range(3_000)))
    wanted = [*range(0, 3_000, 7), 2_999]
    assert await rig.values(*((0, offset) for offset in wanted)) == [b"%d" % offset for offset in wanted]


async def test_fetches_at_the_same_time_do_not_mix(rig: Rig) -> None:
    for partition in range(4):
        await rig.put(partition, *(b"%d/%d" % (partition, n) for n in range(40)))
    asked = [[(n % 4, n), ((n + 1) % 4, 39 - n)] for n in range(20)]
    answers = await asyncio.gather(*(rig.values(*places) for places in asked))
    assert answers == [[b"%d/%d" % place for place in places] for places in asked]


async def test_a_fetch_that_was_given_up_does_not_spoil_the_next(rig: Rig) -> None:
    await rig.put(0, *(b"%d" % n for n in range(200)))
    for pause in (0.0, 0.001, 0.005):
        task = asyncio.create_task(rig.values(*((0, n) for n in range(200))))
        await asyncio.sleep(pause)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert await rig.values((0, 7)) == [b"7"]


async def test_a_partition_that_its_topic_has_no_more_holds_no_record(rig: Rig) -> None:
    """The topic was made again with fewer partitions: what was parked from the others must not hold up the rest."""
    await rig.put(0, b"here")
    assert await asyncio.wait_for(rig.values((0, 0), (77, 5)), 20) == [b"here", None]
    assert await asyncio.wait_for(rig.values((77, 5)), 20) == [None]


async def test_a_topic_nobody_knows_is_unavailable_and_not_taken_for_empty(
    kafka: KafkaCluster, topic_prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broker that has just come up may not know its topics yet; to believe it would lose the records' bytes."""
    monkeypatch.setattr("streams.kafka.client.PRODUCE_SECONDS", 1.5)
    records = KafkaRecords(KafkaAccess((kafka.bootstrap,)))
    with pytest.raises(Unavailable):
        await records.fetch([(topic_prefix + "nobody", 0, 0)])
    await records.close()


async def test_a_kafka_that_is_not_there_is_unavailable() -> None:
    records = KafkaRecords(KafkaAccess(("127.0.0.1:1",)))
    with pytest.raises(Unavailable):
        await records.fetch([("t", 0, 0)])
    await records.close()
