"""A vertical's judge selection: quality judges by category; safety judges are inherited (PF-9 §5.5, §5.10)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from evalcore.corpus import Corpus
from evalcore.documents import FieldPath, Parsed
from evalcore.linting import Find, check
from evalcore.linting.drift import missing
from evalcore.near import near_miss
from evalcore.problems import Problem, Severity
from schemas.judges import Classification, judge_id

CLAUSE = "PF-9 §5.5, §5.10"


def _selected(corpus: Corpus) -> Iterator[tuple[str, Parsed[Any], FieldPath, str]]:
    """(vertical, file, place, judge as written) of selections, and of extensions that list judges."""
    for vertical, selection in corpus.selections.items():
        for category, picked in selection.model.categories.items():
            for place, name in enumerate(picked.quality_judges):
                yield vertical, selection, ("categories", category, "quality_judges", place), name
    for vertical, extension in corpus.extensions.items():
        for category, declared in extension.model.categories.items():
            for place, name in enumerate(declared.judges or []):
                yield vertical, extension, ("categories", category, "judges", place), name


@check(
    "selected-judge-exists",
    CLAUSE,
    "Every judge that a vertical selects is in the central registry.",
)
def selected_judge_exists(corpus: Corpus, find: Find) -> Iterator[Problem]:
    composites = corpus.manifest.model.composites if corpus.manifest else {}
    for vertical, parsed, path, name in _selected(corpus):
        if missing(corpus, name) and name not in composites:
            message = f"{vertical} selects {name!r}, which the registry does not have{near_miss(name, corpus.rules)}"
            fix = "select a judge of the registry; a new one is proposed there by pull request (PF-9 §5.2)"
            yield find(parsed, path, message, fix)


@check(
    "selection-without-safety",
    "PF-9 FR-2, §5.10",
    "A selection lists quality judges only; safety judges are inherited and can't be chosen.",
)
def selection_without_safety(corpus: Corpus, find: Find) -> Iterator[Problem]:
    for _, parsed, path, name in _selected(corpus):
        rule = corpus.rules.get(judge_id(name))
        if rule is None or "quality_judges" not in path:
            continue
        if rule.model.classification is Classification.SAFETY_REFUSAL:
            message = f"{name} is a safety judge: every category has it, listed or not"
            yield find(parsed, path, message, "remove it from the list")


@check(
    "selected-once",
    CLAUSE,
    "A selection names each judge once.",
    Severity.WARNING,
)
def selected_once(corpus: Corpus, find: Find) -> Iterator[Problem]:
    seen: set[tuple[str, FieldPath, str]] = set()
    for vertical, parsed, path, name in _selected(corpus):
        key = (vertical, path[:-1], judge_id(name))
        if key in seen:
            yield find(parsed, path, f"{name} is listed twice", "remove one of the two")
        seen.add(key)


@check(
    "selected-category-exists",
    "PF-9 Decision 17",
    "A selection is about categories that the vertical's extension declares.",
)
def selected_category_exists(corpus: Corpus, find: Find) -> Iterator[Problem]:
    for vertical, selection in corpus.selections.items():
        extension = corpus.extensions.get(vertical)
        if extension is None and ("extension", vertical) in corpus.unread:
            continue
        names = set(extension.model.categories) if extension else set()
        for category in selection.model.categories:
            if category not in names:
                message = f"{vertical}'s manifest-extension.yaml declares no category {category!r}"
                message += near_miss(category, names)
                fix = "declare it there; a category that exists is reused by name, with the judges it has"
                yield find(selection, ("categories", category), message, fix)


@check(
    "selection-picks-a-judge",
    CLAUSE,
    "A selection picks at least one quality judge for each category it names.",
    Severity.WARNING,
)
def selection_picks_a_judge(corpus: Corpus, find: Find) -> Iterator[Problem]:
    for vertical, selection in corpus.selections.items():
        for category, picked in selection.model.categories.items():
            if not picked.quality_judges:
                message = f"no quality judge of {vertical}'s own fires on items of {category!r}"
                fix = "list its quality_judges, or leave the category out here to have those it inherits"
                yield find(selection, ("categories", category), message, fix)


CHECKS = (
    selected_judge_exists,
    selection_without_safety,
    selected_once,
    selected_category_exists,
    selection_picks_a_judge,
)
