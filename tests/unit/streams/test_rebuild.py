"""Adopting what Opik holds, when the state is lost again before that is done."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from faust.types import TP
from redis.exceptions import ResponseError

from agents.codec import TraceFacts
from streams.rebuild import Rebuild
from tests.unit.agents.builders import found_trace
from tests.unit.agents.join.world import World

PLACE = TP("rampgate.thumbs", 0)


class Keys:
    """The few commands of Redis that a rebuild gives."""

    def __init__(self) -> None:
        self.held: dict[str, bytes] = {}

    async def get(self, key: str) -> bytes | None:
        return self.held.get(key)

    async def set(self, key: str, value: bytes, **_: Any) -> bool:
        return self.held.setdefault(key, value) is value

    async def pexpire(self, key: str, ms: int) -> bool:
        return key in self.held

    async def persist(self, key: str) -> bool:
        return key in self.held

    async def rename(self, key: str, new: str) -> None:
        if key not in self.held:
            raise ResponseError("no such key")
        self.held[new] = self.held.pop(key)


class Traces:
    """Two turns with scores, a page each. The first time, the state is lost after so many pages."""

    def __init__(self, world: World, keys: Keys, lost_after: int) -> None:
        self._world, self._keys, self._lost_after = world, keys, lost_after
        self.reads = 0

    async def scored(self, since: int) -> AsyncIterator[list[TraceFacts]]:
        self.reads += 1
        for number, rid in enumerate(("a", "b"), 1):
            yield [msgspec.structs.replace(found_trace(rid), wrote={"thumbs": 1})]
            if self.reads == 1 and number == self._lost_after:
                self._world.store.flush()
                self._keys.held.clear()


@pytest.mark.parametrize(("lost_after", "reads"), [(0, 1), (1, 2), (2, 2)])
async def test_a_state_that_is_lost_again_is_adopted_anew(
    lost_after: int, reads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("streams.rebuild.PAUSE", 0.0)
    world, keys = World(), Keys()
    traces: Any = Traces(world, keys, lost_after)
    store: Any = world.store
    store.redis, store.prefix = keys, "p:"
    rebuild = Rebuild(replace(world.ports, traces=traces), world.policy)
    await rebuild.lost(PLACE)
    await rebuild.ready()
    assert traces.reads == reads
    assert [world.turn(rid).wrote_thumbs for rid in ("a", "b")] == [1, 1]
    assert list(keys.held) == ["p:adopted"]
