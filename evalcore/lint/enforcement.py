"""Checks which gates a change triggers, who may let a failing judge only warn, by an audited override, and who may say
of an item what a judge does not (PC5 §5.2, §5.5)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta

from evalcore.lint.check import Find, Subject
from evalcore.lint.names import is_unread
from evalcore.registry.enforcement import BLOCK, DEFAULTS, WARN, permits
from evalcore.registry.files import AnyRule, RegistryFiles
from evalcore.registry.gate_paths import fits, triggered
from evalcore.registry.judge import version_in
from evalcore.yaml.findings import Finding, Severity
from evalcore.yaml.loader import FieldPath, Parsed
from evalcore.yaml.suggestions import day_until, near_miss
from schemas.judges import Enforcement, Milestone, ScoreType, judge_id
from schemas.manifests import LONGEST_OVERRIDE, Adjudication, AdjudicationsFile, GatePathsFile, Override, OverridesFile

ENFORCEMENT = Subject("Enforcement", "PC5 §5.2")
ADJUDICATIONS = Subject("Adjudications", "PC5 §5.2")
GATE_PATHS = Subject("Which gates a change triggers", "PC5 §5.5")
_NAME, _DEPTHS = "\x01", ("\x01", "\x01/\x01")
"""A name that no one writes, and what `**` may stand for."""


def _overrides(files: RegistryFiles) -> Iterator[tuple[Parsed[OverridesFile], FieldPath, str, Override]]:
    """Yields (file, place, judge id, entry) of every audited override."""
    if files.overrides is not None:
        for place, entry in enumerate(files.overrides.model.overrides):
            yield files.overrides, ("overrides", place), judge_id(entry.judge), entry


def _looser(files: RegistryFiles) -> Iterator[tuple[str | None, str, AnyRule, Milestone]]:
    """Yields (vertical, judge id, file, milestone) where a file about a quality judge asks for less than holds without
    the file."""
    for vertical, judge, rule in files.every_rule():
        central = files.rules.get(judge)
        if central is None or central.model.safety:
            continue
        before: Mapping[Milestone, Enforcement] = DEFAULTS[central.model.classification]
        if vertical is not None:
            before = {**before, **(central.model.enforcement or {})}
        for milestone, wanted in (rule.model.enforcement or {}).items():
            if wanted is WARN and before[milestone] is BLOCK:
                yield vertical, judge, rule, milestone


@ENFORCEMENT.error()
def looser_needs_override(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    """Enforcement looser than the default of its classification needs an audited override. Once that has
    expired the judge blocks, and the file is warned about: a day that comes must not take the registry down."""
    for vertical, judge, rule, milestone in _looser(files):
        entries = [entry for _, _, about, entry in _overrides(files) if about == judge]
        if permits(entries, files.today, milestone, vertical):
            continue
        message = f"{judge} would only warn at {milestone}, where {'its baseline' if vertical else 'a quality judge'} "
        message += "blocks"
        about = [entry for entry in entries if entry.milestone is milestone and entry.vertical in (None, vertical)]
        ends = [entry.expires for entry in about if entry.expires < files.today]
        if ends:
            message += f"; the override that allowed it expired on {max(ends)}, so it blocks"
        fix = (
            f"write `{milestone}: block`, or record who allowed it, in which pull request, why and until when, in "
            "enforcement-overrides.yaml"
        )
        yield find(rule, ("enforcement", milestone), message, fix, Severity.WARNING if ends else None)


@ENFORCEMENT.error("PF-9 FR-2, §5.2")
def override_not_for_safety(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    """No override is about a safety judge."""
    for parsed, path, judge, entry in _overrides(files):
        rule = files.rules.get(judge)
        if rule is not None and rule.model.safety:
            message = f"safety judge {entry.judge} can't be relaxed by anybody"
            yield find(parsed, (*path, "judge"), message, "remove the entry")


@ENFORCEMENT.error()
def override_names_a_judge(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    """An override is about a judge that exists."""
    for parsed, path, judge, entry in _overrides(files):
        if judge not in files.rules and not is_unread(files, judge):
            message = f"there is no judge {entry.judge!r}{near_miss(judge, files.rules)}"
            yield find(parsed, (*path, "judge"), message, "name a judge of the registry")


@ENFORCEMENT.error()
def override_days(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    """An override was approved on a day that has come, and expires after it, within 92 days."""
    for parsed, path, _, entry in _overrides(files):
        if entry.approved_on > files.today + timedelta(days=1):
            message = f"{entry.approved_on} has not come yet"
            yield find(parsed, (*path, "approved_on"), message, "write the day of the approval")
        if entry.expires <= entry.approved_on:
            message = f"{entry.expires} is not after the approval on {entry.approved_on}"
            yield find(parsed, (*path, "expires"), message, "write the last day on which it holds")
        elif entry.expires - entry.approved_on > LONGEST_OVERRIDE:
            message = f"{entry.expires} is more than {LONGEST_OVERRIDE.days} days after the approval"
            yield find(parsed, (*path, "expires"), message, "write an earlier day; who still needs it then asks again")


@ENFORCEMENT.warning()
def override_in_use(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    """An override that holds today allows something that a rule file asks for. One that has expired stays: it is the
    record."""
    asked = {(judge, milestone, vertical) for vertical, judge, _, milestone in _looser(files)}
    asked_by_any = {(judge, milestone) for judge, milestone, _ in asked}
    for parsed, path, judge, entry in _overrides(files):
        wanted = (
            (judge, entry.milestone) in asked_by_any
            if entry.vertical is None
            else (judge, entry.milestone, entry.vertical) in asked
        )
        if entry.expires >= files.today and (entry.enforcement is BLOCK or not wanted):
            message = f"no rule file asks {entry.judge} to warn at {entry.milestone}; the entry allows nothing"
            fix = "remove it, or write the looser enforcement into the rule file it is about"
            yield find(parsed, path, message, fix)


def _adjudications(files: RegistryFiles) -> Iterator[tuple[Parsed[AdjudicationsFile], FieldPath, str, Adjudication]]:
    """Yields (file, place, judge id, entry) of every adjudication."""
    if files.adjudications is not None:
        for place, entry in enumerate(files.adjudications.model.adjudications):
            yield files.adjudications, ("adjudications", place), judge_id(entry.judge), entry


@ADJUDICATIONS.error()
def adjudication_of_true_or_false(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    """An adjudication is about a BOOLEAN judge that exists."""
    for parsed, path, judge, entry in _adjudications(files):
        rule = files.rules.get(judge)
        if rule is None and not is_unread(files, judge):
            message = f"there is no judge {entry.judge!r}{near_miss(judge, files.rules)}"
            yield find(parsed, (*path, "judge"), message, "name a judge of the registry")
        elif rule is not None and rule.model.score_type is not ScoreType.BOOLEAN:
            message = f"{judge} gives numbers ({rule.model.score_type}); of those a person can't say what is right"
            yield find(parsed, (*path, "judge"), message, "remove the entry")


@ADJUDICATIONS.error()
def adjudication_days(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    """An adjudication was made on a day that has come, and expires after it, within 92 days."""
    for parsed, path, _, entry in _adjudications(files):
        if entry.adjudicated_on > files.today + timedelta(days=1):
            message = f"{entry.adjudicated_on} has not come yet"
            yield find(parsed, (*path, "adjudicated_on"), message, "write the day on which the item was looked at")
        last = entry.adjudicated_on + LONGEST_OVERRIDE
        if not entry.adjudicated_on < entry.expires <= last:
            message = f"{entry.expires} is not within {LONGEST_OVERRIDE.days} days after {entry.adjudicated_on}"
            fix = day_until(last, files.today, "look at the item again, and write the days of that")
            yield find(parsed, (*path, "expires"), message, fix)


@ADJUDICATIONS.warning()
def adjudication_in_use(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    """An adjudication that has not expired is of the judge's present version; of another it holds nothing."""
    for parsed, path, judge, entry in _adjudications(files):
        rule = files.rules.get(judge)
        if rule is None or entry.expires < files.today:
            continue
        if entry.judge_version != (version := version_in(files, judge)):
            message = f"{judge} is now of version {version}, which no one has looked at"
            yield find(
                parsed, (*path, "judge_version"), message, "see what it says now, and adjudicate that, or remove it"
            )


@GATE_PATHS.error()
def path_pattern_decides(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    """Each pattern decides about some path: none before it fits all that it fits."""
    if files.gate_paths is None:
        return
    earlier: list[str] = []
    for place, pattern in _patterns(files.gate_paths.model):
        samples = [pattern.replace("**", depth).replace("*", _NAME) for depth in _DEPTHS]
        covering = next((one for one in earlier if all(fits(one, sample) for sample in samples)), None)
        if covering is not None:
            message = f"{pattern!r} never decides, since {covering!r} comes first and fits the same paths"
            yield find(files.gate_paths, place, message, "move it above that, or remove it")
        earlier.append(pattern)


@GATE_PATHS.error()
def judges_trigger_every_gate(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    """A change of a judge or of the manifest triggers every gate: it changes what every gate says. The registry's path
    has to begin at the repository's root, as CI names it."""
    if files.gate_paths is None:
        return
    shown = [rule.document.file for _, _, rule in files.every_rule()]
    shown += [files.manifest.document.file] if files.manifest is not None else []
    places = {pattern: place for place, pattern in _patterns(files.gate_paths.model)}
    told = set()
    for file in shown:
        found = triggered(file, files.gate_paths.model)
        if file.startswith(("/", "..")) or found.rule in told or set(found.gates) == set(Milestone):
            continue
        told.add(found.rule)
        gates = ", ".join(found.gates) or "no gate"
        message = f"{file} triggers {gates}, since {found.rule!r} is the first pattern that fits it"
        fix = "write a pattern for judges and the manifest above that, with all three gates"
        yield find(files.gate_paths, places[found.rule], message, fix)


def _patterns(table: GatePathsFile) -> Iterator[tuple[FieldPath, str]]:
    """Yields (place, pattern) in the order in which they are asked."""
    for number, one in enumerate(table.paths):
        for place, pattern in enumerate(one.files):
            yield ("paths", number, "files", place), pattern
