"""Says how values of a report read, whatever the format: numbers, addresses, and what a long table leaves out. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from rampgate.report.model import Section

MOST_ROWS = 1_000
"""Rows of a table that a report has; it says how many more there are. `--json` has all."""
LONGEST_LINE = 2_000
"""Characters of one line."""
LONGEST = 8_000
"""Characters of a passage that a report shows."""
_ADDRESS = re.compile(r"https?://[A-Za-z0-9][\w.:\[\]/?#@!$&*+,;=~%-]*", re.ASCII)


def words(value: str | float | Sequence[float] | None) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, (int, float)):
        return f"{value:,}" if isinstance(value, int) else f"{value:.4g}"
    return " to ".join(f"{end:.3g}" for end in value)


def address(target: str) -> str:
    """The address; empty where it is none."""
    return target if _ADDRESS.fullmatch(target) else ""


def left_out(section: Section) -> Iterator[str]:
    if (more := len(section.rows) - MOST_ROWS) > 0:
        yield f"{more:,} rows more are in the document of --json"
