"""The halves of a run, which the command line names. It imports next to nothing: `--help` loads it."""

from __future__ import annotations

from enum import StrEnum


class Only(StrEnum):
    """One half of a run, for a job of its own."""

    GENERATE = "generate"
    SCORE = "score"
