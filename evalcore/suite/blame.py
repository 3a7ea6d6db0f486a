"""Says which changed part of a candidate makes cases fail, from fresh samples with each part reverted (the offline
pipeline). Pure.

Cases that fell were picked for falling, so their old samples prove nothing: the candidate as it is, with all changes
reverted and with each one reverted is asked again. A side is better if so large a difference of the cases' means comes
less than once in twenty where samples of a case change sides by chance; of several parts the p-values are adjusted by
Holm's method.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from evalcore.stats.multiple_tests import holm
from evalcore.stats.within_case import within_case_p
from evalcore.suite.comparison import ROUNDING, SEED

SAMPLES: Final = 6
"""Fresh samples of a case on each side: of one case, all right against all wrong has p = 1/924."""
SURE: Final = 0.05
WHOLE: Final = 0.75
"""Of what all reverted parts win back, what one has to win back alone so that the fall is undone by it."""

Arm = Mapping[str, Sequence[float]]
"""A case's samples, on one side."""


class Found(StrEnum):
    """What is found."""

    PART = "part"
    """Reverting one part, and no other, undoes the fall."""
    TOGETHER = "together"
    """Reverting any of several parts undoes it: only together they do it."""
    PARTS = "parts"
    """Several parts each have a share in it."""
    NONE_ALONE = "none_alone"
    """Reverting all undoes it, and reverting one alone does not show: each may do it by itself."""
    NOT_AGAIN = "not_again"
    """With fresh samples the candidate is no worse than with all reverted."""


@dataclass(frozen=True)
class Suspect:
    """A changed part. `mean` is that of the cases with it reverted, `restored` the share of the fall that this undoes,
    `p_value` adjusted over all parts."""

    part: str
    mean: float
    restored: float
    p_value: float
    guilty: bool


@dataclass(frozen=True)
class Blame:
    found: Found
    candidate: float
    reverted: float
    p_value: float
    suspects: tuple[Suspect, ...]

    @property
    def guilty(self) -> list[str]:
        """The parts that are named, the one that restores most first."""
        return [one.part for one in self.suspects if one.guilty]


def blamed(candidate: Arm, reverted: Arm, parts: Mapping[str, Arm], seed: int = SEED) -> Blame:
    """Holds the candidate against all parts reverted, then against each; the same seed gives the same digits.

    All arms have the same cases with samples; of a single part `parts` may be what `reverted` is.
    """
    worse, better = _mean(candidate), _mean(reverted)
    again = better_p(reverted, candidate, seed)
    raw = [better_p(arm, candidate, seed) for arm in parts.values()]
    suspects = [
        Suspect(part, _mean(arm), _restored(_mean(arm), worse, better), p, p < SURE and again < SURE)
        for (part, arm), p in zip(parts.items(), holm(raw), strict=True)
    ]
    suspects.sort(key=lambda one: (-one.restored, one.part))
    return Blame(_found(again, [one for one in suspects if one.guilty]), worse, better, again, tuple(suspects))


def better_p(one: Arm, other: Arm, seed: int = SEED) -> float:
    """Returns how often chance alone puts `one` so far above `other`: samples of a case change sides, one-sided."""
    return within_case_p([(one[case], other[case]) for case in sorted(one.keys() & other.keys())], seed)


def _mean(arm: Arm) -> float:
    return math.fsum(math.fsum(samples) / len(samples) for samples in arm.values()) / len(arm)


def _restored(mean: float, worse: float, better: float) -> float:
    return (mean - worse) / (better - worse) if better - worse > ROUNDING else 0.0


def _found(again: float, guilty: Sequence[Suspect]) -> Found:
    if again >= SURE:
        return Found.NOT_AGAIN
    if not guilty:
        return Found.NONE_ALONE
    if len(guilty) == 1:
        return Found.PART
    return Found.TOGETHER if all(one.restored >= WHOLE for one in guilty) else Found.PARTS
