"""Samples of gates while the state they are drawn from is being made anew (PC5 §5.5)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agents.memory import ManualClock, MemoryStore
from agents.policy import Policy
from agents.ports import Unavailable
from evalcore.gates.requests import Asked, read
from evalcore.registry import Registry
from schemas.gate_examples import RAMP_STEP
from schemas.judges import Milestone
from schemas.manifests import GateDefaults
from streams.samples import PooledSamples


class NoRecords:
    async def fetch(self, places: Any) -> list[Any]:
        return [None for _ in places]


async def test_nothing_is_drawn_from_pools_that_are_being_made_anew() -> None:
    """Else a Redis that came back empty would fail the gate with insufficient_sample."""
    rebuilding = True
    clock = ManualClock()
    records: Any = NoRecords()
    registry: Any = type("Gates", (), {"gates": GateDefaults()})()
    samples = PooledSamples(MemoryStore(clock), records, "traces", Policy(), clock, lambda: rebuilding)
    asked = read(json.dumps(RAMP_STEP).encode())
    assert isinstance(asked, Asked)
    wanted: tuple[Asked, Milestone, Registry] = (asked, Milestone.PRE_RAMP, registry)
    with pytest.raises(Unavailable, match="made anew"):
        await samples.frozen(*wanted)
    rebuilding = False
    assert (await samples.frozen(*wanted)).facts.size == 0
    rebuilding = True
    assert (await samples.frozen(*wanted)).facts.size == 0, "one that is frozen is there"
