"""Reads files of scores: judges' beside people's, and annotators' ratings (contracts §5).

What can't be right is refused with file, line and field.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from math import isfinite
from pathlib import Path
from typing import Any

from evalcore.agreement.check import Rated
from evalcore.inversion.check import SLICED_BY, Pairs
from rampgate.checks.score_lines import id_of, weight_of
from rampgate.ci_gate.inputs import BadFile, lines
from schemas.checks.agreement import Level


class _Line:
    """One line and where it stands."""

    __slots__ = ("_fields", "_number", "_path")

    def __init__(self, path: Path, number: int, fields: dict[str, Any]) -> None:
        self._path, self._number, self._fields = path, number, fields

    def wrong(self, field: str, what: str) -> BadFile:
        return BadFile(f"{self._path}:{self._number}: {field}: {what}")

    def name(self, field: str) -> str:
        return id_of(self._path, self._number, self._fields, field)

    def word(self, field: str) -> str:
        """The text of a field that a line may have; empty without it."""
        value = self._fields.get(field)
        if value is None or isinstance(value, str):
            return value or ""
        raise self.wrong(field, "is no text; write one, or leave the field out")

    def text(self, field: str) -> str | None:
        value = self._fields.get(field)
        return value if isinstance(value, str) else None

    def score(self, field: str) -> float:
        value = self._fields.get(field)
        if isinstance(value, (int, float)) and not isinstance(value, bool) and isfinite(value):
            return value
        if value is None:
            raise self.wrong(field, "a number is needed; leave out the line where there is no score")
        if isinstance(value, str):
            raise self.wrong(field, f"{value[:80]!r} is text; write a number, without quotes")
        raise self.wrong(field, f"{str(value)[:80]} is no number; write one")


class _Coded:
    """The values of a field, each once, and the place of every line's among them; the first is none."""

    def __init__(self) -> None:
        self._places: dict[str, int] = {"": 0}
        self._at = array("l")

    def add(self, value: str) -> None:
        self._at.append(self._places.setdefault(value, len(self._places)))

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
    for number, fields in lines(path):
        line = _Line(path, number, fields)
        judge, item = line.name("judge_id"), line.name("item_id")
        of = found.get(judge)
        if of is None:
            of = found[judge] = _PairsSoFar()
        before = of.items.setdefault(names.setdefault(item, item), number)
        if before != number:
            raise line.wrong("item_id", f"{item[:80]!r} of {judge[:80]!r} is on line {before} too; keep one")
        version = line.word("judge_version")
        if of.version is None:
            of.version = version
        elif of.version != version:
            raise line.wrong("judge_version", f"{version[:80]!r} is not that of the lines before, {of.version[:80]!r}")
        of.judge.append(line.score("judge_score"))
        of.human.append(line.score("human_score"))
        of.weights.append(weight_of(path, number, fields, of.weighted) if sample else 1.0)
        of.weighted = "weight" in fields
        for field, coded in of.slices.items():
            coded.add(line.word(field))
    if not found:
        raise BadFile(f"{path}: has no lines; one is {{judge_id, item_id, judge_score, human_score}}")
    return {judge: of.made() for judge, of in found.items()}


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
    for number, fields in lines(path):
        line = _Line(path, number, fields)
        category, item, annotator = line.name("category"), line.name("item_id"), line.name("annotator")
        of = found.setdefault(category, _RatingsSoFar())
        score = _rating(line, level_of(category))
        if of.scores and isinstance(of.scores[0], str) is not isinstance(score, str):
            raise line.wrong("score", f"{category[:80]!r} has labels and numbers; all ratings of a category are alike")
        item_at = of.items.setdefault(item, len(of.items))
        annotator_at = of.annotators.setdefault(annotator, len(of.annotators))
        before = of.given.setdefault((item_at, annotator_at), number)
        if before != number:
            raise line.wrong("annotator", f"{annotator[:80]!r} rated {item[:80]!r} on line {before} too; keep one")
        of.item_at.append(item_at)
        of.annotator_at.append(annotator_at)
        of.scores.append(score)
    if not found:
        raise BadFile(f"{path}: has no lines; one is {{category, item_id, annotator, score}}")
    return {category: of.made() for category, of in found.items()}


def _rating(line: _Line, level: Level) -> float | str:
    label = line.text("score")
    if label is not None:
        if level is not Level.NOMINAL:
            raise line.wrong("score", f"is text, which an annotator's rating is at nominal level only, not at {level}")
        if not label.strip():
            raise line.wrong("score", "is an empty label; leave out the line where there is none")
        return label
    score = line.score("score")
    if level is Level.RATIO and score < 0:
        raise line.wrong("score", "is below zero, which nothing is on a ratio scale; it is one of an interval scale")
    return score
