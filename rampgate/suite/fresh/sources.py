"""Where fresh samples of both sides come from: asked here, or from the files of the jobs that had them answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from evalcore.scoring.calls import Spend
from rampgate.console import Failure, run
from rampgate.input_files import BadFile
from rampgate.suite.fresh.request import head_of_side, write_again
from rampgate.suite.generation import Left
from rampgate.suite.runs.only import Side
from rampgate.suite.runs.session import Session
from rampgate.suite.scoring import ScoredSample
from schemas.checks.suite_again import SuiteAgain

Samples = Mapping[Side, list[ScoredSample]]
Sessions = Mapping[Side, Session]


class NotFresh(Exception):
    """There are no fresh samples; the text says why. `again`: both sides are to answer that first."""

    def __init__(self, why: str, again: SuiteAgain | None = None) -> None:
        super().__init__(why)
        self.again = again


Fresh = Callable[[SuiteAgain, Sessions, Spend], Samples]
"""Returns the fresh samples of both sides with their scores. Raises NotFresh, Failure."""


def asked_here(again: SuiteAgain, sessions: Sessions, spend: Spend) -> Samples:
    """Has both sides answer in this process."""
    found: dict[Side, list[ScoredSample]] = {}
    for side, session in sessions.items():
        try:
            found[side] = run(partial(session.run, spend))
        except Failure as error:
            raise NotFresh(f"the {side} can't be asked again: {error}") from error
    if any(isinstance(sample.generated.answer, Left) for samples in found.values() for sample in samples):
        raise NotFresh(f"fresh samples cost too much: {spend.spent}")
    return found


@dataclass(frozen=True)
class AskedElsewhere:
    """Nothing that is the candidate's may run here: what both sides are to answer goes into `file`."""

    file: Path | None

    def __call__(self, again: SuiteAgain, sessions: Sessions, spend: Spend) -> Samples:
        if self.file is None:
            raise NotFresh(
                "the answers are given, and nothing of the candidate's runs here; --again FILE says what to answer anew"
            )
        write_again(self.file, again)
        many = f"{len(again.cases):,} cases {again.samples} times each"
        raise NotFresh(f"not yet confirmed: first both sides answer {many} anew, as {self.file} says", again)


@dataclass(frozen=True)
class FromFiles:
    """Fresh answers of both sides, each made in a job of its own. The candidate's that are missing are its own errors;
    the baseline's have to be there, for no candidate may pass by them."""

    baseline: Path
    candidate: Path

    def __call__(self, again: SuiteAgain, sessions: Sessions, spend: Spend) -> Samples:
        files = {Side.BASELINE: self.baseline, Side.CANDIDATE: self.candidate}
        found: dict[Side, list[ScoredSample]] = {}
        for side, session in sessions.items():
            head, whole = head_of_side(again, side), side is Side.BASELINE
            try:
                found[side] = run(partial(session.score, files[side], spend, head, whole=whole))
            except (BadFile, Failure) as error:
                raise NotFresh(f"the fresh answers of the {side} can't be used: {error}") from error
        return found
