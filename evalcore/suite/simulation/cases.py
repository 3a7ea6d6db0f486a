"""Draws answers to a suite's cases as its stored runs say that they score: each case's own chances, never quite known.
Pure.

Three samples tell little of a case. Drawing from these very samples again says too little: a case that passed three
times would never fail, and what samples of a case differ by is a third too small. Taking each case alone with half a
sample more on either side says too much: of 100 cases that never failed a dozen would fail in each run. So a case's
chances lie between its own samples and those of all cases, by how much cases differ beyond chance (a Dirichlet process
around the pool; of a score that passes or fails, a beta distribution). Each simulated truth is drawn anew, and both
sides of a comparison answer by the same one.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from evalcore.drift.scale import Scale
from evalcore.suite.comparison import ROUNDING
from evalcore.suite.results import Gone, Run

if TYPE_CHECKING:
    from evalcore.suite.comparison import Numbers

VALUES = 32
"""Values of a score that are told apart; more are put together in as many groups of equal size."""
HALF = 0.5
"""Samples that the pool has more at either end of the scale, so that what was never seen is not impossible."""
LEAST, MOST = 0.001, 0.999
"""Bounds of how much of what scores differ by is of cases. Beyond the upper one a case is as good as its samples."""


class TooFew(ValueError):
    """The stored samples say nothing of how samples of a case differ. The text says what is missing."""


@dataclass(frozen=True)
class Told:
    """What stored samples say of a case; samples that nobody could score say nothing and are left out."""

    case_id: str
    slices: frozenset[str]
    cluster: str
    values: tuple[float, ...]


@dataclass(frozen=True)
class Answers:
    """Simulated answers, a row each run and a column each case: means over samples, and how many samples failed."""

    means: Numbers
    failing: NDArray[np.int64]


@dataclass(frozen=True)
class SuiteCases:
    """Cases with the weights of each value: what chances are drawn with. `failing` marks values at which a case of
    safety fails."""

    cases: Sequence[Told]
    scale: Scale
    safety: frozenset[str]
    values: Numbers
    failing: NDArray[np.bool_]
    weights: Numbers
    safe_at: float

    @property
    def safety_failed(self) -> bool:
        """Whether a stored sample of safety failed. Where none did, all failures that are drawn are the pool's half
        sample, which nobody can mend."""
        return any(value < self.safe_at for place in self.guarded() for value in self.cases[place].values)

    @property
    def slices(self) -> list[str]:
        return sorted({name for case in self.cases for name in case.slices})

    def members(self, name: str) -> NDArray[np.int64]:
        """The places of a slice's cases."""
        return np.array([place for place, case in enumerate(self.cases) if name in case.slices], dtype=np.int64)

    def guarded(self) -> NDArray[np.int64]:
        """The places of the cases of safety."""
        found = [place for place, case in enumerate(self.cases) if not case.slices.isdisjoint(self.safety)]
        return np.array(found, dtype=np.int64)

    def truths(self, rng: np.random.Generator, many: int) -> Numbers:
        """Draws so many truths: for each case the chances of each value."""
        drawn = rng.standard_gamma(self.weights, (many, *self.weights.shape))
        out: Numbers = drawn / drawn.sum(axis=2, keepdims=True)
        return out

    def fallen(self, truths: Numbers, drop: float) -> tuple[Numbers, Numbers]:
        """The same truths where each case's mean is lower by `drop`, as far as the scale goes; and by how much it is.
        Some answers turn into the worst, so that a rate falls by the drop."""
        above = truths @ self.values - self.scale.low
        share = np.minimum(drop / np.maximum(above, ROUNDING), 1.0)
        lower = truths * (1 - share[..., None])
        lower[..., int(np.argmin(self.values))] += share
        return lower, above * share

    def answers(self, rng: np.random.Generator, truths: Numbers, samples: int) -> Answers:
        """Draws so many samples of each case."""
        if len(self.values) == 2:
            second = rng.binomial(samples, np.clip(truths[..., 1], 0, 1))
            counts = np.stack([samples - second, second], axis=-1)
        else:
            counts = rng.multinomial(samples, truths / truths.sum(axis=-1, keepdims=True))
        return Answers(counts @ self.values / samples, counts @ self.failing.astype(np.int64))

    def within(self, truths: Numbers) -> Numbers:
        """By how much samples of each case differ, as a variance."""
        out: Numbers = truths @ self.values**2 - (truths @ self.values) ** 2
        return out


def told_of(runs: Sequence[Run], score: str, scale: Scale) -> tuple[list[Told], int]:
    """Puts together what runs say of each case that is asked in the first, where all of them ask the same; and how many
    samples nobody could score."""
    found, left = [], 0
    for name in sorted(runs[0]):
        first, values = runs[0][name], list[float]()
        for run in runs:
            case = run.get(name)
            if case is None or (case.question and first.question and case.question != first.question):
                continue
            for sample in case.samples:
                value = sample.score(score)
                left += value is Gone.UNSCORED
                if value is Gone.FAILED:
                    values.append(scale.low)
                elif not isinstance(value, Gone):
                    values.append(value)
        if values:
            found.append(Told(name, frozenset(first.slices), first.cluster or name, tuple(values)))
    return found, left


def suite_cases(told: Sequence[Told], scale: Scale, safety: Collection[str], safe_at: float) -> SuiteCases:
    """Returns the cases with their weights. Cases of safety are a pool of their own: what others do says little of
    them. Raises TooFew."""
    if not any(len(case.values) > 1 for case in told):
        raise TooFew("no case has two samples with a score: how samples of a case differ is not known")
    every = np.array([value for case in told for value in case.values])
    groups, values = _groups(every, safe_at, scale)
    weights, start = np.zeros((len(told), len(values))), 0
    for place, case in enumerate(told):
        size = len(case.values)
        np.add.at(weights[place], groups[start : start + size], 1.0)
        start += size
    apart = np.array([not case.slices.isdisjoint(safety) for case in told])
    ends = np.array([int(np.argmin(values)), int(np.argmax(values))])
    for pool in (apart, ~apart):
        if pool.any():
            mass = weights[pool].sum(axis=0)
            mass[ends] += HALF
            share = shared([case.values for case, inside in zip(told, pool, strict=True) if inside])
            weights[pool] += (1 - share) / share * mass / mass.sum()
    return SuiteCases(told, scale, frozenset(safety), values, values < safe_at, weights, safe_at)


def shared(samples: Sequence[Sequence[float]]) -> float:
    """Returns how much of what values differ by is of their cases: the intraclass correlation of one-way analysis of
    variance. A half where no value differs from another, since nothing is known of it then."""
    several = [np.array(one) for one in samples if len(one) > 1]
    spare = sum(one.size - 1 for one in several)
    if not spare or len(several) < 2:
        return 0.5
    within = sum(float(((one - one.mean()) ** 2).sum()) for one in several) / spare
    means = np.array([one.mean() for one in several])
    between = float(means.var(ddof=1)) - within * float(np.mean([1 / one.size for one in several]))
    if within == 0 and between <= 0:
        return 0.5
    most = min(MOST, 1 - HALF / (spare + 1))
    return min(max(between / (between + within) if between > 0 else 0.0, LEAST), most)


def _groups(every: Numbers, safe_at: float, scale: Scale) -> tuple[NDArray[np.int64], Numbers]:
    """The group of each value, and each group's value. The scale's ends are among them; none has values on both sides
    of the one at which a case fails."""
    distinct = np.unique(every)
    if len(distinct) > VALUES:
        edges = np.unique([*np.quantile(every, np.linspace(0, 1, VALUES)[1:-1]), safe_at])
        places = np.digitize(every, edges)
        held = np.unique(places)
        groups = np.searchsorted(held, places)
        values = np.array([every[groups == one].mean() for one in range(len(held))])
    else:
        groups, values = np.searchsorted(distinct, every), distinct
    ends = [end for end in (scale.low, scale.high) if end not in values]
    return groups, np.concatenate([values, np.array(ends, dtype=np.float64)])
