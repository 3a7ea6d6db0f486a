"""The halves of a run and the sides of a comparison, which the command line names. It imports next to nothing: `--help`
loads it."""

from __future__ import annotations

from enum import StrEnum


class Only(StrEnum):
    """One half of a run, for a job of its own."""

    GENERATE = "generate"
    SCORE = "score"


class Side(StrEnum):
    """One side of a comparison, which answers anew in a job of its own."""

    BASELINE = "baseline"
    CANDIDATE = "candidate"
