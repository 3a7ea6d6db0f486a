"""Whom a filter names: a misspelt vertical or sub-agent would switch the judge off, and nobody would see it (PC5 §5.2,
PF-9 §5.2)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from evalcore.corpus import Corpus
from evalcore.linting import Find, check
from evalcore.linting.archetypes import SUB_AGENT, archetypes
from evalcore.near import near_miss
from evalcore.problems import Problem, Severity
from schemas.judges import Operator

VERTICAL: Final = "vertical"
AGENT: Final = "agent_id"


def verticals(corpus: Corpus) -> set[str]:
    """Every vertical that some file of the registry is about."""
    listed = corpus.manifest.model.categories.values() if corpus.manifest else ()
    named = {category.vertical for category in listed if category.vertical is not None}
    folders = {vertical for vertical, _ in corpus.vertical_rules}
    unread = {name.partition("/")[0] for kind, name in corpus.unread if kind not in ("rule", "manifest", "base")}
    return {*corpus.verticals, *corpus.extensions, *corpus.selections, *named, *folders, *unread}


@check(
    "filter-names-somebody",
    "PC5 §5.2; PF-9 §5.2, FR-5",
    "A filter on a vertical or a sub-agent names one that the registry knows. Agents may be others; what looks like a "
    "misspelt sub-agent is told.",
    Severity.WARNING,
)
def filter_names_somebody(corpus: Corpus, find: Find) -> Iterator[Problem]:
    if corpus.manifest is None:
        return
    there = verticals(corpus)
    agents = {agent for group in archetypes(corpus).values() for agent in group} | there
    for _, judge, rule in corpus.every_rule():
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


CHECKS = (filter_names_somebody,)
