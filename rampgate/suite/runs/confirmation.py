"""Has both sides of a comparison answer again what fell, and decides by the fresh samples.

Fresh samples bear numbers that come from both runs' answers: the same answers get the same fresh samples, so that
running again is no second chance, and other answers get others. In a run that is split over jobs a request says what
each side answers; the baseline does in a checkout of its own commit, for who answers can also edit what was answered.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import orjson

from evalcore.scoring.calls import Spend
from evalcore.suite.comparison import SEED
from evalcore.suite.confirm import FRESH, confirmed, doubt
from evalcore.suite.results import Run
from rampgate.console import Failure, run
from rampgate.files import replace_file
from rampgate.input_files import BadFile, document, lines
from rampgate.registry.rule_history import NoHistory
from rampgate.suite.compare import Compared
from rampgate.suite.generation import Left
from rampgate.suite.opened import suite_in
from rampgate.suite.result_files import read_run
from rampgate.suite.runs.answer_files import Head, read_answers
from rampgate.suite.runs.base_folder import suite_at
from rampgate.suite.runs.baseline import Baseline
from rampgate.suite.runs.run_document import line_of
from rampgate.suite.runs.session import Session
from rampgate.suite.scoring import ScoredSample
from rampgate.suite.suite_files import Suite
from schemas.checks.suite_again import AgainSide, Side, SuiteAgain

JUDGES_SAY: Final = ("scores", "reasons", "versions", "pairwise")
"""Fields of a line of results that judges and checks give."""
SOURCE: Final = "the file that `suite run --score` wrote beside its results"
Samples = Mapping[Side, list[ScoredSample]]


class NotFresh(Exception):
    """There are no fresh samples; the text says why. `again`: both sides are to answer that first."""

    def __init__(self, why: str, again: SuiteAgain | None = None) -> None:
        super().__init__(why)
        self.again = again


@dataclass(frozen=True)
class Confirming:
    """`file` is the candidate's suite, `commit` its commit. `out` has the candidate's results, and names the files of
    the fresh ones. `given` are files of fresh answers; None: both sides are asked here."""

    file: Path
    session: Session
    commit: str
    baseline: Baseline
    out: Path
    given: Mapping[Side, Path] | None


def confirm(made: Confirming, compared: Compared, spend: Spend) -> Compared:
    """Returns the comparison after fresh samples, or as it is with the reason why there are none. Raises Failure where
    a file can't be written."""
    doubted = doubt(compared.judged, compared.paired)
    if not doubted.cases:
        return replace(compared, judged=replace(compared.judged, fresh=True))
    try:
        again = _request(made, doubted.cases)
        found = _asked_here(made, again, spend) if made.given is None else _given(made, again, made.given, spend)
    except NotFresh as why:
        return replace(compared, unconfirmed=str(why), again=why.again)
    runs = {side: _kept(made, side, samples, again.after) for side, samples in found.items()}
    judged, said = confirmed(
        compared.judged, doubted, compared.baseline, runs[Side.BASELINE], runs[Side.CANDIDATE], SEED
    )
    left = compared.paired.without(judged.back)
    return replace(compared, judged=judged, paired=left, confirmations=said)


def request_file(out: Path) -> Path:
    """Where a run with these results writes what both sides are to answer again."""
    return out.with_name(f"{out.stem}-again.json")


def read_request(path: Path, suite: Suite, named: Path) -> SuiteAgain:
    """Returns what is to be answered again of the suite, whose file is `named`. Raises Failure."""
    again, _ = document(path, SuiteAgain, f"give {SOURCE}")
    if again.suite != suite.file.suite:
        raise Failure(f"{path}: suite: it is of {again.suite!r}, and {named} is {suite.file.suite!r}; give {SOURCE}")
    known = {case.id for case in suite.cases}
    if strange := [case for case in again.cases if case not in known]:
        raise Failure(f"{path}: cases: {strange[0][:80]!r} is no case of {named}; take both from the same commit")
    if len(set(again.cases)) < len(again.cases):
        raise Failure(f"{path}: cases: one is there twice; give {SOURCE}")
    return again


def side_here(path: Path, again: SuiteAgain, suite: Suite, commit: str, *, proposed: bool) -> Side:
    """The side that answers here: the baseline in a checkout of its commit, which has nothing of a proposal, else the
    candidate. Raises Failure for one of other parts than the request's."""
    side = Side.BASELINE if not proposed and commit == again.baseline.commit else Side.CANDIDATE
    expected = again.of(side).configuration
    if suite.configuration != expected:
        raise Failure(
            f"{path}: {side}.configuration: must be that of the parts here, {suite.configuration!r}, got "
            f"{expected!r}; the file is of another run, or this is no checkout of {again.baseline.commit!r}, in which "
            "the baseline answers"
        )
    return side


def fresh_session(session: Session, again: SuiteAgain, suite: Suite | None = None) -> Session:
    """The session in which the session's candidate, or that of `suite`, answers what is requested."""
    whose = replace(suite or session.suite, cases=session.suite.cases)
    return replace(session, suite=whose.asking(again.cases, again.samples), smoke=False, after=again.after)


def head_of_side(again: SuiteAgain, side: Side) -> Head:
    """The first line of the side's fresh answers to this request."""
    request = hashlib.sha256(again.model_dump_json().encode()).hexdigest()
    return Head(configuration=again.of(side).configuration, side=side, request=request)


def _request(made: Confirming, cases: Sequence[str]) -> SuiteAgain:
    """Raises NotFresh where the baseline can't be asked again."""
    stored, suite = made.baseline.stored, made.session.suite
    if stored is None or not stored.commit:
        raise NotFresh("no commit of the baseline is known; --baseline names a stored run that has one, or its results")
    if suite.file.candidate.url is not None:
        raise NotFresh("what an address was made of can't be asked again from here")
    return SuiteAgain(
        suite=suite.file.suite, set="smoke" if made.session.smoke else "full", cases=tuple(cases),
        samples=FRESH, after=_after(made),
        baseline=AgainSide(configuration=stored.configuration, commit=stored.commit),
        candidate=AgainSide(configuration=suite.configuration, commit=made.commit),
    )  # fmt: skip


def _asked_here(made: Confirming, again: SuiteAgain, spend: Spend) -> Samples:
    """Has both sides answer in this process, the baseline as it is in its commit. Raises NotFresh."""
    commit, found = again.baseline.commit, dict[Side, list[ScoredSample]]()
    with TemporaryDirectory(prefix="rampgate-confirm-") as folder:
        try:
            then = suite_at(made.file, commit, Path(folder, "base"), partial(suite_in, made.session.settings))
        except (NoHistory, BadFile) as error:
            raise NotFresh(f"the baseline can't be asked again: {commit}: {error}") from error
        if then.configuration != again.baseline.configuration:
            raise NotFresh(f"in {commit[:12]} the candidate is another one than the baseline's")
        for side, suite in ((Side.BASELINE, then), (Side.CANDIDATE, None)):
            try:
                found[side] = run(partial(fresh_session(made.session, again, suite).score, spend))
            except Failure as error:
                raise NotFresh(f"the {side} can't be asked again: {error}") from error
    if any(isinstance(sample.generated.answer, Left) for samples in found.values() for sample in samples):
        raise NotFresh(f"fresh samples cost too much: {spend.spent}")
    return found


def _given(made: Confirming, again: SuiteAgain, given: Mapping[Side, Path], spend: Spend) -> Samples:
    """The samples of fresh answers in files: nothing of either side runs here. Without any file the request is written.
    The candidate's that are missing are its own errors; the baseline's have to be there, for no candidate may pass by
    them. Raises NotFresh, and Failure where the request can't be written."""
    if not given:
        file = request_file(made.out)
        replace_file(file, f"{again.model_dump_json(indent=2)}\n")
        many = f"{len(again.cases):,} cases {again.samples} times each"
        raise NotFresh(f"not yet confirmed: first both sides answer {many} again, as {file} says", again)
    found: dict[Side, list[ScoredSample]] = {}
    session = fresh_session(made.session, again)
    for side in Side:
        if side not in given:
            raise NotFresh(f"the fresh answers of the {side} can't be used: no file has them")
        head = head_of_side(again, side)
        try:
            whole = side is Side.BASELINE
            answers = read_answers(given[side], head, session.keys(head.configuration), whole=whole)
            found[side] = run(partial(session.score, spend, answers))
        except Failure as error:
            raise NotFresh(f"the fresh answers of the {side} can't be used: {error}") from error
    return found


def _after(made: Confirming) -> int:
    """The number after which fresh samples come, below 2^52 so that JSON keeps it. It is of the answers alone: a judge
    that was away yesterday and scores them today draws no others."""
    both = b"".join(_answers(one) for one in (made.baseline.file, made.out))
    return int(hashlib.sha256(both).hexdigest()[:12], 16) + 1_000


def _answers(results: Path) -> bytes:
    """The hash of what a run's candidate answered, whatever judges say of it."""
    hashed = hashlib.sha256()
    for _, row in lines(results):
        said = {name: value for name, value in row.items() if name not in JUDGES_SAY}
        hashed.update(orjson.dumps(said, option=orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE))
    return hashed.digest()


def _kept(made: Confirming, side: Side, samples: Sequence[ScoredSample], after: int) -> Run:
    """The samples as a file of results, numbered from 1, read again as any other."""
    file = made.out.with_name(f"{made.out.stem}-fresh-{side}.jsonl")
    told = [{**line_of(one, made.session.rubric), "sample": one.generated.sample - after} for one in samples]
    replace_file(file, b"".join(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE) for line in told))
    return read_run(file)
