"""Adopting what Opik holds, when the state is lost again before that is done, or the worker that does it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from faust.types import TP

from agents.codec import TraceFacts
from agents.keys import ADOPTED, ADOPTING, FOREVER, WATERMARK
from agents.ports import Change, Unauthorized, Unavailable
from streams import rebuild as rebuilding
from streams.opik.traces import FIRST_PLACE, SearchPlace
from streams.rebuild import Rebuild
from tests.unit.agents.builders import found_trace
from tests.unit.agents.join.world import World
from tests.waiting import come

PLACE = TP("rampgate.thumbs", 0)
PAGES = "abcd"


class Traces:
    """Four turns with scores, a page each. `meanwhile` runs before each page, with how many pages were read so far."""

    def __init__(self, meanwhile: Callable[[int], Awaitable[None]]) -> None:
        self._meanwhile = meanwhile
        self.read: list[str] = []

    async def scored(
        self, since: int, place: SearchPlace = FIRST_PLACE
    ) -> AsyncIterator[tuple[list[TraceFacts], SearchPlace]]:
        for rid in PAGES:
            if rid <= place.after:
                continue
            await self._meanwhile(len(self.read))
            self.read.append(rid)
            page = [msgspec.structs.replace(found_trace(rid), wrote={"thumbs": 1})]
            yield page, SearchPlace("p", 0, rid, (PAGES.index(rid) + 1) / len(PAGES))


class Rig:
    """A state and an Opik, and rebuilds of as many workers as a test makes."""

    def __init__(self) -> None:
        self.world, self.traces, self.told = World(), Traces(self._meanwhile), list[BaseException]()
        self.at_page: dict[int, Callable[[], Awaitable[None]]] = {}

    async def _meanwhile(self, read: int) -> None:
        if read in self.at_page:
            await self.at_page.pop(read)()

    def worker(self) -> Rebuild:
        traces: Any = self.traces
        return Rebuild(replace(self.world.ports, traces=traces), self.world.policy, failed=self.told.append)

    async def lease_runs_out(self) -> None:
        self.world.clock.ms += rebuilding.LEASE_MS + 1

    async def over(self, worker: Rebuild) -> None:
        """The rebuild has come to its end."""
        assert worker._task is not None
        await asyncio.wait_for(worker._task, 30)
        assert worker.told()
        assert not worker.running

    async def mark(self, partition: TP, offset: int) -> None:
        change = Change(sets={WATERMARK.key(*partition): (str(offset).encode(), FOREVER)})
        assert await self.world.store.apply(change) == []

    async def adopted(self) -> bool:
        wrote = [self.world.turn(rid).wrote_thumbs for rid in PAGES]
        return wrote == [1] * len(PAGES) and await self.world.store.read([ADOPTED.key(), ADOPTING.key()]) == [b"1", b""]


@pytest.fixture
def rig(monkeypatch: pytest.MonkeyPatch) -> Rig:
    monkeypatch.setattr(rebuilding, "PAUSE", 0.0)
    return Rig()


@pytest.mark.parametrize(("lost_at", "read"), [(None, "abcd"), (1, "ababcd"), (3, "abcdabcd")])
async def test_a_state_that_is_lost_again_is_adopted_anew(rig: Rig, lost_at: int | None, read: str) -> None:
    async def flush() -> None:
        rig.world.store.flush()

    if lost_at is not None:
        rig.at_page[lost_at] = flush
    worker = rig.worker()
    await worker.lost(PLACE)
    await rig.over(worker)
    assert "".join(rig.traces.read) == read
    assert await rig.adopted()


async def test_a_search_that_opik_puts_off_goes_on_at_its_page(rig: Rig) -> None:
    """However long Opik asks to wait, and though the lease ran out meanwhile."""

    async def put_off() -> None:
        await rig.lease_runs_out()
        raise Unavailable("429: in 45 s")

    rig.at_page[2] = put_off
    worker = rig.worker()
    await worker.lost(PLACE)
    await rig.over(worker)
    assert "".join(rig.traces.read) == PAGES
    assert await rig.adopted()


async def test_a_successor_goes_on_where_a_worker_died_and_holds_scores_back_before(rig: Rig) -> None:
    """The successor's partitions have watermarks by then: only what stands in the state tells it of the loss."""
    stuck = asyncio.Event()

    async def hang() -> None:
        stuck.set()
        await asyncio.Event().wait()

    rig.at_page[2] = hang
    first, second = rig.worker(), rig.worker()
    await first.lost(PLACE)
    await stuck.wait()
    assert first._task is not None
    first._task.cancel()
    await asyncio.gather(first._task, return_exceptions=True)
    await rig.lease_runs_out()
    await second.join()
    assert second.running
    assert second.hold.before
    await rig.over(second)
    assert "".join(rig.traces.read) == PAGES
    assert await rig.adopted()


async def test_a_loss_stands_in_the_state_before_any_watermark_does(rig: Rig) -> None:
    """A worker that dies right after it has set the first watermark leaves the adoption to whoever comes next."""
    worker = rig.worker()
    await worker.lost(PLACE)
    (stand,) = await rig.world.store.read([ADOPTED.key()])
    assert stand
    assert stand != rebuilding.DONE


async def test_without_a_loss_there_is_nothing_to_take_part_in(rig: Rig) -> None:
    worker = rig.worker()
    await worker.join()
    assert not worker.running
    await worker.lost(PLACE)
    await rig.over(worker)
    other = rig.worker()
    await other.join()
    assert not other.running, "all is adopted"


async def test_the_lease_is_renewed_while_a_page_is_waited_for(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rebuilding, "LEASE_MS", 30)
    renewed, store = asyncio.Event(), rig.world.store

    async def wait() -> None:
        ends = store.values[ADOPTING.key()][1]
        rig.world.clock.ms += 20
        await come(lambda: store.values[ADOPTING.key()][1] != ends)
        renewed.set()

    rig.at_page[1] = wait
    worker = rig.worker()
    await worker.lost(PLACE)
    await rig.over(worker)
    assert renewed.is_set()
    assert "".join(rig.traces.read) == PAGES


async def test_it_tells_how_far_it_is_and_how_long_it_takes(rig: Rig) -> None:
    told: list[str] = []
    worker = rig.worker()

    async def look() -> None:
        rig.world.clock.ms += 20_000
        told.append(worker.told())

    rig.at_page = {1: look, 3: look}
    await worker.lost(PLACE)
    await rig.over(worker)
    assert told == [
        "rebuilding the join state: 25% of what Opik holds is adopted, 1 turns in 20 s, about 60 s to go",
        "rebuilding the join state: 75% of what Opik holds is adopted, 3 turns in 40 s, about 13 s to go",
    ]


async def test_whoever_waits_for_another_worker_tells_that_workers_progress(rig: Rig) -> None:
    first, second = rig.worker(), rig.worker()
    told: list[str] = []

    async def look() -> None:
        await second.join()
        await come(lambda: "50%" in second.told())
        told.append(second.told())

    rig.at_page[2] = look
    await first.lost(PLACE)
    await rig.over(first)
    await rig.over(second)
    assert len(told) == 1
    assert "".join(rig.traces.read) == PAGES


async def test_a_rebuild_that_fails_says_so_and_holds_scores_back_for_good(rig: Rig) -> None:
    """Opik takes no key."""

    async def refuse() -> None:
        raise Unauthorized("no key")

    rig.at_page[0] = refuse
    worker = rig.worker()
    await worker.lost(PLACE)
    await rig.over(worker)
    assert [type(error) for error in rig.told] == [Unauthorized]
    assert worker.hold.before


async def test_scores_of_older_traces_wait_until_all_is_adopted(rig: Rig) -> None:
    worker, held = rig.worker(), list[tuple[int, str]]()
    begins = rig.world.clock.ms

    async def look() -> None:
        rig.world.clock.ms += 5_000
        held.append((worker.hold.before - begins, worker.hold.project))

    rig.at_page = {0: look, 1: look, 3: look}
    assert not worker.hold.before
    await worker.lost(PLACE)
    await rig.over(worker)
    assert held == [(60_000, ""), (60_000, "p"), (60_000, "p")], "for traces of before, give or take a minute of clocks"
    assert not worker.hold.before


async def test_scores_of_older_traces_wait_until_every_partition_has_been_read_again(rig: Rig) -> None:
    """A worker that has read its own again must not write what a record of another's partition overrules."""
    first, second, other = rig.worker(), rig.worker(), TP("rampgate.rerolls", 3)
    await first.lost(PLACE)
    await first.read_again(PLACE, 10)
    await second.read_again(other, 20)
    await rig.mark(PLACE, 10)
    await rig.mark(other, 19)
    idle = rig.worker()
    assert await idle.join(), "a worker without a partition takes part too"
    adopted = "rebuilding the join state from the topics: all that Opik holds is adopted"
    await come(lambda: first.told() == adopted)
    assert all(worker.hold.before and not worker.hold.project for worker in (first, second, idle))
    await rig.mark(other, 20)
    for worker in (first, second, idle):
        await rig.over(worker)
        assert not worker.hold.before
        assert not await worker.join()


async def test_an_older_copy_is_read_on_and_nothing_is_adopted(rig: Rig) -> None:
    worker = rig.worker()
    await rig.mark(PLACE, 5)
    await worker.read_again(PLACE, 10)
    assert worker.hold.before
    await rig.mark(PLACE, 10)
    await rig.over(worker)
    assert rig.traces.read == []
    assert await rig.world.store.read([ADOPTED.key()]) == [b""]


async def test_a_topic_that_is_made_again_is_waited_for_no_longer(rig: Rig) -> None:
    """The new log may never get as far as the old one was."""
    worker = rig.worker()
    await worker.read_again(PLACE, 1_000)
    await rig.mark(PLACE, 0)
    await worker.read_again(PLACE, 0)
    await rig.over(worker)
    assert not await worker.join()
