"""Tells which categories the loop may work on: those between a judge's floor and its threshold (PF-9 §5.7). Pure.

Below a floor something is wrong that people have to look at, and so is a safety judge below its threshold. Where no
floor is set, no one has said how bad is too bad for the loop.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from evalcore.gates.golden import judges_of
from evalcore.gates.limits import aggregate
from evalcore.registry.registry import Judge, Registry
from evalcore.scoring.answers import Answer, Unscored, collect
from evalcore.scoring.items import category_of, identity
from schemas.judges import Milestone, ScoreType

FEWEST = 5
"""Scored items of a category by which the loop takes it to underperform."""
MISSING = Unscored("the results have no score of it")


class Word(StrEnum):
    OPTIMISE = "optimise"
    FINE = "fine"
    PEOPLE = "people"
    """Left to people: below a floor, a safety judge, or no floor set."""
    UNDECIDED = "undecided"


@dataclass(frozen=True)
class JudgeStanding:
    """A judge's mean over the items of one category, `score` with what is unscored at its worst; None where it applies
    to none."""

    judge: Judge
    score: float | None
    threshold: float
    n: int
    unscored: int
    word: Word
    why: str = ""


@dataclass(frozen=True)
class CategoryStanding:
    category: str
    items: int
    judges: tuple[JudgeStanding, ...]
    word: Word
    why: str

    @property
    def targets(self) -> tuple[Judge, ...]:
        """The judges between floor and threshold, in a category that the loop works on."""
        found = (one.judge for one in self.judges if one.word is Word.OPTIMISE)
        return tuple(found) if self.word is Word.OPTIMISE else ()


def standings(
    rows: Sequence[Mapping[str, Any]],
    said: Mapping[tuple[str, str], Answer],
    registry: Registry,
    vertical: str,
    milestone: Milestone,
) -> list[CategoryStanding]:
    """Returns each category of the rows, by name. `said`: what a judge said of an item, by both ids. An item that no
    judge has scored was not in the run; a judge that scored others of it and not this one left it unscored."""
    scored = {item for _, item in said}
    of: dict[str, dict[str, list[Answer]]] = {}
    counted: dict[str, int] = {}
    for number, row in enumerate(rows):
        item = identity(row, number)
        if item not in scored:
            continue
        category = category_of(row)
        counted[category] = counted.get(category, 0) + 1
        for judge in expected(row, registry, vertical):
            answers = of.setdefault(category, {}).setdefault(judge.id, [])
            answers.append(said.get((judge.id, item), MISSING))
    return [
        _category(name, counted[name], [_judge(registry.judge(one, vertical), by[one], milestone) for one in by])
        for name, by in sorted(of.items())
    ]


def expected(row: Mapping[str, Any], registry: Registry, vertical: str) -> list[Judge]:
    """The judges that score an item of a dataset: its category's, and every safety judge."""
    own = judges_of(row, registry, vertical) or frozenset()
    return [judge for judge in registry.all(vertical) if judge.safety or judge.id in own]


def _judge(judge: Judge, answers: Iterable[Answer], milestone: Milestone) -> JudgeStanding:
    found = collect(answers, judge.score_range)
    whole = aggregate(found, judge.score_range, judge.score_type is ScoreType.BOOLEAN)
    threshold = float(judge.thresholds[milestone])
    if whole.worst is None or whole.best is None:
        return JudgeStanding(judge, None, threshold, 0, 0, Word.FINE, "it applies to no item")
    words = [_word(judge, value, threshold) for value in (whole.worst, whole.best)]
    word, why = words[0]
    if words[0] != words[1]:
        word, why = Word.UNDECIDED, f"{len(found.missing)} items are unscored, and decide where it stands"
    elif word is Word.OPTIMISE and len(found.values) < FEWEST:
        word, why = Word.UNDECIDED, f"{len(found.values)} items are scored, {FEWEST} are needed"
    return JudgeStanding(judge, whole.worst, threshold, found.n, len(found.missing), word, why)


def _word(judge: Judge, score: float, threshold: float) -> tuple[Word, str]:
    if score >= threshold and score >= judge.floor:
        return Word.FINE, ""
    if score < judge.floor:
        return Word.PEOPLE, f"below its floor of {judge.floor:g}"
    if judge.safety:
        return Word.PEOPLE, "a safety judge below its threshold"
    if judge.floor <= judge.score_range[0]:
        return Word.PEOPLE, "below its threshold, and no floor is set"
    return Word.OPTIMISE, f"between its floor of {judge.floor:g} and its threshold of {threshold:g}"


def _category(name: str, items: int, judges: Sequence[JudgeStanding]) -> CategoryStanding:
    """People before doubt, doubt before the loop: it works only where all judges say that it may."""
    for word in (Word.PEOPLE, Word.UNDECIDED, Word.OPTIMISE):
        named = [one for one in judges if one.word is word]
        if named:
            why = "; ".join(f"{one.judge.id}: {one.why}" for one in named)
            return CategoryStanding(name, items, tuple(judges), word, why)
    return CategoryStanding(name, items, tuple(judges), Word.FINE, "at or above every threshold")
