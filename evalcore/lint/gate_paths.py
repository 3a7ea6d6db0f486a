"""Checks which gates a change triggers: the table of paths (PC5 §5.5)."""

from __future__ import annotations

from collections.abc import Iterator

from evalcore.lint.check import Find, Subject
from evalcore.registry.files import RegistryFiles
from evalcore.registry.gate_paths import fits, triggered
from evalcore.yaml.findings import Finding
from evalcore.yaml.loader import FieldPath
from schemas.judges import Milestone
from schemas.manifests import GatePathsFile

GATE_PATHS = Subject("Which gates a change triggers", "PC5 §5.5")
_NAME, _DEPTHS = "\x01", ("\x01", "\x01/\x01")
"""A name that nobody writes, and what `**` may stand for."""


@GATE_PATHS.error()
def path_pattern_decides(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    """Each pattern decides about some path: none before it fits all that it fits."""
    if files.gate_paths is None:
        return
    earlier: list[str] = []
    for place, pattern in _patterns(files.gate_paths.model):
        samples = [pattern.replace("**", depth).replace("*", _NAME) for depth in _DEPTHS]
        covering = next((one for one in earlier if all(fits(one, sample) for sample in samples)), None)
        if covering is not None:
            message = f"{pattern!r} never decides, since {covering!r} comes first and fits the same paths"
            yield find(files.gate_paths, place, message, "move it above that, or remove it")
        earlier.append(pattern)


@GATE_PATHS.error()
def judges_trigger_every_gate(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    """A change of a judge or of the manifest triggers every gate: it changes what every gate says. The registry's path
    has to begin at the repository's root, as CI names it."""
    if files.gate_paths is None:
        return
    shown = [rule.document.file for _, _, rule in files.every_rule()]
    shown += [files.manifest.document.file] if files.manifest is not None else []
    places = {pattern: place for place, pattern in _patterns(files.gate_paths.model)}
    told = set()
    for file in shown:
        found = triggered(file, files.gate_paths.model)
        if file.startswith(("/", "..")) or found.rule in told or set(found.gates) == set(Milestone):
            continue
        told.add(found.rule)
        gates = ", ".join(found.gates) or "no gate"
        message = f"{file} triggers {gates}, since {found.rule!r} is the first pattern that fits it"
        fix = "write a pattern for judges and the manifest above that, with all three gates"
        yield find(files.gate_paths, places[found.rule], message, fix)


def _patterns(table: GatePathsFile) -> Iterator[tuple[FieldPath, str]]:
    """Yields (place, pattern) in the order in which they are asked."""
    for number, one in enumerate(table.paths):
        for place, pattern in enumerate(one.files):
            yield ("paths", number, "files", place), pattern
