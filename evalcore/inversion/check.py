"""Decides whether judges, and composites of them, score against people (PF-9 FR-10, AC-10). Pure.

A judge is inverted when the 95 % interval of Pearson's correlation with people lies below zero. It is undecidable, and
not fine, where fewer than ten pairs, a constant series, or two series of which no pairing could have been called
inverted say nothing, and where Spearman's correlation is of the other sign. One whose interval has zero in it
carries no signal, which is a warning. Slices are reported with p-values adjusted
over all of them, and decide nothing.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from evalcore.stats.correlation import FEWEST, Correlation, correlation, interval
from evalcore.stats.multiple_tests import holm
from schemas.counting import counted

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Series = NDArray[np.float64]

SLICED_BY = ("category", "vertical", "sub_agent")
ALPHA = 0.025
"""The chance at which a slice is called: that of an interval that lies below zero by chance."""


@dataclass(frozen=True)
class Pairs:
    """A judge's scores beside people's of the same items. `slices`: of each field its values, and of each pair the
    place of its value among them; "" is none."""

    items: Sequence[str]
    judge: Series
    human: Series
    slices: Mapping[str, tuple[Sequence[str], NDArray[np.int64]]] = field(default_factory=dict)
    version: str = ""
    """The version of the judge that gave the scores; empty where no one said."""
    weights: Series | None = None
    """The inverse of each pair's chance to be drawn; None, or all alike, where all had the same."""
    lines: Sequence[int] = ()
    """The line of each pair in its file."""
    people: str = ""
    """The version of what people said, where they said more than the judge has scores of; empty: of these pairs."""

    @property
    def reference(self) -> str:
        """The version of what people said: the same scores of the same items, whatever the judge says of them."""
        if self.people:
            return self.people
        told = sorted(zip(self.items, self.human.tolist(), strict=True))
        return hashlib.sha256(json.dumps(told).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Composed:
    """How a composite's score comes of its members': a weight each, or their least."""

    members: Mapping[str, float]
    least: bool = False


@dataclass(frozen=True)
class Standing:
    """What is found of a judge or a composite: inverted, not inverted, or None where no one can tell."""

    name: str
    found: Correlation
    inverted: bool | None
    reason: str

    @property
    def detectable(self) -> float | None:
        """The true correlation that would be found with 80 % power; None where none could be."""
        return self.found.detectable if self.found.could_be_below_zero else None

    @property
    def carries_signal(self) -> bool | None:
        """Whether the interval leaves out zero, which is chance; None where no one can tell."""
        if self.found.n < FEWEST or self.found.ci95 is None or self.detectable is None:
            return None
        return False if _chance(self.found.ci95) else None if self.inverted is None else True


@dataclass(frozen=True)
class SliceStanding:
    """What is found of a judge on the items of one slice; `adjusted_p` is Holm's over all slices of the check."""

    name: str
    field: str
    value: str
    found: Correlation
    adjusted_p: float | None

    @property
    def against(self) -> bool | None:
        return self.adjusted_p <= ALPHA if self.adjusted_p is not None else None


def standing(name: str, found: Correlation) -> Standing:
    """Decides by a correlation, by the one rule that there is (contracts, Definitions)."""
    pairs = counted(found.n, "pair")
    if found.n < FEWEST:
        return Standing(name, found, None, f"undecidable: {pairs}, and {FEWEST} are the fewest to decide by")
    if found.pearson is None or found.ci95 is None or found.lowest is None:
        return Standing(name, found, None, "undecidable: all scores of the judge, or of people, are the same")
    if not found.could_be_below_zero:
        upper = interval(found.lowest, found.n)[1]
        least = f"the lowest that these scores can have is {found.lowest:.3f}, with an interval up to {upper:.3f}"
        return Standing(name, found, None, f"undecidable: no pairing of {pairs} could be called inverted: {least}")
    low, high = found.ci95
    chance = _chance(found.ci95)
    if found.spearman is not None and found.pearson * found.spearman < 0:
        told = f"Pearson {found.pearson:.3f} and Spearman {found.spearman:.3f} are of opposite sign, over {pairs}"
        return Standing(name, found, None, f"undecidable{chance}: {told}: a few pairs, far off, decide one of them")
    told = f"Pearson {found.pearson:.3f}, 95 % {low:.3f} to {high:.3f}, over {pairs}"
    if found.below_zero:
        return Standing(name, found, True, f"inverted: {told}")
    return Standing(name, found, False, f"not inverted{chance}: {told}")


def _chance(ends: tuple[float, float]) -> str:
    return ", and no better than chance" if ends[0] <= 0 <= ends[1] else ""


def check(judges: Mapping[str, Pairs]) -> list[Standing]:
    """Returns what is found of each judge, in the order given."""
    return [standing(name, correlated(pairs)) for name, pairs in judges.items()]


def correlated(pairs: Pairs) -> Correlation:
    """Correlates a judge's scores with people's, by their weights where these differ; Spearman's is of the pairs as
    they are."""
    weights = pairs.weights
    if weights is None or not (weights != weights[:1]).any():
        return correlation(pairs.judge, pairs.human)
    found = correlation(pairs.judge, pairs.human, weights)
    return replace(found, spearman=correlation(pairs.judge, pairs.human).spearman)


def check_composites(judges: Mapping[str, Pairs], composites: Mapping[str, Composed]) -> list[Standing]:
    """Returns what is found of each composite whose members share items: their scores made one, against people's of the
    same members made one alike."""
    found = {name: composed(judges, composite) for name, composite in composites.items()}
    return check({name: pairs for name, pairs in found.items() if pairs is not None})


def composed(judges: Mapping[str, Pairs], composite: Composed) -> Pairs | None:
    """Makes one series of the members' on the items that all of them have; None where there is no such item."""
    import numpy as np

    if any(member not in judges for member in composite.members):
        return None
    places = [{item: place for place, item in enumerate(judges[name].items)} for name in composite.members]
    shared = [item for item in places[0] if all(item in other for other in places[1:])]
    if not shared:
        return None
    rows = [[place[item] for item in shared] for place in places]
    weights = list(composite.members.values())
    one = []
    for side in ("judge", "human"):
        table = np.array([getattr(judges[name], side)[row] for name, row in zip(composite.members, rows, strict=True)])
        one.append(table.min(axis=0) if composite.least else np.average(table, axis=0, weights=weights))
    drawn = judges[next(iter(composite.members))].weights
    return Pairs(shared, one[0], one[1], weights=drawn[rows[0]] if drawn is not None else None)


def check_slices(judges: Mapping[str, Pairs]) -> list[SliceStanding]:
    """Returns what is found on each slice that has a judge's items, adjusted over all slices that could be called."""
    found: list[tuple[str, str, str, Correlation]] = []
    for name, pairs in judges.items():
        for about, (values, places) in pairs.slices.items():
            for place, value in enumerate(values):
                if value:
                    chosen = places == place
                    weights = pairs.weights[chosen] if pairs.weights is not None else None
                    part = Pairs((), pairs.judge[chosen], pairs.human[chosen], weights=weights)
                    found.append((name, about, value, correlated(part)))
    called = [at for at, one in enumerate(found) if standing("", one[3]).inverted is not None]
    adjusted = dict(zip(called, holm([found[at][3].below_zero_p or 0.0 for at in called]), strict=True))
    return [SliceStanding(*one, adjusted.get(at)) for at, one in enumerate(found)]
