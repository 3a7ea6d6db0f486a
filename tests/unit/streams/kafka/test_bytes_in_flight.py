"""However large batches are, a bounded number of bytes of each topic is in flight, and no topic holds up another."""

from __future__ import annotations

from typing import Any

import pytest
from faust.types import TP

from streams.kafka import transport
from tests.unit.agents.builders import Rec
from tests.unit.streams.kafka.consumer_rig import PLACE, TOPIC, Broker, Rig

SECOND, TRACES = TP(TOPIC, 1), TP("rampgate.traces", 0)
LARGE = 1_000


@pytest.fixture(autouse=True)
def a_bound_of_three_records(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "BYTES_IN_FLIGHT", 3 * LARGE)
    monkeypatch.setattr(transport, "PAUSE", 0.0)


class OneAtATime(Broker):
    """A broker that gives one record of a partition in each fetch."""

    async def getmany(self, active: set[TP] | None, timeout: float) -> dict[TP, list[Any]]:
        found = await super().getmany(active, timeout)
        for tp, records in found.items():
            self.position[tp] = records[0].offset + 1
        return {tp: records[:1] for tp, records in found.items()}

    def fill(self, tp: TP, records: int, size: int = LARGE) -> None:
        self.logs[tp] = [Rec(b"x" * size, tp.topic, tp.partition, offset) for offset in range(records)]


async def started(*held: TP) -> tuple[Rig, OneAtATime]:
    broker = OneAtATime(held)
    rig = Rig(broker)
    rig.app.topics._acking_topics.update(tp.topic for tp in held)
    for tp in held:
        broker.fill(tp, 100)
    await rig.start()
    return rig, broker


async def test_no_more_is_fetched_of_a_topic_than_the_bound_and_one_fetch() -> None:
    rig, _ = await started(PLACE)
    held: list[Any] = []
    for _ in range(20):
        held += await rig.fetch()
        assert rig.consumer.in_flight(TOPIC) <= 3 * LARGE
    assert len(held) == 3
    rig.consumer.ack(held.pop(0))
    assert len(await rig.fetch()) == 1, "what is settled makes room"
    assert await rig.fetch() == []


async def test_a_batch_that_is_larger_than_the_bound_comes_alone() -> None:
    rig, broker = await started(PLACE)
    broker.fill(PLACE, 100, 10 * LARGE)
    (first,) = await rig.fetch()
    assert await rig.fetch() == []
    rig.consumer.ack(first)
    assert len(await rig.fetch()) == 1


async def test_a_topic_that_has_enough_in_flight_holds_up_no_other() -> None:
    """Such as ramp steps, whose gates take an hour."""
    rig, broker = await started(PLACE, TRACES)
    broker.fill(PLACE, 100, 10 * LARGE)
    seen = [message.tp for _ in range(20) for message in await rig.fetch()]
    assert seen.count(PLACE) == 1
    assert seen.count(TRACES) == 3


async def test_what_an_operator_has_to_look_at_takes_no_room_from_the_rest_of_its_topic() -> None:
    """A partition pauses for its bad records, and may for days."""
    rig, broker = await started(PLACE, SECOND)
    broker.fill(PLACE, 100, 10 * LARGE)
    await rig.fetch()
    rig.consumer.halt(PLACE)
    seen = [message.tp for _ in range(20) for message in await rig.fetch()]
    assert set(seen) == {SECOND}
    assert seen


async def test_what_is_read_again_or_belongs_to_another_worker_takes_no_room() -> None:
    rig, _ = await started(PLACE)
    for _ in range(5):
        await rig.fetch()
    assert rig.consumer.in_flight(TOPIC) == 3 * LARGE
    await rig.consumer.rewind(PLACE, 0)
    assert rig.consumer.in_flight(TOPIC) == 0
    assert len(await rig.fetch()) == 1
    await rig.consumer.on_partitions_revoked({PLACE})
    assert rig.consumer.in_flight(TOPIC) == 0
