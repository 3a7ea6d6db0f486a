"""Asks a suite's gates about many simulated comparisons at once, by the very rules that decide of one. Pure.

What a rule decides by (`Difference.worse`, `headline_worse`, `stands_in_fresh`, `Pair.newly_failing`, `suspicion`) is
computed for all rows together; intervals, which decide nothing, are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from evalcore.stats.bootstrap import standard_errors
from evalcore.stats.sign_flip import sign_flip_p
from evalcore.suite.comparison import SEED, Difference
from evalcore.suite.confirm import ALWAYS, FRESH, always_failed, stands_in_fresh, suspicion
from evalcore.suite.gates import headline_worse
from evalcore.suite.pairing import Pair, Side

if TYPE_CHECKING:
    from evalcore.suite.comparison import Numbers

Truths = NDArray[np.bool_]
FLIPS = 2_000
"""A fifth of what one comparison has: a rate over many comparisons does not show the difference."""


@dataclass(frozen=True)
class Group:
    """Cases that a gate looks at together. Cases of a cluster are drawn as one: `order` puts them side by side,
    `starts` says where each cluster begins."""

    name: str
    places: NDArray[np.int64]
    order: NDArray[np.int64]
    starts: NDArray[np.int64]
    sizes: Numbers

    @property
    def units(self) -> int:
        return len(self.sizes)

    def sums(self, deltas: Numbers) -> Numbers:
        """The sum of each cluster's differences, a row each comparison; `deltas` are all cases'."""
        rows = deltas[:, self.places[self.order]]
        return rows.copy() if self.units == len(self.places) else np.add.reduceat(rows, self.starts, axis=1)


def group_of(name: str, places: NDArray[np.int64], clusters: Sequence[str]) -> Group:
    """Returns the group of the cases at these places; `clusters` are all cases'."""
    _, owners = np.unique(np.array([clusters[place] for place in places]), return_inverse=True)
    order = np.argsort(owners, kind="stable")
    sizes = np.bincount(owners)
    return Group(name, places, order, np.concatenate([[0], np.cumsum(sizes)[:-1]]), sizes.astype(np.float64))


def slice_worse(group: Group, deltas: Numbers) -> tuple[Truths, Numbers]:
    """Tells for each comparison whether the slice is worse by the plain rule; and the standard error of each."""
    if group.units < 2:
        return np.zeros(len(deltas), dtype=bool), np.zeros(len(deltas))
    sums, n = group.sums(deltas), len(group.places)
    errors = standard_errors(sums, group.sizes)
    found = [
        Difference(n, group.units, delta=float(total) / n, error=float(error)).worse
        for total, error in zip(sums.sum(axis=1), errors, strict=True)
    ]
    return np.array(found, dtype=bool), errors


def slice_stands(group: Group, deltas: Numbers, seed: int = SEED) -> Truths:
    """Tells for each row of fresh samples' differences whether the slice is worse in them alone."""
    return np.array([stands_in_fresh(one) for one in _tested(group, deltas, seed)], dtype=bool)


def all_worse(group: Group, deltas: Numbers, seed: int = SEED) -> Truths:
    """Tells for each comparison whether all cases together are worse."""
    return np.array([headline_worse(one) for one in _tested(group, deltas, seed)], dtype=bool)


def newly_failing(baseline: NDArray[np.int64], candidate: NDArray[np.int64], samples: int) -> Truths:
    """Tells of each case, by how many samples failed, whether it is suspect: the candidate fails it, the baseline
    never did."""
    out: Truths = _suspect(samples)[baseline, candidate]
    return out


def fails_always(candidate: NDArray[np.int64], samples: int) -> Truths:
    """Tells of each case, by how many samples failed, whether the candidate failed all, and these are enough."""
    rule = np.array([always_failed(_side(failing, samples)) for failing in range(samples + 1)])
    out: Truths = rule[candidate]
    return out


def fails_again(baseline: NDArray[np.int64], candidate: NDArray[np.int64], always: Truths) -> Truths:
    """Tells of each suspect case, by how many of its fresh samples failed, whether it blocks. `always`: the candidate
    failed each sample before."""
    out: Truths = _blocks()[always.astype(int), baseline, candidate]
    return out


def _tested(group: Group, deltas: Numbers, seed: int) -> list[Difference]:
    """Differences with the p-value that a comparison has of them; none of fewer than two units."""
    if not len(deltas):
        return []
    sums, n = group.sums(deltas), len(group.places)
    if group.units < 2:
        return [Difference(n, group.units, delta=float(total) / n) for total in sums.sum(axis=1)]
    return [
        Difference(n, group.units, delta=float(total) / n, p_value=float(p_value))
        for total, p_value in zip(sums.sum(axis=1), sign_flip_p(sums, seed, FLIPS), strict=True)
    ]


@cache
def _suspect(samples: int) -> Truths:
    """What the rule says of each number of failures of the baseline (rows) and the candidate (columns)."""
    counts = range(samples + 1)
    return np.array([[_pair(one, other, samples).newly_failing() for other in counts] for one in counts])


@cache
def _blocks() -> Truths:
    counts = range(FRESH + 1)
    return np.array([
        [[suspicion("", _pair(one, other, FRESH), always).stands for other in counts] for one in counts]
        for always in (0, ALWAYS)
    ])  # fmt: skip


def _pair(baseline: int, candidate: int, samples: int) -> Pair:
    return Pair("", frozenset(), "", _side(baseline, samples), _side(candidate, samples))


def _side(failing: int, samples: int) -> Side:
    values = (0.0,) * failing + (1.0,) * (samples - failing)
    return Side(values, values, 0, 0, 1.0)
