"""A record that ends the process is found and dead-lettered; whatever else ends a worker, no record is."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

import pytest
from faust.types import TP

from agents.join.batches import Batch
from agents.keys import FOREVER, WATERMARK
from agents.ports import Change
from streams import quarantine as quarantines
from streams.pipeline import Abandoned
from streams.quarantine import DEATHS, TAKEOVERS, Quarantine
from tests.memory_ports import ManualClock, MemoryStore
from tests.unit.agents.builders import Rec

PLACE = TP("rampgate.thumbs", 0)
BATCH = 8


@dataclass
class Fleet:
    """Workers that take one partition over, one after another, each with its own memory; they share the store.

    `dies(offset, alone)` says whether a worker dies while it handles a record. `watermark` is where the last one came.
    `committed`: where the group stands, and each worker begins to read; None where it has committed nothing yet.
    """

    dies: Callable[[int, bool], bool]
    end: int = 20
    store: MemoryStore = field(default_factory=lambda: MemoryStore(ManualClock()))
    watermark: int = 0
    committed: int | None = None
    deaths: int = 0
    lettered: list[int] = field(default_factory=list)

    def batch(self, since: int) -> Batch:
        until = min(since + BATCH, self.end)
        return Batch(*PLACE, since, [Rec(b"", *PLACE, offset) for offset in range(since, until)])

    async def worker(self) -> bool:
        """One worker's life; True where it came to the end of the partition."""
        quarantine = Quarantine(self.store, 16)
        at = self.watermark if self.committed is None else self.committed
        await quarantine.taken_over(PLACE, at, self.end)
        while at < self.end:
            batch = self.batch(at)
            for part in quarantine.parts(batch) if quarantine.suspects else [batch]:
                alone = bool(quarantine.suspects) and len(part.records) == 1
                inside = quarantine.admitted(part)
                if await inside.__aenter__():
                    # What the state has settled is passed over, and gets no second letter.
                    self.lettered += [record.offset for record in part.records if record.offset >= self.watermark]
                elif any(self.dies(record.offset, alone) for record in part.records):
                    self.deaths += 1
                    return False  # and nothing of this worker runs any more
                await inside.__aexit__(None, None, None)
                at, self.watermark = part.end, max(self.watermark, part.end)
                mark = str(self.watermark).encode()
                await self.store.apply(Change(sets={WATERMARK.key(*PLACE): (mark, FOREVER)}))
        return True

    async def live(self, lives: int = 40) -> None:
        for _ in range(lives):
            if await self.worker():
                return
        raise AssertionError(f"{self.deaths} workers died, and the partition stands at {self.watermark}")


@pytest.mark.parametrize("deadly", [{0}, {5}, {19}, {7, 8}, {3, 4, 5}])
async def test_a_record_that_ends_the_process_is_dead_lettered_and_no_other(deadly: set[int]) -> None:
    fleet = Fleet(lambda offset, alone: offset in deadly)
    await fleet.live()
    assert fleet.lettered == sorted(deadly)
    assert fleet.deaths <= len(deadly) * (TAKEOVERS + 1 + DEATHS)


@pytest.mark.parametrize("deadly", [{5}, {19}, {7, 8}, {2, 21}, {0, 3, 12, 13, 29}])
async def test_workers_that_die_before_they_commit_find_the_record_as_well(deadly: set[int]) -> None:
    """Batches are committed whole, and now and then: where each worker dies before that, the next one begins at the
    same committed offset, reads again what is settled, and comes to the record once more."""
    fleet = Fleet(lambda offset, alone: offset in deadly, end=30, committed=0)
    await fleet.live()
    assert fleet.lettered == sorted(deadly)
    assert fleet.deaths <= len(deadly) * (TAKEOVERS + 1 + DEATHS)


async def test_a_record_beyond_what_is_read_again_is_found_however_much_that_is() -> None:
    """More records than are in flight at once lie between what was committed and what is settled."""
    fleet = Fleet(lambda offset, alone: offset == 55, end=60, committed=0)
    await fleet.live()
    assert fleet.lettered == [55]


async def test_a_deadly_record_is_not_handled_again_by_who_reads_it_again() -> None:
    """It is settled and its offset is not committed yet when the worker ends for another reason."""
    fleet = Fleet(lambda offset, alone: offset == 5, committed=0)
    await fleet.live()
    deaths = fleet.deaths
    for _ in range(2 * TAKEOVERS):
        assert await fleet.worker()
    assert (fleet.deaths, fleet.lettered) == (deaths, [5])


async def test_workers_that_die_for_other_reasons_cost_no_record() -> None:
    """Such as a machine that runs out of memory: each dies somewhere else."""
    lives = 0

    def dies(offset: int, alone: bool) -> bool:
        nonlocal lives
        lives += 1
        return lives % 3 == 0 and lives < 60

    fleet = Fleet(dies)
    await fleet.live(80)
    assert fleet.deaths > TAKEOVERS + DEATHS
    assert fleet.lettered == []


async def test_a_record_that_is_waited_for_has_not_ended_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Opik is away, so a record alone takes long, and deployments end one worker after another meanwhile."""
    monkeypatch.setattr(quarantines, "ALONE_SECONDS", 0.0)
    fleet = Fleet(lambda offset, alone: False)
    killed = []  # who is killed ends nothing in good order, as what is collected here would
    for _ in range(TAKEOVERS + 3 * DEATHS):
        quarantine = Quarantine(fleet.store, 16)
        await quarantine.taken_over(PLACE, 0, fleet.end)
        part = next(quarantine.parts(fleet.batch(0)))
        killed.append(inside := quarantine.admitted(part))
        assert not await inside.__aenter__()
        for _ in range(20):  # the loop runs: the record does not keep the process from anything
            await asyncio.sleep(0.0)
    await fleet.live()
    assert fleet.lettered == []


async def test_an_end_that_is_no_death_is_taken_back() -> None:
    """A stop, a rebalance, a failure of Redis: the handling is cancelled or raises, and the process lives."""
    fleet = Fleet(lambda offset, alone: offset == 5)
    while not fleet.deaths or fleet.watermark < 5:
        await fleet.worker()
    for _ in range(2 * DEATHS):
        quarantine = Quarantine(fleet.store, 16)
        await quarantine.taken_over(PLACE, 5, fleet.end)
        part = next(quarantine.parts(fleet.batch(5)))
        with suppress(Abandoned):
            async with quarantine.admitted(part) as deadly:
                assert not deadly
                raise Abandoned
    assert fleet.lettered == []


async def test_a_partition_without_records_is_not_suspected() -> None:
    store = MemoryStore(ManualClock())
    for _ in range(2 * TAKEOVERS):
        quarantine = Quarantine(store, 16)
        await quarantine.taken_over(PLACE, 7, 7)
        assert not quarantine.suspects


async def test_progress_clears_a_partition() -> None:
    store = MemoryStore(ManualClock())
    for start in range(3 * TAKEOVERS):
        quarantine = Quarantine(store, 16)
        await quarantine.taken_over(PLACE, start, 100)
        assert not quarantine.suspects


async def test_a_suspect_is_handled_with_nothing_else_in_flight() -> None:
    """Else another record that ends the process would be compared with it."""
    quarantine = Quarantine(MemoryStore(ManualClock()), 16)
    quarantine.suspects[PLACE] = 10
    suspect, other = Batch(*PLACE, 0, [Rec(b"", offset=0)]), Batch("rampgate.traces", 0, 0, [Rec(b"", offset=0)])
    order: list[str] = []
    go_on = asyncio.Event()

    async def handle(part: Batch, name: str, until: asyncio.Event | None = None) -> None:
        async with quarantine.admitted(part):
            order.append(f"{name} begins")
            if until is not None:
                await until.wait()
            order.append(f"{name} ends")

    async with asyncio.TaskGroup() as group:
        group.create_task(handle(other, "other", go_on))
        await asyncio.sleep(0.02)
        group.create_task(handle(suspect, "suspect"))
        await asyncio.sleep(0.05)
        group.create_task(handle(other, "next"))
        go_on.set()
    assert order == ["other begins", "other ends", "suspect begins", "suspect ends", "next begins", "next ends"]
