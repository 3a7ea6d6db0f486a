"""A registered vertical: whose Opik project its turns live in, how its traces are laid out, and its own reroll window
(PF-9 §5.5, §5.4; PC5 AC-9)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, StrictStr, model_validator

from schemas import files
from schemas.files import FileModel, Number, Text

UNREGISTERED = "unregistered"
UNKNOWN = "unknown"
RESERVED = frozenset({UNREGISTERED, UNKNOWN, "other", "platform", "all", "none", "default"})
"""Words with another meaning in places that name verticals: metrics, views, counts."""


def _free(name: str) -> str:
    if name in RESERVED:
        raise ValueError(f"{name} means something else where verticals are named; choose another name")
    return name


class TraceLayout(FileModel):
    """Where a vertical's traces hold what judges read: dotted paths, such as `output.reply.text`. What is not stated is
    looked for where most traces have it: a plain text, `{content}`, or messages, whose last one counts."""

    question: files.Path | None = None
    """What the user asked; not stated, looked for in `input`."""
    answer: files.Path | None = None
    """What the agent answered; not stated, looked for in `output`."""
    context: files.Path | None = None
    """What the agent was given to answer from, such as retrieved documents; not stated, `input.context`."""
    tools: files.Path | None = None
    """The calls of tools with their results; not stated, `tool_calls`, else the messages of `output`."""


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
    trace: TraceLayout = TraceLayout()
    """Where its traces hold question, answer, context and tools, the names that rules bind `online`."""
    live_judge: Literal["rampgate", "opik"] = "rampgate"
    """Who judges its live turns; in Opik, synced rules are enabled only for opik."""
    proposal_namespaces: tuple[Annotated[StrictStr, Field(pattern=r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$")], ...] = ()
    """Namespaces of the cluster in which its agents' remediation workflows run. A trace with `proposal` is judged once
    its workflow has ended, with what the cluster says of it; needs RAMPGATE_SEAL_KEY. Without, it is judged as it
    came."""

    @model_validator(mode="after")
    def _summary_is_what_judges_read(self) -> Self:
        answer = self.trace.answer
        if self.proposal_namespaces and answer is not None and not re.match(r"output\b", answer):
            raise ValueError(
                f"trace.answer: must begin with output where proposal_namespaces are named, got {answer}; a workflow's "
                "summary is put there"
            )
        return self
