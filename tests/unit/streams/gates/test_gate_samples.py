"""Samples of gates while the state they are drawn from is being made anew (PC5 §5.5)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from typing import Any

import pytest

from agents.policy import Policy
from agents.ports import Unavailable
from evalcore.gates.requests import RampRequest
from evalcore.registry.registry import Registry
from schemas.judges import Milestone
from streams.gates.samples import FrozenSamples, PooledTraces, StateIsComplete, TraceInOpik
from tests.memory_ports import ManualClock, MemoryStore
from tests.unit.evalcore.registry.registry_disk import built
from tests.unit.streams.gates.sample_world import Records, asked, not_in_opik, pool, sealing


def pooled(
    store: MemoryStore,
    records: Records,
    clock: ManualClock,
    complete: StateIsComplete = nullcontext,
    opik: TraceInOpik = not_in_opik,
) -> FrozenSamples:
    """Where no candidate is named: nobody is to ask for a dataset or a candidate."""
    nobody: Any = None
    topic: Any = records
    traces = PooledTraces(store, topic, "traces", clock, opik, complete)
    return FrozenSamples(store, traces, Policy(), clock, nobody, nobody, sealing)


async def test_nothing_is_drawn_from_pools_that_are_being_made_anew() -> None:
    """Else a Redis that came back empty would fail the gate with insufficient_sample."""
    rebuilding = True

    @asynccontextmanager
    async def complete() -> AsyncIterator[None]:
        yield
        if rebuilding:
            raise Unavailable("made anew")

    clock = ManualClock()
    samples = pooled(MemoryStore(clock), Records([]), clock, complete)
    wanted: tuple[RampRequest, Milestone, Registry] = (asked(), Milestone.PRE_RAMP, built())
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
    values: list[dict[str, Any]] = [
        {"input": "hi", "output": "hello", "ended_at": "2026-11-21T12:00:00Z"},
        {"input": "hi", "output": None, "ended_at": "2026-11-21T12:00:00Z"},
        {"input": "hi", "ended_at": "2026-11-21T12:00:00Z"},
        {"input": "hi", "output": None, "ended_at": None},
    ]
    await pool(store, clock, asked().step, range(len(values)))
    sample = await pooled(store, Records(values), clock).frozen(asked(), Milestone.PRE_RAMP, built())
    assert sorted(item.missing for item in sample.items) == ["", "the agent gave no output"]
    assert "2 of those drawn" in sample.shortage


async def test_a_turn_with_several_traces_is_one_item_by_the_one_that_ended_last() -> None:
    """Else a gate's least sample could be met with half the turns."""
    clock = ManualClock()
    store = MemoryStore(clock)
    said = {"input": "hi", "ended_at": "2026-11-21T12:00:00Z"}
    values = [{**said, "output": f"answer {n}", "response_id": f"r{n % 3}"} for n in range(6)]
    await pool(store, clock, asked().step, range(len(values)))
    sample = await pooled(store, Records(values), clock).frozen(asked(), Milestone.PRE_RAMP, built())
    assert sorted(item.source["output"] for item in sample.items) == ["answer 3", "answer 4", "answer 5"]
    assert sample.facts.size == 3


async def test_what_an_event_leaves_out_is_read_from_opik() -> None:
    """Contracts §1: a trace's event "without input/output, to be read from Opik". Without an answer of Opik's the
    request waits; a turn that Opik does not have either is not in the sample."""
    clock = ManualClock()
    store = MemoryStore(clock)
    ended = {"ended_at": "2026-11-21T12:00:00Z"}
    values: list[dict[str, Any]] = [{"trace_id": name, **ended} for name in ("a", "b", "c")] + [
        {"trace_id": "d", "input": 1, "output": 2, **ended}
    ]
    await pool(store, clock, asked().step, range(len(values)))
    down, looked_up = True, []

    async def opik(trace_id: str) -> dict[str, Any] | None:
        if down:
            raise Unavailable("Opik is away")
        looked_up.append(trace_id)
        return {"a": {"input": "hi", "output": "hello", "tags": []}, "b": {"input": "hi", "output": None}}.get(trace_id)

    samples = pooled(store, Records(values), clock, opik=opik)
    with pytest.raises(Unavailable, match="Opik is away"):
        await samples.frozen(asked(), Milestone.PRE_RAMP, built())
    down = False
    items = (await samples.frozen(asked(), Milestone.PRE_RAMP, built())).items
    found = {item.source["trace_id"]: (item.source["output"], item.missing) for item in items}
    assert found == {"a": ("hello", ""), "b": (None, "the agent gave no output"), "d": (2, "")}
    assert sorted(looked_up) == ["a", "b", "c"], "what an event says is not asked for"
    whole = [item.source["trace_id"] for item in items if item.digest]
    assert whole == ["d"], "what Opik said is not in the record's hash: such an item's prompts are made each time"


async def test_pc5_5_5_a_gates_sample_stays_and_the_next_requests_is_drawn_anew() -> None:
    """Frozen for its own run; refreshed more often than the week that is asked for: with every request."""
    clock = ManualClock()
    store = MemoryStore(clock)
    value = {"input": "hi", "output": "hello", "ended_at": "2026-11-21T12:00:00Z"}
    samples = pooled(store, Records([value] * 2), clock)

    async def size(request_id: str) -> int:
        return (await samples.frozen(asked(request_id), Milestone.PRE_RAMP, built())).facts.size

    await pool(store, clock, asked().step, [0])
    assert await size("first") == 1
    await pool(store, clock, asked().step, [1])
    assert (await size("first"), await size("second")) == (1, 2)
