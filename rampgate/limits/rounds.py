"""Tells which categories have had a round of annotation, from the verticals' reference sets (PF-9 FR-14)."""

from __future__ import annotations

import os.path
from dataclasses import replace
from pathlib import Path

from evalcore.registry.files import AGREEMENT, REFERENCE_SET, Tree
from rampgate.checks.agreement import read_reference


def with_rounds(tree: Tree) -> Tree:
    """Returns the tree with the rounds of each vertical that has thresholds of agreement. Raises Failure for a set that
    can't be read or was changed otherwise than at its end."""
    folders = [name.removesuffix(f"/{AGREEMENT}") for name in tree.files if name.endswith(f"/eval/{AGREEMENT}")]
    found = {}
    for folder in folders:
        path = Path(os.path.normpath(tree.root / folder / REFERENCE_SET))
        entries = read_reference(path)
        found[Path(folder).parent.name] = frozenset(str(entry["category"]) for entry in entries)
    return replace(tree, rounds=found)
