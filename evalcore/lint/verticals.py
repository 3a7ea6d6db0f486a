"""Checks that a vertical's file tightens a central judge and never loosens it (PF-9 §5.2, Decision 10)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from evalcore.lint.check import Find, Subject
from evalcore.lint.filters import SUB_AGENT, VERTICAL
from evalcore.lint.limits import fits, number, platform_threshold, stated
from evalcore.registry.files import RegistryFiles
from evalcore.yaml.findings import Finding
from evalcore.yaml.loader import Parsed
from evalcore.yaml.suggestions import near_miss
from schemas.judges import Classification, Operator, RuleFile

VERTICALS = Subject("Verticals", "PF-9 §5.2")
TUNED = "a vertical may tighten a judge, never loosen it; keep the baseline or go above it"


@VERTICALS.error("PF-9 FR-2, Decision 10")
def classification_is_central(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    """A vertical's file repeats the judge's classification; it never changes it."""
    for vertical, judge, own, rule in files.tuned():
        declared = own.model.classification
        if declared is not rule.classification:
            message = f"{vertical} calls {judge} {declared}; the platform classifies it as {rule.classification}"
            fix = f"write `classification: {rule.classification}`; a classification is platform-wide"
            if not rule.safety:
                fix += ". To be stricter, pin `enforcement: {pre_merge: block}` (Decision 10)"
            yield find(own, ("classification",), message, fix)


@VERTICALS.error()
def vertical_threshold_holds(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    """A vertical's threshold is at or above the baseline of its milestone: the manifest's, else the central rule's."""
    for vertical, judge, own, rule in files.tuned(Classification.QUALITY):
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


@VERTICALS.error()
def vertical_floor_holds(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    """A vertical's floor is at or above the central one."""
    for vertical, judge, own, rule in files.tuned(Classification.QUALITY):
        floor = own.model.floor
        if floor is not None and fits(floor, rule, floor=True) and _below(floor, rule.floor, rule):
            message = f"{vertical} lowers the floor of {judge} from {number(rule.floor):g} to {number(floor):g}"
            yield find(own, ("floor",), message, TUNED)


@VERTICALS.error()
def vertical_tolerance_holds(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    """A vertical's tolerance is at or below the central one."""
    for vertical, judge, own, rule in files.tuned(Classification.QUALITY):
        tolerance = own.model.tolerance
        if tolerance is not None and tolerance > rule.tolerance:
            message = f"{vertical} widens the tolerance of {judge} from {rule.tolerance:g} to {tolerance:g}"
            yield find(own, ("tolerance",), message, TUNED)


@VERTICALS.error("PF-9 AC-8")
def verticals_stay_apart(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    """The filter in a vertical's file does not name another vertical."""
    known = {*files.verticals, *files.extensions, *(vertical for vertical, _ in files.vertical_rules)}
    owners = {name: name for name in known}
    for vertical, extension in files.extensions.items():
        owners |= {agent: vertical for agents in extension.model.archetypes.values() for agent in agents}
    for (vertical, judge), own in files.vertical_rules.items():
        filter_ = own.model.filter
        if filter_ is None or filter_.operator not in (Operator.EQUALS, Operator.IN):
            continue
        if filter_.compared not in {VERTICAL, *SUB_AGENT}:
            continue
        for value in filter_.values:
            owner = owners.get(value, vertical) if isinstance(value, str) else vertical
            if owner != vertical:
                message = f"{judge} of {vertical} would fire on traces of {owner}"
                yield find(own, ("filter", "value"), message, f"write `value: {vertical}`, or one of its sub-agents")


@VERTICALS.warning("PF-9 §5.5")
def vertical_is_registered(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    """A vertical that has files here is registered, with its Opik project, in `verticals/`."""
    first: dict[str, Parsed[Any]] = {vertical: own for (vertical, _), own in files.vertical_rules.items()}
    named: list[tuple[str, Parsed[Any]]] = [*first.items(), *files.extensions.items(), *files.selections.items()]
    for vertical, parsed in named:
        if vertical not in files.verticals and ("vertical", vertical) not in files.unread:
            message = f"vertical {vertical!r} is not registered{near_miss(vertical, files.verticals)}"
            yield find(parsed, (), message, f"add verticals/{vertical}.yaml beside the rules, with its Opik project")


@VERTICALS.warning("PC5 FR-7, §5.6; PF-9 §5.5")
def project_of_one_vertical(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    """Each vertical has an Opik project of its own: judges synced to one that two share fire on the turns of both."""
    owners: dict[tuple[str, str], str] = {}
    for vertical, registered in sorted(files.registrations.items()):
        project = (registered.model.workspace, registered.model.project)
        owner = owners.setdefault(project, vertical)
        if owner != vertical:
            message = f"project {project[1]!r} is {owner}'s too"
            yield find(
                registered, ("project",), message, f"give {vertical} a project of its own, such as {vertical}-eval"
            )


def _below(value: float | bool, baseline: float | bool, rule: RuleFile) -> bool:
    return fits(baseline, rule, floor=True) and number(value) < number(baseline)
