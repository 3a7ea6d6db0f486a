"""Intervals by bootstrap of items that repeat: BCa, as scipy's, on counts of kinds in the place of items. Pure.

What is drawn is how often each kind of item comes, so that ten thousand items of a hundred kinds cost what a hundred
do; and of a mean, how often each unit comes, for many means at once.
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
_CELLS = 125_000
"""Numbers in memory at once: eight times as many don't fit the cache, and take three times as long."""
_ROUNDING = 1e-12
"""Sums that differ by this share of the values are the same: rounding made the difference."""
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
    few = len(counts) <= _KINDS_OF_MULTINOMIAL
    drawn = np.concatenate([statistic(rows) for rows in _resampled(counts, seed, resamples, few)])
    defined = drawn[np.isfinite(drawn)]
    if not math.isfinite(value) or len(defined) < (1 - MOST_UNDEFINED) * resamples:
        return None
    below = (np.count_nonzero(defined < value) + np.count_nonzero(defined <= value)) / (2 * len(defined))
    if not 0 < below < 1:
        return None
    acceleration = _acceleration(statistic, counts)
    return None if acceleration is None else _ends(defined, float(special.ndtri(below)), acceleration, confidence)


def mean_intervals(
    sums: Numbers, sizes: Numbers, seed: int, resamples: int = RESAMPLES, confidence: float = CONFIDENCE
) -> list[tuple[float, float] | None]:
    """Returns the interval of each row's mean, where what is drawn has `sizes` items and their sum is in `sums`.

    A unit is a case, of size 1, or a cluster of cases. Rows share the draws. Of values that are all the same the
    interval is that value; None where there are fewer than two units.
    """
    import numpy as np
    from scipy import special

    if len(sizes) < 2:
        return [None] * len(sums)
    values, acceleration = sums.sum(axis=1) / sizes.sum(), _acceleration_of_means(sums, sizes)
    draws = _resampled(np.ones(len(sizes)), seed, resamples, few=False)
    drawn = np.concatenate([rows @ sums.T / (rows @ sizes)[:, None] for rows in draws]).T
    out: list[tuple[float, float] | None] = []
    for value, found, row, apart in zip(values, drawn, acceleration, standard_errors(sums, sizes), strict=True):
        rounding = _ROUNDING * max(abs(value), apart)
        less, most = (np.count_nonzero(found <= value + rounding * sign) for sign in (-1, 1))
        below = (less + most) / (2 * resamples)
        if apart == 0:
            out.append((float(value), float(value)))
        else:
            out.append(_ends(found, float(special.ndtri(below)), float(row), confidence) if 0 < below < 1 else None)
    return out


def standard_errors(sums: Numbers, sizes: Numbers) -> Numbers:
    """Returns the bootstrap's standard error of each row's mean, in the closed form that endless resamples come to (of
    clusters that differ in size, to first order). 0 where all values are the same, but for rounding."""
    import numpy as np

    apart = sums - sums.sum(axis=1, keepdims=True) / sizes.sum() * sizes
    apart[np.abs(apart) <= _ROUNDING * np.abs(sums).max(axis=1, initial=0.0, keepdims=True)] = 0.0
    out: Numbers = np.sqrt((apart**2).sum(axis=1)) / sizes.sum()
    return out


def _ends(drawn: Numbers, bias: float, acceleration: float, confidence: float) -> tuple[float, float]:
    import numpy as np
    from scipy import special

    tail = float(special.ndtri((1 - confidence) / 2))
    ends = [bias + (bias + z) / (1 - acceleration * (bias + z)) for z in (tail, -tail)]
    low, high = np.percentile(drawn, [100 * float(special.ndtr(end)) for end in ends])
    return float(low), float(high)


def _resampled(counts: Numbers, seed: int, resamples: int, few: bool) -> Iterator[Numbers]:
    """Rows of how often each kind comes. `few` kinds of many items: their numbers are drawn, else the items."""
    import numpy as np

    rng, kinds, items = np.random.default_rng(seed), len(counts), int(counts.sum())
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


def _acceleration_of_means(sums: Numbers, sizes: Numbers) -> Numbers:
    """The same of each row's mean, in closed form."""
    import numpy as np

    without = (sums.sum(axis=1, keepdims=True) - sums) / (sizes.sum() - sizes)
    apart = without.mean(axis=1, keepdims=True) - without
    squares = (apart**2).sum(axis=1)
    out: Numbers = np.zeros(len(sums))
    spread = squares > 0
    out[spread] = (apart[spread] ** 3).sum(axis=1) / (6 * squares[spread] ** 1.5)
    return out


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
