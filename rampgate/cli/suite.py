"""`rampgate suite …`: the offline pipeline (contracts §5)."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from rampgate.command import callback
from rampgate.console import Format
from rampgate.options import ConfigsOption, FormatOption, JsonOption, ReportsOption
from rampgate.suite.blame.command import blame
from rampgate.suite.check.command import check
from rampgate.suite.compare_command import compare
from rampgate.suite.options import StoreOption
from rampgate.suite.report_command import report as report_command
from rampgate.suite.runs.only import Only, Side


class Confirm(StrEnum):
    """Who decides of what tripped."""

    FRESH = "fresh"
    NONE = "none"


LetGoOption = Annotated[
    list[str] | None,
    typer.Option(metavar="CASE", help="a case of safety that may be missing or changed; once or more"),
]
group = typer.Typer(help="The offline pipeline: runs of a suite of cases.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    app.add_typer(group, name="suite")


@group.callback()
def suite() -> None:
    """The offline pipeline: runs of a suite of cases, and what they say of a candidate."""


group.command("compare")(callback(compare))


@group.command("run")
def run_command(
    suite_file: Annotated[Path, typer.Argument(metavar="SUITE", help="the suite's YAML file")],
    smoke: Annotated[bool, typer.Option("--smoke", help="the smoke set alone, as each commit does")] = False,
    baseline: Annotated[
        Path | None,
        typer.Option(help="results to hold the candidate against; default: main's last run in the store that passed"),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="where the results go; default: .rampgate beside the suite")] = None,
    store: StoreOption = None,
    seed: Annotated[int, typer.Option(min=0, help="of resamples and flips; the same, the same digits")] = 20_260_101,
    let_go: LetGoOption = None,
    report: ReportsOption = None,
    format: FormatOption = Format.TEXT,
    plan: Annotated[bool, typer.Option("--plan", help="tell calls and cost, and ask nobody")] = False,
    max_cost: Annotated[
        float | None,
        typer.Option(min=0, help="US dollars that it may cost; what would cost more is left"),
    ] = None,
    only: Annotated[Only | None, typer.Option(help="half a run: have answers made, or score those of a file")] = None,
    answers: Annotated[Path | None, typer.Option(help="with --only: the file of answers")] = None,
    label: Annotated[str, typer.Option(help="what the run is kept as; `main`: it becomes the baseline")] = "",
    first_run: Annotated[
        bool, typer.Option("--first-run", help="let it pass without a baseline, as main may, where there can be none")
    ] = False,
    canary: Annotated[
        Path | None, typer.Option(help="where the ramp-step requests of a full run that passed go, JSON Lines")
    ] = None,
    confirm: Annotated[
        Confirm, typer.Option(help="`fresh`: what tripped gets fresh samples of both sides; `none`: the plain rule")
    ] = Confirm.FRESH,
    base: Annotated[
        str | None,
        typer.Option(metavar="REF", help="the commit that the baseline is of; default: the stored run's"),
    ] = None,
    commit: Annotated[
        str | None, typer.Option(help="the commit that is judged; default: git's, or GITHUB_SHA where git has none")
    ] = None,
    proposed: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="the suite's folder as a pull request proposes it: the candidate's alone"),
    ] = None,
    again: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="with --only: score writes what both sides are to answer anew, generate reads it"
        ),
    ] = None,
    side: Annotated[Side | None, typer.Option(help="with --only generate --again: who answers anew")] = None,
    fresh_baseline: Annotated[
        Path | None, typer.Option(metavar="FILE", help="with --only score: what the baseline answered anew")
    ] = None,
    fresh_candidate: Annotated[
        Path | None, typer.Option(metavar="FILE", help="the same of the candidate; both decide what tripped")
    ] = None,
    configs: ConfigsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Have the candidate answer the suite's cases, score the answers, and hold them against a baseline.

    What was answered or scored before, of the same configuration, is not asked again. With --proposed the candidate and
    its parts are those of that folder, and cases, checks and judges those of SUITE. Exit code 1 if the candidate is
    worse, the run incomplete (--max-cost), or without a baseline (--first-run), 2 for a bad suite.

    Example: rampgate suite run examples/suite/suite.yaml --smoke --baseline main.jsonl
    """
    from rampgate.suite.run import run_suite
    from rampgate.suite.runs.options import Options, fresh_files

    options = Options(
        suite_file, smoke, out, store, baseline, seed, tuple(let_go or ()), configs, as_json, tuple(report or ()),
        format, plan, max_cost, label, canary, only, answers, confirm is Confirm.FRESH, base, commit, proposed,
        again, side, fresh_files(fresh_baseline, fresh_candidate), first_run,
    )  # fmt: skip
    raise typer.Exit(run_suite(options))


group.command("report")(callback(report_command))
group.command("check")(callback(check))
group.command("blame")(callback(blame))
