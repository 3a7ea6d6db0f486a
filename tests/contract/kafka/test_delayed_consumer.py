"""Topics read beside the join, on a real Kafka: after the settle time, once, through restarts; no one waits for a
record whose time has not come."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer, TopicPartition
from aiokafka.errors import NoOffsetForPartitionError

from agents.ports import Unavailable
from rampgate.local.services.kafka import KafkaCluster
from schemas.dead_letters import Record
from schemas.settings import KafkaAccess
from streams.kafka import delayed_consumer
from streams.kafka.client import Producer, make_consumer, started
from streams.kafka.delayed_consumer import DelayedConsumer
from streams.kafka.transport import LastingFetcher
from streams.retry import WallClock
from tests.memory_ports import ManualClock
from tests.waiting import come


@dataclass
class Handler:
    """Takes what it is given, unless told otherwise. `seen`: value and when; `entered`: calls, also those that fail."""

    entered: int = 0
    seen: list[tuple[bytes, float]] = field(default_factory=list)
    unavailable: int = 0
    not_yet: set[bytes] = field(default_factory=set)
    broken: bool = False
    hold: asyncio.Event | None = None

    async def __call__(self, records: Sequence[Record]) -> Sequence[Record]:
        self.entered += 1
        if self.unavailable:
            self.unavailable -= 1
            raise Unavailable("Redis")
        if self.broken:
            self.broken = False
            raise ValueError("a defect")
        if self.hold is not None:
            await self.hold.wait()
        waiting = [record for record in records if record.value in self.not_yet]
        self.seen += [(record.value or b"", time.time()) for record in records if record not in waiting]
        return waiting

    @property
    def values(self) -> list[bytes]:
        return sorted(value for value, _ in self.seen)


class Rig:
    def __init__(self, kafka: KafkaCluster, prefix: str) -> None:
        self.topic, self.group = f"{prefix}traces", f"{prefix}group-live"
        kafka.create_topics([self.topic], 2)
        self.access = KafkaAccess((kafka.bootstrap,))
        self.producer = Producer(self.access)
        self.handler = Handler()
        self.tasks: list[asyncio.Task[None]] = []

    def start(self, settle: float = 0.0, **more: Any) -> asyncio.Task[None]:
        self.consumer = DelayedConsumer(
            "live", self.access, self.group, {self.topic: self.handler}, WallClock(), settle, **more
        )
        task = asyncio.create_task(self.consumer.run())
        self.tasks.append(task)
        return task

    async def stop(self) -> None:
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        self.tasks.clear()

    async def send(self, *values: bytes) -> None:
        await self.producer.send([(self.topic, str(n).encode(), value, ()) for n, value in enumerate(values)])


@pytest.fixture
async def rig(kafka: KafkaCluster, topic_prefix: str) -> AsyncIterator[Rig]:
    found = Rig(kafka, topic_prefix)
    yield found
    await found.stop()
    await found.producer.close()


async def test_a_record_is_handed_in_after_the_settle_time_and_not_before(rig: Rig) -> None:
    rig.start(settle=2.0)
    await asyncio.sleep(0.5)
    sent = time.time()
    await rig.send(b"a", b"b", b"c")
    await come(lambda: len(rig.handler.seen) == 3)
    assert all(at - sent >= 1.9 for _, at in rig.handler.seen)


async def test_what_was_brought_to_its_end_is_not_read_again_after_a_restart(rig: Rig) -> None:
    rig.start()
    await rig.send(b"a", b"b", b"c")
    await come(lambda: len(rig.handler.seen) == 3)
    await rig.stop()
    rig.start()
    await rig.send(b"d")
    await come(lambda: len(rig.handler.seen) == 4)
    assert rig.handler.values == [b"a", b"b", b"c", b"d"]


async def test_what_was_in_work_when_it_was_stopped_comes_again(rig: Rig) -> None:
    rig.handler.hold = asyncio.Event()
    rig.start()
    await rig.send(b"a")
    await come(lambda: rig.handler.entered == 1)
    await rig.stop()
    assert rig.handler.seen == []
    rig.handler.hold = None
    rig.start()
    await come(lambda: rig.handler.values == [b"a"])


async def test_it_says_how_much_is_done_and_what_is_parked_is_not(rig: Rig) -> None:
    task = rig.start()
    rig.handler.not_yet = {b"early"}
    await rig.producer.send([(rig.topic, b"k", value, ()) for value in (b"a", b"early", b"b")])
    await come(lambda: rig.handler.values == [b"a", b"b"])
    await come(lambda: sorted(rig.consumer.done.values()) == [0, 2])
    await rig.stop()
    assert task.done()
    assert rig.consumer.done == {}


class Offsets:
    """A consumer of partitions [10, 90) without committed offsets. `young` is the first offset since the group was
    made, `first` the one since 1970: None in a broker without an index by time."""

    def __init__(self, young: int | None, first: int | None) -> None:
        self._young, self._first = young, first
        self.commits: list[dict[Any, int]] = []

    def pause(self, *places: Any) -> None: ...
    def resume(self, *places: Any) -> None: ...
    def seek(self, place: Any, offset: int) -> None: ...

    async def committed(self, place: Any) -> None:
        return None

    async def commit(self, offsets: dict[Any, int]) -> None:
        self.commits.append(offsets)

    async def end_offsets(self, places: Sequence[Any]) -> dict[Any, int]:
        return dict.fromkeys(places, 90)

    async def beginning_offsets(self, places: Sequence[Any]) -> dict[Any, int]:
        return dict.fromkeys(places, 10)

    async def offsets_for_times(self, times: dict[Any, int]) -> dict[Any, Any]:
        found = {place: self._young if moment else self._first for place, moment in times.items()}
        return {place: None if at is None else SimpleNamespace(offset=at) for place, at in found.items()}


@pytest.mark.parametrize(("young", "first", "start"), [(42, 10, 42), (None, 10, 90), (None, None, 10)])
async def test_a_new_group_begins_with_what_came_since_it_was_made_and_without_an_index_by_time_with_all(
    young: int | None, first: int | None, start: int
) -> None:
    reader = DelayedConsumer("live", KafkaAccess(("nowhere:1",)), "g", {}, WallClock(), 30.0)
    reader._consumer, place = Offsets(young, first), TopicPartition("t", 0)
    await reader.on_partitions_assigned([place])
    assert reader.done == {place: start}
    assert reader._consumer.commits == [{place: start}], "a worker that takes over must not begin later"


async def test_a_new_group_begins_as_far_back_as_records_may_wait_and_a_known_one_where_it_was(rig: Rig) -> None:
    await rig.send(b"old")
    await asyncio.sleep(1.5)
    await rig.send(b"before")
    rig.start(back=1.0)
    await come(lambda: rig.handler.values == [b"before"])
    await rig.stop()
    rig.start(back=3_600.0)
    await rig.send(b"after")
    await come(lambda: b"after" in rig.handler.values)
    assert rig.handler.values == [b"after", b"before"]


async def test_it_waits_out_what_is_unavailable_or_being_rebuilt_and_passes_over_a_defect(
    rig: Rig,
) -> None:
    whole, asked = False, 0

    def ready() -> bool:
        nonlocal asked
        asked += 1
        return whole

    rig.handler.unavailable = 2
    rig.start(ready=ready)
    await rig.send(b"a")
    await come(lambda: asked >= 3)
    assert rig.handler.entered == 0
    whole = True
    await come(lambda: rig.handler.values == [b"a"])
    assert rig.handler.entered == 3
    rig.handler.broken = True
    await rig.send(b"broken")
    await come(lambda: not rig.handler.broken)
    await rig.send(b"b")
    await come(lambda: b"b" in rig.handler.values)


async def test_a_record_whose_time_has_not_come_holds_up_nobody_and_comes_again_also_after_a_restart(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Promise 6: one bad message stops no one."""
    monkeypatch.setattr(delayed_consumer, "PARKED_SECONDS", 0.2)
    rig.handler.not_yet = {b"early"}
    rig.start()
    await rig.producer.send([(rig.topic, b"k", value, ()) for value in (b"early", b"a", b"b")])
    await come(lambda: rig.handler.values == [b"a", b"b"])
    await rig.stop()
    rig.start()
    await come(lambda: rig.handler.values == [b"a", b"a", b"b", b"b"])
    rig.handler.not_yet.clear()
    await come(lambda: b"early" in rig.handler.values)
    await asyncio.sleep(0.5)
    await rig.stop()
    rig.start()
    await rig.send(b"c")
    await come(lambda: b"c" in rig.handler.values)
    assert rig.handler.values == [b"a", b"a", b"b", b"b", b"c", b"early"]


async def test_of_a_partition_with_too_much_parked_nothing_more_is_read_until_some_of_it_is_done(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delayed_consumer, "PARKED_SECONDS", 0.2)
    monkeypatch.setattr(delayed_consumer, "PARKED", 2)
    rig.handler.not_yet = {b"early", b"earlier"}
    rig.start()
    await rig.producer.send([(rig.topic, b"k", value, ()) for value in (b"early", b"earlier")])
    await come(lambda: any(len(place.parked) == 2 for place in rig.consumer._places.values()))
    await rig.producer.send([(rig.topic, b"k", b"behind", ())])
    await asyncio.sleep(1.0)
    assert rig.handler.values == []
    rig.handler.not_yet = {b"early"}
    await come(lambda: rig.handler.values == [b"behind", b"earlier"])


async def test_the_longer_a_record_waits_the_more_seldom_it_is_looked_at_and_who_counts_hears_of_letting_go(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A look may cost a call to Opik, of which the join needs its share."""
    monkeypatch.setattr(delayed_consumer, "PARKED_SECONDS", 0.1)
    monkeypatch.setattr(delayed_consumer, "SELDOM", 2.0)
    looks: list[float] = []
    sent = time.time()

    async def handler(records: Sequence[Record]) -> Sequence[Record]:
        looks.append(time.time() - sent)
        return records

    stand_in: Any = handler
    rig.handler, let_go = stand_in, []
    rig.start(let_go=lambda: let_go.append(True))
    await rig.send(b"early")
    await come(lambda: looks and time.time() - sent > 9.0)
    assert 4 <= len(looks) <= 6, "at its coming, and after 1, 3 and 7 s"
    let_go.clear()  # the first assignment began with nothing
    await rig.stop()
    assert let_go


@pytest.mark.parametrize("years", [0, 1, 40])
def test_whatever_its_timestamp_says_a_record_that_waits_is_looked_at_every_half_an_hour(years: int) -> None:
    """A producer sets it: by one of last year the next look was due after weeks."""
    clock, came = ManualClock(), 1_800_000_000_000
    reader = DelayedConsumer("live", KafkaAccess(("nowhere:1",)), "g", {}, clock, 0.0)
    record: Any = SimpleNamespace(timestamp=came - years * 365 * 86_400_000)
    looks = []
    for clock.ms in range(came, came + 8 * 3_600_000, 5_000):
        if reader._looked_at_again(record, 5.0):
            looks.append(clock.ms)
    pauses = [after - before for before, after in itertools.pairwise([came, *looks, clock.ms])]
    assert max(pauses) <= 1_805_000
    assert len(looks) < 100


async def test_two_workers_share_the_partitions_and_nothing_is_lost_when_one_goes(rig: Rig) -> None:
    rig.start()
    first = rig.consumer
    second = rig.start()
    await come(lambda: len(first.done) == len(rig.consumer.done) == 1)
    for number in range(20):
        await rig.send(f"{number:02}a".encode(), f"{number:02}b".encode())
    await come(lambda: rig.handler.entered > 0)
    second.cancel()
    await asyncio.gather(second, return_exceptions=True)
    for number in range(20, 30):
        await rig.send(f"{number:02}a".encode(), f"{number:02}b".encode())
    wanted = {f"{number:02}{part}".encode() for number in range(30) for part in "ab"}
    await come(lambda: set(rig.handler.values) == wanted, 60.0)


# Producers whose clocks run ahead.


async def stamped(rig: Rig, values: Sequence[bytes], seconds_ahead: float) -> None:
    """Sends records of one partition whose timestamps lie ahead, each a second later than the one before."""
    producer = AIOKafkaProducer(bootstrap_servers=rig.access.brokers[0])
    await producer.start()
    try:
        at = round((time.time() + seconds_ahead) * 1000)
        for number, value in enumerate(values):
            await producer.send(rig.topic, value, partition=0, timestamp_ms=at + 1_000 * number)
        await producer.flush()
    finally:
        await producer.stop()


async def test_records_stamped_most_of_an_hour_ahead_hold_nothing_back_beyond_the_settle_time(rig: Rig) -> None:
    """More of them than a fetch takes, and one that came at its own time behind them."""
    wanted = [b"%03d" % number for number in range(250)]
    await stamped(rig, wanted, 3_000.0)
    rig.start(settle=2.0)
    await rig.producer.send([(rig.topic, None, b"on time", ())], [0])
    sent = time.time()
    await come(lambda: rig.handler.values == [*wanted, b"on time"], 30.0)
    assert max(at for _, at in rig.handler.seen) - sent < 10.0, "each waited by itself once"


async def test_what_is_handed_in_is_not_stamped_ahead(rig: Rig) -> None:
    """A handler that waits for what belongs to a record, so many seconds from its timestamp, must come to an end."""
    handed: list[Record] = []

    async def handler(records: Sequence[Record]) -> Sequence[Record]:
        handed.extend(records)
        return []

    stand_in: Any = handler
    rig.handler = stand_in
    await stamped(rig, [b"ahead"], 3_000.0)
    rig.start()
    await come(lambda: handed)
    assert handed[0].timestamp <= time.time() * 1000
    assert (handed[0].value, handed[0].topic, handed[0].offset) == (b"ahead", rig.topic, 0)


def test_what_is_remembered_of_arrivals_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(delayed_consumer, "time", SimpleNamespace(monotonic=lambda: now))
    place = delayed_consumer._Place(0, 0)
    for end in range(1, 10_000):
        now += 0.2
        place.note(end, 2.0)
        assert len(place.there) <= 12
    assert place.came(0, now) <= now - 2.0, "what came long ago is due"
    assert place.came(9_998, now) == now
    place.read = 9_999
    place.note(9_999, 2.0)
    assert place.there == []


async def test_a_consumer_whose_routine_that_fetches_has_ended_is_replaced(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """aiokafka logs an error that it did not expect there, and its consumer then reads no partition ever again."""
    rig.start()
    await rig.send(b"a")
    await come(lambda: rig.handler.values == [b"a"])
    broken, whole = [], LastingFetcher._get_actions_per_node

    def once(fetcher: LastingFetcher, assignment: Any) -> Any:
        if not broken:
            broken.append(fetcher)
            raise AssertionError("a defect of the client's")
        return whole(fetcher, assignment)

    monkeypatch.setattr(LastingFetcher, "_get_actions_per_node", once)
    await rig.send(b"b")
    await come(lambda: b"b" in rig.handler.values)
    assert broken[0].error_future.done()


async def test_two_looks_for_an_offset_that_is_not_there_are_one_error(rig: Rig) -> None:
    """While a partition's leader changes, its old and its new one may be asked for the same."""
    alone = make_consumer(rig.access, group_id=f"{rig.group}-none", auto_offset_reset="none")
    first, second = places = [TopicPartition(rig.topic, number) for number in range(2)]
    alone.assign(places)
    async with started(alone):
        assignment: Any = alone._subscription.subscription.assignment
        fetcher: Any = alone._fetcher
        for _ in range(2):
            await fetcher._update_fetch_positions(assignment, 0, [first])
        with pytest.raises(NoOffsetForPartitionError):
            await alone.getmany(first, timeout_ms=1_000)
        alone.seek(second, 0)
        alone.seek(first, 0)
        await rig.producer.send([(rig.topic, None, b"x", ())], [1])
        found = []
        while not found:
            found = [one.value for some in (await alone.getmany(timeout_ms=500)).values() for one in some]
    assert found == [b"x"]
