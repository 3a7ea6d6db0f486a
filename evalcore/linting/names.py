"""Names that belong to users' signals, and names that two judges must not share (PF-9 R-4, AC-15)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from unicodedata import category, normalize

from evalcore.corpus import Corpus
from evalcore.documents import FieldPath, Parsed
from evalcore.linting import Find, check
from evalcore.problems import Problem
from schemas.judges import JUDGE_ID, Milestone, judge_id

RESERVED = "user_signal_"
LEGACY = frozenset({"thumbs", "reroll"})
"""Mirrored names of the two signals for one release cycle (R-4)."""
WAY = (
    "choose another name; a new user signal goes through PF-9 review (R-4 reserves the prefix), not through the judge "
    "registry"
)


def is_reserved(name: str) -> bool:
    """In any case, with hyphens, spaces, wide or invisible letters: what people would take for the prefix."""
    seen = "".join(letter for letter in normalize("NFKC", name) if category(letter) != "Cf")
    return spelling(seen).startswith(RESERVED)


def written_names(corpus: Corpus) -> Iterator[tuple[Parsed[Any], FieldPath, str]]:
    """Every name under which a judge's score, or a group of them, could be written."""
    for _, judge, rule in corpus.every_rule():
        yield rule, (), judge
        if rule.model.id is not None:
            yield rule, ("id",), rule.model.id
    for rule in corpus.rules.values():
        yield rule, ("score_name",), rule.model.score_name
        for dimension in rule.model.dimensions or {}:
            yield rule, ("dimensions", dimension), dimension
    if corpus.manifest is not None:
        for composite in corpus.manifest.model.composites:
            yield corpus.manifest, ("composites", composite), composite


@check(
    "reserved-prefix",
    "PF-9 R-4, AC-15",
    "No judge, score name, dimension or composite begins with `user_signal_`, which is kept for users' signals.",
)
def reserved_prefix(corpus: Corpus, find: Find) -> Iterator[Problem]:
    for parsed, path, name in written_names(corpus):
        if is_reserved(name):
            yield find(parsed, path, f"{name!r} has the prefix user_signal_, which PF-9 R-4 reserves", WAY)


@check(
    "legacy-signal-name",
    "PF-9 R-4",
    "No judge or score is named `thumbs` or `reroll` while these names mirror users' signals.",
)
def legacy_signal_name(corpus: Corpus, find: Find) -> Iterator[Problem]:
    for parsed, path, name in written_names(corpus):
        if judge_id(name) in LEGACY and path[:1] != ("dimensions",):
            yield find(parsed, path, f"{name!r} is the old name of a user signal and still mirrored (PF-9 R-4)", WAY)


@check(
    "score-name-once",
    "PF-9 R-4, FR-1",
    "A score name belongs to one judge; it is not the id of another, nor one of its dimensions.",
)
def score_name_once(corpus: Corpus, find: Find) -> Iterator[Problem]:
    owners = {
        f"{judge}.{judge_id(dimension)}": f"{judge}.{judge_id(dimension)}"
        for judge, rule in corpus.rules.items()
        for dimension in rule.model.dimensions or {}
    }
    for judge, rule in corpus.rules.items():
        name = rule.model.score_name
        owner = owners.setdefault(spelling(name), judge)
        if owner == judge and (other := spelling(name)) in corpus.rules and other != judge:
            owner = other
        if owner != judge:
            message = f"{name!r} is the score name of judge {owner!r} too, or its id"
            fix = f"write a name of its own, such as `score_name: {judge}`"
            yield find(rule, ("score_name",), message, fix)


@check(
    "dimension-name",
    "PC5 FR-6; contracts §3",
    "A dimension's name is one word that gates can write as `judge.dimension`, and no milestone.",
)
def dimension_name(corpus: Corpus, find: Find) -> Iterator[Problem]:
    for rule in corpus.rules.values():
        seen: dict[str, str] = {}
        for dimension in rule.model.dimensions or {}:
            path, name = ("dimensions", dimension), judge_id(dimension)
            if not JUDGE_ID.fullmatch(name) or name in {*Milestone, "default"}:
                fix = "use lower-case letters, digits and underscores, and no milestone's name"
                yield find(rule, path, f"{dimension!r} can't be the name of a dimension", fix)
            elif seen.setdefault(name, dimension) != dimension:
                yield find(rule, path, f"{dimension!r} and {seen[name]!r} are the same name", "rename one of the two")


def spelling(name: str) -> str:
    """Of a score's name, as far as two of them can be told apart."""
    return judge_id(name).replace(" ", "_")


CHECKS = (reserved_prefix, legacy_signal_name, score_name_once, dimension_name)
