"""Names the source in which a finding about a resolved manifest is mended (PF-9 FR-7, §5.6)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from evalcore.manifest.discovery import Component
from evalcore.registry.files import BASE, MANIFEST, RegistryFiles, Tree
from evalcore.yaml.findings import Finding
from evalcore.yaml.loader import Parsed

RESOLVE = "run `rampgate manifest resolve`"


def at_source(
    findings: Iterable[Finding], tree: Tree, files: RegistryFiles, components: Iterable[Component]
) -> list[Finding]:
    """Returns the findings. Where the manifest is made of other files, a fix in it names the one to change; a manifest
    without a base is kept by hand."""
    made, manifest = BASE in tree.files, tree.shown(MANIFEST)
    found = tuple(components)
    return [
        replace(one, fix=f"{one.fix}; write it in {_source(one.field, tree, files, found)}, then {RESOLVE}")
        if made
        and one.file == manifest
        and one.field
        and not one.check.startswith(("yaml-", "manifest-is-", "manifest-e"))
        else one
        for one in findings
    ]


def _source(field: str, tree: Tree, files: RegistryFiles, components: tuple[Component, ...]) -> str:
    part, _, rest = field.partition(".")
    name = rest.partition(".")[0]
    if part == "datasets" and name in files.extensions and files.extensions[name].model.dataset is not None:
        return files.extensions[name].document.file
    if part == "categories":
        for component in components:
            if any(capability.category.name == name for capability in component.capabilities):
                return component.file
        declaring: tuple[Parsed[Any], ...] = (*files.selections.values(), *files.extensions.values())
        for own in declaring:
            if name in own.model.categories:
                return own.document.file
    return tree.shown(BASE)
