"""What one side of a comparison is like by itself: how its cases scored, what its answers cost and how long they took.
Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from evalcore.drift.scale import Scale
from evalcore.suite.results import Run

BINS: Final = 10
"""Bins of the scale that cases' means are counted in."""


@dataclass(frozen=True)
class SideFacts:
    """`cost_usd` is the sum of what is known, None where nothing is; latencies are percentiles of answers that have
    one. `counts`: cases by their mean, in equal bins of the scale."""

    samples: int
    failed: int
    cost_usd: float | None
    latency_p50_ms: float | None
    latency_p95_ms: float | None
    counts: tuple[int, ...] = ()


def facts_of(run: Run, means: Sequence[float] = (), scale: Scale | None = None) -> SideFacts:
    """Returns the facts of a run; `means` are its compared cases' on the scale."""
    import numpy as np

    from evalcore.calibration.floors import percentile

    samples = [sample for case in run.values() for sample in case.samples]
    costs = [sample.cost_usd for sample in samples if sample.cost_usd is not None]
    took = np.array([sample.latency_ms for sample in samples if sample.latency_ms is not None], dtype=np.float64)
    p50, p95 = (percentile(took, np.ones(took.size), percent) if took.size else None for percent in (50, 95))
    counts = () if scale is None else tuple(map(int, np.histogram(means, BINS, (scale.low, scale.high))[0]))
    failed = sum(bool(sample.error) for sample in samples)
    return SideFacts(len(samples), failed, sum(costs) if costs else None, p50, p95, counts)
