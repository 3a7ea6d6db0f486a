"""Draws the turns of a calibration round, by category (PF-9 §5.3). Pure.

Turns of which thumbs and judges say the opposite are a stratum of their own, drawn more often than they come: there a
judge has most to learn. Each drawn turn has a weight, 1 divided by its chance, by which later steps count it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil

from evalcore.agreement.check import FEWEST

LEAST_OF_A_CATEGORY = 2 * FEWEST
"""Of a category with fewer turns all are drawn: agreement takes ten that two people rated."""
DISAGREEING_SHARE = 4
"""One of so many drawn turns is one of which thumbs and judges say the opposite, where there are such."""


@dataclass(frozen=True)
class Turn:
    """One turn that may be drawn."""

    item: str
    category: str
    disagreeing: bool


@dataclass(frozen=True)
class Drawn:
    """One turn of the draw; `weight` is how many it stands for."""

    turn: Turn
    weight: float


class TooFewTurns(ValueError):
    """There are too few turns, of a category or of all."""


def disagree(thumbs: float | None, shares: Iterable[float]) -> bool:
    """Tells whether a user and the judges say the opposite; `shares` are the judges' scores as parts of their scale."""
    of = list(shares)
    if not thumbs or not of:
        return False
    return (thumbs > 0) is not (sum(of) / len(of) >= 0.5)


def draw(turns: Sequence[Turn], categories: Sequence[str], size: int, seed: str) -> list[Drawn]:
    """Returns at least `size` turns, from each category as many as its part of the traffic but not under
    `LEAST_OF_A_CATEGORY`. The same turns and seed give the same draw, in whatever order turns come. Raises TooFewTurns,
    which names categories."""
    by_category = {name: [turn for turn in turns if turn.category == name] for name in categories}
    if short := [f"{name} has {len(of)}" for name, of in by_category.items() if len(of) < FEWEST]:
        raise TooFewTurns(f"category: {', '.join(short)} turns; {FEWEST} of each are the fewest: widen the window")
    total = sum(map(len, by_category.values()))
    if total < size:
        raise TooFewTurns(f"{total} turns of the vertical's categories are too few: a round draws {size} (PF-9 §5.3)")
    found: list[Drawn] = []
    for of in by_category.values():
        many = min(len(of), max(LEAST_OF_A_CATEGORY, ceil(size * len(of) / total)))
        against, others = ([turn for turn in of if turn.disagreeing is side] for side in (True, False))
        taken = _of_disagreeing(many, len(against), len(others))
        found += _taken(against, taken, seed)
        found += _taken(others, many - taken, seed)
    return sorted(found, key=lambda one: (one.turn.category, one.turn.item))


def _of_disagreeing(many: int, against: int, others: int) -> int:
    """How many of a category's draw are disagreeing turns. No stratum is left out: none of its turns had a chance."""
    wanted = max(round(many * against / (against + others)), ceil(many / DISAGREEING_SHARE))
    most = min(against, many - 1 if others else many)
    return max(min(wanted, most), many - others)


def _taken(stratum: Sequence[Turn], many: int, seed: str) -> list[Drawn]:
    ordered = sorted(stratum, key=lambda turn: hashlib.sha256(f"{seed}\0{turn.item}".encode()).digest())
    return [Drawn(turn, len(stratum) / many) for turn in ordered[:many]]
