"""Derives a judge's limit for KL divergence from its own scores while nothing changed, between runs. Pure.

The limit is the 99th percentile of the divergences between two runs that are drawn from what was seen, but not less
than the largest that was seen: what runs differ in as wholes counts, too. Each draw takes both sides from the
same answers. Drawing a pair's sides each from its own would add the pair's chance difference to that of the draw: with
20 bins such a limit would be twice too wide, and miss what it is for.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from evalcore.drift.divergence import divergence, divergences
from evalcore.drift.scale import MOST_BINS, Scale

if TYPE_CHECKING:
    from evalcore.drift.scale import Scores

SHARE = 0.99
DRAWS = 2_000
HELD = 1_000_000
"""Numbers of the draws that are in memory at once."""


def between_runs(runs: Sequence[Scores], scale: Scale, seed: int) -> float | None:
    """Returns the limit from runs of one unchanged judge over the same items, NaN where a run has no score; None with
    fewer than two, and of a scale of more than MOST_BINS. A draw is as many items, each with two of its answers
    (JADE)."""
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
