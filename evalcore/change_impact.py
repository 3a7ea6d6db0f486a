"""Names the verticals that use what a change touches, so that their owners review it (PF-9 Decisions 17 and 18, §5.6).
Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from evalcore.manifest.discovery import Component
from evalcore.registry.files import RegistryFiles
from schemas.judges import judge_id
from schemas.manifests import Category, ManifestFile, Override

MANIFEST_FILES = ("evaluation_manifest.yaml", "manifest-base.yaml")


@dataclass(frozen=True)
class Version:
    """A registry before or after a change. Files are named as findings name them, from the repository's top."""

    files: RegistryFiles
    components: tuple[Component, ...]
    configs: str

    @property
    def manifest(self) -> ManifestFile | None:
        manifest = self.files.manifest or self.files.base
        return manifest.model if manifest is not None else None


@dataclass(frozen=True)
class Touched:
    """What a change touches. `everything`: it touches all verticals, as the global judges do."""

    categories: frozenset[str] = frozenset()
    judges: frozenset[str] = frozenset()
    verticals: frozenset[str] = frozenset()
    everything: bool = False

    def __or__(self, other: Touched) -> Touched:
        return Touched(
            self.categories | other.categories,
            self.judges | other.judges,
            self.verticals | other.verticals,
            self.everything or other.everything,
        )


def touched(names: Iterable[str], before: Version, after: Version | None = None) -> Touched:
    """Returns what changed files are about. With the version `after` the change, their new content counts as well, and
    of a manifest only its differences; without that version a manifest counts as a whole."""
    found = Touched()
    for file in names:
        for version in (before,) if after is None else (before, after):
            found |= _of_file(file, version, compared=after is not None)
    if after is not None and before.manifest is not None and after.manifest is not None:
        found |= differing(before.manifest, after.manifest)
    if after is not None:
        both = (before.files.overrides, after.files.overrides)
        versions = [set(overrides.model.overrides if overrides else ()) for overrides in both]
        found |= _excepted(versions[0] ^ versions[1])
    return found


def _of_file(file: str, version: Version, compared: bool) -> Touched:
    path = PurePosixPath(file)
    files = version.files
    prefix = PurePosixPath(version.configs).parts
    inside = path.parts[len(prefix) :] if path.parts[: len(prefix)] == prefix else ()
    match inside:
        case ("rules", _):
            return Touched(judges=frozenset({judge_id(path.stem)}))
        case ("rules", vertical, _):
            return Touched(verticals=frozenset({vertical}))
        case ("verticals", _):
            return Touched(verticals=frozenset({path.stem}))
        case (name,) if name in MANIFEST_FILES:
            return Touched(everything=not compared)
        case (_,) if files.overrides is not None and files.overrides.document.file == file:
            return Touched() if compared else _excepted(files.overrides.model.overrides)
    for component in version.components:
        if component.file == file:
            return Touched(categories=frozenset(one.category.name for one in component.capabilities))
    for declared in (files.extensions, files.selections):
        for vertical, parsed in declared.items():
            if parsed.document.file == file:
                return Touched(frozenset(parsed.model.categories), verticals=frozenset({vertical}))
    return Touched()


def _excepted(overrides: Iterable[Override]) -> Touched:
    """Returns what overrides are about: one of a vertical is about that vertical, any other about its judge."""
    listed = list(overrides)
    return Touched(
        judges=frozenset(judge_id(entry.judge) for entry in listed if entry.vertical is None),
        verticals=frozenset(entry.vertical for entry in listed if entry.vertical is not None),
    )


def differing(before: ManifestFile, after: ManifestFile) -> Touched:
    """Returns the differences of two manifests. A sub-agent that joins an archetype changes nothing for the others."""
    rest = ("dataset", "schema_", "global_metrics", "composites", "gates", "sample")
    left = any(set(agents) - set(after.archetypes.get(name, ())) for name, agents in before.archetypes.items())
    return Touched(
        categories=frozenset(_changed(before.categories, after.categories)),
        judges=frozenset(judge_id(name.partition(".")[0]) for name in _changed(before.thresholds, after.thresholds)),
        verticals=frozenset(_changed(before.datasets, after.datasets)),
        everything=left or any(getattr(before, name) != getattr(after, name) for name in rest),
    )


def _changed(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    return (name for name in {*before, *after} if before.get(name) != after.get(name))


def affected_verticals(about: Touched, version: Version) -> dict[str, list[str]]:
    """Returns vertical -> reasons, for each vertical of this version that uses what is touched. The reasons quote this
    version alone, never files that are only proposed."""
    files = version.files
    found: dict[str, list[str]] = {}
    for vertical in sorted(known_verticals(files)):
        categories = used_categories(vertical, version)
        judges = used_judges(vertical, version)
        why = ["its own files"] if vertical in about.verticals else []
        why += [f"category {name}" for name in sorted(about.categories & categories)]
        why += [f"judge {name}" for name in sorted(about.judges & judges)]
        why += ["what all verticals share"] if about.everything else []
        if why:
            found[vertical] = why
    return found


def known_verticals(files: RegistryFiles) -> set[str]:
    overlaid = {vertical for vertical, _ in files.vertical_rules}
    return {*files.verticals, *files.extensions, *files.selections, *overlaid}


def used_categories(vertical: str, version: Version) -> set[str]:
    """Returns the vertical's own categories, and those from which they inherit."""
    found: set[str] = set()
    waiting = own_categories(vertical, version)
    while waiting:
        name = waiting.pop()
        found.add(name)
        waiting |= {above for above in _inherited(name, vertical, version) if above not in found}
    return found


def own_categories(vertical: str, version: Version) -> set[str]:
    """Returns the categories that the vertical's extension and selection name. A vertical that has neither uses all of
    the platform's."""
    known = _categories(version)
    extension, selection = version.files.extensions.get(vertical), version.files.selections.get(vertical)
    if extension is None and selection is None:
        return {name for name, category in known.items() if category.vertical in (None, vertical)}
    named = {name for name, category in known.items() if category.vertical == vertical}
    named |= set(extension.model.categories) if extension is not None else set()
    return named | (set(selection.model.categories) if selection is not None else set())


def used_judges(vertical: str, version: Version) -> set[str]:
    """Returns the judges of the vertical's categories, the global ones, every safety judge, and those that it tunes."""
    files, manifest = version.files, version.manifest
    own = {judge for of, judge in files.vertical_rules if of == vertical}
    safety = {judge for judge, rule in files.rules.items() if rule.model.safety}
    named = {judge for name in own_categories(vertical, version) for judge in _judges(name, vertical, version)}
    if manifest is not None:
        named |= set(manifest.global_metrics.judges)
        composites = [manifest.composites[name] for name in named if name in manifest.composites]
        named |= {judge for composite in composites for judge in composite.judges}
    return own | safety | {judge_id(judge) for judge in named}


def _judges(name: str, vertical: str, version: Version, seen: frozenset[str] = frozenset()) -> set[str]:
    """Returns a category's judges as the manifest resolved them, else as they are declared."""
    known = _categories(version)
    if name in known:
        return set(known[name].judges)
    selection = version.files.selections.get(vertical)
    if selection is not None and name in selection.model.categories:
        return set(selection.model.categories[name].quality_judges)
    extension = version.files.extensions.get(vertical)
    declared = extension.model.categories.get(name) if extension is not None else None
    if declared is not None and declared.judges is not None:
        return set(declared.judges)
    above = _inherited(name, vertical, version) - seen
    return {judge for parent in above for judge in _judges(parent, vertical, version, seen | {name})}


def _inherited(name: str, vertical: str, version: Version) -> set[str]:
    known, extension = _categories(version), version.files.extensions.get(vertical)
    declared = extension.model.categories.get(name) if extension is not None else None
    named = {declared.inherits_from if declared else None, known[name].inherits_from if name in known else None}
    return {above for above in named if above is not None}


def _categories(version: Version) -> Mapping[str, Category]:
    return version.manifest.categories if version.manifest is not None else {}
