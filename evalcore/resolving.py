"""The resolved manifest, made from what is declared elsewhere (PF-9 FR-7, §5.6, Decisions 8 and 17).

Base manifest, prompt components and every vertical's extension and selection give one text, the same for any order of
the files. Safety judges are inherited by every category and are not written here (PF-9 §5.5).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

import yaml

from evalcore.corpus import problem
from evalcore.discovery import Component
from evalcore.documents import FieldPath, Parsed
from evalcore.near import near_miss
from evalcore.problems import Problem
from schemas.judges import judge_id
from schemas.manifests import ExtensionCategory, JudgeSelection, ManifestBase, ManifestExtension

REUSE = "PF-9 Decision 17"
UPDATE = "drop your own selection to reuse it, or change {file} by pull request: its consumers review it (Decision 18)"
NOTE = """\
# The evaluation manifest, as `rampgate manifest resolve` made it from manifest-base.yaml, prompts/components/ and
# specs/verticals/*/eval/. Change those, never this file: a hand edit is noticed and not overwritten.
"""


@dataclass
class _Category:
    """As declared so far. `file` and `vertical` say by whom first."""

    file: str
    vertical: str | None
    judges: list[str] | None
    description: str | None = None
    inherits_from: str | None = None
    archetypes: set[str] = field(default_factory=set)


def resolved(
    base: Parsed[ManifestBase],
    components: Sequence[Component],
    extensions: Mapping[str, Parsed[ManifestExtension]],
    selections: Mapping[str, Parsed[JudgeSelection]],
) -> tuple[str, list[Problem]]:
    """The text of `evaluation_manifest.yaml` and all that stands against it; with an error it is not to be written."""
    resolving = _Resolving(base, extensions, selections)
    resolving.platform(sorted(components, key=lambda component: component.file))
    for vertical in sorted(extensions):
        resolving.vertical(vertical, extensions[vertical])
    body = resolving.body()
    inputs = [
        base.document.data,
        sorted((c.file, repr(c.capabilities)) for c in components),
        {name: extension.document.data for name, extension in extensions.items()},
        {name: selection.document.data for name, selection in selections.items()},
    ]
    canonical = json.dumps(inputs, sort_keys=True, default=str)
    text = f"{NOTE}# inputs: {_hash(canonical)}\n# body: {_hash(body)}\n{body}"
    return text, sorted(set(resolving.problems))


def edited_by_hand(text: str) -> bool:
    """Whether a manifest is not as resolving left it: no header of ours, or a body that its header doesn't know."""
    text = text.replace("\r\n", "\n")
    if not text.startswith(NOTE):
        return True
    lines = text[len(NOTE) :].split("\n", 2)
    if len(lines) < 3 or not lines[0].startswith("# inputs: "):
        return True
    return lines[1] != f"# body: {_hash(lines[2])}"


def _hash(text: str) -> str:
    return "sha256:" + sha256(text.encode()).hexdigest()


class _Resolving:
    def __init__(
        self,
        base: Parsed[ManifestBase],
        extensions: Mapping[str, Parsed[ManifestExtension]],
        selections: Mapping[str, Parsed[JudgeSelection]],
    ) -> None:
        self.base = base
        self.selections = selections
        self.archetypes = {name: list(agents) for name, agents in base.model.archetypes.items()}
        self.categories: dict[str, _Category] = {}
        self.problems: list[Problem] = []
        self.known = {name for extension in extensions.values() for name in extension.model.categories}

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
                    self.problems.append(
                        Problem(component.file, *at, where, *_conflict(capability.category.name, kept))
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
        self.known |= set(self.categories)

    def vertical(self, vertical: str, extension: Parsed[ManifestExtension]) -> None:
        selection = self.selections.get(vertical)
        picked = selection.model.categories if selection is not None else {}
        for name, declared in extension.model.categories.items():
            chosen = [judge_id(judge) for judge in picked[name].quality_judges] if name in picked else None
            self.category(vertical, extension, name, declared, chosen)
        for name in picked:
            if name not in extension.model.categories and selection is not None:
                message = "no such category in the vertical's manifest-extension.yaml"
                message += near_miss(name, extension.model.categories)
                self.wrong("category-not-declared", REUSE, selection, ("categories", name), message, "declare it there")
        for name, agents in extension.model.archetypes.items():
            if name not in self.base.model.archetypes:
                message = "no such archetype" + near_miss(name, self.base.model.archetypes)
                fix = "use one of manifest-base.yaml, or add it there"
                self.wrong("unknown-archetype", "PF-9 FR-5", extension, ("archetypes", name), message, fix)
                continue
            self.archetypes[name] += sorted(set(agents) - set(self.archetypes[name]))

    def category(
        self,
        vertical: str,
        extension: Parsed[ManifestExtension],
        name: str,
        declared: ExtensionCategory,
        chosen: list[str] | None,
    ) -> None:
        at: FieldPath = ("categories", name)
        listed = None if declared.judges is None else [judge_id(judge) for judge in declared.judges]
        if listed is not None and chosen is not None and sorted(listed) != sorted(chosen):
            message = "judge-selection.yaml names other judges for this category"
            self.wrong("two-selections", REUSE, extension, (*at, "judges"), message, "keep one of the two lists")
        judges = chosen if chosen is not None else listed
        parent = declared.inherits_from
        if parent is not None and (parent not in self.known or parent == name):
            message = f"no category {parent!r} to inherit from" + near_miss(parent, self.known - {name})
            self.wrong(
                "unknown-category", REUSE, extension, (*at, "inherits_from"), message, "name an existing category"
            )
        kept = self.categories.get(name)
        if kept is None:
            if judges is None and parent is None and declared.description is None:
                if not self.others_declare(name, vertical):
                    message = "no such category to reuse" + near_miss(name, self.known - {name})
                    self.wrong("unknown-category", REUSE, extension, at, message, "declare its judges or inherits_from")
                return
            file = extension.document.file
            self.categories[name] = _Category(file, vertical, judges, declared.description, parent)
        elif judges is not None and sorted(judges) != sorted(kept.judges or ()):
            check, message, clause, fix = _conflict(name, kept)
            self.wrong(check, clause, extension, at, message, fix)
        elif judges is None and parent not in (None, kept.inherits_from):
            check, message, clause, fix = _conflict(name, kept)
            self.wrong(check, clause, extension, (*at, "inherits_from"), message, fix)
        elif kept.vertical is not None and judges is not None:
            kept.vertical = None  # two declare the same: shared

    def others_declare(self, name: str, vertical: str) -> bool:
        """A vertical that comes later may be the one that declares it."""
        return any(
            name in selection.model.categories for other, selection in self.selections.items() if other != vertical
        )

    def inherited(self, name: str, seen: tuple[str, ...] = ()) -> list[str]:
        category = self.categories.get(name)
        if category is None or name in seen:
            return []
        if category.judges is not None or category.inherits_from is None:
            return category.judges or []
        return self.inherited(category.inherits_from, (*seen, name))

    def body(self) -> str:
        taken = {
            key: value for key, value in self.base.document.data.items() if key not in ("categories", "archetypes")
        }
        categories: dict[str, dict[str, Any]] = {}
        for name, category in sorted(self.categories.items()):
            entry = {
                "description": category.description,
                "vertical": category.vertical,
                "inherits_from": category.inherits_from,
                "archetypes": sorted(category.archetypes) or None,
            }
            categories[name] = {key: value for key, value in entry.items() if value is not None}
            categories[name]["judges"] = self.inherited(name)
        whole = {**taken, "categories": categories}
        if self.archetypes:
            whole["archetypes"] = self.archetypes
        text = yaml.dump(whole, Dumper=_Plain, sort_keys=False, allow_unicode=True, width=110)
        return str(text)

    def wrong(self, check: str, clause: str, parsed: Parsed[Any], path: FieldPath, message: str, fix: str) -> None:
        self.problems.append(problem(check, clause, parsed, path, message, fix))


class _Plain(yaml.SafeDumper):  # type: ignore[misc]  # PyYAML publishes no types
    """No anchors: our reader refuses them."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _conflict(name: str, kept: _Category) -> tuple[str, str, str, str]:
    message = f"category {name!r} exists with other judges: {kept.file} says {', '.join(kept.judges or ()) or 'none'}"
    return "category-conflict", message, REUSE, UPDATE.format(file=kept.file)
