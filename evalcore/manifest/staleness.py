"""Compares the manifest file with what its sources give (PF-9 FR-7, §5.6, §10.3).

A stale manifest still serves, since it may be kept by hand. Validation of files therefore warns, and
`rampgate manifest resolve --check` fails.
"""

from __future__ import annotations

from collections.abc import Iterator
from difflib import unified_diff
from typing import Any

from evalcore.manifest.discovery import Component
from evalcore.manifest.resolving import edited_by_hand, resolved
from evalcore.registry.files import MANIFEST, RegistryFiles, Tree
from evalcore.yaml.findings import Finding, Severity
from evalcore.yaml.loader import FieldPath, field_name, read_yaml

CLAUSE = "PF-9 FR-7, §5.6"
_SOURCES = frozenset({"base", "extension", "selection"})
_EDITED = (
    "put the change into manifest-base.yaml, a prompt component or a vertical's files; then run `manifest resolve`"
)
_STALE = "run `rampgate manifest resolve` and commit what it writes"
_MOST_FIELDS = 20


def outdated(tree: Tree, files: RegistryFiles, components: tuple[Component, ...]) -> Iterator[Finding]:
    """Yields a warning for each field of the manifest that differs from what its sources give; none where sources are
    missing or can't be read, since what they give is not known then."""
    raw = tree.files.get(MANIFEST)
    broken = any(kind in _SOURCES for kind, _ in files.unread)
    if files.base is None or files.manifest is None or raw is None or broken:
        return
    text, clashes = resolved(files.base, components, files.extensions, files.selections)
    if not clashes:
        yield from departures(tree.shown(MANIFEST), raw.decode(errors="replace"), text)


def departures(file: str, there: str, text: str, severity: Severity = Severity.WARNING) -> list[Finding]:
    """Returns a finding for each field that differs from `text`, at most 20; none where the two are alike."""
    if same(there, text):
        return []
    edited = edited_by_hand(there)
    check, fix = ("manifest-edited-by-hand", _EDITED) if edited else ("manifest-is-current", _STALE)
    mine, _ = read_yaml(file, there.encode())
    wanted, _ = read_yaml(file, text.encode())
    places = list(_apart(mine.data, wanted.data, ())) if mine is not None and wanted is not None else []
    if not places or mine is None:
        message = "is edited by hand" if edited else "is not as `rampgate manifest resolve` writes it"
        message += ", in its comments or layout only" if mine is not None else ""
        return [Finding(file, 1, 1, "", check, message, CLAUSE, fix, severity)]
    return [
        Finding(file, *mine.at(path), field_name(path), check, what, CLAUSE, fix, severity)
        for path, what in places[:_MOST_FIELDS]
    ]


def same(there: str, text: str) -> bool:
    """Tells whether two texts are the same but for line ends, which git may have changed at checkout."""
    return _lines(there) == _lines(text)


def difference(there: str, text: str, file: str) -> str:
    """Returns a unified difference from the file to what resolving gives; "" where they are alike."""
    old, new = _lines(there).splitlines(), _lines(text).splitlines()
    return "".join(f"{line}\n" for line in unified_diff(old, new, file, f"{file} (resolved)", lineterm=""))


def _lines(text: str) -> str:
    return text.removeprefix("\ufeff").replace("\r\n", "\n")


def _apart(there: Any, wanted: Any, path: FieldPath) -> Iterator[tuple[FieldPath, str]]:
    if isinstance(there, dict) and isinstance(wanted, dict):
        for key in [*wanted, *(key for key in there if key not in wanted)]:
            if key not in there:
                yield (*path, str(key)), "is missing: its sources declare it"
            elif key not in wanted:
                yield (*path, str(key)), "none of its sources declares this"
            else:
                yield from _apart(there[key], wanted[key], (*path, str(key)))
    elif there != wanted or type(there) is not type(wanted):
        yield path, f"{_short(there)} here; its sources give {_short(wanted)}"


def _short(value: Any) -> str:
    shown = "[" + ", ".join(map(str, value)) + "]" if isinstance(value, list) else repr(value)
    return shown if len(shown) <= 120 else shown[:119] + "…"
