"""Names the owners of a file by a CODEOWNERS file, as GitHub does: the last pattern that matches decides."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

PLACES = (".github/CODEOWNERS", "CODEOWNERS", "docs/CODEOWNERS")
"""The places where GitHub looks for the file, in this order."""


class Line(NamedTuple):
    pattern: str
    owners: tuple[str, ...]


class CodeOwners:
    def __init__(self, text: str) -> None:
        parts = (line.split("#", 1)[0].split() for line in text.splitlines())
        self.lines = [Line(pattern, tuple(owners)) for pattern, *owners in filter(None, parts)]
        self._matchers = [(_matcher(line.pattern), line) for line in self.lines]

    @classmethod
    def of(cls, repository: Path) -> CodeOwners:
        """Read a repository's file; without one, no file has an owner."""
        found = next((repository / place for place in PLACES if (repository / place).is_file()), None)
        return cls(found.read_text(encoding="utf-8") if found is not None else "")

    def line(self, path: str) -> Line | None:
        """The line that decides about a file, given by its path from the repository's top."""
        matching = [line for matches, line in self._matchers if matches.fullmatch(path)]
        return matching[-1] if matching else None

    def owners(self, path: str) -> tuple[str, ...]:
        line = self.line(path)
        return line.owners if line is not None else ()


def _matcher(pattern: str) -> re.Pattern[str]:
    """The expression for a pattern. A slash before its end anchors it at the top; without one it matches a name
    anywhere. A folder that matches includes all that is inside, except for a last `*`, which matches its own level
    only."""
    anchored = "/" in pattern.rstrip("/")
    parts = pattern.strip("/").split("/")
    expression = "" if anchored else "(?:.*/)?"
    for number, part in enumerate(parts):
        last = number == len(parts) - 1
        if part == "**":
            expression += ".*" if last else "(?:.*/)?"
            continue
        expression += "".join({"*": "[^/]*", "?": "[^/]"}.get(sign, re.escape(sign)) for sign in part)
        expression += "" if last else "/"
    if pattern.endswith("/"):
        expression += "/.*"
    elif parts[-1] != "*" or not anchored:
        expression += "(?:/.*)?"
    return re.compile(expression)
