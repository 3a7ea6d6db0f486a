"""Compares paired runs slice by slice: differences with their intervals, and how sure they are. Pure.

The case, or its cluster, is what the bootstrap draws. Intervals are raw.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evalcore.stats.bootstrap import CONFIDENCE, mean_intervals, standard_errors
from evalcore.stats.sign_flip import sign_flip_p
from evalcore.suite.pairing import Pair, Paired

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]

SMALL = 20
"""Cases below which a slice is called small."""
FEW = 5
"""Units below which a slice has no interval, and 2 σ says nothing of it."""
SKEWED = 0.15
"""Skewness over the root of the number of cases, beyond which an interval is too narrow on one side to be trusted."""
ROUNDING = 1e-12
Interval = tuple[float, float]
SEED = 20_260_101


@dataclass(frozen=True)
class Wins:
    """How often a judge that saw both answers preferred the candidate's, ties as half."""

    n: int
    rate: float
    ci95: Interval | None


@dataclass(frozen=True)
class Difference:
    """How a slice, or all cases, differ: candidate less baseline. What fewer than two cases can't say is None.

    `units`: cases, or clusters where there are any. `error`: the bootstrap's standard error of the difference, of
    which two are 2 σ. `p_value` by the sign-flip test, where that is asked for.
    """

    n: int
    units: int
    baseline: float | None = None
    candidate: float | None = None
    delta: float | None = None
    ci95: Interval | None = None
    error: float | None = None
    p_value: float | None = None
    skewed: bool = False
    wins: Wins | None = None

    @property
    def small(self) -> bool:
        return self.n < SMALL

    @property
    def excludes_zero(self) -> bool:
        """Tells whether the interval lies on one side of zero (a slice is significant by it)."""
        return self.ci95 is not None and (self.ci95[0] > ROUNDING or self.ci95[1] < -ROUNDING)

    @property
    def falls(self) -> bool:
        return self.delta is not None and self.delta < -ROUNDING

    @property
    def few(self) -> bool:
        """Tells whether 2 σ says nothing: there are too few units, or all differ alike."""
        return self.units < FEW or not self.error

    @property
    def worse(self) -> bool:
        """Tells whether it is worse by more than 2 σ, two bootstrap standard errors (contracts, Definitions)."""
        return self.delta is not None and not self.few and self.delta < -2 * (self.error or 0) - ROUNDING


@dataclass(frozen=True)
class Comparison:
    headline: Difference
    slices: dict[str, Difference]

    def of(self, name: str | None) -> Difference:
        """That of a slice, or of all cases."""
        return self.headline if name is None else self.slices[name]


def compare(paired: Paired, seed: int = SEED, *, best: bool = False, intervals: bool = True) -> Comparison:
    """Compares with unscored samples as unfavourable to the candidate as they can be, or `best`."""
    slices = {name: difference(paired.of(name), seed, best=best, intervals=intervals) for name in paired.slices}
    return Comparison(difference(paired.pairs, seed, best=best, intervals=intervals, tested=True), slices)


def difference(
    pairs: Sequence[Pair], seed: int = SEED, *, best: bool = False, intervals: bool = True, tested: bool = False
) -> Difference:
    """Compares some cases; the same seed gives the same digits. `tested` by the sign-flip test, too."""
    import numpy as np

    if not pairs:
        return Difference(0, 0)
    means = np.array([pair.means(best) for pair in pairs])
    clusters = [pair.cluster for pair in pairs]
    sums, sizes = by_cluster(means[:, 1] - means[:, 0], clusters)
    n, units = len(pairs), len(sizes)
    wins = _wins(pairs, seed)
    baseline, candidate = (float(side) for side in means.mean(axis=0))
    delta = float(sums.sum() / n)
    if units < 2:
        return Difference(n, units, baseline, candidate, delta, wins=wins)
    error = float(standard_errors(sums[None, :], sizes)[0])
    return Difference(
        n, units, baseline, candidate, delta,
        interval_of(sums, sizes, seed) if intervals else None,
        error,
        float(sign_flip_p(sums[None, :], seed)[0]) if tested else None,
        skewed=abs(_skewness(sums / sizes)) > SKEWED * math.sqrt(units),
        wins=wins,
    )  # fmt: skip


def interval_of(sums: Numbers, sizes: Numbers, seed: int) -> Interval | None:
    """The 95 % interval of a mean by its units: none of fewer than five, below twenty Student's, since BCa is too
    narrow there, and BCa from twenty on."""
    if len(sizes) < FEW:
        return None
    if len(sizes) >= SMALL:
        return mean_intervals(sums[None, :], sizes, seed)[0]
    from scipy import special

    mean, spare = float(sums.sum() / sizes.sum()), len(sizes) - 1
    error = float(standard_errors(sums[None, :], sizes)[0]) * math.sqrt(len(sizes) / spare)
    half = error * float(special.stdtrit(spare, (1 + CONFIDENCE) / 2))
    return mean - half, mean + half


def by_cluster(values: Numbers, clusters: Sequence[str]) -> tuple[Numbers, Numbers]:
    """The sum of the values of each cluster, and how many there are."""
    import numpy as np

    _, places = np.unique(np.array(clusters), return_inverse=True)
    sums, sizes = np.bincount(places, weights=values), np.bincount(places)
    return sums.astype(np.float64), sizes.astype(np.float64)


def _wins(pairs: Sequence[Pair], seed: int) -> Wins | None:
    import numpy as np

    told = [(pair.win, pair.cluster) for pair in pairs if pair.win is not None]
    if not told:
        return None
    sums, sizes = by_cluster(np.array([win for win, _ in told]), [cluster for _, cluster in told])
    return Wins(len(told), float(sums.sum() / len(told)), interval_of(sums, sizes, seed))


def _skewness(values: Numbers) -> float:
    apart = values - values.mean()
    spread = float((apart**2).mean())
    return float((apart**3).mean()) / spread**1.5 if spread > 0 else 0.0
