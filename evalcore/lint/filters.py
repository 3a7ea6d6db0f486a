"""Checks which traces a judge fires on: by its filter, and by the archetypes it is for.

A filter that can't match switches its judge off, and no gate would notice (PC5 §5.2, PF-9 §5.2). `applies_to` names the
archetypes whose sub-agents a judge scores (PF-9 FR-5).
"""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite
from typing import Any, Final

from evalcore.lint.check import Find, Manifest, Subject, of_manifest
from evalcore.registry.files import AnyRule, RegistryFiles
from evalcore.registry.patterns import refusal
from evalcore.yaml.findings import Finding
from evalcore.yaml.loader import FieldPath, Parsed
from evalcore.yaml.suggestions import near_miss
from schemas.judges import Filter, Operator

FILTERS = Subject("Filters", "PC5 §5.2")
ARCHETYPES = Subject("Archetypes", "PF-9 FR-5")
VERTICAL: Final = "vertical"
AGENT: Final = "agent_id"
SUB_AGENT: Final = frozenset({"sub_agent_id", "sub_agent"})
METADATA: Final = frozenset({
    "user_id", "session_id", "environment", "agent_id", "agent_version", "vertical", "sub_agent", "sub_agent_id",
    "prompt_version", "category", "experiment_id", "arm", "response_id",
})  # fmt: skip
"""Keys that tracing attaches to a trace's metadata."""
FIELDS: Final = METADATA | {
    "metadata", "input", "output", "name", "tags", "thread_id", "usage", "tool_calls", "trace_id", "project_name",
    "started_at", "ended_at", "proposal", "proposal_phase", "expected_proposal_status",
}  # fmt: skip
_NO_VALUE = (Operator.IS_EMPTY, Operator.IS_NOT_EMPTY)
_NUMBERS = (Operator.GREATER, Operator.AT_LEAST, Operator.LESS, Operator.AT_MOST)
_TEXTS = (Operator.STARTS_WITH, Operator.ENDS_WITH, Operator.MATCHES, Operator.CONTAINS, Operator.NOT_CONTAINS)


def filters(files: RegistryFiles) -> Iterator[tuple[str, AnyRule, Filter]]:
    """Yields (judge id, file, filter) of every rule file that has a filter."""
    for _, judge, rule in files.every_rule():
        if rule.model.filter is not None:
            yield judge, rule, rule.model.filter


def unfit(filter_: Filter) -> str | None:
    """Returns why the value does not fit the operator; None when it does."""
    operator, value = filter_.operator, filter_.value
    if operator in _NO_VALUE:
        return None if value is None else f"{operator} takes no value"
    if value is None:
        return f"{operator} needs a value"
    if operator is Operator.IN:
        if not isinstance(value, list) or not value or not all(map(_plain, value)):
            return "in needs a list of at least one text or number"
        return None
    if operator in _NUMBERS:
        return None if _is_number(value) else f"{operator} needs a number"
    if operator in _TEXTS:
        return None if isinstance(value, str) and value.strip() else f"{operator} needs a text"
    if isinstance(value, str) and (not value or value != value.strip()):
        return f"{operator} needs a text without space around it" if value.strip() else f"{operator} needs a text"
    return None if _plain(value) else f"{operator} needs a text, a number, true or false"


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and isfinite(value)


def _plain(value: Any) -> bool:
    return isinstance(value, (str, bool)) or _is_number(value)


@FILTERS.error()
def filter_value_fits(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    """The value of a filter is of the kind that its operator compares."""
    for judge, rule, filter_ in filters(files):
        wrong = unfit(filter_)
        if wrong is not None:
            message = f"{wrong}; {judge} would fire on no trace, or on all"
            yield find(rule, ("filter", "value"), message, "give the value that is compared, or change the operator")


@FILTERS.warning()
def filter_field_is_known(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    """A filter is about a field that traces have, and about a key of it where the field is `metadata`."""
    for _, rule, filter_ in filters(files):
        if filter_.field not in FIELDS:
            message = f"traces have no field {filter_.field!r}{near_miss(filter_.field, FIELDS)}"
            fix = "name a field of the trace, or `field: metadata` and a key"
            yield find(rule, ("filter", "field"), message, fix)
        elif filter_.field == "metadata" and filter_.key is None:
            message = "metadata as a whole is compared with a value"
            yield find(rule, ("filter",), message, "add `key:`, such as agent_id")
        elif filter_.field == "metadata" and filter_.key not in METADATA:
            hint = near_miss(filter_.key or "", METADATA)
            if hint:
                message = f"no trace has {filter_.key!r} in its metadata unless somebody adds it{hint}"
                yield find(rule, ("filter", "key"), message, "name a key that tracing attaches")


def archetypes(files: RegistryFiles) -> dict[str, set[str]]:
    """Returns archetype -> its sub-agents: those of the manifest, and those that verticals add."""
    known = {name: set(agents) for name, agents in files.manifest.model.archetypes.items()} if files.manifest else {}
    for extension in files.extensions.values():
        for name, agents in extension.model.archetypes.items():
            if name in known:
                known[name] |= set(agents)
    return known


@ARCHETYPES.error()
@of_manifest
def archetype_exists(files: RegistryFiles, manifest: Manifest, find: Find) -> Iterator[Finding]:
    """Every archetype that a rule file, a category or a vertical names is one of the manifest's."""
    known = manifest.model.archetypes
    fix = "name an archetype of the manifest, or add this one there with its sub_agent_ids"
    for parsed, path, name in _named_archetypes(files, manifest):
        if name not in known:
            yield find(parsed, path, f"there is no archetype {name!r}{near_miss(name, known)}", fix)


def _named_archetypes(files: RegistryFiles, manifest: Manifest) -> Iterator[tuple[Parsed[Any], FieldPath, str]]:
    """Yields every place that names an archetype, with the name."""
    for rule in files.rules.values():
        yield from ((rule, ("applies_to", place), name) for place, name in enumerate(rule.model.applies_to))
    for category, declared in manifest.model.categories.items():
        path = ("categories", category, "archetypes")
        yield from ((manifest, (*path, place), name) for place, name in enumerate(declared.archetypes))
    for extension in files.extensions.values():
        yield from ((extension, ("archetypes", name), name) for name in extension.model.archetypes)


@ARCHETYPES.warning("PF-9 FR-5, §5.2")
def applies_to_declared(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    """Every central rule file says with `applies_to` for which archetypes its judge is; `[]` is all of them."""
    for judge, rule in files.rules.items():
        if "applies_to" not in rule.model.model_fields_set:
            message = f"the file does not say for which archetypes {judge} is; without it the judge is for all"
            yield find(rule, ("applies_to",), message, "add `applies_to: []`, or name archetypes of the manifest")


@ARCHETYPES.warning()
@of_manifest
def archetype_has_sub_agents(files: RegistryFiles, manifest: Manifest, find: Find) -> Iterator[Finding]:
    """An archetype names at least one sub_agent_id, and no sub-agent is in two of them."""
    owners: dict[str, str] = {}
    for name, agents in manifest.model.archetypes.items():
        path = ("archetypes", name)
        if not archetypes(files)[name]:
            message = f"archetype {name!r} has no sub-agents; it stands for one of its own name"
            yield find(manifest, path, message, "list the sub_agent_ids that share its judges")
        for place, agent in enumerate(agents):
            owner = owners.setdefault(agent, name)
            if owner != name:
                message = f"{agent} is in archetype {owner!r} too; sub-agents of an archetype share their judges"
                yield find(manifest, (*path, place), message, "leave it in one of the two")


@ARCHETYPES.warning()
def filter_meets_archetypes(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    """A filter on a sub-agent names one of the archetypes in `applies_to`, else the judge never fires."""
    known = archetypes(files)
    for judge, rule, filter_ in filters(files):
        central = files.rules.get(judge)
        if central is None or filter_.operator is not Operator.EQUALS:
            continue
        named = central.model.applies_to
        key, value = filter_.compared, filter_.value
        if not named or not all(name in known for name in named) or not isinstance(value, str):
            continue
        agents = {agent for name in named for agent in known[name] or {name}}
        everybody = {agent for group in known.values() for agent in group}
        if (key in SUB_AGENT and value not in agents) or (key == "agent_id" and value in everybody - agents):
            message = f"{filter_.value} is no sub-agent of {', '.join(named)}, for which {judge} is made"
            fix = "add its archetype to applies_to, or add the sub-agent to one of these archetypes"
            yield find(rule, ("filter", "value"), message, fix)


def verticals(files: RegistryFiles) -> set[str]:
    """Returns every vertical that some file of the registry is about."""
    named = {category.vertical for category in files.categories.values() if category.vertical is not None}
    folders = {vertical for vertical, _ in files.vertical_rules}
    unread = {name.partition("/")[0] for kind, name in files.unread if kind not in ("rule", "manifest", "base")}
    return {*files.verticals, *files.extensions, *files.selections, *named, *folders, *unread}


@FILTERS.warning("PC5 §5.2; PF-9 §5.2, FR-5")
@of_manifest
def filter_names_somebody(files: RegistryFiles, manifest: Manifest, find: Find) -> Iterator[Finding]:
    """A filter on a vertical or a sub-agent names one that the registry knows. Agents may be others; what looks like a
    misspelt sub-agent is told."""
    there = verticals(files)
    agents = {agent for group in archetypes(files).values() for agent in group} | there
    for judge, rule, filter_ in filters(files):
        key = filter_.compared
        if filter_.operator not in (Operator.EQUALS, Operator.IN) or key not in {VERTICAL, AGENT, *SUB_AGENT}:
            continue
        known = there if key == VERTICAL else agents
        for name in map(str, filter_.values):
            hint = near_miss(name, known)
            if name in known or (key == AGENT and not hint):
                continue
            what = "vertical" if key == VERTICAL else "sub-agent"
            message = f"no file knows a {what} {name[:60]!r}{hint}; {judge} would never fire"
            fix = "correct the name, or have it join an archetype in the vertical's manifest-extension.yaml"
            yield find(rule, ("filter", "value"), message, fix)


@FILTERS.error()
def pattern_ends(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    """A regular expression in a filter is one that RE2 takes, whose time grows with the text and not faster: at most
    200 characters, no lookaround, no backreference."""
    for _, rule, filter_ in filters(files):
        if filter_.operator is not Operator.MATCHES or not isinstance(filter_.value, str):
            continue
        reason = refusal(filter_.value)
        if reason is not None:
            fix = (
                "write a pattern without lookaround and backreferences, or use contains, starts_with, ends_with or in; "
                "a judge whose rule is synced to Opik needs another operator than matches, which Opik does not know"
            )
            yield find(rule, ("filter", "value"), f"the pattern is refused: {reason}", fix)
