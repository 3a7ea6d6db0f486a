"""The record of `rampgate.evaluations`: what judges said of a live agent version when somebody or a schedule asked (PC5
§5.7)."""

from __future__ import annotations

from enum import StrEnum
from typing import Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from schemas.zoned_time import ZonedTime

MOST_ANSWERS = 1_000_000
"""Answers in one evaluation. They are numbers in a record, but things in the memory of who responds."""


class Origin(StrEnum):
    """Where the scores of a breach come from."""

    LIVE = "live"
    """Judges of live traces, all the time."""
    AD_HOC = "ad_hoc"
    """Somebody asked, as after a user's report or for a new judge."""
    SCHEDULED = "scheduled"


class EvaluatedJudge(BaseModel):
    """A judge's answers over the sample, equal ones together: each of `scores` is (score, weight, how many), each of
    `missing` (weight, how many) unscored items. Of what is below the floor, so many distinct `users` and `sessions`
    there are; a trace that names none, and an item of a dataset, counts as one."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    judge_id: str = Field(min_length=1)
    judge_version: str = Field(min_length=1)
    scores: tuple[tuple[float, float, int], ...] = ()
    missing: tuple[tuple[float, int], ...] = ()
    not_applicable: int = Field(0, ge=0)
    users: int = Field(0, ge=0)
    sessions: int = Field(0, ge=0)


class Evaluation(BaseModel):
    """One evaluation of an agent version that is live. Its judges are compared with their floors as live scores are."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    event_id: str = Field(min_length=1)
    origin: Origin
    agent_id: str = Field(min_length=1)
    agent_version: str = Field(min_length=1)
    vertical: str | None = None
    judges: tuple[EvaluatedJudge, ...]
    by: str = ""
    """Who asked."""
    at: ZonedTime

    @model_validator(mode="after")
    def _is_of_an_evaluation(self) -> Self:
        """What somebody evaluated is never live: by such a record the breach of live scores would end."""
        if self.origin is Origin.LIVE:
            raise ValueError("origin: live scores are no evaluation")
        counts = [count for one in self.judges for *_, count in (*one.scores, *one.missing)]
        if min(counts, default=1) < 1 or sum(counts) > MOST_ANSWERS:
            raise ValueError(f"judges: each count is at least 1, and all are at most {MOST_ANSWERS:,}")
        return self
