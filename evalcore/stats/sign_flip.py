"""Tests whether paired differences are about zero, by flipping their signs. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

RESAMPLES = 9_999


def sign_flip_p(differences: NDArray[np.float64], seed: int, resamples: int = RESAMPLES) -> float:
    """Returns the two-sided p-value of the mean of paired differences: exact where there are few, else by seeded
    flips. The same seed gives the same digits; 1 where no two differ from zero."""
    import numpy as np
    from scipy import stats

    told = differences[differences != 0]
    if len(told) < 2:  # of one, both flips are as far off
        return 1.0
    found = stats.permutation_test(
        (told,), np.mean, permutation_type="samples", vectorized=True, n_resamples=resamples, alternative="two-sided",
        rng=np.random.default_rng(seed),
    )  # fmt: skip
    return float(found.pvalue)
