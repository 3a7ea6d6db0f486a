"""Measures how far annotators of a round agree, by category, and says what lowers it (PF-9 FR-14, AC-14). Pure.

A category that does not clear its threshold is quarantined, and so is one of which alpha is not defined or rests on
fewer than ten items: nothing of such a round enters the reference set.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from evalcore.agreement.alpha import (
    Ratings,
    alpha,
    alpha_interval,
    differences,
    disagreement,
    pairwise_agreement,
    ratings,
)
from schemas.checks.agreement import SEED_THRESHOLD, AgreementSource, Level

FEWEST = 10
"""Items rated twice under which a category is quarantined (contracts, Definitions)."""
MOST_VALUES_OF_A_CODEBOOK = 50


@dataclass(frozen=True)
class Rated:
    """The ratings of one category: of each the places of its item and its annotator. `labels`: the texts whose places
    in it the scores are; empty where scores are numbers."""

    items: Sequence[str]
    annotators: Sequence[str]
    item_at: Sequence[int]
    annotator_at: Sequence[int]
    scores: Sequence[float]
    labels: Sequence[str] = ()

    def called(self, score: float) -> float | str:
        return self.labels[int(score)] if self.labels else score


@dataclass(frozen=True)
class Bound:
    """What a category has to reach, and where that comes from."""

    level: Level = Level.ORDINAL
    threshold: float = SEED_THRESHOLD
    source: AgreementSource = AgreementSource.PROVISIONAL_SEED
    wrong: str = ""
    """Why nothing can clear this threshold, as one that is overdue; empty where something can."""


@dataclass(frozen=True)
class ItemAgreement:
    """`pairwise`: the share of its annotator pairs that agree; `part`: its part of the category's disagreement."""

    item: str
    pairwise: float
    part: float


@dataclass(frozen=True)
class Without:
    """What alpha would be without one annotator."""

    annotator: str
    ratings: int
    alpha: float | None


@dataclass(frozen=True)
class CodebookEntry:
    """Two ratings that were given to the same items: where the codebook does not tell them apart. `part` is theirs of
    the disagreement."""

    ratings: tuple[float | str, float | str]
    items: int
    part: float


@dataclass(frozen=True)
class Agreement:
    """A category's agreement. `items` are those that two or more rated, the most disagreed about first; `single` is how
    many have one rating, of which no one can tell."""

    category: str
    bound: Bound
    alpha: float | None
    ci95: tuple[float, float] | None
    items: Sequence[ItemAgreement]
    single: int
    ratings: int
    annotators: Sequence[Without]
    codebook: Sequence[CodebookEntry]
    why: str
    """Why it is quarantined; empty where it is not."""

    @property
    def quarantined(self) -> bool:
        return bool(self.why)

    @property
    def pairwise(self) -> float | None:
        return sum(item.pairwise for item in self.items) / len(self.items) if self.items else None


def check(rounds: Mapping[str, Rated], bounds: Mapping[str, Bound], otherwise: Bound) -> list[Agreement]:
    """Returns each category's agreement, in the order given; a category without a bound has `otherwise`."""
    return [agreement(category, rated, bounds.get(category, otherwise)) for category, rated in rounds.items()]


def agreement(category: str, rated: Rated, bound: Bound) -> Agreement:
    """Measures one category. Its interval is seeded by its name: the same ratings, the same digits."""
    of, paired = ratings(rated.item_at, rated.scores)
    value = alpha(of, bound.level)
    pairwise, parts = pairwise_agreement(of), disagreement(of, bound.level)
    items = [
        ItemAgreement(rated.items[item], float(pairwise[row]), float(parts[row])) for row, item in enumerate(paired)
    ]
    items.sort(key=lambda item: (-item.part, item.pairwise, item.item))
    interval = alpha_interval(of, bound.level, zlib.crc32(category.encode())) if value is not None else None
    return Agreement(
        category, bound, value, interval, items, len(rated.items) - len(items), len(rated.scores),
        _without_each(rated, bound.level), _codebook(rated, of, bound.level), _why(value, len(items), bound),
    )  # fmt: skip


def _why(value: float | None, items: int, bound: Bound) -> str:
    if bound.wrong:
        return bound.wrong
    if not items:
        return "no item is rated twice: no one can tell whether annotators agree"
    if value is None:
        return "alpha is not defined: all ratings of items that two or more rated are the same"
    if value < bound.threshold:
        return f"alpha {value:.3f} is below the threshold {bound.threshold:g}"
    if items < FEWEST:
        return f"{items} items are rated twice, and {FEWEST} are the fewest to go by"
    return ""


def _without_each(rated: Rated, level: Level) -> list[Without]:
    import numpy as np

    whose = np.asarray(rated.annotator_at, dtype=np.int64)
    items, scores = np.asarray(rated.item_at, dtype=np.int64), np.asarray(rated.scores, dtype=np.float64)
    out = []
    for place, annotator in enumerate(rated.annotators):
        others = whose != place
        rest = alpha(ratings(items[others], scores[others])[0], level) if others.any() else None
        out.append(Without(annotator, int((~others).sum()), rest))
    return out


def _codebook(rated: Rated, of: Ratings, level: Level) -> list[CodebookEntry]:
    """The pairs of ratings that the disagreement is made of, the largest part first; none of a fine scale, whose values
    are no entries of a codebook."""
    import numpy as np

    if not of.table.shape[0] or len(of.values) > MOST_VALUES_OF_A_CODEBOOK:
        return []
    weighted = of.table.multiply(1 / (of.per_item - 1)[:, None]).tocsr()
    together = (of.table.T @ weighted).toarray() * differences(of, level)
    given = of.table.astype(bool).astype(np.float64)
    shared = (given.T @ given).toarray()
    total = float(together.sum())
    entries = [
        CodebookEntry(
            (rated.called(float(of.values[one])), rated.called(float(of.values[other]))),
            int(shared[one, other]),
            2 * float(together[one, other]) / total,
        )
        for one, other in zip(*np.triu_indices(len(of.values), 1), strict=True)
        if together[one, other] > 0
    ]
    return sorted(entries, key=lambda entry: -entry.part)
