"""A judge's answers as one number: a weighted mean, which for a BOOLEAN judge is the rate of true. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass

from scipy import special  # not scipy.stats, which takes each process a second to import

from evalcore.gates.answers import Answers

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Aggregate:
    """`worst` and `best` are the mean with all that is unscored at the scale's ends; the truth lies between. None where
    there is nothing to score. `ci95` is of the scored items alone."""

    worst: float | None
    best: float | None
    ci95: tuple[float, float] | None


def aggregate(answers: Answers, scale: tuple[float, float], boolean: bool) -> Aggregate:
    low, high = scale
    total = math.fsum((*answers.weights, *answers.missing))
    if not total > 0:
        return Aggregate(None, None, None)
    scored = math.fsum(value * weight for value, weight in zip(answers.values, answers.weights, strict=True))
    missing = math.fsum(answers.missing)

    def mean(at: float) -> float:
        # What rounding adds must not push a mean over a limit that it equals.
        return min(max((scored + missing * at) / total, low), high)

    return Aggregate(mean(low), mean(high), _interval(answers, scale, boolean))


def _interval(answers: Answers, scale: tuple[float, float], boolean: bool) -> tuple[float, float] | None:
    """Student's for a mean, cut at the scale's ends, Wilson's for a rate, both with Kish's effective number of items
    where weights differ. None with fewer than two items."""
    if len(answers.values) < 2:
        return None
    total = math.fsum(answers.weights)
    effective = total**2 / math.fsum(weight**2 for weight in answers.weights)
    mean = math.fsum(v * w for v, w in zip(answers.values, answers.weights, strict=True)) / total
    if boolean:
        return _wilson(mean, effective)
    if effective <= 1:
        return None
    spread = math.fsum(w * (v - mean) ** 2 for v, w in zip(answers.values, answers.weights, strict=True)) / total
    error = math.sqrt(spread / (effective - 1))
    half = float(special.stdtrit(effective - 1, (1 + CONFIDENCE) / 2)) * error
    low, high = scale
    return max(mean - half, low), min(mean + half, high)


def _wilson(rate: float, n: float) -> tuple[float, float]:
    z = float(special.ndtri((1 + CONFIDENCE) / 2))
    centre = (rate + z * z / (2 * n)) / (1 + z * z / n)
    half = z * math.sqrt(rate * (1 - rate) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    # At a rate of 0 or 1 it ends there, but for rounding.
    return max(0.0, min(centre - half, rate)), min(1.0, max(centre + half, rate))
