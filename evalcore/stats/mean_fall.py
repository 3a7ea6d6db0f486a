"""The chance that unchanged scores give a mean so far below that of earlier runs, also of few items and of 0/1. Pure.

Fisher's exact test of two rates is the chance that one beta variable exceeds another (Altham 1969), which takes any
positive numbers of items, not only whole ones. So it serves for means, too: on their scale, scores with this mean and
this spread are worth so many answers of true or false each, one where they are 0/1 and about four from 1 to 5.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

_NODES = 500
_MOST = 1e6
"""Answers that one score is worth at most; with more, beta variables lose their digits."""


@dataclass(frozen=True)
class Sample:
    """Items on a scale from 0 to 1: their number (an effective one where weights differ), mean, and variance."""

    items: float
    mean: float
    variance: float


def pooled(runs: Sequence[Sample]) -> Sample:
    """Returns the runs as one sample with the mean of their means, and as many items as that mean is as certain as."""
    mean = math.fsum(run.mean for run in runs) / len(runs)
    items = math.fsum(run.items for run in runs)
    spread = math.fsum(run.items * (run.variance + (run.mean - mean) ** 2) for run in runs) / items
    return Sample(len(runs) ** 2 / math.fsum(1 / run.items for run in runs), mean, spread)


def common(one: Sample, other: Sample) -> Sample:
    """Returns all items of both, as they are where nothing has changed."""
    items = one.items + other.items
    mean = (one.items * one.mean + other.items * other.mean) / items
    parts = (part.items * (part.variance + (part.mean - mean) ** 2) for part in (one, other))
    return Sample(items, mean, math.fsum(parts) / items)


def fall_p(now: Sample, before: Sample) -> float:
    """Returns the one-sided p-value of a mean that is lower than before; 1 where it is not."""
    if not now.mean < before.mean:
        return 1.0
    import numpy as np
    from scipy import special

    both = common(now, before)
    worth = min(max(both.mean * (1 - both.mean) / both.variance, 1.0), _MOST)
    middles = (np.arange(_NODES) + 0.5) / _NODES
    true, items = worth * before.items * before.mean, worth * before.items
    rates = special.betaincinv(true, items - true + 1, middles)
    true, items = worth * now.items * now.mean, worth * now.items
    above = float(np.mean(special.betaincc(true + 1, items - true, rates)))
    # No way to share the items out between the two sides is rarer than one of all ways.
    least = special.gammaln(now.items + 1) + special.gammaln(before.items + 1) - special.gammaln(both.items + 1)
    return min(max(above, math.exp(least)), 1.0)


def items_to_tell(fall: float, variance: float, runs: int, level: float) -> int:
    """Returns how many items a gate, and each of the runs before it, would need for this fall to be significant."""
    reach = NormalDist().inv_cdf(level) ** 2 * (1 + 1 / runs)
    return math.ceil(reach * variance / fall**2)
