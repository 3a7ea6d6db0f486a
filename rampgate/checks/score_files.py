"""Reads files of scores: judges' alone, judges' beside people's, and annotators' ratings (contracts §5).

Lines of a sample may have a `weight`, the inverse of the chance that the item was drawn, and a `day` or a `timestamp`.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType

from evalcore.agreement.check import Rated
from evalcore.inversion.check import SLICED_BY, Pairs
from evalcore.judges.score_parsing import NOT_APPLICABLE
from evalcore.registry import disk
from rampgate.input_files import BadFile, Id, Number, ScoreValue, Text, read, twice, wrong
from schemas.checks.agreement import Level

Weight = Annotated[
    float, Meta(gt=0, description="a number above 0", extra={"remedy": "it is 1 divided by the chance of the draw"})
]


class PairLine(Struct, gc=False):
    """A judge's score beside people's."""

    judge_id: Id
    item_id: Id
    judge_score: Number
    human_score: Number
    judge_version: str | None = None
    category: str | None = None
    vertical: str | None = None
    sub_agent: str | None = None


class SampledPair(PairLine, gc=False):
    """A pair of a sample."""

    weight: Weight | UnsetType = UNSET


class RatingLine(Struct, gc=False):
    """An annotator's rating; a text is a label."""

    category: Id
    item_id: Id
    annotator: Id
    score: Annotated[
        float | str, Meta(description="a number or a label", extra={"remedy": "leave out the line where there is none"})
    ]


class ScoreLine(Struct, gc=False):
    """A judge's score."""

    judge_id: Id
    item_id: Id
    score: ScoreValue


class SampledScore(ScoreLine, gc=False):
    """A score of a sample."""

    weight: Weight | UnsetType = UNSET
    day: Any = None
    timestamp: Any = None


class VersionedScore(Struct, gc=False):
    """A score, which counts for the version of the judge that gave it, as drift's baseline has it."""

    judge_id: Text
    judge_version: Text
    item_id: Text
    score: ScoreValue


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

    def add(self, line: int, item: str, score: float | str | None, weight: float = 1.0, day: int = 0) -> None:
        """Raises BadFile for an item's second line."""
        if (before := self.items.setdefault(item, line)) != line:
            raise twice(self.path, line, "item_id", f"this judge's score of {item[:80]!r}", before)
        if score is None:
            self.unscored += 1
        elif score == NOT_APPLICABLE:
            self.not_applicable += 1
        else:
            self.scores.append(float(score))
            self.numbers.append(line)
            self.weights.append(weight)
            self.days.append(day)


def read_scores(path: Path, *, sample: bool = False) -> dict[str, ScoreColumn]:
    """Returns the columns by judge id as written, in the order of the file; of a `sample` with weights and days. Raises
    BadFile."""
    found: dict[str, ScoreColumn] = {}
    for number, line in read(path, SampledScore if sample else ScoreLine):
        column = found.setdefault(str(line.judge_id), ScoreColumn(path))
        if not isinstance(line, SampledScore):
            column.add(number, str(line.item_id), line.score)
            continue
        day = _day(path, number, line)
        if column.days and (column.days[-1] == 0) is not (day == 0):
            told = (line.day or line.timestamp) if day else UNSET
            raise wrong(path, number, "day", "on all lines of a judge, or a timestamp, or on none", told)
        column.add(number, str(line.item_id), line.score, _weight(path, number, line.weight, column), day)
    if not found:
        raise BadFile(f"{path}: has no scores; a line is {{judge_id, item_id, score}}")
    return found


class _Coded:
    """The values of a field, each once, and the place of every line's among them; the first is none."""

    def __init__(self) -> None:
        self._places: dict[str, int] = {"": 0}
        self._at = array("l")

    def add(self, value: str | None) -> None:
        self._at.append(self._places.setdefault(value or "", len(self._places)))

    def made(self) -> tuple[list[str], Any]:
        import numpy as np

        return list(self._places), np.array(self._at, dtype=np.int64)


class _PairsSoFar:
    def __init__(self) -> None:
        self.items: dict[str, int] = {}
        """The line of each item."""
        self.judge, self.human, self.weights = array("d"), array("d"), array("d")
        self.slices = {field: _Coded() for field in SLICED_BY}
        self.version: str | None = None
        self.weighted: bool | None = None
        """Whether the lines have a weight; None before the first."""

    def made(self) -> Pairs:
        import numpy as np

        slices = {field: coded.made() for field, coded in self.slices.items()}
        told = {field: (values, places) for field, (values, places) in slices.items() if len(values) > 1}
        own, people, weights = np.array(self.judge), np.array(self.human), np.array(self.weights)
        said = weights if weights.size and (weights != weights[0]).any() else None
        return Pairs(list(self.items), own, people, told, self.version or "", said, list(self.items.values()))


def read_pairs(path: Path, *, sample: bool = False) -> dict[str, Pairs]:
    """Judges' scores beside people's, by the judge's id as written; one pair of a judge and an item. Of a `sample` with
    their weights. Raises BadFile."""
    found: dict[str, _PairsSoFar] = {}
    names: dict[str, str] = {}  # one text of each item's id, however many judges score it
    for number, line in read(path, SampledPair if sample else PairLine):
        judge, item, version = str(line.judge_id), str(line.item_id), line.judge_version or ""
        of = found.get(judge)
        if of is None:
            of = found[judge] = _PairsSoFar()
        before = of.items.setdefault(names.setdefault(item, item), number)
        if before != number:
            raise twice(path, number, "item_id", f"{item[:80]!r} of {judge[:80]!r}", before)
        if of.version is None:
            of.version = version
        elif of.version != version:
            raise wrong(path, number, "judge_version", f"{of.version[:80]!r}, as on the lines before", version)
        of.judge.append(line.judge_score)
        of.human.append(line.human_score)
        of.weights.append(_weight(path, number, line.weight, of) if isinstance(line, SampledPair) else 1.0)
        for field_, coded in of.slices.items():
            coded.add(getattr(line, field_))
    if not found:
        raise BadFile(f"{path}: has no lines; one is {{judge_id, item_id, judge_score, human_score}}")
    return {judge: of.made() for judge, of in found.items()}


def _weight(path: Path, number: int, weight: float | UnsetType, of: ScoreColumn | _PairsSoFar) -> float:
    """The weight of a line, 1 where it has none. A line that lacks it among others would count as the commonest there
    are. Raises BadFile."""
    has = weight is not UNSET
    if of.weighted is (not has):
        raise wrong(path, number, "weight", "on all lines of a judge or on none", weight)
    of.weighted = has
    return 1.0 if isinstance(weight, UnsetType) else weight


def _day(path: Path, number: int, line: SampledScore) -> int:
    """The day of a line in UTC, as its ordinal; 0 where it has none. Raises BadFile, also for a day that has not
    come."""
    if line.day is None and line.timestamp is None:
        return 0
    name, said = ("day", line.day) if line.day is not None else ("timestamp", line.timestamp)
    try:
        found = date.fromisoformat(said) if name == "day" else _in_utc(datetime.fromisoformat(said))
    except (TypeError, ValueError, OverflowError):
        found = None
    if found is None:
        must = "a day, such as 2026-11-23" if name == "day" else "a time with its zone, such as 2026-11-23T08:15:00Z"
        raise wrong(path, number, name, must, said)
    if found > (today := disk.today()):
        raise wrong(path, number, name, f"at most {today}, today in UTC", said, f"correct the {name}")
    return found.toordinal()


def _in_utc(at: datetime) -> date | None:
    return at.astimezone(UTC).date() if at.tzinfo is not None else None


class _RatingsSoFar:
    def __init__(self) -> None:
        self.items: dict[str, int] = {}
        self.annotators: dict[str, int] = {}
        self.item_at, self.annotator_at = array("l"), array("l")
        self.scores: list[float | str] = []
        self.given: dict[tuple[int, int], int] = {}
        """The line of each rating, by the places of item and annotator."""

    def made(self) -> Rated:
        labels = sorted({score for score in self.scores if isinstance(score, str)})
        codes = {label: float(code) for code, label in enumerate(labels)}
        scores = [codes[score] if isinstance(score, str) else score for score in self.scores]
        return Rated(list(self.items), list(self.annotators), self.item_at, self.annotator_at, scores, labels)


def read_ratings(path: Path, level_of: Callable[[str], Level]) -> dict[str, Rated]:
    """Annotators' ratings by category; one of an annotator and an item. A text is a label, which only a nominal
    category has, with no numbers beside it. Raises BadFile."""
    found: dict[str, _RatingsSoFar] = {}
    for number, line in read(path, RatingLine):
        category, item, annotator = str(line.category), str(line.item_id), str(line.annotator)
        of = found.setdefault(category, _RatingsSoFar())
        if must := _not_at(line.score, level_of(category)):
            raise wrong(path, number, "score", must, line.score, "leave out the line where there is none")
        if of.scores and isinstance(of.scores[0], str) is not isinstance(line.score, str):
            must = "a label" if isinstance(of.scores[0], str) else "a number"
            raise wrong(path, number, "score", f"{must}, as on lines of {category[:80]!r} before", line.score)
        item_at = of.items.setdefault(item, len(of.items))
        annotator_at = of.annotators.setdefault(annotator, len(of.annotators))
        before = of.given.setdefault((item_at, annotator_at), number)
        if before != number:
            raise twice(path, number, "annotator", f"{annotator[:80]!r} for {item[:80]!r}", before)
        of.item_at.append(item_at)
        of.annotator_at.append(annotator_at)
        of.scores.append(line.score)
    if not found:
        raise BadFile(f"{path}: has no lines; one is {{category, item_id, annotator, score}}")
    return {category: of.made() for category, of in found.items()}


def _not_at(score: float | str, level: Level) -> str:
    """What a rating has to be at this level; empty where it is."""
    if isinstance(score, str):
        if level is not Level.NOMINAL:
            return f"a number at level {level}: a text is a label, at nominal level only"
        return "" if score.strip() else "a label that is not empty"
    return "a number from 0 at ratio level" if level is Level.RATIO and score < 0 else ""
