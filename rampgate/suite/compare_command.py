"""Runs `rampgate suite compare`: finds both runs, files or stored ones, and reports what is decided of them."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

from typer import Argument, Option

from rampgate.command import Context, Document, command
from rampgate.console import Failure
from rampgate.options import StoreOption

if TYPE_CHECKING:
    from rampgate.report.model import Report
    from rampgate.store.place import Place
    from rampgate.suite.compare import Options
    from rampgate.suite.opened import Opened
    from rampgate.suite.runs.stored import StoredRun


GONE: Final = {
    "--let-go": "name the case in main's suite file, as in `let_go: [CASE]`, and give --suite",
    "--seed": "every comparison resamples with the same one",
}


class Comparison(Document):
    """The document of a comparison, with the name of its report and the texts of stored traces."""

    def __init__(self, fields: Mapping[str, Any], name: str, traces: Mapping[str, str]) -> None:
        super().__init__(fields, 1 if fields["verdict"] == "fail" else 0)
        self.name, self.traces = name, traces


def _report(told: Comparison) -> Report:
    from rampgate.suite.report.comparison import comparison_report

    return comparison_report(told, told.name, told.traces)


@command(_report, flags="configs", gone=GONE)
def compare(
    context: Context,
    baseline: Annotated[str, Argument(help="JSON Lines: case_id, slices, sample, scores, output")],
    candidate: Annotated[
        str | None, Argument(help="the same of the candidate; alone it is compared with main's, with --suite")
    ] = None,
    suite: Annotated[
        Path | None, Option(help="its YAML file says what decides; runs may be named by label or hash")
    ] = None,
    store: StoreOption = None,
    score: Annotated[
        str | None, Option(help="the score that gates look at; default: the only one in the files")
    ] = None,
    safety: Annotated[
        list[str] | None, Option(help="a slice of safety, once or more; default: the slice `safety`")
    ] = None,
    safe_at: Annotated[
        float | None, Option(help="a case of safety fails below this score; default: the scale's middle")
    ] = None,
    scale: Annotated[
        tuple[float, float] | None,
        Option(help="the score's lowest and highest value; default: 0 1, 1 5, or the whole numbers seen"),
    ] = None,
) -> Comparison:
    """Compare a candidate's results with the baseline's, case by case, and decide by the plain rule.

    Fails if a case of safety fails that the baseline never failed, a slice is worse by more than 2 σ, or all cases are
    at p < 0.05; and if scores that are missing decide. Exit code 1 if it fails, 2 for a bad file.

    Example: rampgate suite compare main.jsonl branch.jsonl --score helpfulness --json
    """
    from rampgate.store.place import place_of
    from rampgate.store.sqlite_file import STORE
    from rampgate.suite.answer import document
    from rampgate.suite.compare import Options, compared_files
    from rampgate.suite.opened import open_suite
    from rampgate.suite.report.traces import stored_traces

    older, newer = (baseline, candidate) if candidate is not None else (None, baseline)
    if suite is not None:
        opened = open_suite(suite, context.settings, store)
        how, name = _of_suite(opened, older, newer)
        how = replace(
            how,
            score=score or how.score,
            scale=scale or (how.scale if score in (None, how.score) else None),
            safety=tuple(safety or how.safety),
            safe_at=how.safe_at if safe_at is None else safe_at,
        )
        place: Place = opened.place
    elif older is None:
        raise Failure("name both files, baseline and candidate, or the suite whose stored runs are meant, --suite")
    else:
        one, other = Path(older), Path(newer)
        how = Options(one, other, score, scale, tuple(safety or ()), safe_at)
        place, name = place_of(store, other.parent / STORE, context.settings), f"{other.name} against {one.name}"
    told = document(compared_files(how))
    return Comparison(told, name, stored_traces(told, place, context.reports))


def _of_suite(opened: Opened, baseline: str | None, candidate: str) -> tuple[Options, str]:
    """How the suite has these runs compared, main's last that passed for no `baseline`, and what both are called."""
    from rampgate.suite.runs.run_document import comparison_of
    from rampgate.suite.runs.stored import MAIN, named_run

    name, now = opened.suite.file.suite, datetime.now(UTC)
    with closing(opened.place.opened()) as store:
        other, newer = named_run(candidate, store, name, opened.home, smoke=True)
        smoke = newer is not None and newer.set == "smoke"
        one, older = named_run(MAIN if baseline is None else baseline, store, name, opened.home, smoke=smoke)
    how = comparison_of(opened.suite, opened.judges, one, other, smoke=smoke)
    return how, f"{_said(other, newer, now)} against {_said(one, older, now)}"


def _said(file: Path, stored: StoredRun | None, now: datetime) -> str:
    """What a run is called: a file by its name, a stored run by label, hash and age."""
    if stored is None:
        return file.name
    label = f"{stored.label}'s run" if stored.label else "run"
    return f"{label} {stored.results[:12]}, {stored.age(now)} old"
