"""Decides whether a candidate's run regresses from the baseline's, as its results stand in files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from evalcore.suite.gates import judge
from evalcore.suite.pairing import paired
from evalcore.suite.results import SAFETY, NoScore, Run, chosen, scale_of, versions_of
from rampgate.ci_gate.inputs import BadFile
from rampgate.console import Failure, Format
from rampgate.suite.compared import Compared
from rampgate.suite.result_files import read_run


@dataclass(frozen=True)
class Options:
    """The options of the command. `scale`, `safety` and `safe_at` are what files do not say: the score's lowest and
    highest value, which slices are of safety (none named: `safety`), and below which score a case of theirs fails.
    `let_go`: cases of safety that may be missing; `undrawn`: cases of the baseline that the candidate was not asked,
    because its run is of the smoke set."""

    baseline: Path
    candidate: Path
    score: str | None
    scale: tuple[float, float] | None
    safety: tuple[str, ...]
    safe_at: float | None
    seed: int
    as_json: bool
    let_go: tuple[str, ...] = ()
    undrawn: frozenset[str] = frozenset()
    reports: tuple[Path, ...] = ()
    format: Format = Format.TEXT


class NothingInCommon(Failure):
    """No case of the candidate is one of the baseline's, and asks the same."""


def compared_files(options: Options) -> Compared:
    """Read both runs and judge them. Raises Failure, with what to do."""
    try:
        baseline, candidate = read_run(options.baseline), read_run(options.candidate)
        runs = (baseline, candidate)
        score = chosen(runs, options.score)
        scale = scale_of(runs, score, options.scale)
    except (BadFile, NoScore) as error:
        raise Failure(str(error)) from error
    same = {name: baseline[name] for name in candidate if name in baseline and not _other(baseline, candidate, name)}
    if len(versions_of(same, score) | versions_of(candidate, score)) > 1:
        raise Failure(
            f"{options.baseline} and {options.candidate}: {score[:80]!r} is of other versions of its judge or check; "
            "`rampgate suite run SUITE --baseline FILE` has the baseline's outputs judged again"
        )
    asked = {name: case for name, case in baseline.items() if name not in options.undrawn or name in candidate}
    found = paired(asked, candidate, score, scale, options.safety or SAFETY, options.safe_at, options.let_go)
    if not found.pairs:
        raise NothingInCommon(
            f"{options.baseline} and {options.candidate}: no case has {score[:80]!r} in both; nothing can be compared"
        )
    return Compared(baseline, candidate, found, judge(found, options.seed), options.seed)


def _other(baseline: Run, candidate: Run, name: str) -> bool:
    """Tells whether the case asks something else in the two runs; then it is not compared."""
    questions = {run[name].question for run in (baseline, candidate)} - {""}
    return len(questions) > 1
