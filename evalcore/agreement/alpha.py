"""Krippendorff's alpha of ratings at four levels of measurement, with its interval over items. Pure.

Differences are those of Krippendorff (2011): nominal equal or not, ordinal the ranks between, interval c - k, ratio
(c - k) / (c + k), each squared. The ordinal one is the interval one on midranks: the values between two ratings, and
half of each of the two, are how far their midranks lie apart. So nothing grows with the square of the values but ratio.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from evalcore.stats.bootstrap import bca_interval
from schemas.checks.agreement import Level

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]

MOST_COMPARED = 1_000
"""Values of a ratio scale that are compared one by one. What the pairs of more come to is an integral."""


@dataclass(frozen=True)
class Ratings:
    """Ratings of items, one row an item and one column a value: how many annotators gave it. Only items that two or
    more rated say how far these agree. `table` is sparse, since most values of a fine scale are of few items."""

    values: Numbers
    table: Any

    @property
    def per_item(self) -> Numbers:
        import numpy as np

        out: Numbers = np.asarray(self.table.sum(axis=1), dtype=np.float64).ravel()
        return out


def ratings(items: Sequence[int], scores: Sequence[float]) -> tuple[Ratings, NDArray[np.int64]]:
    """Counts ratings of items, which are numbers from 0, and returns them with the numbers of the items that two or
    more rated, row by row."""
    import numpy as np
    from scipy import sparse

    values, columns = np.unique(np.asarray(scores, dtype=np.float64), return_inverse=True)
    rows = np.asarray(items, dtype=np.int64)
    shape = (int(rows.max()) + 1 if len(rows) else 0, len(values))
    table = sparse.coo_array((np.ones(len(rows)), (rows, columns.ravel())), shape=shape).tocsr()
    paired = np.flatnonzero(np.asarray(table.sum(axis=1)).ravel() > 1)
    return Ratings(values, table[paired]), paired


def alpha(of: Ratings, level: Level, weights: Numbers | None = None) -> float | None:
    """Returns alpha; None where it is not defined: nothing is rated twice, or all ratings are the same. `weights` are
    those of the items in a sample."""
    import numpy as np

    if of.table.shape[0] == 0:
        return None
    each = np.ones(of.table.shape[0]) if weights is None else weights
    value = float(_statistic(of, level)(each[None, :])[0])
    return value if math.isfinite(value) else None


def alpha_interval(of: Ratings, level: Level, seed: int) -> tuple[float, float] | None:
    """Returns the 95 % interval of alpha by bootstrap of items; None where there is none."""
    import numpy as np

    if of.table.shape[0] < 2:
        return None
    kinds, counts = _kinds(of)
    return bca_interval(_statistic(kinds, level), counts.astype(np.float64), seed)


def disagreement(of: Ratings, level: Level) -> Numbers:
    """Returns each item's part of the observed disagreement; all zero where there is none."""
    import numpy as np

    out: Numbers
    if level is Level.RATIO:
        out = _pairs_within(of, _ratio)
    elif level is Level.NOMINAL:
        out = _nominal_within(of)
    else:
        out = _spread_within(of, _scale(of, level))
    total = float(out.sum())
    return out / total if total > 0 else np.zeros_like(out)


def differences(of: Ratings, level: Level) -> Numbers:
    """Returns how far each two values lie apart, squared, up to a factor that is the same for all."""
    import numpy as np

    out: Numbers
    if level is Level.RATIO:
        return _ratio(of.values[:, None], of.values[None, :])
    if level is Level.NOMINAL:
        out = 1.0 - np.eye(len(of.values))
    else:
        out = (_scale(of, level)[:, None] - _scale(of, level)[None, :]) ** 2
    return out


def pairwise_agreement(of: Ratings) -> Numbers:
    """Returns the share of each item's pairs of annotators that gave the same rating."""
    import numpy as np

    per_item = of.per_item
    same = np.asarray(of.table.multiply(of.table).sum(axis=1)).ravel() - per_item
    out: Numbers = same / (per_item * (per_item - 1))
    return out


def _statistic(of: Ratings, level: Level) -> Callable[[Numbers], Numbers]:
    """Alpha as a function of how often each item comes, a row for each sample."""

    if level is Level.ORDINAL:
        return _ordinal(of)
    per_item = of.per_item
    if level is Level.INTERVAL:
        scaled = _scaled(of.values)
        within, sums, squares = _spread_within(of, scaled), of.table @ scaled, of.table @ scaled**2

        def between(weights: Numbers) -> Numbers:
            out: Numbers = 2 * ((weights @ per_item) * (weights @ squares) - (weights @ sums) ** 2)
            return out

    elif level is Level.NOMINAL:
        within, columns = _nominal_within(of), of.table.T.tocsr()

        def between(weights: Numbers) -> Numbers:
            counts = (columns @ weights.T).T
            out: Numbers = counts.sum(axis=1) ** 2 - (counts**2).sum(axis=1)
            return out

    else:
        within, columns, apart = _pairs_within(of, _ratio), of.table.T.tocsr(), _ratio_between(of.values)

        def between(weights: Numbers) -> Numbers:
            return apart((columns @ weights.T).T)

    return lambda weights: _alpha(weights @ within, between(weights), weights @ per_item)


def _ordinal(of: Ratings) -> Callable[[Numbers], Numbers]:
    """Ranks are those of the sample at hand, so that they are made for each. A sample is a column here, which suits
    sparse products better."""
    import numpy as np

    columns = of.table.T.tocsr()
    often, spread = of.per_item / (of.per_item - 1), 1 / (of.per_item - 1)

    def statistic(weights: Numbers) -> Numbers:
        drawn = np.ascontiguousarray(weights.T)
        counts = columns @ drawn
        total = counts.sum(axis=0)
        # Ranks from -1/2 to 1/2, whose squares lose no digits.
        ranks = _midranks(counts) / total - 0.5
        squares = ranks**2
        apart = np.einsum("vs,vs->s", columns @ (drawn * often[:, None]), squares)
        observed = 2 * (apart - np.einsum("is,is->s", drawn * spread[:, None], (of.table @ ranks) ** 2))
        expected = 2 * (total * np.einsum("vs,vs->s", counts, squares) - np.einsum("vs,vs->s", counts, ranks) ** 2)
        return _alpha(observed, expected, total)

    return statistic


def _alpha(observed: Numbers, expected: Numbers, total: Numbers) -> Numbers:
    import numpy as np

    out: Numbers = np.full(len(total), np.nan)
    # What rounding leaves of no difference at all is none.
    defined = expected > 1e-12 * total**2
    out[defined] = 1 - (total[defined] - 1) * observed[defined] / expected[defined]
    return out


def _midranks(counts: Numbers) -> Numbers:
    import numpy as np

    out: Numbers = np.cumsum(counts, axis=0) - counts / 2
    return out


def _scale(of: Ratings, level: Level) -> Numbers:
    import numpy as np

    if level is Level.INTERVAL:
        return _scaled(of.values)
    counts: Numbers = np.asarray(of.table.sum(axis=0), dtype=np.float64).ravel()
    ranks: Numbers = _midranks(counts) / max(float(counts.sum()), 1.0)
    return ranks


def _scaled(values: Numbers) -> Numbers:
    """Values from 0 to 1: alpha of an interval scale is the same, and squares lose no digits."""
    low, high = values[0] / 2, values[-1] / 2  # halves, whose difference is finite
    out: Numbers = (values / 2 - low) / (high - low) if high > low else values * 0
    return out


def _spread_within(of: Ratings, scale: Numbers) -> Numbers:
    per_item = of.per_item
    out: Numbers = 2 * (per_item * (of.table @ scale**2) - (of.table @ scale) ** 2) / (per_item - 1)
    return out.clip(min=0)


def _nominal_within(of: Ratings) -> Numbers:
    import numpy as np

    per_item = of.per_item
    out: Numbers = (per_item**2 - np.asarray(of.table.multiply(of.table).sum(axis=1)).ravel()) / (per_item - 1)
    return out


def _pairs_within(of: Ratings, apart: Callable[[Numbers, Numbers], Numbers]) -> Numbers:
    import numpy as np

    out, per_item = np.zeros(of.table.shape[0]), of.per_item
    for row in range(len(out)):
        some = slice(of.table.indptr[row], of.table.indptr[row + 1])
        values, counts = of.values[of.table.indices[some]], of.table.data[some]
        if len(values) > 1:
            out[row] = counts @ apart(values[:, None], values[None, :]) @ counts / (per_item[row] - 1)
    return out


def _ratio(one: Numbers, other: Numbers) -> Numbers:
    import numpy as np

    whole, apart = one / 2 + other / 2, one / 2 - other / 2  # halves, whose sum is finite
    out: Numbers = np.divide(apart, whole, out=np.zeros(np.broadcast(one, other).shape), where=whole != 0) ** 2
    return out


def _ratio_between(values: Numbers) -> Callable[[Numbers], Numbers]:
    """Returns the differences of all pairs of a ratio scale's values as a function of how often each comes, a row for
    each sample.

    ((c - k) / (c + k))^2 is 1 - 4ck / (c + k)^2, and 1 / (c + k)^2 is the integral of t exp(-ct) exp(-kt) over t > 0.
    So the sum over pairs is the integral of the square of one sum over values, which the trapezoid rule in ln t gives
    to rounding: its error falls as exp(-pi^2 / step). That costs a hundred numbers a value, and not one for each pair.
    """
    import numpy as np

    if len(values) <= MOST_COMPARED:
        table = _ratio(values[:, None], values[None, :])
        return lambda counts: ((counts @ table) * counts).sum(axis=1)
    scaled = values / values[-1]
    least, step = float(scaled[scaled > 0][0]), 0.25
    logs = np.arange(-20.0, 4.0 - math.log(least) + step, step)
    with np.errstate(over="ignore", under="ignore"):
        parts = 2 * math.sqrt(step) * np.exp(logs)[None, :] * scaled[:, None]
        parts *= np.exp(-scaled[:, None] * np.exp(logs)[None, :])

    def between(counts: Numbers) -> Numbers:
        alike = ((counts @ parts) ** 2).sum(axis=1)
        if values[0] == 0:  # two zeros are alike, which the integral does not say
            alike += counts[:, 0] ** 2
        out: Numbers = (counts.sum(axis=1) ** 2 - alike).clip(min=0)
        return out

    return between


def _kinds(of: Ratings) -> tuple[Ratings, NDArray[np.int64]]:
    """Items that were rated alike, as one kind each, with how many there are."""
    import numpy as np

    seen: dict[tuple[bytes, bytes], int] = {}
    firsts: list[int] = []
    counts: list[int] = []
    table = of.table
    table.sort_indices()
    for row in range(table.shape[0]):
        some = slice(table.indptr[row], table.indptr[row + 1])
        kind = seen.setdefault((table.indices[some].tobytes(), table.data[some].tobytes()), len(seen))
        if kind == len(firsts):
            firsts.append(row)
            counts.append(0)
        counts[kind] += 1
    return Ratings(of.values, table[np.array(firsts)]), np.array(counts)
