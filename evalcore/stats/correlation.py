"""Correlation of two series with its interval, and what of it a sample could have found. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Series = NDArray[np.float64]

CONFIDENCE = 0.95
POWER = 0.8
FEWEST = 10
"""Pairs under which no one decides by a correlation (contracts, Definitions)."""


@dataclass(frozen=True)
class Correlation:
    """Pearson's with Fisher's interval, and Spearman's with ties as scipy has them. `n` is Kish's effective number of
    pairs where they are weighted. What is not defined is None: of a constant series all but `n`, and an interval of
    three pairs or fewer.

    `lowest` is the least Pearson that any pairing of these two series has; `detectable` the true correlation of which
    the interval lies below zero with 80 % power; `below_zero_p` the chance of such a Pearson, or a lower one, without
    any correlation.
    """

    n: float
    pearson: float | None = None
    ci95: tuple[float, float] | None = None
    spearman: float | None = None
    lowest: float | None = None
    detectable: float | None = None
    below_zero_p: float | None = None

    @property
    def could_be_below_zero(self) -> bool:
        """Tells whether some pairing of the two series has an interval below zero."""
        return self.lowest is not None and self.n > 3 and interval(self.lowest, self.n)[1] < 0

    @property
    def below_zero(self) -> bool:
        return self.ci95 is not None and self.ci95[1] < 0


def correlation(one: Series, other: Series, weights: Series | None = None) -> Correlation:
    """Correlates finite numbers pair by pair. Spearman's is left out where the pairs are weighted."""
    from scipy import special

    n = float(len(one)) if weights is None else kish(weights)
    if len(one) < 2 or one.min() == one.max() or other.min() == other.max():
        return Correlation(n)
    pearson = _pearson(one, other, weights)
    if pearson is None:
        return Correlation(n)
    if n <= 3:
        return Correlation(n, pearson)
    (ordered, ranks), (other_ordered, other_ranks) = _ordered(one), _ordered(other)
    spearman = None if weights is not None else _pearson(ranks, other_ranks, None)
    error = 1 / math.sqrt(n - 3)
    return Correlation(
        n,
        pearson,
        interval(pearson, n),
        spearman,
        # The largest against the smallest: no other pairing has a lower one. Weighted pairs stand in as equal ones.
        _pearson(ordered, other_ordered[::-1], None),
        -math.tanh((_quantile() + float(special.ndtri(POWER))) * error),
        float(special.ndtr(_fisher(pearson) / error)),
    )


def interval(pearson: float, n: float) -> tuple[float, float]:
    """Returns Fisher's 95 % interval of a correlation over more than three pairs."""
    middle, reach = _fisher(pearson), _quantile() / math.sqrt(n - 3)
    return math.tanh(middle - reach), math.tanh(middle + reach)


def kish(weights: Series) -> float:
    """Returns how many pairs of equal weight say as much as these weighted ones."""
    if not weights.size or not (largest := weights.max()) > 0:
        return 0.0
    scaled = weights / largest  # its squares are finite, and the sum of them is at least 1
    return float(scaled.sum()) ** 2 / float(scaled @ scaled)


def _pearson(one: Series, other: Series, weights: Series | None) -> float | None:
    import numpy as np

    first, second = (_centred(series, weights) for series in (one, other))
    if weights is not None:
        first, second = first * np.sqrt(weights), second * np.sqrt(weights)
    sizes = float(np.linalg.norm(first)), float(np.linalg.norm(second))
    if not all(sizes):
        return None
    return max(-1.0, min(1.0, float((first / sizes[0]) @ (second / sizes[1]))))


def _centred(series: Series, weights: Series | None) -> Series:
    """The deviations from the mean, on a scale of 1: a correlation is the same on any, and squares stay finite."""
    import numpy as np

    largest = float(np.abs(series).max())
    scaled = series / largest if largest > 0 else series
    out: Series = scaled - np.average(scaled, weights=weights)
    return out


def _ordered(series: Series) -> tuple[Series, Series]:
    """The series in order, and the rank of each value where it stands; equal ones share the mean of theirs."""
    import numpy as np

    values, places, counts = np.unique(series, return_inverse=True, return_counts=True)
    return np.repeat(values, counts), (np.cumsum(counts) - (counts - 1) / 2)[places]


def _fisher(pearson: float) -> float:
    return math.atanh(pearson) if abs(pearson) < 1 else math.copysign(math.inf, pearson)


def _quantile() -> float:
    from scipy import special

    return float(special.ndtri((1 + CONFIDENCE) / 2))
