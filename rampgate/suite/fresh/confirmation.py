"""Has both sides of a comparison answer again what fell, and decides by the fresh samples.

Fresh samples bear numbers that come from both runs' answers: the same answers get the same fresh samples, so that
running again is no second chance, and other answers get others.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import orjson

from evalcore.scoring.calls import Spend
from evalcore.suite.confirm import FRESH, confirmed, doubt
from evalcore.suite.results import Run
from rampgate.console import Failure
from rampgate.files import replace_file
from rampgate.input_files import BadFile, lines
from rampgate.registry.rule_history import NoHistory, commit_of
from rampgate.suite.compare import Options as Comparison
from rampgate.suite.compared import Compared
from rampgate.suite.fresh.request import fresh_session
from rampgate.suite.fresh.sources import Fresh, NotFresh
from rampgate.suite.result_files import read_run
from rampgate.suite.runs.base_folder import NoBase, suite_at
from rampgate.suite.runs.baseline import Baseline
from rampgate.suite.runs.only import Side
from rampgate.suite.runs.session import Session
from rampgate.suite.scoring import ScoredSample
from rampgate.suite.suite_files import Suite
from schemas.checks.suite_again import AgainSide, SuiteAgain

JUDGES_SAY: Final = ("scores", "reasons", "versions", "pairwise")
"""Fields of a line of results that judges and checks give."""
Reading = Callable[[Path], Suite]
Writing = Callable[[ScoredSample], Mapping[str, Any]]


@dataclass(frozen=True)
class Confirming:
    """`file` is the candidate's suite, `commit` its commit, `base` that of the baseline; without one it is the stored
    run's. `line` makes a sample a line of results; `out` has the candidate's, and names the files of the fresh ones.
    `fresh` is where fresh samples come from."""

    file: Path
    session: Session
    commit: str
    baseline: Baseline
    base: str | None
    out: Path
    read: Reading
    line: Writing
    fresh: Fresh


def confirm(made: Confirming, compared: Compared, how: Comparison, spend: Spend) -> Compared:
    """Returns the comparison after fresh samples, or as it is with the reason why there are none. Raises Failure where
    a file can't be written."""
    doubted = doubt(compared.judged, compared.paired)
    if not doubted.cases:
        return replace(compared, judged=replace(compared.judged, fresh=True))
    stored = made.baseline.stored
    base = made.base or (stored.commit if stored is not None else "")
    if not base:
        return replace(compared, unconfirmed="nobody says of which commit the baseline is: --base names it")
    suite = made.session.suite
    if suite.file.candidate.url is not None:
        return replace(compared, unconfirmed="what an address was made of can't be asked again from here")
    with TemporaryDirectory(prefix="rampgate-confirm-") as folder:
        try:
            then = suite_at(made.file, base, Path(folder, "base"), made.read)
            commit = commit_of(made.file.absolute().parent, base)
        except (NoBase, NoHistory, BadFile) as error:
            return replace(compared, unconfirmed=f"the baseline can't be asked again: {base}: {error}")
        if stored is not None and then.configuration != stored.configuration:
            return replace(compared, unconfirmed=f"in {base[:12]} the candidate is another one than the baseline's")
        again = SuiteAgain(
            suite=suite.file.suite, set="smoke" if made.session.smoke else "full", cases=tuple(doubted.cases),
            samples=FRESH, after=_after(made),
            baseline=AgainSide(configuration=then.configuration, commit=commit),
            candidate=AgainSide(configuration=suite.configuration, commit=made.commit),
        )  # fmt: skip
        sides = {Side.BASELINE: then, Side.CANDIDATE: suite}
        sessions = {side: fresh_session(made.session, one, again, suite.cases) for side, one in sides.items()}
        try:
            found = made.fresh(again, sessions, spend)
        except NotFresh as why:
            return replace(compared, unconfirmed=str(why), again=why.again)
    runs = {side: _kept(made, side, samples, again.after) for side, samples in found.items()}
    judged, said = confirmed(
        compared.judged, doubted, compared.baseline, runs[Side.BASELINE], runs[Side.CANDIDATE], compared.seed
    )
    left = compared.paired.without(judged.back)
    return replace(compared, judged=judged, paired=left, confirmations=said)


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
    told = [{**made.line(one), "sample": one.generated.sample - after} for one in samples]
    try:
        replace_file(file, "".join(f"{orjson.dumps(line).decode()}\n" for line in told))
        return read_run(file)
    except (OSError, BadFile) as error:
        raise Failure(f"{file}: can't be written: {error}") from error
