"""Derives a judge's floor or threshold from single scores (PF-9 §5.3), and says what it would do at a gate. Pure.

JADE: the 5th percentile of the scores that people found acceptable. Production: that of all scores, less two standard
deviations. Seed: the mean less two standard deviations. A gate holds a mean against the floor, not a single score: so
each is shown with how often unchanged traffic would breach it there, and what fall it would see.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evalcore.drift.scale import Scale
from evalcore.stats.correlation import kish
from evalcore.stats.power import Confirmed, Figures, of_mean, of_rate
from schemas.judges import BaselineSource

PERCENTILE = 5.0
SIGMAS = 2.0
LEAST_TRACES = 200
"""Annotated traces of a JADE round."""
LEAST_SEED = 20
"""Scores of a seed."""
OFTEN = 0.5
"""The chance of a breach by unchanged traffic from which on a limit says nothing of a change."""
LOWEST = 0.1
"""The part of the scale in which a floor says next to nothing: not proposed."""
_ROUNDING = 1e-12
Values = NDArray[np.float64]
Sampled = tuple[Values, Values]
"""Scores, and the weight of each."""


@dataclass(frozen=True)
class Derived:
    """What a source gives for one judge of `n` scores, which say as much as `effective` ones of equal weight: `mean`
    and `sigma` are theirs. `limit` is None where there is nothing to derive it from, and it is proposed where `reason`
    is empty. `breach` is the chance that unchanged traffic, of which a gate asks no people, is below it at a gate,
    `detectable` the smallest fall of its true mean that the gate sees with 80 % power, None where it sees none."""

    n: int
    effective: float
    mean: float | None
    sigma: float | None
    percentile: float | None
    limit: float | None
    breach: float | None
    detectable: float | None
    reason: str

    @property
    def proposed(self) -> bool:
        return not self.reason


@dataclass(frozen=True)
class Daily:
    """What production's rule gives of the means of days, as PC5's runs have means: `days` with scores, of `span` from
    the first to the last. `breach` is the chance that a gate's mean of unchanged traffic is below it."""

    days: int
    span: int
    mean: float
    sigma: float | None
    percentile: float
    limit: float | None
    breach: float | None


def percentile(scores: Values, weights: Values, percent: float = PERCENTILE) -> float:
    """Returns the lowest score with that share of the weight at or below it."""
    order = np.argsort(scores, kind="stable")
    shares = np.cumsum(weights[order]) / weights.sum()
    return float(scores[order][int(np.searchsorted(shares, percent / 100 - _ROUNDING))])


def deviation(scores: Values, weights: Values) -> float | None:
    """Returns the standard deviation, by n - 1; with weights by Kish's effective n. None of fewer than two scores."""
    effective = kish(weights)
    if scores.size < 2 or effective <= 1:
        return None
    mean = np.average(scores, weights=weights)
    return math.sqrt(float(np.average((scores - mean) ** 2, weights=weights)) * effective / (effective - 1))


def derived(
    source: BaselineSource,
    scores: Values,
    weights: Values,
    scale: Scale,
    at_gate: int,
    traffic: Sampled | None = None,
) -> Derived:
    """Returns what the source gives of these scores, for gates of `at_gate` items. Of JADE they are those of acceptable
    turns alone, and `traffic` has those of all turns: a gate has both kinds."""
    if not scores.size:
        return Derived(0, 0.0, None, None, None, None, None, None, "there is no score to derive it from")
    weights, effective = weights / weights.max(), kish(weights / weights.max())
    mean, sigma = float(np.average(scores, weights=weights)), deviation(scores, weights)
    low = percentile(scores, weights)
    if sigma is None:
        return Derived(scores.size, effective, mean, None, low, None, None, None, "one score has no deviation")
    limit = {
        BaselineSource.JADE_CALIBRATION: low,
        BaselineSource.PRODUCTION_DISTRIBUTION: low - SIGMAS * sigma,
        BaselineSource.PROVISIONAL_SEED: mean - SIGMAS * sigma,
    }[source]
    figures = at_a_gate(*_mean_and_spread(traffic, mean, sigma), limit, scale, at_gate)
    why, breach = _why_not(limit, scale), 1 - figures.clean_pass
    if source is BaselineSource.PROVISIONAL_SEED and (scores.size < LEAST_SEED or not sigma > _ROUNDING):
        few = f"{scores.size} scores that vary by {sigma:.3g} are no seed"
        why = f"{few}: {LEAST_SEED} are needed, and a judge that gives all the same score shows no σ"
    return Derived(scores.size, effective, mean, sigma, low, limit, breach, figures.detectable_drop, why)


def of_days(scores: Values, weights: Values, days: NDArray[np.int64], scale: Scale, at_gate: int) -> Daily | None:
    """Returns what the means of days give, each day counting once; None without scores. `days` are numbers of days."""
    if not scores.size:
        return None
    weights = weights / weights.max()
    each, places = np.unique(days, return_inverse=True)
    means = np.bincount(places, scores * weights) / np.bincount(places, weights)
    alike = np.ones(means.size)
    low, sigma, span = percentile(means, alike), deviation(means, alike), int(each[-1] - each[0]) + 1
    mean, spread = float(np.average(scores, weights=weights)), deviation(scores, weights)
    if sigma is None or spread is None:
        return Daily(means.size, span, float(means.mean()), sigma, low, None, None)
    limit = low - SIGMAS * sigma
    breach = 1 - at_a_gate(mean, spread, limit, scale, at_gate).clean_pass
    return Daily(means.size, span, float(means.mean()), sigma, low, limit, breach)


def at_a_gate(mean: float, sigma: float, limit: float, scale: Scale, items: int) -> Figures:
    """Returns what a limit does to the aggregate of so many items of the same traffic: a pass rate of true and false,
    else a mean."""
    if scale.whole and (scale.low, scale.high) == (0.0, 1.0):
        return of_rate(1 - mean, 0.0, 0.0, Confirmed(), items, limit)
    return of_mean(sigma, items, mean, limit, scale.high - scale.low)


def often_breached(limit: float | None, breach: float | None) -> str:
    """Returns a warning of a limit that unchanged traffic breaches in half of all gates or more; empty of others."""
    if limit is None or breach is None or breach < OFTEN:
        return ""
    return f"unchanged traffic breaches {limit:.4g} in {breach:.0%} of gates: that says nothing of a change"


def _why_not(limit: float, scale: Scale) -> str:
    lowest = scale.low + LOWEST * (scale.high - scale.low)
    if limit > lowest:
        return ""
    return f"{limit:.4g} is in the lowest tenth of the scale, below {lowest:.4g}: next to nothing could breach it"


def _mean_and_spread(traffic: Sampled | None, mean: float, sigma: float) -> tuple[float, float]:
    """Of the traffic; of the scores themselves where they are all of it."""
    if traffic is None:
        return mean, sigma
    scores, weights = traffic[0], traffic[1] / traffic[1].max()
    return float(np.average(scores, weights=weights)), deviation(scores, weights) or 0.0
