"""Shipped files made bad, and what validation says of them."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Final

from evalcore.registry.disk import read_tree
from evalcore.registry.files import Tree
from evalcore.validation import checked
from evalcore.yaml.findings import Finding

TODAY: Final = date(2026, 11, 21)
SHIPPED: Final = read_tree(Path("configs"))
NAMES: Final = {
    "rule": "rules/ux_quality.yaml",
    "vertical rule": "rules/receipts/ux_quality.yaml",
    "manifest": "evaluation_manifest.yaml",
    "base": "manifest-base.yaml",
    "extension": "../specs/verticals/receipts/eval/manifest-extension.yaml",
    "selection": "../specs/verticals/receipts/eval/judge-selection.yaml",
    "overrides": "enforcement-overrides.yaml",
    "gate paths": "gate-paths.yaml",
    "canaries": "canaries.yaml",
    "registration": "verticals/receipts.yaml",
}
"""One file of each kind."""


def shipped(kind: str) -> bytes:
    return SHIPPED.files[NAMES[kind]]


ALONE: Final = Tree(SHIPPED.root, {})
"""A registry with nothing in it, for what is wrong with a file whatever lies around it."""


def findings_of(kind: str, raw: bytes, tree: Tree = SHIPPED) -> list[Finding]:
    """All that is wrong with a file of this kind, where it takes its place in a registry."""
    name = NAMES[kind]
    shown = tree.shown(name)
    return [found for found in checked(tree.with_file(name, raw), TODAY)[1] if found.file == shown]


def edited(kind: str, old: str, new: str) -> tuple[bytes, int]:
    """The shipped file with a text exchanged, and the line in which that text began."""
    text = shipped(kind).decode()
    assert text.count(old) >= 1, f"{NAMES[kind]} has no {old!r}"
    return text.replace(old, new, 1).encode(), text[: text.index(old)].count("\n") + 1


def assert_well_told(finding: Finding, lines: int) -> None:
    """Place, rule and remedy: what somebody needs who did not write the check."""
    assert finding.file
    assert 1 <= finding.line <= lines + 1, finding
    assert finding.column >= 1, finding
    assert finding.message, finding
    assert finding.clause, finding
    assert finding.fix, finding
    assert "\n" not in finding.message + finding.fix + finding.field, finding
    assert len(finding.message) < 2_000, finding
