"""Which traces a judge fires on: filters, archetypes and sampling.

A filter that can't match switches its judge off, and no gate would notice (PC5 §5.2, PF-9 §5.2). `applies_to` names the
sub-agents a judge is for (PF-9 FR-5). `sampling_rate` counts for live traces at pre_ramp and pre_full; it switches
nothing off (PC5 FR-11, R-5).
"""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite
from typing import Any, Final

from evalcore.lint.check import Find, check
from evalcore.registry.files import RegistryFiles
from evalcore.registry.patterns import refusal
from evalcore.yaml.findings import Finding, Severity
from evalcore.yaml.suggestions import near_miss
from schemas.judges import Classification, Filter, Milestone, Operator

CLAUSE = "PC5 §5.2"
METADATA = frozenset(
    [
        "user_id",
        "session_id",
        "environment",
        "agent_id",
        "agent_version",
        "vertical",
        "sub_agent",
        "sub_agent_id",
        "prompt_version",
        "category",
        "experiment_id",
        "arm",
        "response_id",
    ]
)
FIELDS = METADATA | {
    "metadata",
    "input",
    "output",
    "name",
    "tags",
    "thread_id",
    "usage",
    "tool_calls",
    "trace_id",
    "project_name",
    "started_at",
    "ended_at",
}
_NO_VALUE = (Operator.IS_EMPTY, Operator.IS_NOT_EMPTY)
_NUMBERS = (Operator.GREATER, Operator.AT_LEAST, Operator.LESS, Operator.AT_MOST)
_TEXTS = (Operator.STARTS_WITH, Operator.ENDS_WITH, Operator.MATCHES, Operator.CONTAINS, Operator.NOT_CONTAINS)


def unfit(filter_: Filter) -> str | None:
    """Why the value does not fit the operator; None when it does."""
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


@check(
    "filter-value-fits",
    CLAUSE,
    "The value of a filter is of the kind that its operator compares.",
)
def filter_value_fits(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    for _, judge, rule in files.every_rule():
        wrong = unfit(rule.model.filter) if rule.model.filter is not None else None
        if wrong is not None:
            message = f"{wrong}; {judge} would fire on no trace, or on all"
            yield find(rule, ("filter", "value"), message, "give the value that is compared, or change the operator")


@check(
    "filter-field-is-known",
    CLAUSE,
    "A filter is about a field that traces have, and about a key of it where the field is `metadata`.",
    Severity.WARNING,
)
def filter_field_is_known(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    for _, _, rule in files.every_rule():
        filter_ = rule.model.filter
        if filter_ is None:
            continue
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


@check(
    "pattern-ends",
    CLAUSE,
    "A regular expression in a filter is one that RE2 takes, whose time grows with the text and not faster: at most "
    "200 characters, no lookaround, no backreference.",
)
def pattern_ends(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    for _, _, rule in files.every_rule():
        filter_ = rule.model.filter
        if filter_ is None or filter_.operator is not Operator.MATCHES or not isinstance(filter_.value, str):
            continue
        reason = refusal(filter_.value)
        if reason is not None:
            fix = (
                "write a pattern without lookaround and backreferences, or use contains, starts_with, ends_with or in; "
                "a judge whose rule is synced to Opik needs another operator than matches, which Opik does not know"
            )
            yield find(rule, ("filter", "value"), f"the pattern is refused: {reason}", fix)


FILTER_CHECKS = (filter_value_fits, filter_field_is_known)
PATTERN_CHECKS = (pattern_ends,)


ARCHETYPE_CLAUSE = "PF-9 FR-5"
SUB_AGENT = frozenset({"sub_agent_id", "sub_agent"})


def archetypes(files: RegistryFiles) -> dict[str, set[str]]:
    """Archetype -> its sub-agents: those of the manifest, and those that verticals have join one."""
    known = {name: set(agents) for name, agents in files.manifest.model.archetypes.items()} if files.manifest else {}
    for extension in files.extensions.values():
        for name, agents in extension.model.archetypes.items():
            if name in known:
                known[name] |= set(agents)
    return known


@check(
    "archetype-exists",
    ARCHETYPE_CLAUSE,
    "Every archetype that a rule file, a category or a vertical names is one of the manifest's.",
)
def archetype_exists(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    if files.manifest is None:
        return
    known = files.manifest.model.archetypes
    named = [
        (rule, ("applies_to", place), name)
        for rule in files.rules.values()
        for place, name in enumerate(rule.model.applies_to)
    ]
    fix = "name an archetype of the manifest, or add this one there with its sub_agent_ids"
    for rule, path, name in named:
        if name not in known:
            yield find(rule, path, f"there is no archetype {name!r}{near_miss(name, known)}", fix)
    for category, declared in files.manifest.model.categories.items():
        for place, name in enumerate(declared.archetypes):
            if name not in known:
                at = ("categories", category, "archetypes", place)
                yield find(files.manifest, at, f"there is no archetype {name!r}{near_miss(name, known)}", fix)
    for extension in files.extensions.values():
        for name in extension.model.archetypes:
            if name not in known:
                message = f"there is no archetype {name!r}{near_miss(name, known)}"
                yield find(extension, ("archetypes", name), message, fix)


@check(
    "applies-to-declared",
    "PF-9 FR-5, §5.2",
    "Every central rule file says with `applies_to` for which archetypes its judge is; `[]` is all of them.",
    Severity.WARNING,
)
def applies_to_declared(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    for judge, rule in files.rules.items():
        if "applies_to" not in rule.model.model_fields_set:
            message = f"the file does not say for which archetypes {judge} is; without it the judge is for all"
            yield find(rule, ("applies_to",), message, "add `applies_to: []`, or name archetypes of the manifest")


@check(
    "archetype-has-sub-agents",
    ARCHETYPE_CLAUSE,
    "An archetype names at least one sub_agent_id, and no sub-agent is in two of them.",
    Severity.WARNING,
)
def archetype_has_sub_agents(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    if files.manifest is None:
        return
    owners: dict[str, str] = {}
    for name, agents in files.manifest.model.archetypes.items():
        path = ("archetypes", name)
        if not archetypes(files)[name]:
            message = f"archetype {name!r} has no sub-agents; it stands for one of its own name"
            yield find(files.manifest, path, message, "list the sub_agent_ids that share its judges")
        for place, agent in enumerate(agents):
            owner = owners.setdefault(agent, name)
            if owner != name:
                message = f"{agent} is in archetype {owner!r} too; sub-agents of an archetype share their judges"
                yield find(files.manifest, (*path, place), message, "leave it in one of the two")


@check(
    "filter-meets-archetypes",
    ARCHETYPE_CLAUSE,
    "A filter on a sub-agent names one of the archetypes in `applies_to`, else the judge never fires.",
    Severity.WARNING,
)
def filter_meets_archetypes(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    known = archetypes(files)
    for _, judge, rule in files.every_rule():
        central = files.rules.get(judge)
        filter_ = rule.model.filter
        if central is None or filter_ is None or filter_.operator is not Operator.EQUALS:
            continue
        named = central.model.applies_to
        key, value = filter_.key or filter_.field, filter_.value
        if not named or not all(name in known for name in named) or not isinstance(value, str):
            continue
        agents = {agent for name in named for agent in known[name] or {name}}
        everybody = {agent for group in known.values() for agent in group}
        if (key in SUB_AGENT and value not in agents) or (key == "agent_id" and value in everybody - agents):
            message = f"{filter_.value} is no sub-agent of {', '.join(named)}, for which {judge} is made"
            fix = "add its archetype to applies_to, or add the sub-agent to one of these archetypes"
            yield find(rule, ("filter", "value"), message, fix)


ARCHETYPE_CHECKS = (archetype_exists, applies_to_declared, archetype_has_sub_agents, filter_meets_archetypes)


VERTICAL: Final = "vertical"
AGENT: Final = "agent_id"


def verticals(files: RegistryFiles) -> set[str]:
    """Every vertical that some file of the registry is about."""
    listed = files.manifest.model.categories.values() if files.manifest else ()
    named = {category.vertical for category in listed if category.vertical is not None}
    folders = {vertical for vertical, _ in files.vertical_rules}
    unread = {name.partition("/")[0] for kind, name in files.unread if kind not in ("rule", "manifest", "base")}
    return {*files.verticals, *files.extensions, *files.selections, *named, *folders, *unread}


@check(
    "filter-names-somebody",
    "PC5 §5.2; PF-9 §5.2, FR-5",
    "A filter on a vertical or a sub-agent names one that the registry knows. Agents may be others; what looks like a "
    "misspelt sub-agent is told.",
    Severity.WARNING,
)
def filter_names_somebody(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    if files.manifest is None:
        return
    there = verticals(files)
    agents = {agent for group in archetypes(files).values() for agent in group} | there
    for _, judge, rule in files.every_rule():
        filter_ = rule.model.filter
        if filter_ is None or filter_.operator not in (Operator.EQUALS, Operator.IN):
            continue
        key = filter_.key or filter_.field
        if key not in {VERTICAL, AGENT, *SUB_AGENT}:
            continue
        known = there if key == VERTICAL else agents
        for value in filter_.value if isinstance(filter_.value, list) else [filter_.value]:
            name = value if isinstance(value, str) else str(value)
            hint = near_miss(name, known)
            if name in known or (key == AGENT and not hint):
                continue
            what = "vertical" if key == VERTICAL else "sub-agent"
            message = f"no file knows a {what} {name[:60]!r}{hint}; {judge} would never fire"
            fix = "correct the name, or have it join an archetype in the vertical's manifest-extension.yaml"
            yield find(rule, ("filter", "value"), message, fix)


TARGET_CHECKS = (filter_names_somebody,)


SAMPLING_CLAUSE = "PC5 FR-11, R-5"


@check(
    "sampling-leaves-some",
    SAMPLING_CLAUSE,
    "A judge that is enabled samples some traces; at a rate of 0 the gates on live traces have nothing to go by.",
)
def sampling_leaves_some(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    for judge, rule in files.rules.items():
        if rule.model.classification is Classification.QUALITY and not rule.model.sampling_rate > 0:
            message = (
                f"{judge} would score no trace: pre_ramp and pre_full have no sample, and pre_merge ignores the rate"
            )
            fix = "write a rate above 0; `enabled: false` switches a judge off"
            yield find(rule, ("sampling_rate",), message, fix)


@check(
    "sample-within-dataset",
    "PC5 §5.3, §5.5",
    "The dataset has the items that the gate at pre_merge requires.",
    Severity.WARNING,
)
def sample_within_dataset(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    if files.manifest is None:
        return
    items = files.manifest.model.dataset.items
    least = files.manifest.model.gates.minimum_sample.get(Milestone.PRE_MERGE)
    if least is not None and items < least:
        message = f"{items} items are fewer than the {least} that pre_merge requires: it could never pass"
        fix = "correct the number, or lower gates.minimum_sample.pre_merge"
        yield find(files.manifest, ("dataset", "items"), message, fix)


@check(
    "items-have-category",
    "PC5 §5.3",
    "The schema of an item has `input` and `metadata.category`: by the category it is known which judges fire.",
    Severity.WARNING,
)
def items_have_category(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    if files.manifest is None:
        return
    shape = files.manifest.model.schema_
    metadata = shape.get("metadata")
    if "input" not in shape:
        fix = "add `input: {type: string, required: true}`"
        yield find(files.manifest, ("schema",), "items have no input", fix)
    if not isinstance(metadata, dict) or "category" not in metadata:
        fix = "add `category: {type: string, required: true}` below metadata"
        yield find(files.manifest, ("schema", "metadata"), "items have no category, so no judge fires on them", fix)


SAMPLING_CHECKS = (sampling_leaves_some, sample_within_dataset, items_have_category)
