"""Tells whether a judge's scores have moved since its calibration: KL divergence in bins, against a limit, and of the
same items the mean shift. Pure.

Few scores diverge by chance, so the limit is never below what chance makes of two samples of that size; and of many a
shift can hide below a wide limit, which the same items show as pairs. Either fails a judge. A drifted judge stays in
its gates (PF-9 FR-13): what is told is a warning, and its cure a better prompt. What cannot be told, for too few items
or want of a limit, is neither passed nor failed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import permutations
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from evalcore.drift.scale import MOST_BINS, Scale
from evalcore.stats.sign_flip import sign_flip_p

if TYPE_CHECKING:
    from evalcore.drift.scale import Scores

FEWEST_A_BIN = 5
"""Items for each bin, on average and on both sides; with fewer the divergence is mostly chance."""
MOSTLY = 0.9
"""A share of scores at one end of the scale, of a judge with more than two, from which on it tells little apart."""
MOVED = 0.1
"""By how much a share moves before it is a warning."""
SURE = 0.01
"""The chance at which scores that did not move fail, by the limit for so many scores, and by the pairs."""
PORTIONS, PORTION = 20, 100
"""Pairs of samples that are drawn to see what chance does, few at once for the sake of memory."""


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
    """`passed` is None where no one can tell; `reason` says why, or what has moved. `kl` is None without two samples in
    bins. `limit` is the one for so many scores."""

    kl: float | None
    passed: bool | None
    reason: str
    ceiling: float | None = None
    floor: float | None = None
    warnings: tuple[str, ...] = field(default=())
    limit: float | None = None


def divergence(current: Counts, baseline: Counts) -> float:
    """Returns KL(current ‖ baseline) in nats between counts in the same bins, half a count added to each."""
    return float(divergences(current, baseline))


def divergences(current: Counts, baseline: Counts) -> NDArray[np.float64]:
    """Returns the same of many pairs, whose bins are the last axis."""
    p, q = current + 0.5, baseline + 0.5
    p, q = p / p.sum(axis=-1, keepdims=True), q / q.sum(axis=-1, keepdims=True)
    return np.asarray((p * np.log(p / q)).sum(axis=-1))


def by_chance(current: Counts, baseline: Counts) -> float:
    """Returns the divergence above which two samples of these sizes are at SURE, where both are of what both say."""
    generator, both = np.random.default_rng(0), (current + baseline) / (current + baseline).sum()
    drawn = [
        divergences(*(generator.multinomial(side.sum(), both, size=PORTION) for side in (current, baseline)))
        for _ in range(PORTIONS)
    ]
    return float(np.quantile(np.concatenate(drawn), 1 - SURE, method="inverted_cdf"))


def compare(
    baseline: Sample, current: Sample, scale: Scale | None, limit: float | None, shifts: Scores | None = None
) -> Compared:
    """Compares a judge's scores now with those of its calibration. All scores are on the scale. `shifts`: of the items
    that both scored, the score now less the one then."""
    for sample, when in ((baseline, "baseline"), (current, "current")):
        if not sample.n:
            return Compared(None, None, f"the {when} file has no score of this judge", *_ends(current, scale))
    if scale is None:
        return Compared(None, None, "its scores fit no scale: not 0 and 1, whole numbers, nor fractions from 0 to 1")
    ends = _ends(current, scale)
    if scale.bins > MOST_BINS:
        return Compared(None, None, f"its scores span {scale.bins} whole numbers: too many to be counted", *ends)
    counts = scale.counts(current.scores), scale.counts(baseline.scores)
    kl = divergence(*counts)
    told = _warnings(baseline, current, scale)
    fewest = min(baseline.n, current.n)
    if fewest < FEWEST_A_BIN * scale.bins:
        needed = FEWEST_A_BIN * scale.bins
        why = f"{fewest} scores in {scale.bins} bins tell nothing: {needed} are needed, {FEWEST_A_BIN} a bin"
        return Compared(kl, None, why, *ends, told)
    if limit is None:
        return Compared(kl, None, "no limit is stated: give its rule file a `drift` block", *ends, told)
    limit = max(limit, by_chance(*counts))
    moved = [f"KL {kl:.4g} is above {limit:.4g}"] if kl > limit else []
    if shifts is not None and shifts.size and (p := float(sign_flip_p(shifts[None, :], 0)[0])) <= SURE:
        moved.append(f"{shifts.size} same items have moved by {shifts.mean():+.3g} (p = {p:.2g})")
    if not moved:
        return Compared(kl, True, "", *ends, told, limit)
    means = f"mean {baseline.scores.mean():.3g}, now {current.scores.mean():.3g}"
    why = f"its scores have moved: {'; '.join(moved)} ({means}); revise its prompt, or calibrate again"
    return Compared(kl, False, why, *ends, told, limit)


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


SHARE = 0.99
DRAWS = 2_000
HELD = 1_000_000
"""Numbers of the draws that are in memory at once."""


def between_runs(runs: Sequence[Scores], scale: Scale, seed: int) -> float | None:
    """Returns a judge's limit from its own runs while nothing changed, over the same items, NaN where a run has no
    score; None with fewer than two, and of a scale of more than MOST_BINS (JADE).

    The limit is the 99th percentile of the divergences between two runs that are drawn from what was seen, but not less
    than the largest that was seen: what runs differ in as wholes counts, too. A draw is as many items, each with two of
    its answers. Drawing a pair's sides each from its own would add the pair's chance difference to that of the draw:
    with 20 bins such a limit would be twice too wide, and miss what it is for.
    """
    if scale.bins > MOST_BINS:
        return None
    both_scored = [np.isfinite(current) & np.isfinite(baseline) for current, baseline in permutations(runs, 2)]
    pairs = [
        np.stack([scale.places(current[both]), scale.places(baseline[both])])
        for (current, baseline), both in zip(permutations(runs, 2), both_scored, strict=True)
        if both.any()
    ]
    if not pairs:
        return None
    # Items whose two answers are in the same two bins are drawn together: the same as one by one, and fast.
    cells, counts = np.unique(np.concatenate(pairs, axis=1), axis=1, return_counts=True)
    items = round(counts.sum() / len(pairs))
    generator, found = np.random.default_rng(seed), list[NDArray[np.float64]]()
    at_once = max(HELD // max(scale.bins, counts.size), 1)
    for begun in range(0, DRAWS, at_once):
        size = min(at_once, DRAWS - begun)
        drawn = generator.multinomial(items, counts / counts.sum(), size=size)
        found.append(divergences(*(_in_bins(drawn, side, scale.bins) for side in cells)))
    seen = [divergence(*(np.bincount(side, minlength=scale.bins) for side in pair)) for pair in pairs]
    # The lowest divergence that `SHARE` of those drawn are at or below, or the largest seen.
    return max(float(np.quantile(np.concatenate(found), SHARE, method="inverted_cdf")), *seen)


def _in_bins(drawn: NDArray[np.int64], places: NDArray[np.int64], bins: int) -> NDArray[np.int64]:
    """Returns how many items each bin has, in each draw; `places` has the bin of each cell."""
    counted = np.zeros((len(drawn), bins), dtype=np.int64)
    np.add.at(counted.T, places, drawn.T)
    return counted
