"""Ramp-step requests from the rollout controller (contracts §1; PC5 §5.5, §5.8). Unknown fields are tolerated."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StrictStr

Id = Annotated[StrictStr, Field(min_length=1, max_length=512)]
Number = Annotated[float, Field(strict=True, ge=0, allow_inf_nan=False)]
Percent = Annotated[float, Field(strict=True, ge=0, le=100, allow_inf_nan=False)]
JUDGES = 100
"""Judges that one request may list for a gate."""


class RampModel(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class EvalGates(RampModel):
    """Judge ids, or `judge.dimension`, by gate (PC6 §5.6). The safety judges run whether listed or not."""

    pre_ramp: list[Id] = Field(default_factory=list, max_length=JUDGES)
    pre_full: list[Id] = Field(default_factory=list, max_length=JUDGES)


class RampStep(RampModel):
    """May this agent version go from `from_percent` to `to_percent`? `ramp_steps` is the experiment's plan."""

    request_id: Id
    experiment_id: Id
    agent_id: Id
    agent_version: Id
    vertical: Id | None = None
    from_percent: Percent
    to_percent: Percent
    ramp_steps: list[Percent] = Field(default_factory=list, max_length=1000)
    eval_gates: EvalGates = EvalGates()
    requested_at: datetime
    deadline_seconds: Number | None = None
