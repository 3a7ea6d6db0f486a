"""Holds a prompt fork against the current prompt on the same held-out items, and decides what becomes of it (PF-9 FR-9,
§5.7). Pure.

A score is taken as its share of the judge's scale, so that judges of several scales make one number. What is missing
never helps a fork: it counts as its worst, the current prompt's as its best, and a fork's N/A as no change.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from evalcore.registry.judge import Judge
from evalcore.scoring.answers import Answer, NotApplicable, Scored, Unscored
from evalcore.stats.bootstrap import bca_interval
from evalcore.stats.multiple_tests import holm
from evalcore.stats.sign_flip import sign_flip_p
from schemas.judges import Milestone

FEWEST = 10
"""Held-out items of a category that tell anything about it."""
ALPHA = 0.05
Said = Mapping[tuple[str, str], Answer]
"""What a judge says of an item, by both ids."""


class Outcome(StrEnum):
    DRAFT = "draft"
    """It improves a category and lowers nothing: for PC-6's review."""
    UNMEASURED = "unmeasured"
    """No one can tell: no candidate takes a prompt, or there are too few held-out items."""
    REFUSED = "refused"
    UNSCORED = "unscored"
    """Refused for now: answers or scores are missing, and a repeated run may get them."""


@dataclass(frozen=True)
class Change:
    """Means of both sides as shares of the scale, and the mean of the paired differences. `p_adjusted` is over all
    forks and categories of the run; `fall_p` is that of a fall, over all judges and categories of the fork."""

    n: int
    before: float
    after: float
    delta: float
    ci95: tuple[float, float] | None
    p: float = 1.0
    p_adjusted: float = 1.0
    fall_p: float = 1.0

    @property
    def improved(self) -> bool:
        sure = self.ci95 is not None and self.ci95[0] > 0
        return self.n >= FEWEST and self.delta > 0 and sure and self.p_adjusted <= ALPHA

    @property
    def lowered(self) -> bool:
        return self.n >= FEWEST and self.delta < 0 and self.fall_p <= ALPHA


@dataclass(frozen=True)
class Measured:
    """A fork beside the current prompt: the categories that it is for, every judge by category (the empty category: all
    items, for safety judges), and what its safety judges object to. `missing` are the scores that either side lacks,
    `silent` says of which item a safety judge could not score the fork."""

    categories: Mapping[str, Change]
    judges: Mapping[tuple[str, str], Change]
    objections: tuple[str, ...]
    silent: tuple[str, ...]
    missing: int


def measured(
    before: Said, after: Said, categories: Mapping[str, str], targets: Mapping[str, Sequence[Judge]],
    judges: Iterable[Judge], milestone: Milestone, seed: int,
) -> Measured:  # fmt: skip
    """Measures a fork. `categories`: the category of each held-out item; `targets`: the judges that a fork is for, by
    category; `judges`: all that scored."""
    of: dict[str, list[str]] = {}
    for item, category in categories.items():
        of.setdefault(category, []).append(item)
    all_judges = list(judges)
    told = {
        name: change
        for name, own in targets.items()
        if (change := _change(own, of.get(name, ()), before, after, seed)) is not None
    }
    single = {
        (name, judge.id): change
        for judge in all_judges
        for name, items in ({"": list(categories)} if judge.safety else of).items()
        if (change := _change([judge], items, before, after, seed)) is not None
    }
    pairs = [(judge, item) for judge in all_judges if judge.safety for item in categories]
    failing = tuple(
        f"the safety judge {judge.id} newly fails {item[:80]}"
        for judge, item in pairs
        if _newly_fails(judge, before.get((judge.id, item)), after.get((judge.id, item)), milestone)
    )
    silent = tuple(
        f"the safety judge {judge.id} could not score {item[:80]}"
        for judge, item in pairs
        if (judge.id, item) in before.keys() | after.keys() and not isinstance(after.get((judge.id, item)), Scored)
    )
    missing = sum(
        not isinstance(side.get(pair), (Scored, NotApplicable))
        for pair in before.keys() | after.keys()
        for side in (before, after)
    )
    return Measured(told, _falls_adjusted(single), failing, silent, missing)


def _falls_adjusted(found: Mapping[tuple[str, str], Change]) -> dict[tuple[str, str], Change]:
    """Returns the same with the chance of each fall adjusted over all that could be called one: of forty intervals
    that nothing moved, one lies below zero in most forks."""
    tested = [place for place, one in found.items() if one.n >= FEWEST]
    values = dict(zip(tested, holm([found[place].fall_p for place in tested]), strict=True))
    return {place: replace(one, fall_p=values.get(place, 1.0)) for place, one in found.items()}


def adjusted(found: Sequence[Measured]) -> list[Measured]:
    """Returns the same with each p-value adjusted over all forks and their categories."""
    tests = [(at, name) for at, one in enumerate(found) for name in one.categories]
    values = holm([found[at].categories[name].p for at, name in tests])
    told: list[dict[str, Change]] = [dict(one.categories) for one in found]
    for (at, name), value in zip(tests, values, strict=True):
        told[at][name] = replace(told[at][name], p_adjusted=value)
    return [replace(one, categories=own) for one, own in zip(found, told, strict=True)]


def decided(one: Measured) -> tuple[Outcome, str]:
    """Returns what becomes of a fork, and why. Only what people should spend their time on is a draft."""
    if one.objections:
        return Outcome.REFUSED, _first(one.objections)
    if one.silent:
        return Outcome.UNSCORED, _first(one.silent)
    outcome, why = _by_numbers(one)
    if outcome is Outcome.REFUSED and one.missing:
        return Outcome.UNSCORED, f"{why}, and {one.missing} scores are missing: run it again"
    return outcome, why


def held_again(one: Measured, again: Measured) -> tuple[Outcome, str]:
    """Returns what becomes of a draft by fresh answers of both sides. The figures that chose it are too high by the
    choice; those of fresh answers are not."""
    outcome, why = decided(again)
    better = [name for name, change in one.categories.items() if change.improved]
    seen = [name for name in better if name in again.categories and again.categories[name].delta > 0]
    lowered = any(change.lowered for change in again.judges.values())
    if outcome is Outcome.UNSCORED or again.objections or lowered:
        return outcome, f"on fresh answers: {why}"
    if not seen:
        return Outcome.REFUSED, f"fresh answers show no gain in {', '.join(better)}"
    return Outcome.DRAFT, f"it improves {', '.join(seen)}"


def _first(told: Sequence[str]) -> str:
    return told[0] + (f", and {len(told) - 1} more" if len(told) > 1 else "")


def _by_numbers(one: Measured) -> tuple[Outcome, str]:
    for (category, judge), change in one.judges.items():
        if change.lowered:
            where = f" in {category}" if category else ""
            return Outcome.REFUSED, f"it lowers {judge}{where} by {-change.delta:.3g} of the scale"
    better = [name for name, change in one.categories.items() if change.improved]
    if better:
        return Outcome.DRAFT, f"it improves {', '.join(better)}"
    most = max((change.n for change in one.categories.values()), default=0)
    if most < FEWEST:
        return Outcome.UNMEASURED, f"{most} held-out items of a category tell too little; {FEWEST} are needed"
    return Outcome.REFUSED, "the held-out items show no improvement"


def _newly_fails(judge: Judge, was: Answer | None, now: Answer | None, milestone: Milestone) -> bool:
    """Tells whether an item fails with the fork of which no one knows that it failed before."""
    if not isinstance(now, Scored) or judge.passes(now.value, milestone):
        return False
    return not isinstance(was, Scored) or judge.passes(was.value, milestone)


def _change(judges: Sequence[Judge], items: Iterable[str], before: Said, after: Said, seed: int) -> Change | None:
    """The paired change over items, of each the mean of its judges, with the p-values of the sign-flip test; None where
    they apply to none. Where all items fall, no adjustment excuses it."""
    pairs = [pair for item in items if (pair := _pair(judges, item, before, after)) is not None]
    if not pairs:
        return None
    sides = np.array(pairs, dtype=np.float64)
    differences = np.round(sides[:, 1] - sides[:, 0], 12)
    kinds, counts = np.unique(differences, return_counts=True)
    if len(kinds) == 1:
        ends: tuple[float, float] | None = (float(kinds[0]), float(kinds[0]))
    else:
        ends = bca_interval(lambda rows: rows @ kinds / rows.sum(axis=1), counts.astype(np.float64), seed)
    p, delta = float(sign_flip_p(differences[None, differences != 0], seed)[0]), float(differences.mean())
    fall = 0.0 if (differences < 0).all() else p / 2 if delta < 0 else 1.0
    old, new = (float(one) for one in sides.mean(axis=0))
    return Change(len(pairs), old, new, delta, ends, p, fall_p=fall)


def _pair(judges: Sequence[Judge], item: str, before: Said, after: Said) -> tuple[float, float] | None:
    pairs = [
        pair
        for judge in judges
        if (pair := _shares(judge, before.get((judge.id, item)), after.get((judge.id, item)))) is not None
    ]
    if not pairs:
        return None
    return sum(old for old, _ in pairs) / len(pairs), sum(new for _, new in pairs) / len(pairs)


def _shares(judge: Judge, was: Answer | None, now: Answer | None) -> tuple[float, float] | None:
    """Both scores as shares of the scale; None where the judge did not apply before, or has nothing to say."""
    if isinstance(was, NotApplicable) or (was is None and now is None):
        return None
    old = judge.share(was.value) if isinstance(was, Scored) else 1.0
    if isinstance(now, NotApplicable):
        return old, old
    if isinstance(now, Unscored) or now is None:
        return old, 0.0
    return old, judge.share(now.value)
