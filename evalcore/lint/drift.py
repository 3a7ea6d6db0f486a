"""Checks that the manifest, the rule files and what was measured of judges name the same judges (PC5 R-3, FR-14), and
the planted texts that `rampgate check canaries` tries on them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta

from evalcore.judges.bindings import names
from evalcore.lint.check import Find, Manifest, Subject, of_manifest
from evalcore.lint.limits import named
from evalcore.lint.names import is_unread
from evalcore.registry.files import RegistryFiles
from evalcore.registry.judge import version_in
from evalcore.yaml.findings import Finding, Severity
from evalcore.yaml.loader import FieldPath
from evalcore.yaml.suggestions import near_miss
from schemas.checks.canaries import PLACEHOLDERS
from schemas.judges import judge_id

DRIFT = Subject("Drift", "PC5 R-3, FR-14")
"""What `eval.manifest.drift_total` counts (PC5 §10.2), and no other check."""
LISTS = Subject("Lists of judges", "PC5 R-3, FR-14")
NOISE = Subject("Noise", "PC5 §5.5")
CANARIES = Subject("Canaries", "contracts §5")
_PLACE = re.compile(r"(?<!\{)\{(\w+)\}(?!\})")


def listed(files: RegistryFiles) -> Iterator[tuple[FieldPath, str]]:
    """Yields every place of the manifest that lists a judge or composite to run, with the name as written."""
    for category, declared in files.categories.items():
        for place, name in enumerate(declared.judges):
            yield ("categories", category, "judges", place), name
    for place, name in enumerate(files.manifest.model.global_metrics.judges if files.manifest else ()):
        yield ("global_metrics", "judges", place), name


def members(files: RegistryFiles) -> Iterator[tuple[FieldPath, str]]:
    """Yields every member of a composite, with its place in the manifest."""
    for composite, declared in files.composites.items():
        for place, name in enumerate(declared.judges):
            yield ("composites", composite, "judges", place), name


def used(files: RegistryFiles) -> set[str]:
    """Returns the judges that a category or the global metrics list, by their names or by a composite's."""
    composites = files.composites
    groups = (composites[name].judges if name in composites else [name] for _, name in listed(files))
    return {judge_id(name) for group in groups for name in group}


def missing(files: RegistryFiles, name: str) -> bool:
    """Tells whether no rule file declares the judge; a file that can't be read is not missing."""
    return judge_id(name) not in files.rules and not is_unread(files, name)


@DRIFT.error()
@of_manifest
def manifest_judge_exists(files: RegistryFiles, manifest: Manifest, find: Find) -> Iterator[Finding]:
    """Every judge that a category, the global metrics or a composite names has a rule file."""
    composites = manifest.model.composites
    for path, name in [*listed(files), *members(files)]:
        if not missing(files, name) or (name in composites and path[0] != "composites"):
            continue
        own = {judge for judge in files.rules if path[0] != "composites" or judge != path[1]}
        message = f"there is no judge {name!r}: no rule file declares it{near_miss(name, own)}"
        yield find(manifest, path, message, f"add {judge_id(name)}.yaml to the rules, or remove the name")


@DRIFT.error()
@of_manifest
def threshold_of_a_judge(files: RegistryFiles, manifest: Manifest, find: Find) -> Iterator[Finding]:
    """Every threshold of the manifest is of a judge that has a rule file, or of one of its dimensions."""
    for key in manifest.model.thresholds:
        judge, dimension = named(key)
        path = ("thresholds", key)
        if judge not in files.rules:
            if not is_unread(files, judge):
                message = f"there is no judge {judge!r}: no rule file declares it{near_miss(judge, files.rules)}"
                yield find(manifest, path, message, "name a judge of the registry, or remove the threshold")
        elif dimension is not None:
            known = {judge_id(name) for name in files.rules[judge].model.dimensions or {}}
            if dimension not in known:
                message = f"{judge} has no dimension {dimension!r}{near_miss(dimension, known)}"
                fix = f"write {judge}, {judge}.<milestone> or {judge}.<dimension>, and each once"
                yield find(manifest, path, message, fix)


@DRIFT.warning()
@of_manifest
def rule_in_use(files: RegistryFiles, manifest: Manifest, find: Find) -> Iterator[Finding]:
    """Every quality judge is used by a category or the global metrics, or by a composite that one of them names. Safety
    judges run everywhere."""
    in_use = used(files)
    for judge, rule in files.rules.items():
        if judge not in in_use and not rule.model.safety:
            message = f"no category or global list of the manifest uses judge {judge}"
            fix = "list it in a category, or remove the rule file"
            yield find(rule, (), message, fix)


@LISTS.error()
@of_manifest
def threshold_once(files: RegistryFiles, manifest: Manifest, find: Find) -> Iterator[Finding]:
    """The manifest states a judge's threshold once; kebab and snake case name the same judge."""
    seen: dict[tuple[str, str | None], str] = {}
    for key in manifest.model.thresholds:
        other = seen.setdefault(named(key), key)
        if other != key:
            message = f"{key!r} and {other!r} name the same judge"
            yield find(manifest, ("thresholds", key), message, "remove one of the two")


@LISTS.warning()
@of_manifest
def judge_listed_once(files: RegistryFiles, manifest: Manifest, find: Find) -> Iterator[Finding]:
    """A list of judges names each of them once."""
    seen: set[tuple[FieldPath, str]] = set()
    for path, name in [*listed(files), *members(files)]:
        key = (path[:-1], judge_id(name))
        if key in seen:
            severity = Severity.ERROR if path[0] == "composites" else None
            yield find(manifest, path, f"{name} is listed twice", "remove one of the two", severity)
        seen.add(key)


@LISTS.warning("PC5 R-6")
def judge_in_use_is_enabled(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    """A judge that the manifest lists is enabled; one that is switched off is left out of gates."""
    in_use = used(files)
    for judge, rule in files.rules.items():
        if judge in in_use and not rule.model.enabled and not rule.model.safety:
            message = f"{judge} is switched off, and gates of the categories that list it run without it"
            yield find(rule, ("enabled",), message, "switch it on again when the emergency is over")


@NOISE.warning()
def noise_is_of_a_judges_version(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    """The last measurement of a judge's noise is of the judge's present version; else verdicts don't tell what the
    sample could have seen."""
    if files.noise is None:
        return
    last = {judge_id(one.judge): (place, one) for place, one in enumerate(files.noise.model.measured)}
    for judge, (place, one) in last.items():
        path: FieldPath = ("measured", place)
        rule = files.rules.get(judge)
        if rule is None:
            if not is_unread(files, judge):
                message = f"there is no judge {one.judge!r}{near_miss(judge, files.rules)}"
                yield find(files.noise, (*path, "judge"), message, "remove the entry")
        elif one.judge_version != (version := version_in(files, judge)):
            message = f"{judge} is now of version {version}, and nothing is known of its noise"
            fix = f"measure it: rampgate check noise --judge {judge} --write"
            yield find(files.noise, (*path, "judge_version"), message, fix)


@NOISE.error()
def noise_was_measured(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    """A judge's noise was measured on a day that has come, and its intervals begin before they end."""
    if files.noise is None:
        return
    for place, one in enumerate(files.noise.model.measured):
        if one.measured_on > files.today + timedelta(days=1):
            message = f"{one.measured_on} has not come yet"
            yield find(files.noise, ("measured", place, "measured_on"), message, "write the day of the measurement")
        for name in ("flip_rate_ci95", "deviation_ci95", "false_alarm_ci95"):
            ends = getattr(one, name)
            if ends is not None and ends[0] > ends[1]:
                message = f"the interval ends at {ends[1]:g} before it begins at {ends[0]:g}"
                yield find(
                    files.noise, ("measured", place, name), message, "measure it again with rampgate check noise"
                )


@CANARIES.error()
def canary_placeholder_is_known(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    """A planted text has no placeholder but `{best}`, `{tag}` and `{TAG}`: others reach the judge as they are
    written. A judge's variable in braces is an imitation, and may stay."""
    if files.canaries is None:
        return
    imitated = {name for rule in files.rules.values() for name in names(rule.model.variables)}
    for canary, text in files.canaries.model.canaries.items():
        for name in dict.fromkeys(_PLACE.findall(text)):
            if name not in PLACEHOLDERS and name not in imitated:
                message = f"{{{name}}} stands for nothing{near_miss(name, PLACEHOLDERS)}"
                fix = "write {best}, {tag} or {TAG}, or other brackets"
                yield find(files.canaries, ("canaries", canary), message, fix)


@CANARIES.error()
def canary_is_planted_once(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    """No two canaries have the same text: the draw would take it more often than others."""
    if files.canaries is None:
        return
    seen: dict[str, str] = {}
    for canary, text in files.canaries.model.canaries.items():
        other = seen.setdefault(text.strip(), canary)
        if other != canary:
            yield find(files.canaries, ("canaries", canary), f"is the same text as {other!r}", "remove one of the two")


@CANARIES.error()
def canary_limits_are_of_a_judge(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    """Limits of a single judge are of a judge that exists, each once; kebab and snake case name the same judge."""
    if files.canaries is None:
        return
    seen: dict[str, str] = {}
    for name in files.canaries.model.judges:
        judge, path = judge_id(name), ("judges", name)
        other = seen.setdefault(judge, name)
        if other != name:
            yield find(files.canaries, path, f"{name!r} and {other!r} name the same judge", "remove one of the two")
        elif judge not in files.rules and not is_unread(files, judge):
            message = f"there is no judge {name!r}{near_miss(judge, files.rules)}"
            yield find(files.canaries, path, message, "name a judge of the registry, or remove its limits")
