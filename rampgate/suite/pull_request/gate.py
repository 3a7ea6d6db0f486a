"""Joins a suite's run to the verdict of pre_merge: the worse of both decides, and one document says why.

What can't be read, is of another commit, or contradicts itself is no evidence, and fails.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from evalcore.suite.gates import BLOCKING
from rampgate.console import Failure
from rampgate.input_files import document
from rampgate.suite.report.outcome import stopped
from schemas.verdicts import Code, GateVerdict, Reason, VerdictLevel

ORDER: Final = tuple(VerdictLevel)
CONFIGURATION: Final = re.compile(r"[0-9a-f]{64}")
MOST: Final = 20
"""Reasons of a suite that a gate's verdict repeats."""


class Part(BaseModel):
    """A part of the document of `suite run --json`: what this gate goes by."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class SuiteReason(Part):
    """Why a run blocks, or warns."""

    code: str
    message: str
    slice: str | None = None
    cases: list[str] = []


class SuiteComparison(Part):
    """How the run stands to its baseline."""

    score: str
    verdict: Literal["pass", "warn", "fail"]
    reasons: list[SuiteReason]


class SuiteLeft(Part):
    """What an incomplete run did not ask."""

    why: str
    answers: int
    scores: int


class SuiteAgainCount(Part):
    """How much both sides have to answer again before the verdict is confirmed."""

    cases: int
    samples: int


class SuiteDocument(Part):
    """What other commands go by. `commit` is the one that was judged, empty where it is not named."""

    suite: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]*$", max_length=63)]
    agent: str
    configuration: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    commit: Annotated[str, Field(max_length=64)]
    set: Literal["smoke", "full"]
    verdict: Literal["pass", "warn", "fail", "incomplete", "unscored", "no_baseline"]
    left: SuiteLeft | None
    comparison: SuiteComparison | None
    again: SuiteAgainCount | None = None


@dataclass(frozen=True)
class SuiteWord:
    """What a suite's run says of the pull request; `about` is its part of the gate's document."""

    level: VerdictLevel
    reasons: tuple[Reason, ...]
    about: dict[str, Any]


def word_of(path: Path, commit: str, version: str | None = None) -> SuiteWord:
    """The word of the run in that document, on this commit. A `version` of the candidate that is written as a
    configuration's hash, as in a canary plan, is its configuration, and the run's has to be that one; any other says
    nothing of it."""
    try:
        run, _ = document(path, SuiteDocument, "give the document of `suite run --json`")
    except Failure as error:
        return _unusable(str(error), {"document": str(path), "verdict": None})
    about = run.model_dump(include={"suite", "agent", "configuration", "commit", "set", "verdict"})
    if run.commit != commit:
        judged = run.commit or "no commit that it names"
        return _unusable(f"{path}: the run of suite {run.suite} is of {judged}, and this gate is of {commit}", about)
    if version is not None and CONFIGURATION.fullmatch(version) and version not in (commit, run.configuration):
        of = f"is of configuration {run.configuration}, and this gate is of version {version}"
        return _unusable(f"{path}: the run of suite {run.suite} {of}", about)
    if run.set != "full":
        return _unusable(
            f"{path}: the run of suite {run.suite} is of the {run.set} set; a merge takes the full one", about
        )
    level = max(_levels(run), key=ORDER.index)
    return SuiteWord(level, tuple(_reasons(run, level)), about)


def joined(verdict: GateVerdict, word: SuiteWord) -> GateVerdict:
    """The gate's verdict and the suite's in one: the worse, with the reasons of both."""
    worse = max(verdict.verdict, word.level, key=ORDER.index)
    return replace(verdict, verdict=worse, reasons=[*verdict.reasons, *word.reasons])


def _unusable(message: str, about: dict[str, Any]) -> SuiteWord:
    return SuiteWord(VerdictLevel.FAIL, (Reason(Code.SUITE_UNUSABLE, message),), about)


def _levels(run: SuiteDocument) -> Iterator[VerdictLevel]:
    """Whatever part of the document is the worst: one that contradicts itself passes nothing."""
    yield VerdictLevel(run.verdict) if run.verdict in ORDER else VerdictLevel.FAIL
    if run.left is not None or run.again is not None:
        yield VerdictLevel.FAIL
    if run.comparison is None:
        yield VerdictLevel.WARN  # it was compared with nothing: a first run can't know better, and is no evidence
        return
    yield VerdictLevel(run.comparison.verdict)
    if any(one.code in BLOCKING for one in run.comparison.reasons):
        yield VerdictLevel.FAIL


def _reasons(run: SuiteDocument, level: VerdictLevel) -> Iterator[Reason]:
    code = Code.SUITE_FAILED if level is VerdictLevel.FAIL else Code.SUITE_WARNED
    name = f"suite {run.suite}, {run.set} set"
    why = stopped(run.model_dump())
    if why is not None:
        yield Reason(code, f"{name}: {why.message}")
    if run.comparison is None:
        yield Reason(Code.SUITE_WARNED, f"{name}: compared with nothing, since main has no run of it that passed")
        return
    found = run.comparison.reasons
    for one in found[:MOST]:
        one_code = Code.SUITE_FAILED if one.code in BLOCKING else Code.SUITE_WARNED
        yield Reason(one_code, f"{name}: {one.code}: {one.message}")
    if len(found) > MOST:
        yield Reason(code, f"{name}: {len(found) - MOST:,} reasons more are in its document")
    if not found and level is VerdictLevel.FAIL and why is None:
        yield Reason(code, f"{name}: its verdict is {run.verdict}, without a reason")
