"""Reads judges' scores from JSON Lines: one `{judge_id, item_id, score}` a line (contracts §5).

Lines of a sample may have a `weight`, the inverse of the chance that the item was drawn, and a `day` or a `timestamp`.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from math import isfinite
from pathlib import Path
from typing import Any

from evalcore.judges.score_parsing import NOT_APPLICABLE
from evalcore.registry import disk
from rampgate.ci_gate.inputs import BadFile, lines


@dataclass
class ScoreColumn:
    """One judge's lines of a file, in their order: `scores` those that are numbers, `numbers` the lines these are on,
    `items` each item's line, scored or not. True and false are 1 and 0. Of a sample each of `scores` has its weight in
    `weights` and its day in `days`, as its ordinal; 0 where the lines have none. `weighted`: whether the lines have a
    weight; None before the first."""

    path: Path
    scores: array[float] = field(default_factory=lambda: array("d"))
    numbers: array[int] = field(default_factory=lambda: array("q"))
    items: dict[str, int] = field(default_factory=dict)
    not_applicable: int = 0
    unscored: int = 0
    weights: array[float] = field(default_factory=lambda: array("d"))
    weighted: bool | None = None
    days: array[int] = field(default_factory=lambda: array("l"))

    def add(self, line: int, item: str, score: Any, weight: float = 1.0, day: date | None = None) -> None:
        """Raises BadFile for an item's second line, and for what is no score."""
        if (before := self.items.setdefault(item, line)) != line:
            said = f"{item[:80]!r} was scored by this judge on line {before}; keep one"
            raise BadFile(f"{self.path}:{line}: item_id: {said}")
        if score is None:
            self.unscored += 1
        elif score == NOT_APPLICABLE:
            self.not_applicable += 1
        elif isinstance(score, (bool, int, float)):
            self.scores.append(float(score))
            self.numbers.append(line)
            self.weights.append(weight)
            self.days.append(day.toordinal() if day is not None else 0)
        else:
            said = repr(score)[:80]
            raise BadFile(f'{self.path}:{line}: score: {said} is none: write a number, true, false, "N/A", or null')


def read_scores(path: Path, *, sample: bool = False) -> dict[str, ScoreColumn]:
    """Returns the columns by judge id as written, in the order of the file; of a `sample` with weights and days. Raises
    BadFile."""
    found: dict[str, ScoreColumn] = {}
    for line, one in lines(path):
        judge, item = (id_of(path, line, one, name) for name in ("judge_id", "item_id"))
        if "score" not in one:
            raise BadFile(f"{path}:{line}: score: is missing; null says that the judge gave none")
        column = found.setdefault(judge, ScoreColumn(path))
        if not sample:
            column.add(line, item, one["score"])
            continue
        day = day_of(path, line, one)
        if column.days and (column.days[-1] == 0) is not (day is None):
            raise BadFile(f"{path}:{line}: day: the lines of a judge all have a day or a timestamp, or none has")
        weight = weight_of(path, line, one, column.weighted)
        column.weighted = "weight" in one
        column.add(line, item, one["score"], weight, day)
    if not found:
        raise BadFile(f"{path}: has no scores; a line is {{judge_id, item_id, score}}")
    return found


def weight_of(path: Path, line: int, one: dict[str, Any], weighted: bool | None) -> float:
    """The weight of a line, 1 where it has none. `weighted`: whether the judge's lines before it have one; a line that
    lacks it among others would count as the commonest there are. Raises BadFile."""
    weight = one.get("weight", 1.0)
    if isinstance(weight, bool) or not isinstance(weight, (int, float)) or not isfinite(weight) or not weight > 0:
        said = repr(weight)[:80]
        raise BadFile(f"{path}:{line}: weight: {said} is none: a number above 0, 1 divided by the chance of the draw")
    if weighted not in (None, "weight" in one):
        said = "the lines of a judge all have a weight, or none has"
        raise BadFile(f"{path}:{line}: weight: {said}; those before have {'one' if weighted else 'none'}")
    return float(weight)


def day_of(path: Path, line: int, one: dict[str, Any]) -> date | None:
    """The day of a line in UTC; None where it has none. Raises BadFile, also for a day that has not come."""
    day, moment = one.get("day"), one.get("timestamp")
    if day is None and moment is None:
        return None
    name, said = ("day", day) if day is not None else ("timestamp", moment)
    text = said if isinstance(said, str) else ""
    try:
        found = date.fromisoformat(text) if name == "day" else _in_utc(datetime.fromisoformat(text))
    except (ValueError, OverflowError):
        found = None
    if found is None:
        wanted = "2026-11-23" if name == "day" else "2026-11-23T08:15:00Z, with its time zone"
        raise BadFile(f"{path}:{line}: {name}: {repr(said)[:80]} is none, such as {wanted}")
    if found > (today := disk.today()):
        raise BadFile(f"{path}:{line}: {name}: {text[:80]!r} has not come: it is {today} in UTC; correct the {name}")
    return found


def _in_utc(at: datetime) -> date | None:
    return at.astimezone(UTC).date() if at.tzinfo is not None else None


def id_of(path: Path, line: int, one: dict[str, Any], name: str) -> str:
    """The id in a line's field. Raises BadFile."""
    found = one.get(name)
    if isinstance(found, str) and found.strip():
        if found != found.strip():
            raise BadFile(f"{path}:{line}: {name}: {found[:80]!r} has a blank at an end; write the id without it")
        return found
    if isinstance(found, int) and not isinstance(found, bool):
        return str(found)
    raise BadFile(f"{path}:{line}: {name}: an id is needed, a text or a whole number")
