"""Reads the document that `suite run --json` tells, where another command goes by it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from rampgate.input_files import document


class SuiteReason(BaseModel):
    """Why a run blocks, or warns."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    code: str
    message: str
    slice: str | None = None
    cases: list[str] = []


class SuiteComparison(BaseModel):
    """How the run stands to its baseline."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    score: str
    verdict: Literal["pass", "warn", "fail"]
    reasons: list[SuiteReason]


class SuiteLeft(BaseModel):
    """What an incomplete run did not ask."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    why: str
    answers: int
    scores: int


class SuiteAnew(BaseModel):
    """How much both sides have to answer anew before the verdict is confirmed."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    cases: int
    samples: int


class SuiteDocument(BaseModel):
    """What other commands go by. `commit` is the one that was judged, empty where nobody named it."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    suite: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]*$", max_length=63)]
    agent: str
    configuration: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    commit: Annotated[str, Field(max_length=64)]
    set: Literal["smoke", "full"]
    verdict: Literal["pass", "warn", "fail", "incomplete", "unscored", "no_baseline"]
    left: SuiteLeft | None
    comparison: SuiteComparison | None
    again: SuiteAnew | None = None


def read_document(path: Path) -> tuple[SuiteDocument, Mapping[str, Any]]:
    """Returns what is gone by, and all that the file tells. Raises Failure."""
    return document(path, SuiteDocument, "give the document of `suite run --json`")
