"""Brings a world's thumbs through a pipeline, as one batch."""

from __future__ import annotations

import asyncio
from typing import Any

import structlog
from faust.types import TP

from agents import thumbs
from agents.join.batches import Agent, FetchedBatch
from agents.join.step import Hold
from schemas.outcomes import Kind
from streams.pipeline import Pipeline
from streams.quarantine import Quarantine
from tests.unit.agents.join.world import World


class Ours:
    """A consumer whose every batch is current."""

    flow_active = True

    def current(self, batch: FetchedBatch) -> bool:
        return True

    def halt(self, partition: TP) -> None: ...

    def release(self, partition: TP) -> None:
        raise AssertionError("a paused partition is rewound")

    def abandon(self, batch: FetchedBatch) -> None: ...


async def settle(world: World, agent: Agent = thumbs.AGENT, limit: int = 1_000) -> list[str]:
    """Everything in the thumbs log as one batch through a pipeline; why the worker stopped, or a partition paused."""
    fatal: list[BaseException] = []

    async def lost(*_: Any) -> None: ...

    pipeline = Pipeline(
        agent,
        world.ports,
        world.policy,
        world.topics,
        in_flight=2,
        bad_in_a_row=limit,
        consumer=Ours,
        observe=lambda *_: None,
        lost=lost,
        fatal=fatal.append,
        hold=Hold(),
        quarantine=Quarantine(world.store, 8_000),
    )
    records = world.logs[Kind.THUMBS, 0][world.committed.get((Kind.THUMBS, 0), 0) :]
    batch = FetchedBatch("rampgate.thumbs", 0, records[0].offset, records)
    world.start(batch)
    await pipeline.submit(batch, lambda: world.committed.update({(Kind.THUMBS, 0): batch.end}))
    with structlog.testing.capture_logs():  # its default rendering of a traceback takes seconds
        await asyncio.wait(set(pipeline._tasks))
    return [*map(str, fatal), *pipeline.paused.values()]
