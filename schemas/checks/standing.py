"""The record of `rampgate.judge-standing`: what a check found of a judge, until the next one finds otherwise."""

from __future__ import annotations

from datetime import date
from enum import StrEnum

from pydantic import BaseModel, ConfigDict, Field

from schemas.zoned_time import ZonedTime


class CheckedFor(StrEnum):
    """The checks that can suspend a judge."""

    CANARIES = "canaries"
    INVERSION = "inversion"


class CheckVerdict(StrEnum):
    """What a check said of a judge. An undecided one leaves the judge as it stood."""

    PASSED = "passed"
    SUSPENDED = "suspended"
    UNDECIDED = "undecided"


class StandingRecord(BaseModel):
    """One check of one judge's version. The key is judge, reason and version, and what it was compared with where that
    decides once, so that a compacted topic keeps the last of each."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    event_id: str = Field(min_length=1)
    judge_id: str = Field(min_length=1)
    judge_version: str = Field(min_length=1)
    model: str
    reason: CheckedFor
    verdict: CheckVerdict
    message: str = ""
    """What was found, in words."""
    at: ZonedTime
    """When the check ended."""
    reference: str = ""
    """The version of the reference set that a check of inversion held the judge against. It decides once of each
    version of a judge: later looks at the same scores of people don't count, for each could be a false alarm."""
    vertical: str = ""
    """Whose people a check of inversion asked; empty: of all verticals. What one vertical's people found, another's
    don't take back."""
    until: date | None = None
    """The last day of a suspension; without one it lasts until the judge passes."""

    @property
    def key(self) -> str:
        own = f"{self.judge_id}/{self.reason}/{self.judge_version}"
        return f"{own}/{self.reference}" if self.reference else own
