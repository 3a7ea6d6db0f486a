"""What a worker does besides its batches, on a real Valkey: withheld scores, lost watermarks, due turns."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from faust.types import TP
from structlog.testing import capture_logs

from agents.join.step import FOREVER
from agents.keys import DRAINING, WATERMARK, WITHHELD
from agents.ports import Change, Refusal, Unavailable, Write
from schemas.outcomes import Kind
from streams import maintenance
from streams.maintenance import Maintenance
from streams.metrics import Metrics
from streams.redis.fitness import Evicting, refuse_evicting
from streams.redis.seal_key import InstallationSeal
from streams.redis.state import RedisStore
from streams.retry import WallClock
from tests.contract.redis.stores import far, now_ms
from tests.unit.agents.builders import thumb, trace
from tests.unit.agents.join.world import World

PLACES = [TP("rampgate.thumbs", 0), TP("rampgate.thumbs", 1)]


class Worker:
    """One worker's consumption and ports over a store that it may share with others."""

    def __init__(self, url: str) -> None:
        self.store = RedisStore(url, "rg:")
        self.world = World()
        self.world.clock.ms = far() - 3_600_000
        self.world.store = self.store
        self.world.ports = replace(self.world.ports, store=self.store)
        self.world.start = lambda batch: None
        self.reports: list[Any] = []
        self.rewound: list[TP] = []
        self.fatal = self.reports.append
        self.replaying = self.unknown = False
        self.settled = dict.fromkeys(PLACES, 0)
        self.flow_active = True
        self.pipelines: dict[str, Any] = {}

    @property
    def maintenance(self) -> Maintenance:
        world, consumption = self.world, self
        return Maintenance(
            consumption,
            world.ports, world.policy, world.topics, Metrics(), self.reports.append, self.rebuilding,
            partial(refuse_evicting, self.store),
            WallClock(), InstallationSeal(self.store, "ours").announce,
        )  # fmt: skip

    async def rebuilding(self) -> bool:
        return self.replaying

    # As much of a consumption and of its consumer as is asked.

    @property
    def consumer(self) -> Worker:
        return self

    def assignment(self) -> set[TP]:
        return set(PLACES)

    def unsettled_from(self, tp: TP) -> int | None:
        return None if self.unknown else self.settled[tp]

    async def rewind(self, tp: TP) -> None:
        self.rewound.append(tp)

    # What a test does and sees.

    async def withhold(self, *response_ids: str) -> None:
        """Turns whose thumbs came while writing was off."""
        world = self.world
        await self.mark(0)
        await self.store.redis.set("rg:" + WATERMARK.key("rampgate.traces", 0), b"0")
        world.switch(write=False)
        now = world.clock.ms
        traces = world.send(Kind.TRACE, *(trace(one, now) for one in response_ids))
        await world.run(Kind.TRACE)
        assert traces
        world.send(Kind.THUMBS, *(thumb(one, "up", now) for one in response_ids))
        await world.run(Kind.THUMBS)
        world.switch(write=True)
        assert world.scores.log == []

    async def mark(self, *partitions: int, at: int = 0) -> None:
        marks = {WATERMARK.key("rampgate.thumbs", number): (b"%d" % at, FOREVER) for number in partitions}
        assert await self.store.apply(Change(sets=marks)) == []

    async def marked(self) -> bool:
        return bool(await self.store.redis.get("rg:" + WITHHELD.key()))

    async def held(self) -> bool:
        return bool(await self.store.redis.get("rg:" + DRAINING.key()))


@pytest.fixture
async def worker(redis_url: str) -> AsyncIterator[Worker]:
    made = Worker(redis_url)
    yield made
    await made.store.close()


# Scores withheld while writing was off.


async def test_what_was_withheld_is_written_once_writing_is_on_and_only_then(worker: Worker) -> None:
    await worker.withhold("a", "b", "c")
    assert await worker.marked()
    await worker.maintenance.withheld()
    assert {one: worker.world.score(one) for one in "abc"} == dict.fromkeys("abc", 1.0)
    assert not await worker.held()
    written = len(worker.world.scores.log)
    await worker.maintenance.withheld()
    assert not await worker.marked(), "another round found nothing more"
    await worker.maintenance.withheld()
    assert len(worker.world.scores.log) == written


async def test_all_turns_are_gone_through_in_parts(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maintenance, "DUE_AT_ONCE", 2)
    names = [f"r{number}" for number in range(7)]
    await worker.withhold(*names)
    await worker.maintenance.withheld()
    assert [name for name in names if worker.world.score(name) != 1.0] == []


async def test_a_failure_leaves_the_marker_and_gives_the_lease_back_so_that_it_is_done_again(worker: Worker) -> None:
    await worker.withhold("a")
    ports = worker.world.ports

    class Away:
        async def write(self, writes: Sequence[Write]) -> list[Refusal | None]:
            raise Unavailable("Opik is away")

    worker.world.ports = replace(ports, scores=Away())
    with pytest.raises(Unavailable):
        await worker.maintenance.withheld()
    assert await worker.marked()
    assert not await worker.held()
    worker.world.ports = ports
    await worker.maintenance.withheld()
    assert worker.world.score("a") == 1.0


async def test_the_marker_stands_until_all_is_written_so_that_a_kill_leaves_the_rest_to_the_next_worker(
    worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maintenance, "DUE_AT_ONCE", 1)
    await worker.withhold("a", "b", "c")
    ports = worker.world.ports
    stood = []

    class Watching:
        async def write(self, writes: Sequence[Write]) -> list[Refusal | None]:
            found = await ports.scores.write(writes)
            stood.append(await worker.marked())
            return found

    worker.world.ports = replace(ports, scores=Watching())
    await worker.maintenance.withheld()
    assert stood == [True, True, True]
    assert await worker.marked(), "what another server answered in the middle of it is looked for once more"
    await worker.maintenance.withheld()
    assert not await worker.marked()


def after_all_turns(worker: Worker, monkeypatch: pytest.MonkeyPatch, then: Callable[[], Awaitable[None]]) -> None:
    """The next round has gone through all turns when `then` happens."""
    turns = worker.store.turns

    async def and_then() -> AsyncIterator[list[tuple[str, bytes]]]:
        async for page in turns():
            yield page
        monkeypatch.undo()
        await then()

    monkeypatch.setattr(worker.store, "turns", and_then)


async def test_what_a_worker_that_is_still_switched_off_withholds_meanwhile_is_written_in_the_next_round(
    worker: Worker, redis_url: str
) -> None:
    """After its turn was passed by."""
    other = Worker(redis_url)
    try:
        await worker.withhold("a")
        await worker.maintenance.withheld()
        with pytest.MonkeyPatch.context() as patched:
            after_all_turns(worker, patched, lambda: other.withhold("late"))
            await worker.maintenance.withheld()
        assert worker.world.score("late") is None
        assert await worker.marked()
        await worker.maintenance.withheld()
        assert worker.world.score("late") == 1.0
    finally:
        await other.store.close()


async def test_what_comes_back_withheld_with_an_older_copy_of_the_state_is_written_in_the_next_round(
    worker: Worker,
) -> None:
    """Marker and turns as they were before the first round, after the turns were passed by."""
    await worker.withhold("a")
    older = {key: await worker.store.redis.dump(key) for key in await worker.store.redis.keys()}

    async def put_back() -> None:
        for key, blob in older.items():
            await worker.store.redis.restore(key, 3_600_000, blob, replace=True)

    await worker.maintenance.withheld()
    with pytest.MonkeyPatch.context() as patched:
        after_all_turns(worker, patched, put_back)
        await worker.maintenance.withheld()
    assert await worker.marked()
    written = len(worker.world.scores.log)
    await worker.maintenance.withheld()
    assert len(worker.world.scores.log) > written


async def test_one_worker_at_a_time_writes_what_was_withheld(worker: Worker) -> None:
    await worker.withhold("a")
    await worker.store.redis.set("rg:" + DRAINING.key(), b"another's", px=60_000)
    await worker.maintenance.withheld()
    assert worker.world.scores.log == []
    assert await worker.marked()
    assert await worker.store.redis.get("rg:" + DRAINING.key()) == b"another's"


async def test_nothing_withheld_is_written_while_topics_are_read_again(worker: Worker) -> None:
    await worker.withhold("a")
    worker.replaying = True
    await worker.maintenance.withheld()
    assert worker.world.scores.log == []
    assert worker.reports == [], "no turn is looked at, and Opik is not asked"
    assert await worker.marked()


# Lost watermarks.


async def test_a_partition_without_a_watermark_is_read_again_though_it_is_quiet(worker: Worker) -> None:
    await worker.mark(0)
    await worker.maintenance.watermarks()
    assert worker.rewound == [PLACES[1]]


async def test_a_state_that_a_batch_made_anew_meanwhile_is_not_made_anew_again(
    worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    await worker.mark(0)
    read, reads = worker.store.read, []

    async def and_then_there(keys: Sequence[str]) -> list[bytes]:
        found = await read(keys)
        reads.append(keys)
        await worker.mark(1)
        return found

    monkeypatch.setattr(worker.store, "read", and_then_there)
    await worker.maintenance.watermarks()
    assert len(reads) == 2
    assert worker.rewound == []


async def test_a_watermark_below_what_was_settled_is_of_an_older_state_which_is_read_on_from_there(
    worker: Worker,
) -> None:
    """A failover, or a server that comes back with an older snapshot; and no record comes any more."""
    await worker.mark(0, 1, at=50)
    worker.settled = {PLACES[0]: 50, PLACES[1]: 51}
    await worker.maintenance.watermarks()
    assert worker.rewound == [PLACES[1]]


async def test_a_partition_that_is_read_again_already_stands_below_its_watermark_and_is_left_alone(
    worker: Worker,
) -> None:
    await worker.mark(0, 1, at=50)
    worker.settled = {PLACES[0]: 50, PLACES[1]: 20}
    await worker.maintenance.watermarks()
    assert worker.rewound == []


@pytest.mark.parametrize("later", [False, True])
async def test_a_partition_that_went_back_while_its_watermark_was_read_does_not_go_back_again(
    worker: Worker, monkeypatch: pytest.MonkeyPatch, later: bool
) -> None:
    """At the first look or at the second."""
    await worker.mark(0, 1, at=50)
    worker.settled = {PLACES[0]: 50, PLACES[1]: 51}
    read, reads = worker.store.read, []

    async def and_then_rewound(keys: Sequence[str]) -> list[bytes]:
        found = await read(keys)
        reads.append(keys)
        if len(reads) > later:
            worker.settled[PLACES[1]] = 50
        return found

    monkeypatch.setattr(worker.store, "read", and_then_rewound)
    await worker.maintenance.watermarks()
    assert worker.rewound == []


@pytest.mark.parametrize("why", ["no flow", "unknown start"])
async def test_a_partition_that_is_not_read_yet_is_not_read_again(worker: Worker, why: str) -> None:
    worker.flow_active, worker.unknown = why != "no flow", why == "unknown start"
    await worker.maintenance.watermarks()
    assert worker.rewound == []


# Due turns.


async def test_due_turns_are_looked_at_and_not_while_topics_are_read_again(worker: Worker) -> None:
    await worker.store.apply(Change(due={"r": worker.world.clock.ms - 1}))
    worker.replaying = True
    assert not await worker.maintenance.due()
    assert worker.reports == []
    worker.replaying = False
    assert not await worker.maintenance.due()
    assert len(worker.reports) == 1


async def test_as_many_as_are_looked_at_at_once_mean_that_there_may_be_more(
    worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maintenance, "DUE_AT_ONCE", 2)
    await worker.store.apply(Change(due=dict.fromkeys("abc", worker.world.clock.ms - 1)))
    assert await worker.maintenance.due()
    assert not await worker.maintenance.due()


async def test_somebody_who_lets_redis_evict_keys_meanwhile_stops_the_worker(
    worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, refusal = worker.maintenance, Evicting("it evicts")

    async def refuse() -> None:
        raise refusal

    monkeypatch.setattr(ours, "refuse_evicting", refuse)
    await asyncio.wait_for(ours._every(60.0, ours.eviction), 30.0)
    assert worker.reports == [refusal], "told as fatal"


async def test_a_part_that_is_away_does_not_end_what_a_worker_does_besides_its_batches(
    worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries = 0

    async def due() -> bool:
        nonlocal tries
        tries += 1
        raise Unavailable("Redis is away") if tries == 1 else asyncio.CancelledError

    ours = worker.maintenance
    monkeypatch.setattr(ours, "due", due)
    task = asyncio.create_task(ours._every(0.0, ours.due))
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, 30.0)
    assert tries == 2


async def test_a_worker_that_seals_with_another_key_is_told_once_and_shown_until_the_keys_agree(worker: Worker) -> None:
    other, ours = InstallationSeal(worker.store, "theirs"), worker.maintenance
    gauge = partial(ours.metrics.registry.get_sample_value, "rampgate_seal_keys_differ")
    await other.announce(now_ms())
    with capture_logs() as logs:
        assert not await ours.seal()
        await other.announce(now_ms())
        assert not await ours.seal()
        assert gauge() == 1.0
        assert not await ours.seal()  # its worker is gone
        assert gauge() == 0.0
    assert [line["event"] for line in logs] == ["seal_keys_differ", "seal_keys_agree"]
