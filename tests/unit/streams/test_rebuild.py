"""Adopting what Opik holds, when the state is lost again before that is done."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from faust.types import TP

from agents.codec import TraceFacts
from agents.ports import Unauthorized
from streams.rebuild import Rebuild
from tests.unit.agents.builders import found_trace
from tests.unit.agents.join.world import World

PLACE = TP("rampgate.thumbs", 0)


class Traces:
    """Two turns with scores, a page each. The first time, the state is lost after so many pages."""

    def __init__(self, world: World, lost_after: int) -> None:
        self._world, self._lost_after = world, lost_after
        self.reads = 0

    async def scored(self, since: int) -> AsyncIterator[list[TraceFacts]]:
        self.reads += 1
        for number, rid in enumerate(("a", "b"), 1):
            yield [msgspec.structs.replace(found_trace(rid), wrote={"thumbs": 1})]
            if self.reads == 1 and number == self._lost_after:
                self._world.store.flush()


@pytest.mark.parametrize(("lost_after", "reads"), [(0, 1), (1, 2), (2, 2)])
async def test_a_state_that_is_lost_again_is_adopted_anew(
    lost_after: int, reads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("streams.rebuild.PAUSE", 0.0)
    world = World()
    traces: Any = Traces(world, lost_after)
    rebuild = Rebuild(replace(world.ports, traces=traces), world.policy, failed=pytest.fail)
    await rebuild.lost(PLACE)
    await rebuild.ready()
    assert traces.reads == reads
    assert [world.turn(rid).wrote_thumbs for rid in ("a", "b")] == [1, 1]
    assert await world.store.read(["adopted", "adopting"]) == [b"1", b""]


class Closed:
    """Opik takes no key."""

    async def scored(self, since: int) -> AsyncIterator[list[TraceFacts]]:
        raise Unauthorized("no key")
        yield []


async def test_a_rebuild_that_fails_says_so_and_lets_no_batch_pass() -> None:
    world, told = World(), []
    traces: Any = Closed()
    rebuild = Rebuild(replace(world.ports, traces=traces), world.policy, failed=told.append)
    await rebuild.lost(PLACE)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(rebuild.ready(), 0.05)
    assert [type(error) for error in told] == [Unauthorized]
    assert not rebuild.running
