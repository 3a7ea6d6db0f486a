"""The within-case permutation test: could chance alone put one side's scores so far above the other's? Pure.

Samples of a case change sides; what cases are like has no part in it, so that one case is enough to say something.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import combinations
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]

DRAWS = 4_000
FINER = 10
"""The least p that draws can give is this share of the p that is asked for, or less."""
_SPLITS = 1_000
"""Ways to deal a case's samples to two sides, up to which all are listed."""
_LISTED = 100_000
"""Sums over all cases, up to which all are listed."""
_STEPS = 200_000
"""Places of a distribution, up to which it is computed."""
_ROUNDING = 1e-9
Both = tuple[Sequence[float], Sequence[float]]
"""A case's samples, on both sides."""


def within_case_p(cases: Sequence[Both], seed: int, asked: float = 0.05) -> float:
    """Returns how often chance puts the first side's mean over cases as far above the second's as it is.

    Exact for scores of two values (hypergeometric, convolved over cases), and where few splits are there; else by draws
    that can tell a tenth of the p that is `asked` for, the same for the same seed.
    """
    varied = [both for both in cases if len({*both[0], *both[1]}) > 1]
    values = sorted({value for both in varied for side in both for value in side})
    if len(values) == 2 and (exact := _of_two_values(varied, values[1])) is not None:
        return exact
    return _of_any_values(varied, seed, max(DRAWS, math.ceil(FINER / asked)))


def least_p(cases: Sequence[Both]) -> float:
    """Returns the least p that so many samples can give: each of one side below each of the other, in every case."""
    return math.prod(1 / math.comb(len(one) + len(other), len(other)) for one, other in cases)


def _of_two_values(cases: Sequence[Both], high: float) -> float | None:
    """None where cases differ in their numbers of samples by so much that there are too many sums."""
    import numpy as np

    weights = [Fraction(len(one) + len(other), len(one) * len(other)) for one, other in cases]
    common = math.lcm(*(weight.denominator for weight in weights))
    steps = [int(weight * common) for weight in weights]
    if sum(step * len(other) for step, (_, other) in zip(steps, cases, strict=True)) > _STEPS:
        return None
    chances, seen = np.ones(1), 0
    for step, (one, other) in zip(steps, cases, strict=True):
        first, second = (sum(value == high for value in side) for side in (one, other))
        spread = np.zeros(step * len(other) + 1)
        spread[::step] = _hypergeometric(first + second, len(one), len(other))
        chances, seen = np.convolve(chances, spread), seen + step * second
    return min(float(chances[: seen + 1].sum()), 1.0)


@lru_cache(maxsize=4_096)
def _hypergeometric(high: int, first: int, second: int) -> tuple[float, ...]:
    """The chance of each number of high values among the second side's."""
    ways = math.comb(first + second, second)
    return tuple(
        math.comb(high, number) * math.comb(first + second - high, second - number) / ways
        for number in range(second + 1)
    )


def _of_any_values(cases: Sequence[Both], seed: int, draws: int) -> float:
    import numpy as np

    seen = math.fsum(math.fsum(one) / len(one) - math.fsum(other) / len(other) for one, other in cases)
    ways = [math.comb(len(one) + len(other), len(other)) for one, other in cases]
    listed, rng = math.prod(ways) <= _LISTED, np.random.default_rng(seed)
    sums = np.zeros(1 if listed else draws)
    for (one, other), many in zip(cases, ways, strict=True):
        both = np.array([*one, *other], dtype=np.float64)
        if listed:
            sums = np.add.outer(sums, _apart(both[_splits(len(both), len(other))], both, len(one))).ravel()
        elif many <= _SPLITS:
            dealt = _apart(both[_splits(len(both), len(other))], both, len(one))
            sums += dealt[rng.integers(0, many, draws)]
        else:
            sums += _apart(rng.permuted(np.tile(both, (draws, 1)), axis=1)[:, : len(other)], both, len(one))
    as_far = int(np.count_nonzero(sums >= seen - _ROUNDING))
    return as_far / len(sums) if listed else (1 + as_far) / (1 + draws)


@lru_cache(maxsize=64)
def _splits(samples: int, second: int) -> NDArray[np.int64]:
    """The places that the second side can have, a row each way."""
    import numpy as np

    return np.array(list(combinations(range(samples), second)), dtype=np.int64)


def _apart(second: Numbers, both: Numbers, first: int) -> Numbers:
    """By how much the first side's mean is above the second's, for each row of the second side's samples."""
    sums = second.sum(axis=1)
    out: Numbers = (both.sum() - sums) / first - sums / second.shape[1]
    return out
