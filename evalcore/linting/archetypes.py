"""Which sub-agents a judge is for: archetypes in `applies_to`, and the filter beside them (PF-9 FR-5)."""

from __future__ import annotations

from collections.abc import Iterator

from evalcore.corpus import Corpus
from evalcore.linting import Find, check
from evalcore.near import near_miss
from evalcore.problems import Problem, Severity
from schemas.judges import Operator

CLAUSE = "PF-9 FR-5"
SUB_AGENT = frozenset({"sub_agent_id", "sub_agent"})


def archetypes(corpus: Corpus) -> dict[str, set[str]]:
    """Archetype -> its sub-agents: those of the manifest, and those that verticals have join one."""
    known = {name: set(agents) for name, agents in corpus.manifest.model.archetypes.items()} if corpus.manifest else {}
    for extension in corpus.extensions.values():
        for name, agents in extension.model.archetypes.items():
            if name in known:
                known[name] |= set(agents)
    return known


@check(
    "archetype-exists",
    CLAUSE,
    "Every archetype that a rule file, a category or a vertical names is one of the manifest's.",
)
def archetype_exists(corpus: Corpus, find: Find) -> Iterator[Problem]:
    if corpus.manifest is None:
        return
    known = corpus.manifest.model.archetypes
    named = [
        (rule, ("applies_to", place), name)
        for rule in corpus.rules.values()
        for place, name in enumerate(rule.model.applies_to)
    ]
    fix = "name an archetype of the manifest, or add this one there with its sub_agent_ids"
    for rule, path, name in named:
        if name not in known:
            yield find(rule, path, f"there is no archetype {name!r}{near_miss(name, known)}", fix)
    for category, declared in corpus.manifest.model.categories.items():
        for place, name in enumerate(declared.archetypes):
            if name not in known:
                at = ("categories", category, "archetypes", place)
                yield find(corpus.manifest, at, f"there is no archetype {name!r}{near_miss(name, known)}", fix)
    for extension in corpus.extensions.values():
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
def applies_to_declared(corpus: Corpus, find: Find) -> Iterator[Problem]:
    for judge, rule in corpus.rules.items():
        if "applies_to" not in rule.model.model_fields_set:
            message = f"the file does not say for which archetypes {judge} is; without it the judge is for all"
            yield find(rule, ("applies_to",), message, "add `applies_to: []`, or name archetypes of the manifest")


@check(
    "archetype-has-sub-agents",
    CLAUSE,
    "An archetype names at least one sub_agent_id, and no sub-agent is in two of them.",
    Severity.WARNING,
)
def archetype_has_sub_agents(corpus: Corpus, find: Find) -> Iterator[Problem]:
    if corpus.manifest is None:
        return
    owners: dict[str, str] = {}
    for name, agents in corpus.manifest.model.archetypes.items():
        path = ("archetypes", name)
        if not archetypes(corpus)[name]:
            message = f"archetype {name!r} has no sub-agents; it stands for one of its own name"
            yield find(corpus.manifest, path, message, "list the sub_agent_ids that share its judges")
        for place, agent in enumerate(agents):
            owner = owners.setdefault(agent, name)
            if owner != name:
                message = f"{agent} is in archetype {owner!r} too; sub-agents of an archetype share their judges"
                yield find(corpus.manifest, (*path, place), message, "leave it in one of the two")


@check(
    "filter-meets-archetypes",
    CLAUSE,
    "A filter on a sub-agent names one of the archetypes in `applies_to`, else the judge never fires.",
    Severity.WARNING,
)
def filter_meets_archetypes(corpus: Corpus, find: Find) -> Iterator[Problem]:
    known = archetypes(corpus)
    for _, judge, rule in corpus.every_rule():
        central = corpus.rules.get(judge)
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


CHECKS = (archetype_exists, applies_to_declared, archetype_has_sub_agents, filter_meets_archetypes)
