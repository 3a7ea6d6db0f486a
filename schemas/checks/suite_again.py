"""What has to be answered again: a run of a suite that is split over jobs asks both sides for it, each in a job of its
own."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field, StrictInt, StrictStr

from schemas.files import FileModel, Text

CaseId = Annotated[StrictStr, Field(min_length=1)]


class Side(StrEnum):
    """One side of a comparison."""

    BASELINE = "baseline"
    CANDIDATE = "candidate"


class AgainSide(FileModel):
    """One side of the comparison, which answers again."""

    configuration: Annotated[StrictStr, Field(pattern=r"^[0-9a-f]{64}$")]
    """The hash of its parts; who makes another one does not answer for it."""
    commit: Annotated[StrictStr, Field(max_length=64)]
    """The commit that it is of; the candidate's is empty where it is not named."""


class SuiteAgain(FileModel):
    """The cases that fell, how often each side answers them again, and under which numbers."""

    suite: Text
    """The suite's name."""
    set: Literal["smoke", "full"]
    """The set of cases in which they fell."""
    cases: Annotated[tuple[CaseId, ...], Field(min_length=1)]
    """Ids of the cases that are answered again."""
    samples: Annotated[StrictInt, Field(ge=1, le=100)]
    """Fresh samples of each case on each side."""
    after: Annotated[StrictInt, Field(ge=1_000, lt=2**53)]
    """The number after which fresh samples come. It is made of both sides' answers, so that running again is no second
    chance."""
    baseline: AgainSide
    """Answers as it is in its commit."""
    candidate: AgainSide
    """Answers as the proposal has it."""

    def of(self, side: Side) -> AgainSide:
        return self.baseline if side is Side.BASELINE else self.candidate
