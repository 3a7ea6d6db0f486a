"""Says what both sides answer anew, as a file for the jobs that have them answer, and who then is asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rampgate.console import Failure
from rampgate.files import replace_file
from rampgate.input_files import document
from rampgate.suite.runs.answer_files import Head
from rampgate.suite.runs.only import Side
from rampgate.suite.runs.session import Session
from rampgate.suite.suite_files import Suite, SuiteCase
from schemas.checks.suite_again import AgainSide, SuiteAgain


def side_of(again: SuiteAgain, side: Side) -> AgainSide:
    return again.baseline if side is Side.BASELINE else again.candidate


def head_of_side(again: SuiteAgain, side: Side) -> Head:
    """The first line that the side's file of fresh answers has."""
    told = side_of(again, side)
    return Head(told.configuration, str(side), told.commit, again.after)


def fresh_session(session: Session, suite: Suite, again: SuiteAgain, cases: Sequence[SuiteCase]) -> Session:
    """The session in which the candidate of `suite` answers those of the cases anew."""
    wanted = frozenset(again.cases)
    asked = replace(
        suite,
        cases=[case for case in cases if case.id in wanted],
        file=suite.file.model_copy(update={"samples": again.samples}),
    )
    return replace(session, suite=asked, smoke=False, after=again.after)


def write_again(path: Path, again: SuiteAgain) -> None:
    """Raises Failure."""
    try:
        replace_file(path, f"{again.model_dump_json(indent=2)}\n")
    except OSError as error:
        raise Failure(f"{path}: can't be written: {error.strerror or error}") from error


def remove_again(path: Path | None) -> None:
    """Removes the file of an earlier run: what is there is to be answered. Raises Failure."""
    try:
        if path is not None:
            path.unlink(missing_ok=True)
    except OSError as error:
        raise Failure(f"{path}: the file of an earlier run can't be removed: {error.strerror or error}") from error


def read_again(path: Path, suite: Suite, named: Path) -> SuiteAgain:
    """Returns what is to be answered anew of the suite, whose file is `named`. Raises Failure."""
    source = "the file that `suite run --only score --again` wrote"
    again, _ = document(path, SuiteAgain, f"give {source}")
    if again.suite != suite.file.suite:
        raise Failure(f"{path}: suite: it is of {again.suite!r}, and {named} is {suite.file.suite!r}; give {source}")
    known = {case.id for case in suite.cases}
    if strange := [case for case in again.cases if case not in known]:
        raise Failure(f"{path}: cases: {strange[0][:80]!r} is no case of {named}; take both from the same commit")
    if len(set(again.cases)) < len(again.cases):
        raise Failure(f"{path}: cases: one is there twice; give {source}")
    return again
