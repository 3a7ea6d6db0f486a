"""The record of `rampgate.triage`: a quality judge's floor breach that somebody looks at within a day (PC5 §5.7)."""

from __future__ import annotations

from enum import StrEnum

from pydantic import BaseModel, ConfigDict, Field

from schemas.zoned_time import ZonedTime


class TriageState(StrEnum):
    """How far people are with an item. Nothing but a person's word closes one."""

    OPEN = "open"
    """No one has taken it."""
    OWNED = "owned"
    CLOSED = "closed"


class TriageDecision(StrEnum):
    """What came of looking."""

    AGENT = "agent"
    """The agent is worse, and is mended."""
    JUDGE = "judge"
    """The judge or its floor is wrong."""
    FALSE_ALARM = "false_alarm"
    ACCEPTED = "accepted"
    """It is true, and stays so."""


class TriageStep(StrEnum):
    OPENED = "opened"
    TAKEN = "taken"
    REMINDED = "reminded"
    """Operators were told that it is overdue."""
    CLOSED = "closed"


class TriageChange(BaseModel):
    """One step in the life of an item: who did it, and what they said."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    at: ZonedTime
    by: str
    step: TriageStep
    note: str = ""


class TriageItem(BaseModel):
    """An item with all that ever happened to it. The key is `item_id`, so that a compacted topic keeps the whole of
    each; of two records of one item the one with the longer `history` counts."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    item_id: str = Field(min_length=1)
    breach: str = Field(min_length=1)
    """The key of the breach: the same for the same judge, vertical and agent version."""
    judge_id: str
    vertical: str | None
    agent_id: str
    agent_version: str
    score: float
    floor: float
    n: int = Field(ge=0, lt=2**53)
    """The scores of which `score` is the mean, or the rate."""
    opened: ZonedTime
    due: ZonedTime
    state: TriageState
    owner: str | None = None
    decision: TriageDecision | None = None
    history: tuple[TriageChange, ...] = Field(min_length=1)

    def done(self, step: TriageStep) -> bool:
        """Tells whether the step was ever taken."""
        return any(change.step is step for change in self.history)
