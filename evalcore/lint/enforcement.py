"""Checks who may let a failing judge only warn: the classification's default, or an audited override (PC5 §5.2)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta

from evalcore.lint.check import Find, check
from evalcore.lint.names import is_unread
from evalcore.registry.enforcement import BLOCK, DEFAULTS, WARN, permits
from evalcore.registry.files import AnyRule, RegistryFiles
from evalcore.yaml.findings import Finding, Severity
from evalcore.yaml.suggestions import near_miss
from schemas.judges import Classification, Enforcement, Milestone, judge_id
from schemas.manifests import Override

CLAUSE = "PC5 §5.2"


def _overrides(files: RegistryFiles, judge: str) -> list[Override]:
    entries = files.overrides.model.overrides if files.overrides else []
    return [entry for entry in entries if judge_id(entry.judge) == judge]


def _looser(files: RegistryFiles) -> Iterator[tuple[str | None, str, AnyRule, Milestone]]:
    """Where a file about a quality judge asks for less than holds without it."""
    for vertical, judge, rule in files.every_rule():
        central = files.rules.get(judge)
        if central is None or central.model.classification is Classification.SAFETY_REFUSAL:
            continue
        before: Mapping[Milestone, Enforcement] = DEFAULTS[central.model.classification]
        if vertical is not None:
            before = {**before, **(central.model.enforcement or {})}
        for milestone, wanted in (rule.model.enforcement or {}).items():
            if wanted is WARN and before[milestone] is BLOCK:
                yield vertical, judge, rule, milestone


@check(
    "looser-needs-override",
    CLAUSE,
    "Enforcement looser than the default of its classification stands only beside an audited override. Once that has "
    "expired the judge blocks, and the file is warned about: a day that comes must not take the registry down.",
)
def looser_needs_override(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    for vertical, judge, rule, milestone in _looser(files):
        entries = _overrides(files, judge)
        if permits(entries, files.today, milestone, vertical):
            continue
        message = f"{judge} would only warn at {milestone}, where {'its baseline' if vertical else 'a quality judge'} "
        message += "blocks"
        old = [e for e in entries if e.milestone is milestone and e.vertical in (None, vertical)]
        ends = [e.expires for e in old if e.expires < files.today]
        if ends:
            message += f"; the override that allowed it expired on {max(ends)}, so it blocks"
        fix = (
            f"write `{milestone}: block`, or record who allowed it, in which pull request, why and until when, in "
            "enforcement-overrides.yaml"
        )
        yield find(rule, ("enforcement", milestone), message, fix, Severity.WARNING if ends else None)


@check(
    "override-not-for-safety",
    "PF-9 FR-2, §5.2",
    "No override is about a safety judge.",
)
def override_not_for_safety(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    for place, entry in _entries(files):
        rule = files.rules.get(judge_id(entry.judge))
        if files.overrides is None or rule is None:
            continue
        if rule.model.classification is Classification.SAFETY_REFUSAL:
            message = f"safety judge {entry.judge} can't be relaxed, by nobody"
            yield find(files.overrides, ("overrides", place, "judge"), message, "remove the entry")


@check(
    "override-names-a-judge",
    CLAUSE,
    "An override is about a judge that exists.",
)
def override_names_a_judge(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    for place, entry in _entries(files):
        judge = judge_id(entry.judge)
        if files.overrides is not None and judge not in files.rules and not is_unread(files, judge):
            message = f"there is no judge {entry.judge!r}{near_miss(judge, files.rules)}"
            yield find(files.overrides, ("overrides", place, "judge"), message, "name a judge of the registry")


@check(
    "override-days",
    CLAUSE,
    "An override was approved on a day that has come, and expires after it.",
)
def override_days(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    if files.overrides is None:
        return
    for place, entry in _entries(files):
        path = ("overrides", place)
        if entry.approved_on > files.today + timedelta(days=1):
            message = f"{entry.approved_on} has not come yet"
            yield find(files.overrides, (*path, "approved_on"), message, "write the day of the approval")
        if entry.expires <= entry.approved_on:
            message = f"{entry.expires} is not after the approval on {entry.approved_on}"
            yield find(files.overrides, (*path, "expires"), message, "write the last day on which it holds")


@check(
    "override-in-use",
    CLAUSE,
    "An override that holds today allows something that a rule file asks for. One that has expired stays: it is the "
    "record.",
    Severity.WARNING,
)
def override_in_use(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    if files.overrides is None:
        return
    wanted = [(vertical, judge, milestone) for vertical, judge, _, milestone in _looser(files)]
    for place, entry in _entries(files):
        if entry.expires < files.today:
            continue
        if entry.enforcement is BLOCK or not any(
            judge == judge_id(entry.judge) and milestone is entry.milestone and entry.vertical in (None, vertical)
            for vertical, judge, milestone in wanted
        ):
            message = f"no rule file asks {entry.judge} to warn at {entry.milestone}; the entry allows nothing"
            fix = "remove it, or write the looser enforcement into the rule file it is about"
            yield find(files.overrides, ("overrides", place), message, fix)


def _entries(files: RegistryFiles) -> Iterator[tuple[int, Override]]:
    yield from enumerate(files.overrides.model.overrides if files.overrides else [])


CHECKS = (looser_needs_override, override_not_for_safety, override_names_a_judge, override_days, override_in_use)
