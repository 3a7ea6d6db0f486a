"""Runs `rampgate suite compare`: decides whether a candidate's run regresses from the baseline's, and says where."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evalcore.suite.gates import judge
from evalcore.suite.pairing import paired
from evalcore.suite.results import SAFETY, NoScore, Run, chosen, scale_of, versions_of
from rampgate.ci_gate.inputs import BadFile
from rampgate.console import Failure, Format, print_json
from rampgate.report.page import check_paths
from rampgate.settings_sources import load_settings
from rampgate.store.place import place_of
from rampgate.store.sqlite_file import STORE
from rampgate.suite.answer import document
from rampgate.suite.compared import Compared
from rampgate.suite.report.ci import commands
from rampgate.suite.report.files import write_reports
from rampgate.suite.result_files import read_run
from rampgate.suite.shown import show
from schemas.verdicts import VerdictLevel


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


def compare_files(options: Options) -> int:
    """Compare, report, and return the exit code. Raises Failure."""
    check_paths(options.reports)
    compared = compared_files(options)
    told, name = document(compared), f"{options.candidate.name} against {options.baseline.name}"
    if options.reports:
        place = place_of(None, options.candidate.parent / STORE, load_settings({}))
        write_reports(options.reports, told, name, place)
    tell(compared, told, name, options.format, as_json=options.as_json)
    return 1 if compared.judged.verdict is VerdictLevel.FAIL else 0


def tell(compared: Compared, told: Mapping[str, Any], name: str, format: Format, *, as_json: bool) -> None:
    """Tell a comparison, `told` its document: annotations on stderr beside either form, as `gate run` does."""
    if format is Format.GITHUB:
        sys.stderr.write("".join(f"{line}\n" for line in commands(told, name)))
    if as_json or format is Format.JSON:
        print_json(told)
    else:
        show(compared)


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
        raise Failure(
            f"{options.baseline} and {options.candidate}: no case has {score[:80]!r} in both; nothing can be compared"
        )
    return Compared(baseline, candidate, found, judge(found, options.seed), options.seed)


def _other(baseline: Run, candidate: Run, name: str) -> bool:
    """Tells whether the case asks something else in the two runs; then it is not compared."""
    questions = {run[name].question for run in (baseline, candidate)} - {""}
    return len(questions) > 1
