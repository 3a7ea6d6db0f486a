"""Runs of a suite for tests: literal scores, or drawn ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from evalcore.suite.gates import Judged, judge
from evalcore.suite.pairing import Paired, paired
from evalcore.suite.results import Case, Gone, Run, Sample, chosen, scale_of

Value = float | Gone
UNSCORED, NOT_APPLICABLE, FAILED = Gone.UNSCORED, Gone.NOT_APPLICABLE, Gone.FAILED


def run(scores: Mapping[str, Sequence[Value]], slices: Mapping[str, Sequence[str]] | None = None) -> Run:
    """Case id -> the values of its samples."""
    return {
        name: Case(
            name,
            set((slices or {}).get(name, ())),
            samples=[
                Sample(number, {} if value is FAILED else {"ok": value}, error="crashed" if value is FAILED else "")
                for number, value in enumerate(values)
            ],
        )
        for name, values in scores.items()
    }


def pair(baseline: Run, candidate: Run, **rest: object) -> Paired:
    score = chosen((baseline, candidate), None)
    return paired(baseline, candidate, score, scale_of((baseline, candidate), score, (0.0, 1.0)), **rest)


def judged(baseline: Run, candidate: Run) -> Judged:
    return judge(pair(baseline, candidate))


def drawn(rng: np.random.Generator, rates: Mapping[str, float], samples: int = 3) -> dict[str, list[Value]]:
    """0 or 1 for each sample of each case, 1 with the case's rate."""
    return {name: [float(value) for value in rng.random(samples) < rate] for name, rate in rates.items()}
