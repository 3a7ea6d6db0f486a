"""A gate's sample in a real Redis: whoever can write there chooses nothing of it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import orjson
import pytest

from agents.policy import Policy
from evalcore.scoring.cache import SEAL_BYTES
from schemas.judges import Milestone
from streams.gates.samples import FrozenSamples, PooledTraces
from streams.redis.state import RedisStore
from tests.contract.redis.stores import WallClock
from tests.unit.streams.gates.sample_world import World, asked, known, not_in_opik, sealing


@pytest.fixture
async def store(redis_url: str) -> AsyncIterator[RedisStore]:
    made = RedisStore(redis_url, "sealed:")
    yield made
    await made.close()


def _of_one_trace(sample: bytes) -> bytes:
    drawn = orjson.loads(sample)
    return orjson.dumps({**drawn, "members": drawn["members"][:1], "inputs": []})


async def test_an_altered_draw_and_an_altered_frozen_sample_choose_nothing_and_are_told_of(store: RedisStore) -> None:
    """The altered sample would leave one trace to judge, the altered draw the inputs of one."""
    clock: Any = WallClock()
    world = World(clock)
    nothing: Any = store
    world.store = nothing
    await world.traced(6, "v2")
    await world.traced(30)
    told: list[str] = []
    reader: Any = world

    def samples() -> FrozenSamples:
        """As a worker has them that has just been started."""
        traces = PooledTraces(store, reader, "traces", clock, not_in_opik)
        return FrozenSamples(store, traces, Policy(), clock, world.read, reader, sealing, told.append)

    honest = await samples().frozen(asked(), Milestone.PRE_RAMP, known())
    assert honest.facts.topped_up > 0
    for family in ("f:*", "ql:*"):
        (key,) = [key async for key in store.redis.scan_iter(f"sealed:{family}")]
        held = await store.redis.get(key)
        seal, content = held[:SEAL_BYTES], held[SEAL_BYTES:]
        chosen = content[:16] if family == "ql:*" else _of_one_trace(content)
        await store.redis.set(key, seal + chosen, keepttl=True)
    again = await samples().frozen(asked(), Milestone.PRE_RAMP, known())
    assert (again.facts.fingerprint, again.facts.size) == (honest.facts.fingerprint, honest.facts.size)
    assert told == ["sample", "draw"]
    assert (await samples().frozen(asked(), Milestone.PRE_RAMP, known())).facts == again.facts
    assert told == ["sample", "draw"], "what was drawn anew is sealed"
