"""Reads judges' scores from JSON Lines: one `{judge_id, item_id, score}` a line (contracts §5)."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rampgate.ci_gate.inputs import BadFile, lines

NOT_APPLICABLE = {"n/a", "na"}


@dataclass
class ScoreColumn:
    """One judge's lines of a file, in their order: `scores` those that are numbers, `numbers` the lines these are on,
    `items` each item's line, scored or not. True and false are 1 and 0."""

    path: Path
    scores: array[float] = field(default_factory=lambda: array("d"))
    numbers: array[int] = field(default_factory=lambda: array("q"))
    items: dict[str, int] = field(default_factory=dict)
    not_applicable: int = 0
    unscored: int = 0

    def add(self, line: int, item: str, score: Any) -> None:
        """Raises BadFile for an item's second line, and for what is no score."""
        if (before := self.items.setdefault(item, line)) != line:
            raise BadFile(f"{self.path}:{line}: item_id: {item[:80]!r} was scored by this judge on line {before}")
        if score is None:
            self.unscored += 1
        elif isinstance(score, str) and score.strip().lower() in NOT_APPLICABLE:
            self.not_applicable += 1
        elif isinstance(score, (bool, int, float)):
            self.scores.append(float(score))
            self.numbers.append(line)
        else:
            said = repr(score)[:80]
            raise BadFile(f'{self.path}:{line}: score: {said} is none: a number, true, false, "N/A", or null')


def read_scores(path: Path) -> dict[str, ScoreColumn]:
    """Returns the columns by judge id as written, in the order of the file. Raises BadFile."""
    found: dict[str, ScoreColumn] = {}
    for line, one in lines(path):
        judge, item = (_id(path, line, one, name) for name in ("judge_id", "item_id"))
        if "score" not in one:
            raise BadFile(f"{path}:{line}: score: is missing; null says that the judge gave none")
        found.setdefault(judge, ScoreColumn(path)).add(line, item, one["score"])
    if not found:
        raise BadFile(f"{path}: has no scores; a line is {{judge_id, item_id, score}}")
    return found


def _id(path: Path, line: int, one: dict[str, Any], name: str) -> str:
    found = one.get(name)
    if isinstance(found, bool) or not isinstance(found, (str, int)) or found == "":
        raise BadFile(f"{path}:{line}: {name}: an id is needed, a text or a whole number")
    return str(found)
