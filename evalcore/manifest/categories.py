"""Collects who declares which category with which judges: the platform first, then verticals by name (PF-9 §5.6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from evalcore.manifest.discovery import Component
from evalcore.registry.files import finding
from evalcore.yaml.findings import Finding
from evalcore.yaml.loader import FieldPath, Parsed
from evalcore.yaml.suggestions import near_miss
from schemas.judges import judge_id
from schemas.manifests import JudgeSelection, ManifestBase, ManifestExtension

REUSE = "PF-9 Decision 17"


@dataclass
class _Category:
    """A category as declared so far; `file` and `vertical` are those of its first declaration."""

    file: str
    vertical: str | None
    judges: list[str] | None
    description: str | None = None
    inherits_from: str | None = None
    archetypes: set[str] = field(default_factory=set)


class Declarations:
    """Collects declarations: call `platform` first, then `vertical` for each vertical, then `content`."""

    def __init__(
        self,
        base: Parsed[ManifestBase],
        extensions: Mapping[str, Parsed[ManifestExtension]],
        selections: Mapping[str, Parsed[JudgeSelection]],
    ) -> None:
        self.base = base
        self.selections = selections
        self.archetypes = {name: list(agents) for name, agents in base.model.archetypes.items()}
        self.datasets: dict[str, Any] = dict(base.document.data.get("datasets") or {})
        self.categories: dict[str, _Category] = {}
        self.again: list[tuple[str, _Category]] = []
        self.findings: list[Finding] = []

    def platform(self, components: Sequence[Component]) -> None:
        for component in components:
            for index, capability in enumerate(component.capabilities):
                judges = None if capability.judges is None else [judge.name for judge in capability.judges]
                own = _Category(component.file, None, judges, capability.description)
                kept = self.categories.setdefault(capability.category.name, own)
                kept.archetypes.add(capability.archetype.name)
                if kept.judges is None:
                    kept.judges, kept.file = judges, component.file
                kept.description = kept.description or capability.description
                if judges is not None and sorted(judges) != sorted(kept.judges or ()):
                    at, where = capability.category.place, f"component.capability[{index}].judges"
                    self.findings.append(
                        Finding(component.file, *at, where, *_conflict(capability.category.name, kept))
                    )
        declared = bool(self.categories)
        for name, category in self.base.model.categories.items():
            if declared and name not in self.categories:
                message = "no prompt component declares this category" + near_miss(name, self.categories)
                fix = "declare it in prompts/components/, or remove it here"
                self.wrong("category-not-declared", "PF-9 AC-7", self.base, ("categories", name), message, fix)
            elif not declared or self.categories[name].judges is None:
                kept = self.categories.setdefault(name, _Category(self.base.document.file, category.vertical, None))
                kept.judges, kept.file = [judge_id(judge) for judge in category.judges], self.base.document.file
                kept.description = kept.description or category.description
                kept.archetypes |= set(category.archetypes)

    def vertical(self, vertical: str, extension: Parsed[ManifestExtension]) -> None:
        """Adds a vertical's declarations. A category that exists stays unchanged; where the vertical contradicts it,
        the linter reports that."""
        selection = self.selections.get(vertical)
        picked = selection.model.categories if selection is not None else {}
        for name, declared in extension.model.categories.items():
            listed = picked[name].quality_judges if name in picked else declared.judges
            judges = None if listed is None else [judge_id(judge) for judge in listed]
            if judges is None and declared.inherits_from is None:
                continue  # reused by name
            own = _Category(extension.document.file, vertical, judges, declared.description, declared.inherits_from)
            kept = self.categories.setdefault(name, own)
            if kept is not own and kept.vertical is not None:
                self.again.append((name, own))
        own_set = extension.document.data.get("dataset")
        if own_set is not None and self.datasets.setdefault(vertical, own_set) != own_set:
            message = f"{self.base.document.file} names another dataset of {vertical}, below datasets"
            fix = "remove it there: a vertical's dataset is the vertical's to name"
            self.wrong("vertical-dataset-once", "PC5 §5.6", extension, ("dataset",), message, fix)
        for name, agents in extension.model.archetypes.items():
            known = self.archetypes.get(name)
            if known is not None:
                known += sorted(set(agents) - set(known))

    def judges_of(self, category: _Category, seen: tuple[str, ...] = ()) -> list[str]:
        if category.judges is not None or category.inherits_from is None:
            return category.judges or []
        return self.inherited(category.inherits_from, seen)

    def inherited(self, name: str, seen: tuple[str, ...] = ()) -> list[str]:
        category = self.categories.get(name)
        if category is None or name in seen:
            return []
        return self.judges_of(category, (*seen, name))

    def content(self) -> dict[str, Any]:
        """Returns the content of the resolved manifest."""
        for name, own in self.again:
            if set(self.inherited(name)) == set(self.judges_of(own, (name,))):
                self.categories[name].vertical = None  # declared by two alike: shared
        made = ("categories", "archetypes", "datasets")
        taken = {key: value for key, value in self.base.document.data.items() if key not in made}
        categories = {name: self._entry(name, category) for name, category in sorted(self.categories.items())}
        named = {"archetypes": self.archetypes, "datasets": dict(sorted(self.datasets.items()))}
        return {**taken, "categories": categories, **{name: value for name, value in named.items() if value}}

    def _entry(self, name: str, category: _Category) -> dict[str, Any]:
        entry = {
            "description": category.description,
            "vertical": category.vertical,
            "inherits_from": category.inherits_from,
            "archetypes": sorted(category.archetypes) or None,
            "judges": self.inherited(name),
        }
        return {key: value for key, value in entry.items() if value is not None}

    def wrong(self, check: str, clause: str, parsed: Parsed[Any], path: FieldPath, message: str, fix: str) -> None:
        self.findings.append(finding(check, clause, parsed, path, message, fix))


def _conflict(name: str, kept: _Category) -> tuple[str, str, str, str]:
    message = f"category {name!r} exists with other judges: {kept.file} says {', '.join(kept.judges or ()) or 'none'}"
    fix = f"let one of the two components name the judges, or change {kept.file}: its consumers review it (Decision 18)"
    return "category-conflict", message, REUSE, fix
