"""Samples of gates while the state they are drawn from is being made anew (PC5 §5.5)."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from types import SimpleNamespace
from typing import Any

import pytest
from registry_disk import built

from agents.counting import HOUR
from agents.memory import ManualClock, MemoryStore
from agents.policy import Policy
from agents.pools import pool_cell
from agents.ports import Change, Pool, Unavailable
from evalcore.gates.requests import Asked, read
from evalcore.gates.sampling import Candidate
from evalcore.registry import Registry
from schemas.gate_examples import RAMP_STEP
from schemas.judges import Milestone
from streams.pooled_traces import InOpik, PooledTraces, Whole
from streams.samples import PooledSamples


class NoRecords:
    async def fetch(self, places: Any) -> list[Any]:
        return [None for _ in places]


async def not_in_opik(trace_id: str) -> None:
    return None


def pooled(
    store: MemoryStore, records: Any, clock: ManualClock, whole: Whole = nullcontext, opik: InOpik = not_in_opik
) -> PooledSamples:
    """Where no candidate is named: nobody is to ask for a dataset or a candidate."""
    nobody: Any = None
    traces = PooledTraces(store, records, "traces", clock, opik, whole)
    return PooledSamples(store, traces, Policy(), clock, nobody, nobody)


async def test_nothing_is_drawn_from_pools_that_are_being_made_anew() -> None:
    """Else a Redis that came back empty would fail the gate with insufficient_sample."""
    rebuilding = True

    @asynccontextmanager
    async def whole() -> AsyncIterator[None]:
        yield
        if rebuilding:
            raise Unavailable("made anew")

    clock = ManualClock()
    records: Any = NoRecords()
    samples = pooled(MemoryStore(clock), records, clock, whole)
    asked = read(json.dumps(RAMP_STEP).encode())
    assert isinstance(asked, Asked)
    wanted: tuple[Asked, Milestone, Registry] = (asked, Milestone.PRE_RAMP, built())
    with pytest.raises(Unavailable, match="made anew"):
        await samples.frozen(*wanted)
    rebuilding = False
    assert (await samples.frozen(*wanted)).facts.size == 0
    rebuilding = True
    assert (await samples.frozen(*wanted)).facts.size == 0, "one that is frozen is there"


async def test_a_turn_that_ended_without_an_output_stays_in_the_sample_as_unscored() -> None:
    """Left out, an agent that answers every second turn would be judged by the other half (contracts §3, "Missing"). A
    turn that is still going on is not in the sample."""
    clock = ManualClock()
    store = MemoryStore(clock)
    now = clock.now_ms()
    asked = read(json.dumps(RAMP_STEP).encode())
    assert isinstance(asked, Asked)
    step = asked.step
    values = [
        {"input": "hi", "output": "hello", "ended_at": "2026-11-21T12:00:00Z"},
        {"input": "hi", "output": None, "ended_at": "2026-11-21T12:00:00Z"},
        {"input": "hi", "ended_at": "2026-11-21T12:00:00Z"},
        {"input": "hi", "output": None, "ended_at": None},
    ]
    cell = pool_cell(step.vertical, step.agent_id, step.agent_version, now // HOUR)
    drawn = [Candidate(bytes([place]) * 16, now - 1, 0, place) for place in range(len(values))]
    members = {one.pack(): one.number for one in drawn}
    await store.apply(Change(pools={cell: Pool(now + HOUR, 600, members)}))

    class Records:
        async def fetch(self, places: Any) -> list[Any]:
            return [SimpleNamespace(value=json.dumps(values[offset]).encode()) for _, _, offset in places]

    records: Any = Records()
    sample = await pooled(store, records, clock).frozen(asked, Milestone.PRE_RAMP, built())
    assert sorted(item.missing for item in sample.items) == ["", "the agent gave no output"]
    assert "2 of those drawn" in sample.shortage


async def test_what_an_event_leaves_out_is_read_from_opik() -> None:
    """Contracts §1: a trace's event "without input/output, to be read from Opik". Without an answer of Opik's the
    request waits; a turn that Opik does not have either is not in the sample."""
    clock = ManualClock()
    store = MemoryStore(clock)
    asked = read(json.dumps(RAMP_STEP).encode())
    assert isinstance(asked, Asked)
    step = asked.step
    ended = {"ended_at": "2026-11-21T12:00:00Z"}
    values = [{"trace_id": name, **ended} for name in ("a", "b", "c")] + [
        {"trace_id": "d", "input": 1, "output": 2, **ended}
    ]
    cell = pool_cell(step.vertical, step.agent_id, step.agent_version, clock.now_ms() // HOUR)
    drawn = [Candidate(bytes([place]) * 16, clock.now_ms() - 1, 0, place) for place in range(len(values))]
    await store.apply(Change(pools={cell: Pool(clock.now_ms() + HOUR, 600, {one.pack(): one.number for one in drawn})}))
    down, looked_up = True, []

    async def opik(trace_id: str) -> dict[str, Any] | None:
        if down:
            raise Unavailable("Opik is away")
        looked_up.append(trace_id)
        return {"a": {"input": "hi", "output": "hello", "tags": []}, "b": {"input": "hi", "output": None}}.get(trace_id)

    class Records:
        async def fetch(self, places: Any) -> list[Any]:
            return [SimpleNamespace(value=json.dumps(values[offset]).encode()) for _, _, offset in places]

    records: Any = Records()
    samples = pooled(store, records, clock, opik=opik)
    with pytest.raises(Unavailable, match="Opik is away"):
        await samples.frozen(asked, Milestone.PRE_RAMP, built())
    down = False
    items = (await samples.frozen(asked, Milestone.PRE_RAMP, built())).items
    found = {item.source["trace_id"]: (item.source["output"], item.missing) for item in items}
    assert found == {"a": ("hello", ""), "b": (None, "the agent gave no output"), "d": (2, "")}
    assert sorted(looked_up) == ["a", "b", "c"], "what an event says is not asked for"
    whole = [item.source["trace_id"] for item in items if item.digest]
    assert whole == ["d"], "what Opik said is not in the record's hash: such an item's prompts are made each time"


async def test_pc5_5_5_a_gates_sample_stays_and_the_next_requests_is_drawn_anew() -> None:
    """Frozen for its own run; refreshed more often than the week that is asked for: with every request."""
    clock = ManualClock()
    store = MemoryStore(clock)

    class Records:
        async def fetch(self, places: Any) -> list[Any]:
            value = json.dumps({"input": "hi", "output": "hello", "ended_at": "2026-11-21T12:00:00Z"}).encode()
            return [SimpleNamespace(value=value) for _ in places]

    records: Any = Records()
    samples = pooled(store, records, clock)

    async def came(trace: int) -> None:
        one = Candidate(bytes([trace]) * 16, clock.now_ms() - 1, 0, trace)
        cell = pool_cell(RAMP_STEP["vertical"], RAMP_STEP["agent_id"], RAMP_STEP["agent_version"], one.ended // HOUR)
        await store.apply(Change(pools={cell: Pool(clock.now_ms() + HOUR, 600, {one.pack(): one.number})}))

    async def size(request_id: str) -> int:
        asked = read(json.dumps({**RAMP_STEP, "request_id": request_id}).encode())
        assert isinstance(asked, Asked)
        return (await samples.frozen(asked, Milestone.PRE_RAMP, built())).facts.size

    await came(1)
    assert await size("first") == 1
    await came(2)
    assert (await size("first"), await size("second")) == (1, 2)
