"""A registered vertical: whose Opik project its turns live in, and its own reroll window (PF-9 §5.5, §5.4)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, StrictStr

from schemas.files import FileModel, Number, Text

UNREGISTERED = "unregistered"
UNKNOWN = "unknown"
RESERVED = frozenset({UNREGISTERED, UNKNOWN, "other", "platform", "all", "none", "default"})
"""Words with another meaning in places that name verticals: metrics, views, counts."""


def _free(name: str) -> str:
    if name in RESERVED:
        raise ValueError(f"{name} means something else where verticals are named; choose another name")
    return name


class Vertical(FileModel):
    """One file of `configs/verticals/`, named after the vertical."""

    name: Annotated[StrictStr, Field(pattern=r"^[a-z][a-z0-9_-]{0,62}$"), AfterValidator(_free)]
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
