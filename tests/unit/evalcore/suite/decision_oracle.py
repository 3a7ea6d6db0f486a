"""Says once more, from the rule's text and with other code, what a suite's decision has to say of slices and of single
cases: for 0/1 scores, without N/A, clusters and cases of safety.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import sqrt

import numpy as np
from scipy.stats import hypergeom

from tests.unit.evalcore.suite.simulated_agents import Decided

MOST = 60
FRESH = 6
Counts = Sequence[tuple[int, int]]
"""Of each case, how many fresh samples the baseline and the candidate got right."""


def asked_slices(one: Decided) -> set[str]:
    """Returns the slices that fall by 2 σ, or at all where they are of fewer than five cases or nothing varies."""
    found = set()
    for name in {name for pair in one.first.pairs for name in pair.slices}:
        apart = [
            float(np.mean(pair.candidate.best)) - float(np.mean(pair.baseline.best))
            for pair in one.first.pairs
            if name in pair.slices
        ]
        mean = sum(apart) / len(apart)
        sigma = sqrt(sum((value - mean) ** 2 for value in apart)) / len(apart)
        if mean < -1e-9 and (len(apart) < 5 or sigma < 1e-9 or mean < -2 * sigma - 1e-9):
            found.add(name)
    return found


def asked_cases(one: Decided) -> set[str]:
    """Returns the cases that fail every sample now, and never did."""
    return {
        pair.case_id for pair in one.first.pairs if max(pair.candidate.best) == 0.0 and min(pair.baseline.best) == 1.0
    }


def slice_words(one: Decided) -> dict[str, str]:
    """Returns the word of each slice that was asked again, by all its fresh samples."""
    right = _right(one)
    counts = {name: [right[case] for case in cases] for name, cases in _slices(one).items()}
    adjusted = holm({name: exact_p(these) for name, these in counts.items()})
    return {
        name: "worse"
        if p < 0.025 or least(counts[name])
        else "worse, not confirmed" if p < 0.15 else "holds"
        for name, p in adjusted.items()
    }  # fmt: skip


def broken_cases(one: Decided) -> set[str]:
    """Returns the cases that are confirmed by themselves."""
    right = _right(one)
    counts = {name: [right[name]] for name in asked_cases(one)}
    adjusted = holm({name: exact_p(these) for name, these in counts.items()})
    return {name for name, p in adjusted.items() if p < 0.05 or least(counts[name])}


def exact_p(counts: Counts) -> float:
    """Returns how often the candidate has no more right ones where samples of a case change sides by chance."""
    chances = np.ones(1)
    for baseline, candidate in counts:
        both = baseline + candidate
        chances = np.convolve(chances, hypergeom.pmf(np.arange(FRESH + 1), 2 * FRESH, both, FRESH))
    return float(chances[: sum(candidate for _, candidate in counts) + 1].sum())


def least(counts: Counts) -> bool:
    """Returns whether each case says all that six samples can: all right before, all wrong now."""
    return all(pair == (FRESH, 0) for pair in counts)


def holm(values: Mapping[str, float]) -> dict[str, float]:
    """Returns the p-values adjusted by Holm's method."""
    out, most = dict[str, float](), 0.0
    for rank, name in enumerate(sorted(values, key=lambda name: values[name])):
        most = max(most, min(1.0, values[name] * (len(values) - rank)))
        out[name] = most
    return out


def _slices(one: Decided) -> dict[str, tuple[str, ...]]:
    return {name: cases for name, cases in one.asked.slices.items() if name is not None}


def _right(one: Decided) -> dict[str, tuple[int, int]]:
    pairs = one.fresh.pairs if one.fresh is not None else ()
    return {pair.case_id: (round(sum(pair.baseline.best)), round(sum(pair.candidate.best))) for pair in pairs}
