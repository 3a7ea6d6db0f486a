"""Intervals by bootstrap of items that repeat: BCa, as scipy's, on counts of kinds in the place of items. Pure.

What is drawn is how often each kind of item comes, so that ten thousand items of a hundred kinds cost what a hundred
do.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]
    Statistic = Callable[[Numbers], Numbers]

RESAMPLES = 10_000
CONFIDENCE = 0.95
MOST_UNDEFINED = 0.05
"""The share of resamples without a value beyond which there is no interval."""
_CELLS = 4_000_000
_KINDS_OF_MULTINOMIAL = 1_000


def bca_interval(
    statistic: Statistic, counts: Numbers, seed: int, resamples: int = RESAMPLES, confidence: float = CONFIDENCE
) -> tuple[float, float] | None:
    """Returns the interval of a statistic of items; the same seed gives the same digits.

    `counts`: how many items there are of each kind. `statistic` takes a row of such counts for each sample, and returns
    a value for each, NaN where it is not defined. None where the statistic or its interval is not.
    """
    import numpy as np
    from scipy import special

    value = float(statistic(counts[None, :])[0])
    drawn = np.concatenate([statistic(rows) for rows in _resampled(counts, seed, resamples)])
    defined = drawn[np.isfinite(drawn)]
    if not math.isfinite(value) or len(defined) < (1 - MOST_UNDEFINED) * resamples:
        return None
    below = (np.count_nonzero(defined < value) + np.count_nonzero(defined <= value)) / (2 * len(defined))
    if not 0 < below < 1:
        return None
    bias = float(special.ndtri(below))
    acceleration = _acceleration(statistic, counts)
    if acceleration is None:
        return None
    tail = float(special.ndtri((1 - confidence) / 2))
    ends = [bias + (bias + z) / (1 - acceleration * (bias + z)) for z in (tail, -tail)]
    low, high = np.percentile(defined, [100 * float(special.ndtr(end)) for end in ends])
    return float(low), float(high)


def _resampled(counts: Numbers, seed: int, resamples: int) -> Iterator[Numbers]:
    import numpy as np

    rng, kinds, items = np.random.default_rng(seed), len(counts), int(counts.sum())
    few = kinds <= _KINDS_OF_MULTINOMIAL
    rows = max(_CELLS // (kinds if few else items), 1)
    owner = np.repeat(np.arange(kinds), counts.astype(np.int64))
    for start in range(0, resamples, rows):
        size = min(rows, resamples - start)
        if few:
            yield rng.multinomial(items, counts / items, size=size).astype(np.float64)
        else:  # drawing a number for each kind costs more than drawing the items
            drawn = owner[rng.integers(0, items, size=(size, items), dtype=np.int32)]
            cells = (drawn + kinds * np.arange(size)[:, None]).ravel()
            yield np.bincount(cells, minlength=size * kinds).reshape(size, kinds).astype(np.float64)


def _acceleration(statistic: Statistic, counts: Numbers) -> float | None:
    """The skewness of the values without each item; a kind's items are alike."""
    import numpy as np

    rows = max(_CELLS // len(counts), 1)
    values = []
    for start in range(0, len(counts), rows):
        kinds = np.arange(start, min(start + rows, len(counts)))
        left = np.repeat(counts[None, :], len(kinds), axis=0)
        left[np.arange(len(kinds)), kinds] -= 1
        values.append(statistic(left))
    without = np.concatenate(values)
    if not np.isfinite(without).all():
        return None
    apart = np.average(without, weights=counts) - without
    squares = float((counts * apart**2).sum())
    return float((counts * apart**3).sum()) / (6 * squares**1.5) if squares > 0 else None
