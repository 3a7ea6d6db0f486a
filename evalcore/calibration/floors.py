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
from evalcore.stats.power import Confirmed, Figures, of_mean, of_rate
from schemas.judges import BaselineSource

PERCENTILE = 5.0
SIGMAS = 2.0
LEAST_TRACES = 200
"""Annotated traces of a JADE round."""
LOWEST = 0.1
"""The part of the scale in which a floor says next to nothing: not proposed."""
_ROUNDING = 1e-12
Values = NDArray[np.float64]


@dataclass(frozen=True)
class Derived:
    """What a source gives for one judge. `limit` is None where there is nothing to derive it from, and it is proposed
    where `reason` is empty. `breach` is the chance that unchanged traffic is below it at a gate, `detectable` the
    smallest fall of the true mean that it sees with 80 % power, None where it sees none."""

    n: int
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


def percentile(scores: Values, weights: Values, percent: float = PERCENTILE) -> float:
    """Returns the lowest score with that share of the weight at or below it."""
    order = np.argsort(scores, kind="stable")
    shares = np.cumsum(weights[order]) / weights.sum()
    return float(scores[order][int(np.searchsorted(shares, percent / 100 - _ROUNDING))])


def deviation(scores: Values, weights: Values) -> float | None:
    """Returns the standard deviation, by n - 1; with weights by Kish's effective n. None of fewer than two scores."""
    effective = weights.sum() ** 2 / (weights**2).sum()
    if scores.size < 2 or effective <= 1:
        return None
    mean = np.average(scores, weights=weights)
    return math.sqrt(float(np.average((scores - mean) ** 2, weights=weights)) * effective / (effective - 1))


def derived(source: BaselineSource, scores: Values, weights: Values, scale: Scale, at_gate: int) -> Derived:
    """Returns what the source gives of these scores, for gates of `at_gate` items. Of JADE they are those of acceptable
    turns alone."""
    if not scores.size:
        return Derived(0, None, None, None, None, None, None, "there is no score to derive it from")
    mean, sigma = float(np.average(scores, weights=weights)), deviation(scores, weights)
    low = percentile(scores, weights)
    if sigma is None:
        return Derived(scores.size, mean, None, low, None, None, None, "one score has no deviation")
    limit = {
        BaselineSource.JADE_CALIBRATION: low,
        BaselineSource.PRODUCTION_DISTRIBUTION: low - SIGMAS * sigma,
        BaselineSource.PROVISIONAL_SEED: mean - SIGMAS * sigma,
    }[source]
    figures = at_a_gate(mean, sigma, limit, scale, at_gate)
    why = _why_not(limit, scale)
    return Derived(scores.size, mean, sigma, low, limit, 1 - figures.clean_pass, figures.detectable_drop, why)


def at_a_gate(mean: float, sigma: float, limit: float, scale: Scale, items: int) -> Figures:
    """Returns what a limit does to the aggregate of so many items of the same traffic: a pass rate of true and false,
    else a mean."""
    if scale.whole and (scale.low, scale.high) == (0.0, 1.0):
        return of_rate(1 - mean, 0.0, 0.0, Confirmed(), items, limit)
    return of_mean(sigma, items, mean, limit, scale.high - scale.low)


def _why_not(limit: float, scale: Scale) -> str:
    lowest = scale.low + LOWEST * (scale.high - scale.low)
    if limit > lowest:
        return ""
    return f"{limit:.4g} is in the lowest tenth of the scale, below {lowest:.4g}: next to nothing could breach it"
