"""Counts a judge's scores in bins: each value of an INTEGER range, two for BOOLEAN, 20 for FLOAT. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from schemas.judges import ScoreType

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Scores = NDArray[np.float64]

FLOAT_BINS = 20
MOST_BINS = 10_000
"""Of a range of whole numbers. None has so many items that five could be in each."""
_EXACT = 2.0**53
"""Above it every float is a whole number, which says nothing of the scale it is on."""
_PLACES = 9
"""Decimals of a score's place between the bins' edges: 0.15 is where the fourth of 20 begins, and not a hair below."""


@dataclass(frozen=True)
class Scale:
    """From `low` to `high`, in whole numbers or any. True and false are the whole numbers 1 and 0."""

    low: float
    high: float
    whole: bool

    @property
    def bins(self) -> int:
        return round(self.high - self.low) + 1 if self.whole else FLOAT_BINS

    def first_off(self, scores: Scores) -> int | None:
        """Returns the place of the first score that is none on this scale; None where all are."""
        import numpy as np

        on = (scores >= self.low) & (scores <= self.high)
        if self.whole:
            on &= scores == np.floor(scores)
        off = np.flatnonzero(~on)
        return int(off[0]) if off.size else None

    def places(self, scores: Scores) -> NDArray[np.int64]:
        """Returns each score's bin, from 0. The highest score is in the last one."""
        import numpy as np

        if self.whole:
            return (scores - self.low).astype(np.int64)
        share = (scores - self.low) * (FLOAT_BINS / (self.high - self.low))
        return np.minimum(np.floor(np.round(share, _PLACES)), FLOAT_BINS - 1).astype(np.int64)

    def counts(self, scores: Scores) -> NDArray[np.int64]:
        """Returns how many scores each bin has."""
        import numpy as np

        return np.bincount(self.places(scores), minlength=self.bins)


def declared(score_type: ScoreType, score_range: tuple[float, float]) -> Scale:
    """Returns the scale of a judge of the registry."""
    return Scale(*score_range, whole=score_type is not ScoreType.FLOAT)


def fitting(scores: Scores) -> Scale | None:
    """Returns the scale that scores of an unregistered judge fit: 0 and 1, 1 to 5, the whole numbers seen, or [0, 1];
    None where none does, or there is no score."""
    import numpy as np

    if not scores.size or not np.isfinite(scores).all():
        return None
    low, high = float(scores.min()), float(scores.max())
    if (scores == np.floor(scores)).all() and max(-low, high) <= _EXACT:
        known = next(((a, b) for a, b in ((0.0, 1.0), (1.0, 5.0)) if a <= low and high <= b), (low, high))
        return Scale(*known, whole=True)
    return Scale(0.0, 1.0, whole=False) if low >= 0 and high <= 1 else None
