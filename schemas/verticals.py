"""A registered vertical: whose Opik project its turns live in, and its own reroll window (PF-9 §5.5, §5.4)."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

UNREGISTERED = "unregistered"
UNKNOWN = "unknown"


class Vertical(BaseModel):
    """One file of `configs/verticals/`, named after the vertical."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(pattern=r"^[a-z][a-z0-9_-]{0,62}$")
    project: str = Field(min_length=1)
    workspace: str = "default"
    api_key_file: Path | None = None
    reroll_window_seconds: float = Field(300.0, gt=0)
    live_judge: Literal["rampgate", "opik"] = Field(
        "rampgate", description="Who judges its live turns; in Opik, synced rules are enabled only for opik"
    )
