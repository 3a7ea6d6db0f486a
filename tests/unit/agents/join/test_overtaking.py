"""The state is lost while a step is writing: what it writes last must not stand in Opik (promises 1 and 2)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from faust.types import TP

from agents import thumbs
from agents.codec import TraceFacts
from agents.join.batches import FetchedBatch
from agents.join.rebuilding import adopt
from agents.join.step import Hold
from agents.ports import Refusal, StateLost, Write
from schemas.outcomes import Kind
from schemas.topics import Topics
from streams.kafka.start_offsets import Gaps, StartOffsets
from streams.kafka.transport import in_doubt
from streams.metrics import Metrics
from streams.pipeline import Pipeline
from streams.quarantine import Quarantine
from tests.unit.agents.builders import found_trace, reroll, thumb, trace
from tests.unit.agents.join.world import World

PLACE = TP("rampgate.thumbs", 0)


class Generation:
    """A consumer as far as a pipeline knows it: batches are current if they are of this generation."""

    flow_active = True

    def __init__(self) -> None:
        self.now = 0
        self.abandoned: list[int] = []

    def current(self, batch: FetchedBatch) -> bool:
        return batch.generation == self.now

    def halt(self, partition: TP) -> None:
        raise AssertionError("nothing here pauses")

    def release(self, partition: TP) -> None:
        raise AssertionError("a paused partition is rewound")

    def abandon(self, batch: FetchedBatch) -> None:
        self.abandoned.append(batch.generation)


class SlowScores:
    """Holds the first write back until it is let go; `begun` is set when it waits."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.begun, self.let_go = asyncio.Event(), asyncio.Event()

    async def write(self, writes: Sequence[Write]) -> list[Refusal | None]:
        if not self.begun.is_set():
            self.begun.set()
            await self.let_go.wait()
        return await self._world.scores.write(writes)


class Stage:
    """A pipeline of thumbs whose first write is slow, in a world of its own."""

    def __init__(self) -> None:
        self.world, self.consumer = World(), Generation()
        self.scores = SlowScores(self.world)
        self.lost: list[StateLost] = []
        self.fatal: list[BaseException] = []
        self.acked: list[int] = []
        self.pipeline = Pipeline(
            thumbs.AGENT,
            replace(self.world.ports, scores=self.scores),
            self.world.policy,
            self.world.topics,
            in_flight=4,
            bad_in_a_row=1_000,
            consumer=lambda: self.consumer,
            observe=lambda *_: None,
            lost=self._lost,
            fatal=self.fatal.append,
            hold=Hold(),
            quarantine=Quarantine(self.world.store, 8_000),
        )
        rebuild: Any = SimpleNamespace(lost=self._nothing, join=self._nothing, read_again=self._nothing)
        self.start_offsets = StartOffsets(
            self.world.store, self.world.clock, 60_000, 8_000, rebuild, Gaps(Topics(), Metrics(), 60_000)
        )

    async def _nothing(self, *_: Any) -> None: ...

    async def _lost(self, lost: StateLost, batch: FetchedBatch) -> None:
        self.lost.append(lost)

    async def first_after(self, moments: dict[TP, int]) -> dict[TP, int | None]:
        return dict.fromkeys(moments, 0)

    async def bounds(self, tps: list[TP]) -> dict[TP, tuple[int, int]]:
        return dict.fromkeys(tps, (0, len(self.world.logs[Kind.THUMBS, 0])))

    async def topic_ids(self, topics: Iterable[str]) -> dict[str, str]:
        return {}

    def batch(self) -> FetchedBatch:
        """All thumbs there are, as the consumer would hand them on now."""
        records = self.world.logs[Kind.THUMBS, 0]
        doubtful = in_doubt(self.start_offsets.doubts, PLACE, 0, len(records) - 1)
        return FetchedBatch(*PLACE, 0, records, generation=self.consumer.now, doubtful=doubtful)

    def submit(self) -> asyncio.Task[Any]:
        batch = self.batch()
        return asyncio.create_task(self.pipeline.submit(batch, lambda: self.acked.append(batch.generation)))

    async def rewind(self, settled: int | None) -> None:
        assert await self.start_offsets.start(PLACE, None, settled, self) == 0
        self.consumer.now += 1

    async def end(self) -> None:
        while self.pipeline.in_flight:
            await asyncio.wait(set(self.pipeline._tasks), timeout=30.0)
        assert not self.fatal


def held(**wrote: int) -> TraceFacts:
    """What a rebuild reads in Opik, with these scores."""
    return msgspec.structs.replace(found_trace("r"), wrote=wrote)


async def begun() -> Stage:
    """A thumb is being written to Opik, with a reroll of 0.0; the reroll that comes meanwhile is settled."""
    world = (stage := Stage()).world
    await world.tell(Kind.TRACE, trace("r"))
    world.send(Kind.THUMBS, thumb("r", "down"))
    world.start(stage.batch())
    await stage.submit()
    await stage.scores.begun.wait()
    await world.tell(Kind.REROLL, reroll("r"))
    assert world.signals("r") == (None, 1.0)
    return stage


async def test_a_step_under_way_when_the_state_is_lost_does_not_have_the_last_word() -> None:
    world = (stage := await begun()).world
    world.lose_state()
    await adopt([held(reroll=2)], world.ports, world.policy, world.clock.ms)
    await stage.rewind(settled=0)
    assert stage.batch().doubtful
    later = stage.submit()
    for _ in range(20):
        await asyncio.sleep(0)
    assert not later.done(), "the earlier one is writing yet"
    stage.scores.let_go.set()
    await later
    await stage.end()
    assert stage.consumer.abandoned == [0]
    assert stage.acked == [1]
    assert world.signals("r") == (-1.0, 1.0)


async def test_one_that_waits_for_an_older_one_and_is_rewound_itself_is_given_up() -> None:
    stage = await begun()
    await stage.rewind(settled=0)
    waiting = stage.submit()
    await asyncio.sleep(0)
    stage.consumer.now += 1
    stage.scores.let_go.set()
    await asyncio.wait_for(waiting, 30.0)
    await stage.end()
    assert sorted(stage.consumer.abandoned) == [0, 1]
    assert stage.acked == []


@pytest.mark.parametrize("grace", [0.0, 5.0])
async def test_a_stop_is_not_held_up_by_one_that_waits(grace: float) -> None:
    stage = await begun()
    await stage.rewind(settled=0)
    waiting = stage.submit()
    await asyncio.sleep(0)
    stop = asyncio.create_task(stage.pipeline.stop(grace))
    await asyncio.sleep(0)
    if grace:
        stage.scores.let_go.set()
    await asyncio.wait_for(asyncio.gather(stop, waiting), 30.0)
    assert sorted(stage.consumer.abandoned) == [0, 1]
    assert stage.acked == []


async def test_a_visit_under_way_when_the_state_is_lost_does_not_have_the_last_word_either() -> None:
    """It writes 0.0 after the rebuild has read 1.0 in Opik, and finds no turn where it could note that."""
    world = World()
    await world.tell(Kind.THUMBS, thumb("r", "up"))
    world.traces.known["r"] = found_trace("r")
    plain, late = world.ports, True

    class Late:
        async def write(self, writes: Sequence[Write]) -> list[Refusal | None]:
            nonlocal late
            if late:
                late, world.ports = False, plain
                await world.tell(Kind.TRACE, trace("r"))
                await world.tell(Kind.REROLL, reroll("r"))
                assert world.signals("r") == (1.0, 1.0)
                world.lose_state()
            return await plain.scores.write(writes)

    world.ports = replace(plain, scores=Late())
    await world.revisit("r")
    assert world.signals("r") == (1.0, 0.0)
    await adopt([held(thumbs=1, reroll=2)], world.ports, world.policy, world.clock.ms)
    await world.drain()
    assert world.signals("r") == (1.0, 1.0)
    world.balance()
