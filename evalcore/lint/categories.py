"""Checks categories and the judges that verticals select for them.

A category is shared: declared once, reused by name, updated by pull request (PF-9 Decisions 17 and 18). A selection
lists quality judges; safety judges are inherited (PF-9 §5.5, §5.10).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from evalcore.lint.check import Find, check
from evalcore.lint.drift import missing
from evalcore.registry.files import RegistryFiles
from evalcore.yaml.findings import Finding, Severity
from evalcore.yaml.loader import FieldPath, Parsed
from evalcore.yaml.suggestions import near_miss
from schemas.judges import Classification, judge_id
from schemas.manifests import CATEGORY, ManifestExtension

REUSE = "PF-9 Decision 17"


@dataclass(frozen=True)
class Declared:
    """What a vertical declares of a category. `judges` as its selection has them, else its extension; None where both
    leave them to `parent`."""

    vertical: str
    extension: Parsed[ManifestExtension]
    category: str
    judges: frozenset[str] | None
    parent: str | None

    @property
    def silent(self) -> bool:
        """Reused by name."""
        return self.judges is None and self.parent is None


def declared(files: RegistryFiles) -> Iterator[Declared]:
    for vertical, extension in sorted(files.extensions.items()):
        selection = files.selections.get(vertical)
        picked = selection.model.categories if selection else {}
        for name, category in extension.model.categories.items():
            listed = picked[name].quality_judges if name in picked else category.judges
            judges = None if listed is None else frozenset(map(judge_id, listed))
            yield Declared(vertical, extension, name, judges, category.inherits_from)


def known(files: RegistryFiles) -> set[str]:
    """Returns every declared category: in the manifest, or by a vertical that does more than reuse the name."""
    own = {one.category for one in declared(files) if not one.silent}
    return own | set(files.manifest.model.categories if files.manifest else ())


def _hidden(files: RegistryFiles) -> bool:
    """The manifest is there and can't be read: which categories exist is not known then."""
    return files.manifest is None and ("manifest", "") in files.unread


def parents(files: RegistryFiles) -> Mapping[str, str]:
    found = files.manifest.model.categories.items() if files.manifest else ()
    stated = {name: category.inherits_from for name, category in found if category.inherits_from is not None}
    return {**stated, **{one.category: one.parent for one in declared(files) if one.parent is not None}}


def _judges(files: RegistryFiles, one: Declared) -> frozenset[str] | None:
    """What it comes to, inherited ones too; None where the parent can't be seen."""
    seen: set[str] = set()
    judges, parent = one.judges, one.parent
    while judges is None and parent is not None and parent not in seen:
        seen.add(parent)
        platform = files.manifest.model.categories.get(parent) if files.manifest else None
        other = next((d for d in declared(files) if d.category == parent and not d.silent), None)
        if platform is not None:
            judges = frozenset(map(judge_id, platform.judges))
        elif other is not None:
            judges, parent = other.judges, other.parent
        else:
            parent = None
    return judges


@check(
    "category-not-redeclared",
    "PF-9 Decisions 17 and 18",
    "No vertical declares a category that exists with other judges: not the platform's, not another vertical's.",
)
def category_not_redeclared(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    platform = files.manifest.model.categories if files.manifest else {}
    first: dict[str, Declared] = {}
    everything = list(declared(files))
    owners = {name: category.vertical for name, category in platform.items()}
    for one in sorted(everything, key=lambda one: (owners.get(one.category) != one.vertical, one.vertical)):
        if one.silent:
            continue
        existing = platform.get(one.category)
        wanted = _judges(files, one)
        if existing is not None and existing.vertical is None and files.manifest is not None:
            has, file = frozenset(map(judge_id, existing.judges)), files.manifest.document.file
        else:
            earlier = first.setdefault(one.category, one)
            has, file = _judges(files, earlier) or frozenset(), earlier.extension.document.file
        if wanted is not None and wanted != has:
            users = sorted({d.vertical for d in everything if one.category in (d.category, d.parent)} - {one.vertical})
            message = (
                f"{one.vertical} declares category {one.category!r} with {_list(wanted)}; it exists with {_list(has)} "
                f"in {file}"
            )
            fix = (
                "reuse it by name without judges, or propose the change of the existing category in a pull request to "
                f"{file} (the resolved manifest is made anew from its source by `rampgate manifest resolve`): "
                f"the platform's owners{' and those of ' + ', '.join(users) if users else ''} review it (Decision 18)"
            )
            yield find(one.extension, ("categories", one.category), message, fix)


@check(
    "category-parent-exists",
    REUSE,
    "`inherits_from` names a category that exists, and another one.",
)
def category_parent_exists(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    if _hidden(files):
        return
    names = known(files)
    manifest = files.manifest
    stated: list[tuple[Parsed[Any], str, str | None]] = [
        (one.extension, one.category, one.parent) for one in declared(files)
    ]
    if manifest is not None:
        stated += [(manifest, name, category.inherits_from) for name, category in manifest.model.categories.items()]
    for parsed, name, parent in stated:
        if parent is not None and parent not in names:
            message = f"there is no category {parent!r} to inherit from{near_miss(parent, names - {name})}"
            yield find(parsed, ("categories", name, "inherits_from"), message, "name a category that exists")


@check(
    "category-parents-end",
    REUSE,
    "No category inherits from itself, directly or around a circle.",
)
def category_parents_end(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    above = parents(files)
    for one in declared(files):
        way = [one.category]
        while way[-1] in above and above[way[-1]] not in way:
            way.append(above[way[-1]])
        if above.get(way[-1]) == one.category:
            message = f"{' -> '.join([*way, one.category])} is a circle: nothing is inherited"
            path = ("categories", one.category, "inherits_from")
            yield find(one.extension, path, message, "let one of them name its judges instead")


@check(
    "category-says-something",
    REUSE,
    "A category that a vertical declares exists, or says which judges it takes.",
)
def category_says_something(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    if _hidden(files):
        return
    names = known(files)
    for one in declared(files):
        if one.silent and one.category not in names:
            described = one.extension.model.categories[one.category].description is not None
            message = (
                f"there is no category {one.category!r}, and none is declared here{near_miss(one.category, names)}"
            )
            fix = "select its judges in judge-selection.yaml, or name a category to inherit from"
            severity = Severity.WARNING if described else None
            yield find(one.extension, ("categories", one.category), message, fix, severity)


@check(
    "one-selection",
    REUSE,
    "A vertical lists the judges of a category in one of its two files, or the same ones in both.",
)
def one_selection(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    for one in declared(files):
        listed = one.extension.model.categories[one.category].judges
        if listed is not None and one.judges != frozenset(map(judge_id, listed)):
            message = f"judge-selection.yaml of {one.vertical} names other judges for {one.category!r}"
            yield find(one.extension, ("categories", one.category, "judges"), message, "keep one of the two lists")


@check(
    "category-name",
    REUSE,
    "A category is named in lower case, and no two differ only in kebab and snake case.",
)
def category_name(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    manifest = files.manifest
    named: list[tuple[Parsed[Any], str]] = [(manifest, name) for name in manifest.model.categories] if manifest else []
    seen: dict[str, str] = {}
    for parsed, name in [*named, *((one.extension, one.category) for one in declared(files))]:
        other = seen.setdefault(judge_id(name), name)
        if not CATEGORY.fullmatch(name):
            fix = "use lower-case letters, digits and underscores"
            yield find(parsed, ("categories", name), f"{name!r} can't be the name of a category", fix)
        elif other != name:
            message = f"{name!r} and {other!r} look like one category; items would fall into either"
            yield find(parsed, ("categories", name), message, f"write {other}, or choose another name")


@check(
    "category-has-judges",
    "PC5 FR-4",
    "Every category of the manifest has judges, its own or the global ones.",
    Severity.WARNING,
)
def category_has_judges(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    if files.manifest is None or files.manifest.model.global_metrics.judges:
        return
    for name, category in files.manifest.model.categories.items():
        if not category.judges:
            message = f"nothing but safety judges fires on items of {name!r}"
            yield find(files.manifest, ("categories", name, "judges"), message, "list its judges")


@check(
    "manifest-is-resolved",
    "PF-9 FR-7, §5.6",
    "What verticals declare stands in the manifest.",
    Severity.WARNING,
)
def manifest_is_resolved(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    if files.manifest is None:
        return
    there = files.manifest.model.categories
    fix = "run `rampgate manifest resolve` and commit what it writes"
    for one in declared(files):
        if one.silent:
            continue
        path = ("categories", one.category)
        if one.category not in there:
            message = f"category {one.category!r} is not in {files.manifest.document.file}: no gate knows it"
            yield find(one.extension, path, message, fix)
        elif there[one.category].vertical == one.vertical:
            has = frozenset(map(judge_id, there[one.category].judges))
            if one.judges is not None and one.judges != has:
                message = f"the manifest still has {_list(has)} for {one.category!r}"
                yield find(one.extension, path, message, fix)


def _list(judges: frozenset[str]) -> str:
    return "[" + ", ".join(sorted(judges)) + "]"


CATEGORY_CHECKS = (
    category_not_redeclared,
    category_parent_exists,
    category_parents_end,
    category_says_something,
    one_selection,
    category_name,
    category_has_judges,
    manifest_is_resolved,
)


SELECTION_CLAUSE = "PF-9 §5.5, §5.10"


def _selected(files: RegistryFiles) -> Iterator[tuple[str, Parsed[Any], FieldPath, str]]:
    """(vertical, file, place, judge as written) of selections, and of extensions that list judges."""
    for vertical, selection in files.selections.items():
        for category, picked in selection.model.categories.items():
            for place, name in enumerate(picked.quality_judges):
                yield vertical, selection, ("categories", category, "quality_judges", place), name
    for vertical, extension in files.extensions.items():
        for category, declared in extension.model.categories.items():
            for place, name in enumerate(declared.judges or []):
                yield vertical, extension, ("categories", category, "judges", place), name


@check(
    "selected-judge-exists",
    SELECTION_CLAUSE,
    "Every judge that a vertical selects is in the central registry.",
)
def selected_judge_exists(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    composites = files.manifest.model.composites if files.manifest else {}
    for vertical, parsed, path, name in _selected(files):
        if missing(files, name) and name not in composites:
            message = f"{vertical} selects {name!r}, which the registry does not have{near_miss(name, files.rules)}"
            fix = "select a judge of the registry; a new one is proposed there by pull request (PF-9 §5.2)"
            yield find(parsed, path, message, fix)


@check(
    "selection-without-safety",
    "PF-9 FR-2, §5.10",
    "A selection lists quality judges only; safety judges are inherited and can't be chosen.",
)
def selection_without_safety(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    for _, parsed, path, name in _selected(files):
        rule = files.rules.get(judge_id(name))
        if rule is None or "quality_judges" not in path:
            continue
        if rule.model.classification is Classification.SAFETY_REFUSAL:
            message = f"{name} is a safety judge: every category has it, listed or not"
            yield find(parsed, path, message, "remove it from the list")


@check(
    "selected-once",
    SELECTION_CLAUSE,
    "A selection names each judge once.",
    Severity.WARNING,
)
def selected_once(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    seen: set[tuple[str, FieldPath, str]] = set()
    for vertical, parsed, path, name in _selected(files):
        key = (vertical, path[:-1], judge_id(name))
        if key in seen:
            yield find(parsed, path, f"{name} is listed twice", "remove one of the two")
        seen.add(key)


@check(
    "selected-category-exists",
    "PF-9 Decision 17",
    "A selection is about categories that the vertical's extension declares.",
)
def selected_category_exists(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    for vertical, selection in files.selections.items():
        extension = files.extensions.get(vertical)
        if extension is None and ("extension", vertical) in files.unread:
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
    SELECTION_CLAUSE,
    "A selection picks at least one quality judge for each category it names.",
    Severity.WARNING,
)
def selection_picks_a_judge(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    for vertical, selection in files.selections.items():
        for category, picked in selection.model.categories.items():
            if not picked.quality_judges:
                message = f"no quality judge of {vertical}'s own fires on items of {category!r}"
                fix = "list its quality_judges, or leave the category out here to have those it inherits"
                yield find(selection, ("categories", category), message, fix)


SELECTION_CHECKS = (
    selected_judge_exists,
    selection_without_safety,
    selected_once,
    selected_category_exists,
    selection_picks_a_judge,
)
