"""Resolves the manifest from its sources (PF-9 FR-7, §5.6, Decisions 8 and 17).

The base manifest, the prompt components and every vertical's extension and selection give one text, the same for any
order of the files. Every category inherits the safety judges, so the text does not list them (PF-9 §5.5).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from hashlib import sha256
from typing import Any

import yaml

from evalcore.lint.checks import lint
from evalcore.manifest.categories import Declarations
from evalcore.manifest.discovery import Component, components
from evalcore.manifest.sources import at_source
from evalcore.registry.files import BASE, COMPONENTS, MANIFEST, RegistryFiles, Tree, assemble
from evalcore.yaml.findings import Finding, Severity
from evalcore.yaml.loader import Parsed
from evalcore.yaml.models import read
from evalcore.yaml.suggestions import near_miss
from schemas.manifests import JudgeSelection, ManifestBase, ManifestExtension, ManifestFile

CLAUSE = "PF-9 FR-7"
NOTE = """\
# yaml-language-server: $schema=../docs/schemas/evaluation-manifest.json
# The evaluation manifest, as `rampgate manifest resolve` made it from manifest-base.yaml, prompts/components/ and
# specs/verticals/*/eval/. Change those, never this file: a hand edit is noticed and not overwritten.
"""


@dataclass(frozen=True)
class Resolution:
    """A resolved manifest. `text` is None where there is no base to make it from; a text with an error among the
    findings must not be written."""

    text: str | None
    findings: tuple[Finding, ...]

    @property
    def sound(self) -> bool:
        return self.text is not None and not any(found.severity is Severity.ERROR for found in self.findings)


def resolve(tree: Tree, today: date) -> Resolution:
    """Resolves the manifest of a tree; the findings are those of the linter on the tree with this manifest in it."""
    files, findings = assemble(tree, today)
    found, wrong = components(tree.below(COMPONENTS, ".xml"))
    base = files.base
    manifest = tree.shown(MANIFEST)
    findings = [found for found in [*findings, *wrong] if found.file != manifest]
    if base is None:
        if ("base", "") not in files.unread:
            findings.append(Finding(tree.shown(BASE), 0, 0, "", "base-is-there", "is missing", CLAUSE, "write it"))
        return Resolution(None, tuple(sorted(set(findings))))
    text, clashes = resolved(base, found, files.extensions, files.selections)
    findings += [*clashes, *_unknown(found, files)]
    reading = read(ManifestFile, manifest, text.encode())
    if reading.parsed is not None:
        broken = any(finding.severity is Severity.ERROR for finding in findings)
        linted = lint(replace(files, manifest=reading.parsed, unread=files.unread - {("manifest", "")}))
        broken = broken or any(finding.severity is Severity.ERROR and finding.file != manifest for finding in linted)
        # This manifest is not written yet: its own findings count only where its sources don't explain them.
        told = (finding for finding in linted if finding.file != manifest or not broken)
        findings += at_source(told, tree, files, found)
    elif not findings:
        findings += at_source(reading.findings, tree, files, found)
    return Resolution(text, tuple(sorted(set(findings))))


def resolved(
    base: Parsed[ManifestBase],
    components: Sequence[Component],
    extensions: Mapping[str, Parsed[ManifestExtension]],
    selections: Mapping[str, Parsed[JudgeSelection]],
) -> tuple[str, list[Finding]]:
    """Returns the text of `evaluation_manifest.yaml`, and where the platform's own declarations clash."""
    declarations = Declarations(base, extensions, selections)
    declarations.platform(sorted(components, key=lambda component: component.file))
    for vertical in sorted(extensions):
        declarations.vertical(vertical, extensions[vertical])
    content = declarations.content()
    body = str(yaml.dump(content, Dumper=_Plain, sort_keys=False, allow_unicode=True, width=110))
    inputs = [
        base.document.data,
        sorted(_declared_by(component) for component in components),
        {name: extension.document.data for name, extension in extensions.items()},
        {name: selection.document.data for name, selection in selections.items()},
    ]
    canonical = json.dumps(inputs, sort_keys=True, default=str)
    text = f"{NOTE}# inputs: {_hash(canonical)}\n# body: {_hash(body)}\n{body}"
    return text, sorted(set(declarations.findings))


def _unknown(found: Sequence[Component], files: RegistryFiles) -> Iterator[Finding]:
    """Reports judges and archetypes that components name and no file declares."""
    base = files.base.model if files.base is not None else None
    archetypes, composites = (base.archetypes, base.composites) if base is not None else ({}, {})
    for component in found:
        for index, capability in enumerate(component.capabilities):
            at = f"component.capability[{index}]"
            for place, judge in enumerate(capability.judges or ()):
                if judge.name in files.rules or judge.name in composites or ("rule", judge.name) in files.unread:
                    continue
                message = f"the registry has no judge {judge.name!r}" + near_miss(judge.name, files.rules)
                where = f"{at}.judges.judge[{place}].id"
                fix = "name a judge that has a file in rules/"
                yield Finding(component.file, *judge.place, where, "component-judge-exists", message, CLAUSE, fix)
            archetype = capability.archetype
            if archetypes and archetype.name not in archetypes:
                message = f"there is no archetype {archetype.name!r}" + near_miss(archetype.name, archetypes)
                fix = "name one of manifest-base.yaml, or add it there with its sub_agent_ids"
                where = f"{at}.archetype"
                yield Finding(component.file, *archetype.place, where, "archetype-exists", message, "PF-9 FR-5", fix)


def edited_by_hand(text: str) -> bool:
    """Tells whether a manifest was changed since it was resolved: no header of ours, or another body."""
    text = text.replace("\r\n", "\n")
    if not text.startswith(NOTE):
        return True
    lines = text[len(NOTE) :].split("\n", 2)
    if len(lines) < 3 or not lines[0].startswith("# inputs: "):
        return True
    return lines[1] != f"# body: {_hash(lines[2])}"


def _hash(text: str) -> str:
    return "sha256:" + sha256(text.encode()).hexdigest()


def _declared_by(component: Component) -> list[Any]:
    """Returns what a component declares, whatever its places in the file and whatever the registry's folder."""
    declared = [
        [c.category.name, c.archetype.name, c.description, c.judges and [judge.name for judge in c.judges]]
        for c in component.capabilities
    ]
    return [component.id.name, component.version, declared]


class _Plain(yaml.SafeDumper):  # type: ignore[misc]  # PyYAML publishes no types
    """Writes no anchors: our reader refuses them."""

    def ignore_aliases(self, data: Any) -> bool:
        return True
