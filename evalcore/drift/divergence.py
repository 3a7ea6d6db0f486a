"""Tells whether a judge's scores have moved since its calibration: KL divergence in bins, against a limit. Pure.

A drifted judge stays in its gates (PF-9 FR-13): what is told is a warning, and its cure a better prompt. What cannot be
told, for too few items or want of a limit, is neither passed nor failed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from evalcore.drift.scale import MOST_BINS, Scale

if TYPE_CHECKING:
    from evalcore.drift.scale import Scores

FEWEST_A_BIN = 5
"""Items for each bin, on average and on both sides; with fewer the divergence is mostly chance."""
MOSTLY = 0.9
"""A share of scores at one end of the scale, of a judge with more than two, from which on it tells little apart."""
MOVED = 0.1
"""By how much a share moves before it is a warning."""


Counts = NDArray[np.int64] | NDArray[np.float64]


@dataclass(frozen=True)
class Sample:
    """A judge's answers about a set of items: the scores, and how many answers were N/A, or none at all."""

    scores: Scores
    not_applicable: int = 0
    unscored: int = 0

    @property
    def n(self) -> int:
        return int(self.scores.size)

    def share(self, count: int) -> float:
        """Returns a count's share of all answers."""
        return count / asked if (asked := self.n + self.not_applicable + self.unscored) else 0.0

    def at(self, end: float) -> float | None:
        """Returns the fraction of scores that are at an end of the scale; None without a score."""
        return float((self.scores == end).mean()) if self.n else None


@dataclass(frozen=True)
class Compared:
    """`passed` is None where nobody can tell; `reason` says why, or what has moved. `kl` is None without two samples in
    bins."""

    kl: float | None
    passed: bool | None
    reason: str
    ceiling: float | None = None
    floor: float | None = None
    warnings: tuple[str, ...] = field(default=())


def divergence(current: Counts, baseline: Counts) -> float:
    """Returns KL(current ‖ baseline) in nats between counts in the same bins, half a count added to each."""
    return float(divergences(current, baseline))


def divergences(current: Counts, baseline: Counts) -> NDArray[np.float64]:
    """Returns the same of many pairs, whose bins are the last axis."""
    p, q = current + 0.5, baseline + 0.5
    p, q = p / p.sum(axis=-1, keepdims=True), q / q.sum(axis=-1, keepdims=True)
    return np.asarray((p * np.log(p / q)).sum(axis=-1))


def compare(baseline: Sample, current: Sample, scale: Scale | None, limit: float | None) -> Compared:
    """Holds a judge's scores now against those of its calibration. All scores are on the scale."""
    for sample, when in ((baseline, "baseline"), (current, "current")):
        if not sample.n:
            return Compared(None, None, f"the {when} file has no score of this judge", *_ends(current, scale))
    if scale is None:
        return Compared(None, None, "its scores fit no scale: not 0 and 1, whole numbers, nor fractions from 0 to 1")
    ends = _ends(current, scale)
    if scale.bins > MOST_BINS:
        return Compared(None, None, f"its scores span {scale.bins} whole numbers: too many to be counted", *ends)
    kl = divergence(scale.counts(current.scores), scale.counts(baseline.scores))
    told = _warnings(baseline, current, scale)
    fewest = min(baseline.n, current.n)
    if fewest < FEWEST_A_BIN * scale.bins:
        needed = FEWEST_A_BIN * scale.bins
        why = f"{fewest} scores in {scale.bins} bins tell nothing: {needed} are needed, {FEWEST_A_BIN} a bin"
        return Compared(kl, None, why, *ends, told)
    if limit is None:
        return Compared(kl, None, "no limit is stated: give its rule file a `drift` block", *ends, told)
    if kl <= limit:
        return Compared(kl, True, "", *ends, told)
    means = f"mean {baseline.scores.mean():.3g}, now {current.scores.mean():.3g}"
    why = f"its scores have moved: KL {kl:.4g} is above {limit:.4g} ({means}); revise its prompt, or calibrate again"
    return Compared(kl, False, why, *ends, told)


def _ends(sample: Sample, scale: Scale | None) -> tuple[float | None, float | None]:
    return (sample.at(scale.high), sample.at(scale.low)) if scale is not None else (None, None)


def _warnings(baseline: Sample, current: Sample, scale: Scale) -> tuple[str, ...]:
    """What is told and decides nothing: scores at the ends of the scale, answers that are no scores."""
    shares = {
        "of the answers are N/A": [one.share(one.not_applicable) for one in (baseline, current)],
        "of the answers are no scores": [one.share(one.unscored) for one in (baseline, current)],
    }
    if scale.bins > 2:
        ends = {"highest": scale.high, "lowest": scale.low}
        at = {f"of the scores are the {name}": (baseline.at(end), current.at(end)) for name, end in ends.items()}
        shares |= {what: [before or 0.0, now or 0.0] for what, (before, now) in at.items()}
    return tuple(
        f"{now:.0%} {what}, at the baseline {before:.0%}"
        for what, (before, now) in shares.items()
        if abs(now - before) >= MOVED or (now >= MOSTLY and "scores are the" in what)
    )
