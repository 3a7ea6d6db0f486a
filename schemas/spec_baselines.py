"""A baseline of a spec: one version of an agent's answers, as `rampgate spec save` keeps it (AgentCI Step 3.5)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, StrictBool, StrictStr

from schemas.files import FileModel, Prose, Text
from schemas.specs import Id


class Capture(FileModel):
    """What the answers were made and judged by."""

    model: StrictStr | None
    """The models that the agent called, by commas; null where no trace names one."""
    spec_hash: Annotated[StrictStr, Field(pattern=r"^sha256:[0-9a-f]{12,64}$")]
    judge_rubric_ids: tuple[StrictStr, ...]
    precheck_passed: StrictBool
    """Whether every answer is correct, also of a version that was saved by force."""
    configuration: StrictStr = ""
    """The hash of what answered: the candidate's parts, or the commit. Empty in a file of an earlier release."""


class KeptQuery(FileModel):
    """One query's answer with its trace, in the contracts' form; with `--repeat` the other answers' too."""

    query: Prose
    correctness: Literal["pass", "fail", "skip", "infra"]
    trace: dict[StrictStr, Any]
    repeats: tuple[dict[StrictStr, Any], ...] = ()


class BaselineFile(FileModel):
    """`<baseline_dir>/<version>.json`."""

    version: Id
    agent: Text
    captured_at: StrictStr
    metadata: Capture
    queries: Annotated[dict[StrictStr, KeptQuery], Field(min_length=1)]
    """By the query's id."""
