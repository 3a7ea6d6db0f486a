"""Checks the planted texts that `rampgate check canaries` tries on judges, and the limits of single judges."""

from __future__ import annotations

import re
from collections.abc import Iterator

from evalcore.judges.bindings import names
from evalcore.lint.check import Find, Subject
from evalcore.lint.names import is_unread
from evalcore.registry.files import RegistryFiles
from evalcore.yaml.findings import Finding
from evalcore.yaml.suggestions import near_miss
from schemas.checks.canaries import PLACEHOLDERS
from schemas.judges import judge_id

CANARIES = Subject("Canaries", "contracts §5")
_PLACE = re.compile(r"(?<!\{)\{(\w+)\}(?!\})")


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
