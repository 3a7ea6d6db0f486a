"""The sign-flip test: could paired differences as large as these come about without any difference? Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]

FLIPS = 10_000
_CELLS = 4_000_000
"""Signs that are drawn together: a byte each, and of a seed's digits a part."""
_AT_ONCE = 125_000
"""Signs that are numbers at once, few enough for the cache."""
_ROUNDING = 1e-9


def sign_flip_p(differences: Numbers, seed: int, flips: int = FLIPS) -> Numbers:
    """Returns the two-sided p-value of each row of differences, a column each case or cluster.

    Without any difference each could as well have the other sign: p is the share of such flips, that of what was seen
    among them, whose sum lies as far from zero. All flips where there are no more than `flips`; else so many drawn
    ones, the same for all rows and for the same seed.
    """
    import numpy as np

    units = differences.shape[1]
    largest = np.abs(differences).max(axis=1, initial=0.0, keepdims=True)
    scaled = differences / np.where(largest > 0, largest, 1.0)
    seen = np.abs(scaled.sum(axis=1)) - _ROUNDING
    whole = units < flips.bit_length() and 2**units <= flips
    rng, as_far = np.random.default_rng(seed), np.zeros(len(differences))
    count, rows = 2**units if whole else flips, max(_CELLS // max(units, 1), 1)
    for start in range(0, count, rows):
        size = min(rows, count - start)
        if whole:
            heads = np.arange(start, start + size)[:, None] >> np.arange(units) & 1
        else:
            heads = rng.integers(0, 2, size=(size, units), dtype=np.int8)
        for some in np.array_split(heads, max(heads.size // _AT_ONCE, 1)):
            signs = some.astype(np.float64)
            signs *= 2
            signs -= 1
            as_far += np.count_nonzero(np.abs(signs @ scaled.T) >= seen, axis=0)
    out: Numbers = as_far / count if whole else (as_far + 1) / (count + 1)
    return out
