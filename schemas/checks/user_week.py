"""The record of `rampgate.user-weeks`: what a closed week's users said of judges (PF-9 FR-10, §5.4)."""

from __future__ import annotations

from datetime import datetime

from pydantic import BaseModel, ConfigDict, Field


class JudgeWeek(BaseModel):
    """What the thumbs of one vertical say of one judge. `n`: users; `effective_n`: Kish's number of them."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    judge_id: str = Field(min_length=1)
    vertical: str
    n: int = Field(ge=0)
    effective_n: float = Field(ge=0)
    pearson: float | None = None
    pearson_ci95: tuple[float, float] | None = None
    adjusted_p: float | None = None
    """Holm's over the week's judges and verticals; None where no one can tell."""
    weeks_in_a_row: int = Field(0, ge=0)
    """Closed weeks up to this one in which it scored against users; two in a row are news."""


class UserWeek(BaseModel):
    """A week that was looked at, once. The note that its news were told is a record of its own, so that who writes the
    result again takes back no note."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    week: str = Field(pattern=r"^\d{4}-W\d{2}$")
    """An ISO week in UTC, as 2026-W47."""
    at: datetime
    """When it was looked at."""
    judges: tuple[JudgeWeek, ...] = ()
    unread: tuple[str, ...] = ()
    """Verticals whose Opik refused our key for a week, so that the result is without them."""
    told: str = ""
    """Whom its news were told; empty in the record of the result."""

    @property
    def key(self) -> str:
        return f"{self.week}/told" if self.told else self.week
