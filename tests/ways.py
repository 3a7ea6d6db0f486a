"""Reads docs/ways.md: under each heading a list of files in order, the function where the way passes, and why."""

from __future__ import annotations

import re

from tests.root import ROOT

PAGE = ROOT / "docs" / "ways.md"
STEP = re.compile(r"^\d+\. `([\w/]+\.py)`, `([\w.]+)`: \S.*$", re.MULTILINE)


def ways() -> dict[str, list[tuple[str, str]]]:
    """Heading -> (file, function), in order."""
    parts = re.split(r"^## (.+)$", PAGE.read_text(), flags=re.MULTILINE)
    return {name: STEP.findall(text) for name, text in zip(parts[1::2], parts[2::2], strict=True)}


def files_of(name: str) -> list[str]:
    return [file for file, _ in ways()[name]]
