"""Checks thresholds, floors and tolerances against the judge's own scale (PC5 FR-6, §9.5; PF-9 §5.10).

The first half of the file collects each stated limit with its file and field, for other checks too. Numbers of a
BOOLEAN judge are pass rates: `true` is 1.0 (contracts §3).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import isfinite
from typing import Any

from evalcore.lint.check import Find, Manifest, Subject, of_manifest
from evalcore.registry.files import RegistryFiles
from evalcore.registry.thresholds import Stated, unfit_threshold
from evalcore.yaml.findings import Finding, Severity
from evalcore.yaml.loader import FieldPath, Parsed
from schemas.judges import (
    Milestone,
    RuleFile,
    Score,
    ScoreType,
    Thresholds,
    VerticalRuleFile,
    judge_id,
)
from schemas.judges import (
    score_range as scale_of,
)

SCALES = Subject("Scales")


@dataclass(frozen=True)
class Limit:
    """A stated threshold or floor with its place; `at` are the milestones for which it holds."""

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
    """Tells whether the value can be compared at all; `unfit` says what is wrong with one that can't."""
    return unfit(value, rule, floor=floor) is None


def unfit(value: Score, rule: RuleFile, *, floor: bool = False) -> str | None:
    """Returns why a threshold or floor does not fit its judge; None when it does. The floor of a BOOLEAN judge may be
    a rate."""
    if not floor or rule.score_type is not ScoreType.BOOLEAN:
        return unfit_threshold(value, rule.score_type, scale_of(rule))
    if value is False:
        return "false for the floor of a BOOLEAN judge, below which nothing can be"
    if 0 <= value <= 1:
        return None
    return f"{value:g} for the floor of a BOOLEAN judge, which is a pass rate from 0 to 1"


def stated(threshold: Thresholds | None) -> Iterator[tuple[tuple[Milestone, ...], FieldPath, Score]]:
    """Yields (milestones it holds for, path below the field, value) of each value of a `threshold` field."""
    if isinstance(threshold, dict):
        others = tuple(milestone for milestone in Milestone if milestone not in threshold)
        for name, value in threshold.items():
            # A default beside all three milestones still answers whoever asks for no milestone.
            at = (others or tuple(Milestone)) if name == "default" else (Milestone(name),)
            yield at, (str(name),), value
    elif threshold is not None:
        yield tuple(Milestone), (), threshold


def named(key: str) -> tuple[str, str | None]:
    """Splits a key of the manifest's thresholds into (judge id, dimension or None)."""
    judge, dot, dimension = key.partition(".")
    return judge_id(judge), judge_id(dimension) if dot else None


def thresholds(files: RegistryFiles) -> Iterator[Limit]:
    """Yields every threshold of every file whose judge has a central rule."""
    for judge, rule in files.rules.items():
        for at, below, value in stated(rule.model.threshold):
            yield Limit(rule, ("threshold", *below), judge, rule.model, value, at)
        for dimension, declared in (rule.model.dimensions or {}).items():
            for at, below, value in stated(declared.threshold):
                path = ("dimensions", dimension, "threshold", *below)
                yield Limit(rule, path, judge, rule.model, value, at, judge_id(dimension))
    yield from manifest_thresholds(files)
    for _, judge, own, central_rule in files.tuned():
        for at, below, value in stated(own.model.threshold):
            yield Limit(own, ("threshold", *below), judge, central_rule, value, at)


def manifest_thresholds(files: RegistryFiles) -> Iterator[Limit]:
    """Yields the manifest's thresholds whose judge has a central rule."""
    if files.manifest is None:
        return
    for key, threshold in files.manifest.model.thresholds.items():
        judge, dimension = named(key)
        if judge not in files.rules:
            continue
        for at, below, value in stated(threshold):
            path = _written(files.manifest, key, below)
            yield Limit(files.manifest, path, judge, files.rules[judge].model, value, at, dimension)


def _written(manifest: Parsed[Any], key: str, below: FieldPath) -> FieldPath:
    """Returns the path at which the file has it: below the judge, or under PC5's dotted key `judge.milestone`."""
    dotted: FieldPath = ("thresholds", ".".join([key, *map(str, below)]))
    return dotted if below and dotted in manifest.document.places else ("thresholds", key, *below)


def floors(files: RegistryFiles) -> Iterator[Limit]:
    """Yields every floor of every file whose judge has a central rule."""
    for judge, rule in files.rules.items():
        yield Limit(rule, ("floor",), judge, rule.model, rule.model.floor)
        for name, dimension in (rule.model.dimensions or {}).items():
            if dimension.floor is not None:
                path = ("dimensions", name, "floor")
                yield Limit(rule, path, judge, rule.model, dimension.floor, dimension=judge_id(name))
    for _, judge, own, central_rule in files.tuned():
        if own.model.floor is not None:
            yield Limit(own, ("floor",), judge, central_rule, own.model.floor)


def central(rule: RuleFile, milestone: Milestone, dimension: str | None = None) -> Score:
    """Returns the score that the central rule alone asks for: its threshold, else its floor. A dimension that states
    neither has the judge's."""
    own = next((d for name, d in (rule.dimensions or {}).items() if judge_id(name) == dimension), None)
    if own is not None:
        found = Stated.of("", own.threshold).at(milestone)
        found = own.floor if found is None and own.floor is not None else found
        if found is not None:
            return found
    found = Stated.of("", rule.threshold).at(milestone)
    return rule.floor if found is None else found


def platform_threshold(files: RegistryFiles, judge: str, milestone: Milestone) -> Score | None:
    """Returns the threshold that the manifest, else the central rule, states for a judge; None where neither does."""
    found = Stated.of("", manifest_threshold(files, judge)).at(milestone)
    return Stated.of("", files.rules[judge].model.threshold).at(milestone) if found is None else found


def platform(files: RegistryFiles, judge: str, milestone: Milestone) -> Score:
    """Returns the limit that holds for a judge without a vertical's file: the threshold of the manifest or the central
    rule, else the floor."""
    found = platform_threshold(files, judge, milestone)
    return files.rules[judge].model.floor if found is None else found


def manifest_threshold(files: RegistryFiles, judge: str, dimension: str | None = None) -> Thresholds | None:
    return files.manifest_thresholds.get(judge if dimension is None else f"{judge}.{dimension}")


@SCALES.error("PC5 §5.2")
def score_range(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    """`score_range` is a lower and a higher number: whole ones for INTEGER, [0, 1] for BOOLEAN."""
    for rule in files.rules.values():
        if rule.model.score_range is None:
            continue
        low, high = rule.model.score_range
        path = ("score_range",)
        if not (isfinite(low) and isfinite(high) and low < high):
            yield find(rule, path, f"[{low:g}, {high:g}] is no scale", "write the lowest score, then the highest")
        elif rule.model.score_type is ScoreType.INTEGER and (int(low) != low or int(high) != high):
            fix = "write whole numbers, or `score_type: FLOAT`"
            yield find(rule, path, f"[{low:g}, {high:g}] for a judge of type INTEGER", fix)
        elif rule.model.score_type is ScoreType.BOOLEAN and (low, high) != (0, 1):
            fix = "leave score_range out: the aggregate is a pass rate"
            yield find(rule, path, f"[{low:g}, {high:g}] for a judge of type BOOLEAN", fix)


@SCALES.error("PC5 FR-6, §9.5; PF-9 §5.10")
def threshold_fits_scale(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    """A threshold is of the judge's score type and on its own scale: in rule files, their dimensions and the
    manifest."""
    for limit in thresholds(files):
        wrong = unfit(limit.value, limit.rule)
        if wrong is not None:
            yield find(limit.parsed, limit.path, f"threshold of {limit.name}: {wrong}", _write(limit))


@SCALES.error("PC5 FR-3, §5.2")
def floor_fits_scale(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    """A floor is on the judge's own scale; of a BOOLEAN judge it is a pass rate."""
    for limit in floors(files):
        wrong = unfit(limit.value, limit.rule, floor=True)
        if wrong is not None:
            yield find(limit.parsed, limit.path, f"floor of {limit.name}: {wrong}", _write(limit, floor=True))


@SCALES.error("PC5 §5.2")
def threshold_above_floor(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    """No threshold is below the floor that holds with it; a score between them could never pass."""
    for limit in thresholds(files):
        floor = _floor_beside(limit)
        if not fits(limit.value, limit.rule) or not fits(floor, limit.rule, floor=True):
            continue
        if number(limit.value) < number(floor):
            message = f"threshold {limit.value:g} of {limit.name} is below its floor {floor:g}"
            yield find(limit.parsed, limit.path, message, f"raise the threshold to {floor:g} or more")
    yield from _below_raised_floor(files, find)


def _below_raised_floor(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    """Yields a finding for each vertical's file that raises the floor above a threshold which it leaves as it is."""
    for _, judge, own, rule in files.tuned():
        raised = own.model.floor
        if raised is None or not fits(raised, rule, floor=True):
            continue
        for milestone in Milestone:
            value = platform_threshold(files, judge, milestone)
            if value is None or Stated.of("", own.model.threshold).at(milestone) is not None:
                continue
            if fits(value, rule) and number(value) < number(raised):
                message = f"floor {raised:g} of {judge} is above the threshold {value:g} that holds at {milestone}"
                yield find(own, ("floor",), message, f"give a threshold of {raised:g} or more beside it")
                break


@SCALES.warning("PC5 FR-3; contracts §3")
def limit_decides(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    """At each milestone the threshold or floor of a judge, and of each of its dimensions, is above the lowest tenth
    of the scale, else next to nothing can fail."""
    for judge, rule in files.rules.items():
        low, high = scale_of(rule.model)
        lowest = low + (high - low) / 10
        for dimension in (None, *(rule.model.dimensions or {})):
            where = [at for at in Milestone if number(_least(files, judge, at, dimension)) <= lowest]
            if where and low < high:
                name = judge if dimension is None else f"{judge}.{judge_id(dimension)}"
                severity = Severity.ERROR if rule.model.safety else None
                message = (
                    f"hardly a score of {name} can fail at {', '.join(where)}: threshold and floor lie in the lowest "
                    f"tenth of the scale from {low:g} to {high:g}"
                )
                path = ("floor",) if dimension is None else ("dimensions", dimension)
                yield find(rule, path, message, f"set floor or threshold above {lowest:g}", severity)


@SCALES.error("PC5 FR-4, FR-6")
@of_manifest
def judge_has_threshold(files: RegistryFiles, manifest: Manifest, find: Find) -> Iterator[Finding]:
    """Every judge that is enabled has a threshold at each milestone, in the manifest or its own file: its floor is
    none."""
    for judge, rule in files.rules.items():
        without = [at for at in Milestone if platform_threshold(files, judge, at) is None]
        if without and (rule.model.enabled or rule.model.safety):
            where = f" at {', '.join(without)}" if len(without) < len(Milestone) else ""
            message = f"{judge} has no threshold{where}, and its floor of {rule.model.floor:g} would decide alone"
            low, high = scale_of(rule.model)
            what = "true" if rule.model.score_type is ScoreType.BOOLEAN else f"a score from {low:g} to {high:g}"
            yield find(manifest, ("thresholds",), message, f"add `{judge}: …`, {what}")


def _least(files: RegistryFiles, judge: str, milestone: Milestone, dimension: str | None) -> Score:
    """Returns the lowest score that passes at the milestone."""
    rule = files.rules[judge].model
    floor, held = rule.floor, platform(files, judge, milestone)
    if dimension is not None and rule.dimensions is not None:
        declared = rule.dimensions[dimension]
        floor = rule.floor if declared.floor is None else declared.floor
        thresholds = (manifest_threshold(files, judge, judge_id(dimension)), declared.threshold)
        own = (Stated.of("", threshold).at(milestone) for threshold in thresholds)
        held = next((value for value in own if value is not None), held)
    return max(held, floor)


@SCALES.error("PC5 FR-3, §5.2")
def tolerance_fits_scale(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    """A tolerance is smaller than the judge's scale, else no regression would be one."""
    for _, judge, rule in files.every_rule():
        tolerance = rule.model.tolerance
        if judge not in files.rules or tolerance is None:
            continue
        low, high = scale_of(files.rules[judge].model)
        if not tolerance < high - low:
            message = f"{tolerance:g} is as wide as the scale of {judge}, {low:g} to {high:g}"
            yield find(rule, ("tolerance",), message, "allow a small part of the scale, such as a twentieth")


def _floor_beside(limit: Limit) -> Score:
    """Returns the floor of the same dimension or vertical, else the judge's."""
    own = limit.parsed.model
    found: Score | None = None
    if limit.dimension is not None:
        dimensions = limit.rule.dimensions or {}
        found = next((d.floor for name, d in dimensions.items() if judge_id(name) == limit.dimension), None)
    elif isinstance(own, VerticalRuleFile):
        found = own.floor
    return limit.rule.floor if found is None else found


def _write(limit: Limit, *, floor: bool = False) -> str:
    """Returns the fix for a limit that is off the scale, with the number that was probably meant."""
    low, high = scale_of(limit.rule)
    if limit.rule.score_type is ScoreType.BOOLEAN:
        return "write a rate such as 0.97, or true" if floor else "write `true`"
    value = limit.value
    if not isinstance(value, bool) and 0 <= value <= 1 and not low <= value <= high:
        return f"write {low + value * (high - low):g} if a share of the scale is meant, else a number on it"
    if not isinstance(value, bool) and (low, high) == (0, 1) and 1 < value <= 5:
        return f"write a number from 0 to 1; {value:g} on a scale of 1 to 5 is {(value - 1) / 4:g} here"
    return f"write a number from {low:g} to {high:g}"


@SCALES.error("PC5 §5.5")
def confirmation_fits(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    """`confirmation` stands in the file of a BOOLEAN judge without dimensions: of other answers none is simply
    failing."""
    for judge, rule in files.rules.items():
        model = rule.model
        if model.confirmation is None or (model.score_type is ScoreType.BOOLEAN and not model.dimensions):
            continue
        why = (
            f"its answers are {model.score_type}" if model.score_type is not ScoreType.BOOLEAN else "it has dimensions"
        )
        yield find(rule, ("confirmation",), f"no answer of {judge} can be confirmed: {why}", "remove it")


@SCALES.error("contracts §3")
def score_of_fits(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    """`score_of: dimensions` stands in the file of a FLOAT judge with dimensions: a mean is no whole number, and
    neither true nor false."""
    for judge, rule in files.rules.items():
        model = rule.model
        if model.score_of is not None and (model.score_type is not ScoreType.FLOAT or not model.dimensions):
            why = f"its scores are {model.score_type}" if model.dimensions else "it has no dimensions"
            message = f"the score of {judge} can't be the mean of its dimensions: {why}"
            yield find(rule, ("score_of",), message, "remove it, or write `score_type: FLOAT` and dimensions")


@SCALES.error("contracts §3")
def applies_fits(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    """A dimension that may not apply is one of a judge that takes N/A: else what is absent would leave every such item
    unscored."""
    for judge, rule in files.rules.items():
        for name, dimension in (rule.model.dimensions or {}).items():
            if dimension.applies is not None and not rule.model.takes_na:
                message = f"{judge} takes no N/A, which its dimension {name} is where {dimension.applies} is absent"
                yield find(rule, ("dimensions", name, "applies"), message, "remove it, or `allow_na: false`")


@SCALES.error("PC5 §5.5; PF-9 §5.2")
def confirmation_keeps_alarms(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    """Of a confirmation's `asks` answers at most half, rounded up, have to be failing: a judge that is mostly right
    about an item stays right."""
    for rule in files.rules.values():
        asked = rule.model.confirmation
        if asked is not None and asked.failing > (most := (asked.asks + 1) // 2):
            message = f"an item would pass with {asked.failing - 1} of {asked.asks} answers against it"
            yield find(rule, ("confirmation", "failing"), message, f"write {most} or less, and 2 or more")
