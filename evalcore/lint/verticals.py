"""Checks that a vertical's file tightens a central judge and never loosens it (PF-9 §5.2, Decision 10)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from evalcore.lint.check import Find, check
from evalcore.lint.limits import fits, number, platform_threshold, stated
from evalcore.registry.files import RegistryFiles
from evalcore.yaml.findings import Finding, Severity
from evalcore.yaml.loader import Parsed
from evalcore.yaml.suggestions import near_miss
from schemas.judges import Classification, Operator, RuleFile, VerticalRuleFile

CLAUSE = "PF-9 §5.2"
TUNED = "a vertical may tighten a judge, never loosen it; keep the baseline or go above it"


def _quality(files: RegistryFiles) -> Iterator[tuple[str, str, Parsed[VerticalRuleFile], RuleFile]]:
    """Verticals' files about quality judges; those about safety judges are `safety`'s."""
    for (vertical, judge), own in files.vertical_rules.items():
        rule = files.rules.get(judge)
        if rule is not None and rule.model.classification is Classification.QUALITY:
            yield vertical, judge, own, rule.model


@check(
    "classification-is-central",
    "PF-9 FR-2, Decision 10",
    "A vertical's file repeats the judge's classification or leaves it out; it never changes it.",
)
def classification_is_central(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    for (vertical, judge), own in files.vertical_rules.items():
        rule = files.rules.get(judge)
        declared = own.model.classification
        if rule is not None and declared is not None and declared is not rule.model.classification:
            message = f"{vertical} calls {judge} {declared}; the platform classifies it as {rule.model.classification}"
            fix = f"write `classification: {rule.model.classification}`; a classification is platform-wide"
            if rule.model.classification is Classification.QUALITY:
                fix += ". To be stricter, pin `enforcement: {pre_merge: block}` (Decision 10)"
            yield find(own, ("classification",), message, fix)


@check(
    "classification-declared",
    "PF-9 FR-2, AC-2",
    "A vertical's file repeats the judge's classification, so that every rule file declares one.",
    Severity.WARNING,
)
def classification_declared(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    for (_, judge), own in files.vertical_rules.items():
        rule = files.rules.get(judge)
        if rule is not None and own.model.classification is None:
            fix = f"add `classification: {rule.model.classification}`"
            yield find(own, ("classification",), f"the file does not say that {judge} is what it is centrally", fix)


@check(
    "vertical-threshold-holds",
    CLAUSE,
    "A vertical's threshold is at or above the baseline of its milestone: the manifest's, else the central rule's.",
)
def vertical_threshold_holds(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    for vertical, judge, own, rule in _quality(files):
        for at, below, value in stated(own.model.threshold):
            if not fits(value, rule):
                continue
            asked = {milestone: platform_threshold(files, judge, milestone) for milestone in at}
            looser = {m: least for m, least in asked.items() if least is not None and _below(value, least, rule)}
            if looser:
                baseline = max(map(number, looser.values()))
                message = (
                    f"{vertical} loosens {judge} at {', '.join(looser)}: {number(value):g} is below the baseline of "
                    f"{baseline:g}"
                )
                yield find(own, ("threshold", *below), message, TUNED)


@check(
    "vertical-floor-holds",
    CLAUSE,
    "A vertical's floor is at or above the central one.",
)
def vertical_floor_holds(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    for vertical, judge, own, rule in _quality(files):
        floor = own.model.floor
        if floor is not None and fits(floor, rule, floor=True) and _below(floor, rule.floor, rule):
            message = f"{vertical} lowers the floor of {judge} from {number(rule.floor):g} to {number(floor):g}"
            yield find(own, ("floor",), message, TUNED)


@check(
    "vertical-tolerance-holds",
    CLAUSE,
    "A vertical's tolerance is at or below the central one.",
)
def vertical_tolerance_holds(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    for vertical, judge, own, rule in _quality(files):
        tolerance = own.model.tolerance
        if tolerance is not None and tolerance > rule.tolerance:
            message = f"{vertical} widens the tolerance of {judge} from {rule.tolerance:g} to {tolerance:g}"
            yield find(own, ("tolerance",), message, TUNED)


@check(
    "verticals-stay-apart",
    "PF-9 AC-8",
    "The filter in a vertical's file does not name another vertical.",
)
def verticals_stay_apart(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    owners = {name: name for name in _known(files)}
    for vertical, extension in files.extensions.items():
        owners |= {agent: vertical for agents in extension.model.archetypes.values() for agent in agents}
    for (vertical, judge), own in files.vertical_rules.items():
        filter_ = own.model.filter
        if filter_ is None or (filter_.key or filter_.field) not in {"vertical", "sub_agent_id", "sub_agent"}:
            continue
        if filter_.operator not in (Operator.EQUALS, Operator.IN):
            continue
        for value in filter_.value if isinstance(filter_.value, list) else [filter_.value]:
            owner = owners.get(value, vertical) if isinstance(value, str) else vertical
            if owner != vertical:
                message = f"{judge} of {vertical} would fire on traces of {owner}"
                yield find(own, ("filter", "value"), message, f"write `value: {vertical}`, or one of its sub-agents")


@check(
    "vertical-is-registered",
    "PF-9 §5.5",
    "A vertical that has files here is registered, with its Opik project, in `verticals/`.",
    Severity.WARNING,
)
def vertical_is_registered(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    first: dict[str, Parsed[Any]] = {vertical: own for (vertical, _), own in files.vertical_rules.items()}
    named: list[tuple[str, Parsed[Any]]] = [*first.items(), *files.extensions.items(), *files.selections.items()]
    for vertical, parsed in named:
        if vertical not in files.verticals and ("vertical", vertical) not in files.unread:
            message = f"vertical {vertical!r} is not registered{near_miss(vertical, files.verticals)}"
            yield find(parsed, (), message, f"add verticals/{vertical}.yaml beside the rules, with its Opik project")


@check(
    "project-of-one-vertical",
    "PC5 FR-7, §5.6; PF-9 §5.5",
    "Each vertical has an Opik project of its own: judges synced to one that two share fire on the turns of both.",
    Severity.WARNING,
)
def project_of_one_vertical(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    owners: dict[tuple[str, str], str] = {}
    for vertical, registered in sorted(files.registrations.items()):
        project = (registered.model.workspace, registered.model.project)
        owner = owners.setdefault(project, vertical)
        if owner != vertical:
            message = f"project {project[1]!r} is {owner}'s too"
            yield find(
                registered, ("project",), message, f"give {vertical} a project of its own, such as {vertical}-eval"
            )


def _known(files: RegistryFiles) -> set[str]:
    return {*files.verticals, *files.extensions, *(vertical for vertical, _ in files.vertical_rules)}


def _below(value: float | bool, baseline: float | bool, rule: RuleFile) -> bool:
    return fits(baseline, rule, floor=True) and number(value) < number(baseline)


CHECKS = (
    classification_is_central,
    classification_declared,
    vertical_threshold_holds,
    vertical_floor_holds,
    vertical_tolerance_holds,
    verticals_stay_apart,
    vertical_is_registered,
    project_of_one_vertical,
)
