"""Samples of gates while the state they are drawn from is being made anew (PC5 §5.5)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from typing import Any
from uuid import UUID

import pytest

from agents.policy import Policy
from agents.ports import Unavailable
from evalcore.gates.requests import RampRequest
from evalcore.registry.registry import Registry
from evalcore.remediation.sealing import TraceForms
from evalcore.scoring.assignments import unscorable
from schemas.judges import Milestone
from streams.gates.samples import FrozenSamples, PooledTraces, StateIsComplete, TraceInOpik
from tests.memory_ports import ManualClock, MemoryStore
from tests.unit.evalcore.registry.registry_disk import built
from tests.unit.streams.gates.sample_world import Records, asked, come, event, not_in_opik


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
    traces = PooledTraces(store, topic, "traces", clock, opik, TraceForms(), complete)
    return FrozenSamples(store, traces, Policy(), clock, nobody, nobody)


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
    values = [
        event(clock, 0, input="hi", output="hello"),
        event(clock, 1, input="hi", output=None),
        event(clock, 2, input="hi"),
        event(clock, 3, output="hello"),
        event(clock, 4, input="hi", output=None, ended_at=None),
    ]
    await come(store, clock, values)
    sample = await pooled(store, Records(values), clock).frozen(asked(), Milestone.PRE_RAMP, built())
    no_input = "neither the trace's record nor Opik has its input"
    why = sorted(unscorable(built().judge("helpfulness"), item) for item in sample.items)
    assert why == ["", no_input, *["the agent gave no output"] * 2]


async def test_a_turn_with_several_traces_is_one_item_by_the_one_that_ended_last() -> None:
    """Else a gate's least sample could be met with half the turns."""
    clock = ManualClock()
    store = MemoryStore(clock)
    values = [event(clock, n, input="hi", output=f"answer {n}", response_id=f"r{n % 3}") for n in range(6)]
    await come(store, clock, values)
    sample = await pooled(store, Records(values), clock).frozen(asked(), Milestone.PRE_RAMP, built())
    assert sorted(item.source["output"] for item in sample.items) == ["answer 3", "answer 4", "answer 5"]
    assert (sample.facts.size, sample.facts.eligible, sample.facts.pooled) == (3, 3, 3)


async def test_a_record_that_is_gone_or_another_one_by_now_is_no_item_and_counted() -> None:
    """As where Kafka's retention has deleted it, or the topic was deleted and made again."""
    clock = ManualClock()
    store = MemoryStore(clock)
    values: list[Any] = [event(clock, n, input="hi", output=f"answer {n}") for n in range(8)]
    await come(store, clock, values)
    values[0], values[1], values[2] = None, values[3], {"no": "trace"}
    values[4] = values[4] | {"metadata": {"agent_id": "another", "agent_version": "v2"}}
    sample = await pooled(store, Records(values), clock).frozen(asked(), Milestone.PRE_RAMP, built())
    assert sorted(item.source["output"] for item in sample.items) == [f"answer {n}" for n in (3, 5, 6, 7)]
    assert (sample.facts.eligible, sample.facts.pooled, sample.facts.record_gone) == (8, 8, 4)
    assert "4 of those drawn are no longer on their topic" in sample.shortage


async def test_what_an_event_leaves_out_is_read_from_opik() -> None:
    """Contracts §1: a trace's event "without input/output, to be read from Opik". Without an answer of Opik's the
    request waits; a turn that Opik does not have either is in the sample, without an answer."""
    clock = ManualClock()
    store = MemoryStore(clock)
    values = [event(clock, 0), event(clock, 1), event(clock, 2), event(clock, 3, input=1, output=2)]
    await come(store, clock, values)
    down, looked_up = True, []

    async def opik(trace_id: str) -> dict[str, Any] | None:
        if down:
            raise Unavailable("Opik is away")
        looked_up.append(number := int(UUID(trace_id)))
        return {0: {"input": "hi", "output": "hello", "tags": []}, 1: {"input": "hi", "output": None}}.get(number)

    samples = pooled(store, Records(values), clock, opik=opik)
    with pytest.raises(Unavailable, match="Opik is away"):
        await samples.frozen(asked(), Milestone.PRE_RAMP, built())
    down = False
    items = (await samples.frozen(asked(), Milestone.PRE_RAMP, built())).items
    judge = built().judge("helpfulness")
    found = {int(UUID(item.source["trace_id"])): (item.source.get("output"), unscorable(judge, item)) for item in items}
    silent, unknown = "the agent gave no output", "neither the trace's record nor Opik has its input"
    assert found == {0: ("hello", ""), 1: (None, silent), 2: (None, unknown), 3: (2, "")}
    assert sorted(looked_up) == [0, 1, 2], "what an event says is not asked for"
    whole = [int(UUID(item.source["trace_id"])) for item in items if item.digest]
    assert whole == [3], "what Opik said is not in the record's hash: such an item's prompts are made each time"


async def test_what_a_record_says_is_not_replaced_by_what_opik_has() -> None:
    clock = ManualClock()
    store = MemoryStore(clock)
    values = [event(clock, 0, output="said last")]
    await come(store, clock, values)

    async def opik(trace_id: str) -> dict[str, Any]:
        return {"input": "hi", "output": "said before"}

    (item,) = (
        await pooled(store, Records(values), clock, opik=opik).frozen(asked(), Milestone.PRE_RAMP, built())
    ).items
    assert (item.source["input"], item.source["output"]) == ("hi", "said last")


async def test_pc5_5_5_a_gates_sample_stays_and_the_next_requests_is_drawn_again() -> None:
    """Frozen for its own run; refreshed more often than the week that is asked for: with every request."""
    clock = ManualClock()
    store = MemoryStore(clock)
    values = [event(clock, n, input="hi", output="hello") for n in range(2)]
    samples = pooled(store, Records(values), clock)

    async def size(request_id: str) -> int:
        return (await samples.frozen(asked(request_id), Milestone.PRE_RAMP, built())).facts.size

    await come(store, clock, values[:1])
    assert await size("first") == 1
    await come(store, clock, values[1:], 1)
    assert (await size("first"), await size("second")) == (1, 2)
