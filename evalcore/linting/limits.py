"""What the checks ask of thresholds and floors: which file states them, where, and what holds without a vertical's own.

Numbers of a BOOLEAN judge are pass rates: `true` is 1.0 (contracts §3).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from evalcore.corpus import Corpus
from evalcore.documents import FieldPath, Parsed
from evalcore.thresholds import Stated, misfit
from schemas.judges import Milestone, RuleFile, Score, ScoreType, Thresholds, judge_id, score_range


@dataclass(frozen=True)
class Limit:
    """A stated threshold or floor and where it stands. `at`: the milestones it speaks for."""

    parsed: Parsed[Any]
    path: FieldPath
    judge: str
    rule: RuleFile
    value: Score
    at: tuple[Milestone, ...] = tuple(Milestone)
    dimension: str | None = None

    @property
    def name(self) -> str:
        return f"{self.judge}.{self.dimension}" if self.dimension else self.judge


def number(value: Score) -> float:
    return float(value)


def fits(value: Score, rule: RuleFile, *, floor: bool = False) -> bool:
    """Whether the value can be compared at all; `unfit` says what is wrong with one that can't."""
    return unfit(value, rule, floor=floor) is None


def unfit(value: Score, rule: RuleFile, *, floor: bool = False) -> str | None:
    """Why a threshold or floor does not fit its judge. The floor of a BOOLEAN judge may be a rate."""
    if not floor or rule.score_type is not ScoreType.BOOLEAN:
        return misfit(value, rule.score_type, score_range(rule))
    if value is False:
        return "false for the floor of a BOOLEAN judge, below which nothing can be"
    if 0 <= value <= 1:
        return None
    return f"{value:g} for the floor of a BOOLEAN judge, which is a pass rate from 0 to 1"


def stated(threshold: Thresholds | None) -> Iterator[tuple[tuple[Milestone, ...], FieldPath, Score]]:
    """The values of a `threshold` field, each with the milestones it speaks for and the path below that field."""
    if isinstance(threshold, dict):
        others = tuple(milestone for milestone in Milestone if milestone not in threshold)
        for name, value in threshold.items():
            # A default beside all three milestones still answers whoever asks for no milestone.
            at = (others or tuple(Milestone)) if name == "default" else (Milestone(name),)
            yield at, (str(name),), value
    elif threshold is not None:
        yield tuple(Milestone), (), threshold


def named(key: str) -> tuple[str, str | None]:
    """A key of the manifest's thresholds as (judge id, dimension or None)."""
    judge, dot, dimension = key.partition(".")
    return judge_id(judge), judge_id(dimension) if dot else None


def thresholds(corpus: Corpus) -> Iterator[Limit]:
    """Every threshold of every file whose judge has a central rule."""
    for judge, rule in corpus.rules.items():
        for at, below, value in stated(rule.model.threshold):
            yield Limit(rule, ("threshold", *below), judge, rule.model, value, at)
        for dimension, declared in (rule.model.dimensions or {}).items():
            for at, below, value in stated(declared.threshold):
                path = ("dimensions", dimension, "threshold", *below)
                yield Limit(rule, path, judge, rule.model, value, at, judge_id(dimension))
    yield from manifest_thresholds(corpus)
    for (_, judge), own in corpus.vertical_rules.items():
        if judge in corpus.rules:
            for at, below, value in stated(own.model.threshold):
                yield Limit(own, ("threshold", *below), judge, corpus.rules[judge].model, value, at)


def manifest_thresholds(corpus: Corpus) -> Iterator[Limit]:
    """Those of the manifest whose judge has a central rule."""
    if corpus.manifest is None:
        return
    for key, threshold in corpus.manifest.model.thresholds.items():
        judge, dimension = named(key)
        if judge not in corpus.rules:
            continue
        for at, below, value in stated(threshold):
            path = _written(corpus.manifest, key, below)
            yield Limit(corpus.manifest, path, judge, corpus.rules[judge].model, value, at, dimension)


def _written(manifest: Parsed[Any], key: str, below: FieldPath) -> FieldPath:
    """Where the file has it: below the judge, or as PC5's dotted `judge.milestone`."""
    dotted: FieldPath = ("thresholds", ".".join([key, *map(str, below)]))
    return dotted if below and dotted in manifest.document.places else ("thresholds", key, *below)


def floors(corpus: Corpus) -> Iterator[Limit]:
    """Every floor of every file whose judge has a central rule."""
    for judge, rule in corpus.rules.items():
        yield Limit(rule, ("floor",), judge, rule.model, rule.model.floor)
        for name, dimension in (rule.model.dimensions or {}).items():
            if dimension.floor is not None:
                path = ("dimensions", name, "floor")
                yield Limit(rule, path, judge, rule.model, dimension.floor, dimension=judge_id(name))
    for (_, judge), own in corpus.vertical_rules.items():
        if judge in corpus.rules and own.model.floor is not None:
            yield Limit(own, ("floor",), judge, corpus.rules[judge].model, own.model.floor)


def central(rule: RuleFile, milestone: Milestone, dimension: str | None = None) -> Score:
    """What the central rule alone asks: its threshold, else its floor. A silent dimension has the judge's."""
    own = next((d for name, d in (rule.dimensions or {}).items() if judge_id(name) == dimension), None)
    if own is not None:
        found = Stated.of("", own.threshold).at(milestone)
        found = own.floor if found is None and own.floor is not None else found
        if found is not None:
            return found
    found = Stated.of("", rule.threshold).at(milestone)
    return rule.floor if found is None else found


def platform_threshold(corpus: Corpus, judge: str, milestone: Milestone) -> Score | None:
    """What manifest and central rule state for a judge; None where they leave it to the floor."""
    found = Stated.of("", manifest_threshold(corpus, judge)).at(milestone)
    return Stated.of("", corpus.rules[judge].model.threshold).at(milestone) if found is None else found


def platform(corpus: Corpus, judge: str, milestone: Milestone) -> Score:
    """What holds for a judge without any vertical's own file: the manifest, the central rule, the floor."""
    found = platform_threshold(corpus, judge, milestone)
    return corpus.rules[judge].model.floor if found is None else found


def manifest_threshold(corpus: Corpus, judge: str, dimension: str | None = None) -> Thresholds | None:
    return corpus.manifest_thresholds.get(judge if dimension is None else f"{judge}.{dimension}")
