"""What a sweep does is counted as what a worker does, in the metrics that its file shows (PF-9 FR-6, FR-11)."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from agents.newcomers import Newcomers
from rampgate.worker.sweep import make_sweep
from schemas.outcomes import Kind
from streams.metrics import Metrics
from streams.sweep.log import SegmentPlace
from streams.sweep.sweep import Sweep
from tests.unit.agents.builders import found_trace, trace
from tests.unit.agents.join.world import World
from tests.unit.streams.sweep.sweep_table import Slow, Table


def sweep_of(world: World, metrics: Metrics, table: Any) -> Sweep:
    """The sweep as the command makes it, on parts in memory; its time is the world's."""
    opik = SimpleNamespace(traces=world.traces)
    own: dict[str, Any] = {
        "access": None,
        "verticals": {"shopping": None},
        "policy": world.policy,
        "topics": world.topics,
    }
    parts: Any = SimpleNamespace(ports=world.ports, opik=opik, producer=Slow(), metrics=metrics, **own)
    sweep = make_sweep(parts, table, 0, dry=False)

    async def now() -> int:
        return world.clock.now_ms()

    sweep.now = now
    return sweep


async def test_scores_that_a_sweep_writes_are_in_its_metrics() -> None:
    """Those of items whose trace is known, and those of turns that waited for it."""
    world, metrics = World(), Metrics()

    def written(signal: str) -> float:
        names = dict.fromkeys(("sub_agent", "category"), "other")
        labels = {"vertical": "shopping", "signal": signal, **names}
        return metrics.registry.get_sample_value("eval_correlation_records_written_total", labels) or 0

    await world.tell(Kind.TRACE, trace("r-a"))
    sweep = sweep_of(world, metrics, Table([[["a", "b"]]]))
    await sweep.scan(0, 1, SegmentPlace())
    assert (written("thumbs"), written("reroll")) == (1, 1)
    world.traces.known["r-b"] = found_trace("r-b")
    await sweep.finish_waiting()
    assert (written("thumbs"), written("reroll")) == (2, 2)
    assert sweep.tally.scores_written == len(world.scores.held) == 4


async def test_pf9_fr11_a_swept_thumb_without_a_trace_counts_under_its_items_vertical() -> None:
    world = World()
    world.ports = replace(world.ports, newcomers=Newcomers((), most=1))
    sweep = sweep_of(world, Metrics(), Table([[["a"]]]))
    await sweep.scan(0, 1, SegmentPlace())
    assert world.coverage() == {("shopping", "missing_trace"): 1}
    another = sweep_of(world, Metrics(), Table([[["b"]]], vertical="v" * 300))
    await another.scan(0, 1, SegmentPlace())
    assert world.coverage() == {("shopping", "missing_trace"): 1, ("unregistered", "missing_trace"): 1}
