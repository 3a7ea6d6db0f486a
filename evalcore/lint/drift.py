"""Checks that the manifest and the rule files name the same judges, in both directions (PC5 R-3, FR-14)."""

from __future__ import annotations

from collections.abc import Iterator

from evalcore.lint.check import Find, check
from evalcore.lint.limits import named
from evalcore.lint.names import is_unread
from evalcore.registry.files import RegistryFiles
from evalcore.yaml.findings import Finding, Severity
from evalcore.yaml.loader import FieldPath
from evalcore.yaml.suggestions import near_miss
from schemas.judges import Classification, judge_id

CLAUSE = "PC5 R-3, FR-14"


def listed(files: RegistryFiles) -> Iterator[tuple[FieldPath, str]]:
    """Every place of the manifest where a judge, or a composite, is listed to run, with the name as written."""
    if files.manifest is None:
        return
    for category, declared in files.manifest.model.categories.items():
        for place, name in enumerate(declared.judges):
            yield ("categories", category, "judges", place), name
    for place, name in enumerate(files.manifest.model.global_metrics.judges):
        yield ("global_metrics", "judges", place), name


def members(files: RegistryFiles) -> Iterator[tuple[FieldPath, str]]:
    """Every member of a composite, with its place in the manifest."""
    for composite, declared in (files.manifest.model.composites if files.manifest else {}).items():
        for place, name in enumerate(declared.judges):
            yield ("composites", composite, "judges", place), name


def missing(files: RegistryFiles, name: str) -> bool:
    """Tells whether no rule file declares the judge; a file that can't be read is not missing."""
    return judge_id(name) not in files.rules and not is_unread(files, name)


@check(
    "manifest-judge-exists",
    CLAUSE,
    "Every judge that a category, the global metrics or a composite names has a rule file.",
)
def manifest_judge_exists(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    if files.manifest is None:
        return
    composites = files.manifest.model.composites
    for path, name in [*listed(files), *members(files)]:
        if not missing(files, name) or (name in composites and path[0] != "composites"):
            continue
        own = {judge for judge in files.rules if path[0] != "composites" or judge != path[1]}
        message = f"there is no judge {name!r}: no rule file declares it{near_miss(name, own)}"
        yield find(files.manifest, path, message, f"add {judge_id(name)}.yaml to the rules, or remove the name")


@check(
    "threshold-of-a-judge",
    CLAUSE,
    "Every threshold of the manifest is of a judge that has a rule file, or of one of its dimensions.",
)
def threshold_of_a_judge(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    if files.manifest is None:
        return
    for key in files.manifest.model.thresholds:
        judge, dimension = named(key)
        path = ("thresholds", key)
        if judge not in files.rules:
            if not is_unread(files, judge):
                message = f"there is no judge {judge!r}: no rule file declares it{near_miss(judge, files.rules)}"
                yield find(files.manifest, path, message, "name a judge of the registry, or remove the threshold")
        elif dimension is not None:
            known = {judge_id(name) for name in files.rules[judge].model.dimensions or {}}
            if dimension not in known:
                message = f"{judge} has no dimension {dimension!r}{near_miss(dimension, known)}"
                fix = f"write {judge}, {judge}.<milestone> or {judge}.<dimension>, and each once"
                yield find(files.manifest, path, message, fix)


@check(
    "threshold-once",
    CLAUSE,
    "The manifest states a judge's threshold once; kebab and snake case name the same judge.",
)
def threshold_once(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    if files.manifest is None:
        return
    seen: dict[tuple[str, str | None], str] = {}
    for key in files.manifest.model.thresholds:
        other = seen.setdefault(named(key), key)
        if other != key:
            message = f"{key!r} and {other!r} name the same judge"
            yield find(files.manifest, ("thresholds", key), message, "remove one of the two")


@check(
    "judge-listed-once",
    CLAUSE,
    "A list of judges names each of them once.",
    Severity.WARNING,
)
def judge_listed_once(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    if files.manifest is None:
        return
    seen: set[tuple[FieldPath, str]] = set()
    for path, name in [*listed(files), *members(files)]:
        key = (path[:-1], judge_id(name))
        if key in seen:
            severity = Severity.ERROR if path[0] == "composites" else None
            yield find(files.manifest, path, f"{name} is listed twice", "remove one of the two", severity)
        seen.add(key)


@check(
    "rule-in-use",
    CLAUSE,
    "Every quality judge is used by a category, the global metrics or a composite. Safety judges run everywhere.",
    Severity.WARNING,
)
def rule_in_use(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    if files.manifest is None:
        return
    used = {judge_id(name) for _, name in [*listed(files), *members(files)]}
    for judge, rule in files.rules.items():
        if judge not in used and rule.model.classification is not Classification.SAFETY_REFUSAL:
            message = f"no category, global list or composite of the manifest uses judge {judge}"
            fix = "list it in a category, or remove the rule file"
            yield find(rule, (), message, fix)


@check(
    "judge-in-use-is-enabled",
    "PC5 R-6",
    "A judge that the manifest lists is enabled; one that is switched off is left out of gates.",
    Severity.WARNING,
)
def judge_in_use_is_enabled(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    used = {judge_id(name) for _, name in listed(files)}
    for judge, rule in files.rules.items():
        if judge in used and not rule.model.enabled and rule.model.classification is Classification.QUALITY:
            message = f"{judge} is switched off, and gates of the categories that list it run without it"
            yield find(rule, ("enabled",), message, "switch it on again when the emergency is over")


CHECKS = (
    manifest_judge_exists,
    threshold_of_a_judge,
    threshold_once,
    judge_listed_once,
    rule_in_use,
    judge_in_use_is_enabled,
)
