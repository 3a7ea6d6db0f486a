"""Aggregates a judge's answers to one number, and compares the number with its limits (PC5 §5.2). Pure.

The number is a weighted mean, which for a BOOLEAN judge is the rate of true. Its limits are floor, threshold, and
baseline less tolerance.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from evalcore.scoring.answers import Answers
from schemas.judges import Enforcement, Milestone, Score
from schemas.verdicts import Code, VerdictLevel

ROLLING = 3
"""Runs that make a baseline."""
CONFIDENCE = 0.95
LARGEST_QUANTILE = 1e6
"""Largest quantile of Student's t that is used. Beyond it one item outweighs all others by so much that the scored
items say nothing of the mean; the quantile itself is no longer reliable there."""


@dataclass(frozen=True)
class Aggregate:
    """A judge's mean. `worst` and `best` count unscored items at the scale's ends, so the true mean is between them;
    None where there is nothing to score. `ci95` is the interval of the scored items alone."""

    worst: float | None
    best: float | None
    ci95: tuple[float, float] | None


def aggregate(answers: Answers, scale: tuple[float, float], boolean: bool) -> Aggregate:
    """Returns the weighted mean of the answers on the judge's scale."""
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
    """Returns Student's interval for a mean, cut at the scale's ends, or Wilson's for a rate, both with Kish's
    effective number of items where weights differ; None with fewer than two items."""
    if len(answers.values) < 2:
        return None
    total, items = math.fsum(answers.weights), effective(answers.weights)
    mean = math.fsum(v * w for v, w in zip(answers.values, answers.weights, strict=True)) / total
    if boolean:
        return _wilson(mean, items)
    if items <= 1:
        return None
    error = deviation(answers) / math.sqrt(items)
    from scipy import special  # half a second of CPU, and most processes never decide

    low, high = scale
    quantile = float(special.stdtrit(items - 1, (1 + CONFIDENCE) / 2))
    if quantile > LARGEST_QUANTILE:
        return low, high
    half = quantile * error
    return max(mean - half, low), min(mean + half, high)


def effective(weights: Sequence[float]) -> float:
    """Returns Kish's effective number of items; the number itself where all weigh the same."""
    return math.fsum(weights) ** 2 / math.fsum(weight**2 for weight in weights)


def deviation(answers: Answers) -> float:
    """Returns the weighted standard deviation of what was scored; 0 for what is no more than one item."""
    total, items = math.fsum(answers.weights), effective(answers.weights)
    mean = math.fsum(v * w for v, w in zip(answers.values, answers.weights, strict=True)) / total
    squares = math.fsum(w * (v - mean) ** 2 for v, w in zip(answers.values, answers.weights, strict=True))
    return math.sqrt(squares / total * items / (items - 1)) if items > 1 else 0.0


def _wilson(rate: float, n: float) -> tuple[float, float]:
    from scipy import special

    z = float(special.ndtri((1 + CONFIDENCE) / 2))
    centre = (rate + z * z / (2 * n)) / (1 + z * z / n)
    half = z * math.sqrt(rate * (1 - rate) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    # At a rate of 0 or 1 the interval ends there; only rounding makes it differ.
    return max(0.0, min(centre - half, rate)), min(1.0, max(centre + half, rate))


@dataclass(frozen=True)
class Limits:
    """A judge's limits at one milestone. `baseline` is None where there is no run of the same judge version, dataset
    version and milestone: then nothing can have regressed. `outdated` names the version of the last run where all runs
    are of other versions and no reviewer has accepted the change (PC5 FR-12)."""

    threshold: float
    floor: float
    tolerance: float
    enforcement: Enforcement
    baseline: float | None = None
    baseline_runs: int = 0
    outdated: str = ""

    @classmethod
    def of(
        cls,
        threshold: Score,
        floor: Score,
        tolerance: float,
        enforcement: Enforcement,
        history: Sequence[float] = (),
        outdated: str = "",
    ) -> Limits:
        """Makes the limits; `history` holds aggregates of earlier runs, oldest first, of which the last three count."""
        runs = [value for value in history if math.isfinite(value)][-ROLLING:]
        baseline = math.fsum(runs) / len(runs) if runs else None
        return cls(float(threshold), float(floor), float(tolerance), enforcement, baseline, len(runs), outdated)


@dataclass(frozen=True)
class Standing:
    """A judge's result. `level` is the gate's verdict by this judge alone; `code` and `message` say why it did not
    pass."""

    level: VerdictLevel
    code: Code = Code.BELOW_THRESHOLD
    message: str = ""

    @property
    def passed(self) -> bool:
        return self.level is VerdictLevel.PASS


def stands(name: str, score: float, limits: Limits, milestone: Milestone) -> Standing:
    """Compares a score with its limits. A judge passes with score >= threshold, >= floor and >= baseline - tolerance. A
    score below the floor always blocks; else a failing judge blocks or warns as its enforcement says."""
    shown = f"{name} scored {figure(score)}"
    if _below(score, limits.floor):
        return Standing(VerdictLevel.FAIL, Code.FLOOR_BREACH, f"{shown}, below its floor of {figure(limits.floor)}")
    failing = VerdictLevel.FAIL if limits.enforcement is Enforcement.BLOCK else VerdictLevel.WARN
    if _below(score, limits.threshold):
        message = f"{shown}, below its threshold of {figure(limits.threshold)} at {milestone}"
        return Standing(failing, Code.BELOW_THRESHOLD, message)
    if limits.baseline is not None and _below(score, limits.baseline - limits.tolerance):
        runs = f"its last {limits.baseline_runs} run{'s' if limits.baseline_runs != 1 else ''}"
        least = f"{figure(limits.baseline)} - {figure(limits.tolerance)}"
        message = f"{shown}, below its baseline less tolerance of {least} ({runs})"
        return Standing(failing, Code.REGRESSED, message)
    if limits.baseline is None and limits.outdated:
        message = f"{shown}, and main's baseline is of its version {limits.outdated}: nobody knows whether it regressed"
        return Standing(failing, Code.REGRESSED, f"{message}; make the baseline anew, or accept the shift")
    return Standing(VerdictLevel.PASS)


def figure(value: float) -> str:
    """Returns the number in six digits, enough to tell a score from the limit that it misses."""
    return f"{value:.6g}"


def _below(score: float, limit: float) -> bool:
    """Tells whether the score is below the limit by more than rounding: a mean of equal values does not miss a limit
    that it equals."""
    return score < limit and not math.isclose(score, limit, rel_tol=1e-9)
