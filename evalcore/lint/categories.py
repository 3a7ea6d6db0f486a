"""Checks categories and the judges that verticals select for them.

A category is shared: declared once, reused by name, updated by pull request (PF-9 Decisions 17 and 18). A selection
lists quality judges; safety judges are inherited (PF-9 §5.5, §5.10).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from evalcore.lint.check import Find, Manifest, Subject, of_manifest
from evalcore.lint.drift import missing
from evalcore.registry.files import RegistryFiles
from evalcore.yaml.findings import Finding, Severity
from evalcore.yaml.loader import FieldPath, Parsed
from evalcore.yaml.suggestions import near_miss
from schemas.judges import judge_id
from schemas.manifests import CATEGORY, ManifestExtension

CATEGORIES = Subject("Categories", "PF-9 Decision 17")
SELECTIONS = Subject("Selections", "PF-9 §5.5, §5.10")


@dataclass(frozen=True)
class Declared:
    """A vertical's declaration of a category. `judges` are those of its selection, else of its extension; None where
    both leave them to `parent`."""

    vertical: str
    extension: Parsed[ManifestExtension]
    category: str
    judges: frozenset[str] | None
    parent: str | None

    @property
    def silent(self) -> bool:
        """True where the category is only reused by name."""
        return self.judges is None and self.parent is None


def declared(files: RegistryFiles) -> Iterator[Declared]:
    """Yields what verticals declare of categories, by vertical."""
    for vertical, extension in sorted(files.extensions.items()):
        selection = files.selections.get(vertical)
        picked = selection.model.categories if selection else {}
        for name, category in extension.model.categories.items():
            listed = picked[name].quality_judges if name in picked else category.judges
            judges = None if listed is None else frozenset(map(judge_id, listed))
            yield Declared(vertical, extension, name, judges, category.inherits_from)


def known(files: RegistryFiles) -> set[str]:
    """Returns every declared category: in the manifest, or by a vertical that does more than reuse the name."""
    own = {entry.category for entry in declared(files) if not entry.silent}
    return own | set(files.categories)


def _hidden(files: RegistryFiles) -> bool:
    """Tells whether the manifest exists and can't be read, so that it is not known which categories there are."""
    return files.manifest is None and ("manifest", "") in files.unread


def _judges(files: RegistryFiles, entry: Declared, seen: frozenset[str] = frozenset()) -> frozenset[str] | None:
    """Returns the entry's judges, else those it inherits; None where its parent is not known."""
    parent = entry.parent
    if entry.judges is not None or parent is None or parent in seen:
        return entry.judges
    if parent in files.categories:
        return frozenset(map(judge_id, files.categories[parent].judges))
    other = next((other for other in declared(files) if other.category == parent and not other.silent), None)
    return None if other is None else _judges(files, other, seen | {parent})


def _every_category(files: RegistryFiles) -> Iterator[tuple[Parsed[Any], str, str | None]]:
    """Yields (file, name, parent) of every category: the manifest's, then those of verticals."""
    if files.manifest is not None:
        for name, category in files.categories.items():
            yield files.manifest, name, category.inherits_from
    for entry in declared(files):
        yield entry.extension, entry.category, entry.parent


@CATEGORIES.error("PF-9 Decisions 17 and 18")
def category_not_redeclared(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    """No vertical declares a category that exists with other judges: not the platform's, not another vertical's."""
    platform = files.categories
    first: dict[str, Declared] = {}
    everything = list(declared(files))
    owners = {name: category.vertical for name, category in platform.items()}
    for entry in sorted(everything, key=lambda entry: (owners.get(entry.category) != entry.vertical, entry.vertical)):
        if entry.silent:
            continue
        existing = platform.get(entry.category)
        wanted = _judges(files, entry)
        if existing is not None and existing.vertical is None and files.manifest is not None:
            has, file = frozenset(map(judge_id, existing.judges)), files.manifest.document.file
            source = "the prompt component that declares it, else manifest-base.yaml" if files.base else file
        else:
            earlier = first.setdefault(entry.category, entry)
            has, file = _judges(files, earlier) or frozenset(), earlier.extension.document.file
            source = file
        if wanted is not None and wanted != has:
            name, vertical = entry.category, entry.vertical
            users = sorted({user.vertical for user in everything if name in (user.category, user.parent)} - {vertical})
            message = (
                f"{vertical} declares category {name!r} with {_list(wanted)}; it exists with {_list(has)} in {file}"
            )
            fix = (
                "reuse it by name without judges, or propose the change of the existing category in a pull request to "
                f"{source}: the platform's owners{' and those of ' + ', '.join(users) if users else ''} review it "
                "(Decision 18)"
            )
            yield find(entry.extension, ("categories", name), message, fix)


@CATEGORIES.error()
def category_parent_exists(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    """`inherits_from` names a category that exists, and another one."""
    if _hidden(files):
        return
    names = known(files)
    for parsed, name, parent in _every_category(files):
        if parent is not None and parent not in names:
            message = f"there is no category {parent!r} to inherit from{near_miss(parent, names - {name})}"
            yield find(parsed, ("categories", name, "inherits_from"), message, "name a category that exists")


@CATEGORIES.error()
def category_parents_end(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    """No category inherits from itself, directly or around a circle."""
    above = {name: parent for _, name, parent in _every_category(files) if parent is not None}
    for entry in declared(files):
        way = [entry.category]
        while way[-1] in above and above[way[-1]] not in way:
            way.append(above[way[-1]])
        if above.get(way[-1]) == entry.category:
            message = f"{' -> '.join([*way, entry.category])} is a circle: nothing is inherited"
            path = ("categories", entry.category, "inherits_from")
            yield find(entry.extension, path, message, "let one of them name its judges instead")


@CATEGORIES.error()
def category_says_something(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    """A category that a vertical declares exists, or says which judges it takes."""
    if _hidden(files):
        return
    names = known(files)
    for entry in declared(files):
        if entry.silent and entry.category not in names:
            described = entry.extension.model.categories[entry.category].description is not None
            message = (
                f"there is no category {entry.category!r}, and none is declared here{near_miss(entry.category, names)}"
            )
            fix = "select its judges in judge-selection.yaml, or name a category to inherit from"
            severity = Severity.WARNING if described else None
            yield find(entry.extension, ("categories", entry.category), message, fix, severity)


@CATEGORIES.error()
def one_selection(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    """A vertical lists the judges of a category in one of its two files, or the same ones in both."""
    for entry in declared(files):
        listed = entry.extension.model.categories[entry.category].judges
        if listed is not None and entry.judges != frozenset(map(judge_id, listed)):
            message = f"judge-selection.yaml of {entry.vertical} names other judges for {entry.category!r}"
            yield find(entry.extension, ("categories", entry.category, "judges"), message, "keep one of the two lists")


@CATEGORIES.error()
def category_name(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    """A category is named in lower case, and no two differ only in kebab and snake case."""
    seen: dict[str, str] = {}
    for parsed, name, _ in _every_category(files):
        other = seen.setdefault(judge_id(name), name)
        if not CATEGORY.fullmatch(name):
            fix = "use lower-case letters, digits and underscores"
            yield find(parsed, ("categories", name), f"{name!r} can't be the name of a category", fix)
        elif other != name:
            message = f"{name!r} and {other!r} look like one category; items would fall into either"
            yield find(parsed, ("categories", name), message, f"write {other}, or choose another name")


@CATEGORIES.warning("PC5 FR-4")
@of_manifest
def category_has_judges(files: RegistryFiles, manifest: Manifest, find: Find) -> Iterator[Finding]:
    """Every category of the manifest has judges, its own or the global ones."""
    for name, category in manifest.model.categories.items():
        if not category.judges and not manifest.model.global_metrics.judges:
            message = f"nothing but safety judges fires on items of {name!r}"
            yield find(manifest, ("categories", name, "judges"), message, "list its judges")


@CATEGORIES.warning("PF-9 FR-7, §5.6")
@of_manifest
def manifest_is_resolved(files: RegistryFiles, manifest: Manifest, find: Find) -> Iterator[Finding]:
    """The manifest has what verticals declare."""
    there = manifest.model.categories
    fix = "run `rampgate manifest resolve` and commit what it writes"
    for entry in declared(files):
        if entry.silent:
            continue
        path = ("categories", entry.category)
        if entry.category not in there:
            message = f"category {entry.category!r} is not in {manifest.document.file}: no gate knows it"
            yield find(entry.extension, path, message, fix)
        elif there[entry.category].vertical == entry.vertical:
            has = frozenset(map(judge_id, there[entry.category].judges))
            if entry.judges is not None and entry.judges != has:
                message = f"the manifest still has {_list(has)} for {entry.category!r}"
                yield find(entry.extension, path, message, fix)


def _list(judges: frozenset[str]) -> str:
    """Returns the judges as a YAML list."""
    return "[" + ", ".join(sorted(judges)) + "]"


def _selected(files: RegistryFiles) -> Iterator[tuple[str, Parsed[Any], FieldPath, str]]:
    """Yields (vertical, file, place, judge as written) of selections, and of extensions that list judges."""
    for vertical, selection in files.selections.items():
        for category, picked in selection.model.categories.items():
            for place, name in enumerate(picked.quality_judges):
                yield vertical, selection, ("categories", category, "quality_judges", place), name
    for vertical, extension in files.extensions.items():
        for category, declared in extension.model.categories.items():
            for place, name in enumerate(declared.judges or []):
                yield vertical, extension, ("categories", category, "judges", place), name


@SELECTIONS.error()
def selected_judge_exists(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    """Every judge that a vertical selects is in the central registry."""
    composites = files.composites
    for vertical, parsed, path, name in _selected(files):
        if missing(files, name) and name not in composites:
            message = f"{vertical} selects {name!r}, which the registry does not have{near_miss(name, files.rules)}"
            fix = "select a judge of the registry; a new one is proposed there by pull request (PF-9 §5.2)"
            yield find(parsed, path, message, fix)


@SELECTIONS.error("PF-9 FR-2, §5.10")
def selection_without_safety(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    """A selection lists quality judges only; safety judges are inherited and can't be chosen."""
    for _, parsed, path, name in _selected(files):
        rule = files.rules.get(judge_id(name))
        if rule is not None and rule.model.safety and "quality_judges" in path:
            message = f"{name} is a safety judge: every category has it, listed or not"
            yield find(parsed, path, message, "remove it from the list")


@SELECTIONS.warning()
def selected_once(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    """A selection names each judge once."""
    seen: set[tuple[str, FieldPath, str]] = set()
    for vertical, parsed, path, name in _selected(files):
        key = (vertical, path[:-1], judge_id(name))
        if key in seen:
            yield find(parsed, path, f"{name} is listed twice", "remove one of the two")
        seen.add(key)


@SELECTIONS.error("PF-9 Decision 17")
def selected_category_exists(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    """A selection is about categories that the vertical's extension declares."""
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


@SELECTIONS.warning()
def selection_picks_a_judge(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    """A selection picks at least one quality judge for each category it names."""
    for vertical, selection in files.selections.items():
        for category, picked in selection.model.categories.items():
            if not picked.quality_judges:
                message = f"no quality judge of {vertical}'s own fires on items of {category!r}"
                fix = "list its quality_judges, or leave the category out here to have those it inherits"
                yield find(selection, ("categories", category), message, fix)
