"""The hidden first line of a comment, by which it is found again, and of two runs the newer told. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

MARKED: Final = re.compile(
    r"<!-- rampgate suite (?P<suite>[a-z][a-z0-9_-]{0,62}) commit=(?P<commit>[0-9a-f]{7,64}) run=(?P<run>\d{1,18})"
    r" attempt=(?P<attempt>\d{1,9}) -->(?:\r?\n|$)"
)


@dataclass(frozen=True)
class Mark:
    """Of which suite, commit and run a comment is."""

    suite: str
    commit: str
    run: int
    attempt: int

    def __str__(self) -> str:
        return f"<!-- rampgate suite {self.suite} commit={self.commit} run={self.run} attempt={self.attempt} -->"

    def rank(self, head: str) -> tuple[bool, int, int]:
        """How new it is, at this last commit of the pull request: runs are numbered as they begin, and one of an
        earlier commit is older than any of the last."""
        return self.commit == head, self.run, self.attempt


def mark_of(body: str, suite: str) -> Mark | None:
    """The mark of a comment on this suite; None of any other comment. A mark that is quoted further down is none."""
    found = MARKED.match(body)
    if found is None or found["suite"] != suite:
        return None
    return Mark(suite, found["commit"], int(found["run"]), int(found["attempt"]))
