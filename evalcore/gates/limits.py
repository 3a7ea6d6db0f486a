"""Aggregates a judge's answers to one number, and compares the number with its limits (PC5 §5.2). Pure.

The number is a weighted mean, which for a BOOLEAN judge is the rate of true. Its limits are floor, threshold, and
baseline less tolerance; on traffic what misses the last has also to be more than chance (`evalcore.gates.chance`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from evalcore.scoring.answers import Answers
from schemas.judges import Enforcement, Milestone, Score
from schemas.manifests import ROLLING
from schemas.verdicts import Code, Compared, VerdictLevel

CONFIDENCE = 0.95
LARGEST_QUANTILE = 1e6
"""Largest quantile of Student's t that is used. Beyond it one item outweighs all others by so much that the scored
items say nothing of the mean; the quantile itself is no longer reliable there."""


@dataclass(frozen=True)
class Aggregate:
    """A judge's mean. `worst` and `best` count unscored items at the scale's ends, so the true mean is between them;
    None where there is nothing to score. Of the scored items alone `ci95` is the interval, and `error` their mean's
    standard error."""

    worst: float | None
    best: float | None
    ci95: tuple[float, float] | None
    error: float | None = None


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

    error = deviation(answers) / math.sqrt(effective(answers.weights)) if answers.values else None
    return Aggregate(mean(low), mean(high), _interval(answers, scale, boolean), error)


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
class PastRun:
    """A judge's mean at an earlier gate, of `n` items, with its standard error; None where the run was kept without
    them."""

    score: float
    n: int | None = None
    error: float | None = None


Past = PastRun | float
"""An earlier run, or its mean alone."""


@dataclass(frozen=True)
class Fall:
    """How a score compares with its baseline: `p_value` over all judges of the gate, and the items that would tell."""

    compared: Compared
    p_value: float | None = None
    items_needed: int | None = None


@dataclass(frozen=True)
class Limits:
    """A judge's limits at one milestone. `runs` are the last ones of the same judge version, dataset version and
    milestone, oldest first: without any nothing can have regressed. `outdated` names the version of the last run where
    all runs are of other versions and no reviewer has accepted the change (PC5 FR-12)."""

    threshold: float
    floor: float
    tolerance: float
    enforcement: Enforcement
    runs: tuple[PastRun, ...] = ()
    outdated: str = ""

    @property
    def baseline(self) -> float | None:
        """The mean of the runs."""
        return math.fsum(run.score for run in self.runs) / len(self.runs) if self.runs else None

    @classmethod
    def of(
        cls,
        threshold: Score,
        floor: Score,
        tolerance: float,
        enforcement: Enforcement,
        history: Sequence[Past] = (),
        outdated: str = "",
    ) -> Limits:
        """Makes the limits; `history` holds earlier runs, oldest first, of which the last three count."""
        past = (one if isinstance(one, PastRun) else PastRun(float(one)) for one in history)
        runs = tuple(run for run in past if math.isfinite(run.score))[-ROLLING:]
        return cls(float(threshold), float(floor), float(tolerance), enforcement, runs, outdated)

    def falls(self, score: float) -> bool:
        """Tells whether the score is below the baseline by more than the tolerance."""
        return self.baseline is not None and _below(score, self.baseline - self.tolerance)


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


def stands(name: str, score: float, limits: Limits, milestone: Milestone, fall: Fall | None = None) -> Standing:
    """Compares a score with its limits. A judge passes with score >= threshold, >= floor and >= baseline - tolerance. A
    score below the floor always blocks; else a failing judge blocks or warns as its enforcement says. With `fall` a
    score below its baseline blocks only where that is worse by more than chance, and warns where it may be."""
    shown = f"{name} scored {figure(score)}"
    if _below(score, limits.floor):
        return Standing(VerdictLevel.FAIL, Code.FLOOR_BREACH, f"{shown}, below its floor of {figure(limits.floor)}")
    failing = VerdictLevel.FAIL if limits.enforcement is Enforcement.BLOCK else VerdictLevel.WARN
    if _below(score, limits.threshold):
        message = f"{shown}, below its threshold of {figure(limits.threshold)} at {milestone}"
        return Standing(failing, Code.BELOW_THRESHOLD, message)
    if limits.baseline is not None and limits.falls(score):
        runs = f"its last {len(limits.runs)} run{'s' if len(limits.runs) != 1 else ''}"
        least = f"{figure(limits.baseline)} - {figure(limits.tolerance)}"
        message = f"{shown}, below its baseline less tolerance of {least} ({runs})"
        if fall is None:
            return Standing(failing, Code.REGRESSED, message)
        message = f"{message}: {fall.compared}, p = {fall.p_value:.2g} over all judges of the gate"
        if fall.compared is Compared.WORSE:
            return Standing(failing, Code.REGRESSED, message)
        if fall.compared is Compared.NOT_CONFIRMED:
            return Standing(VerdictLevel.WARN, Code.REGRESSED, message)
    if limits.baseline is None and limits.outdated:
        message = f"{shown}, and main's baseline is of its version {limits.outdated}: whether it regressed is unknown"
        return Standing(failing, Code.REGRESSED, f"{message}; make the baseline again, or accept the shift")
    return Standing(VerdictLevel.PASS)


def figure(value: float) -> str:
    """Returns the number in six digits, enough to tell a score from the limit that it misses."""
    return f"{value:.6g}"


def _below(score: float, limit: float) -> bool:
    """Tells whether the score is below the limit by more than rounding: a mean of equal values does not miss a limit
    that it equals."""
    return score < limit and not math.isclose(score, limit, rel_tol=1e-9)
