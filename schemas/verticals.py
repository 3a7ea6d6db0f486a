"""A registered vertical: whose Opik project its turns live in, and its own reroll window (PF-9 §5.5, §5.4)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, StrictStr

from schemas.files import FileModel, Number, Text

UNREGISTERED = "unregistered"
UNKNOWN = "unknown"


class Vertical(FileModel):
    """One file of `configs/verticals/`, named after the vertical."""

    name: StrictStr = Field(pattern=r"^[a-z][a-z0-9_-]{0,62}$")
    """The file's name."""
    project: Text
    """The vertical's own Opik project."""
    workspace: Text = "default"
    """The Opik workspace the project is in."""
    api_key_file: Path | None = None
    """A file with a key of its own for this project; without it the program's key is used."""
    reroll_window_seconds: Annotated[Number, Field(gt=0, le=604_800)] = 300.0
    """How soon the same input again counts as a reroll (PF-9 §5.4); a week at most."""
    live_judge: Literal["rampgate", "opik"] = "rampgate"
    """Who judges its live turns; in Opik, synced rules are enabled only for opik."""
