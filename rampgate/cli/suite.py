"""`rampgate suite …`: the offline pipeline (contracts §5)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from rampgate.cli.lazy import FramedCommand
from rampgate.command import callback, gone_options
from rampgate.console import Format
from rampgate.options import ConfigsOption, FormatOption, JsonOption, ReportsOption
from rampgate.suite.blame.command import blame
from rampgate.suite.check.command import check
from rampgate.suite.compare_command import compare
from rampgate.suite.options import StoreOption
from rampgate.suite.report_command import report as report_command

group = typer.Typer(help="The offline pipeline: runs of a suite of cases.", no_args_is_help=True)


HALVES = "give --generate FILE, or --score FILE"
GONE = {
    "--only": HALVES,
    "--answers": HALVES,
    "--again": "--score writes what both sides answer again beside its results; --generate FILE --cases takes it",
    "--side": "--generate --cases answers for the side whose checkout it is",
    "--fresh-baseline": "give the file to --score, beside the one of the first answers",
    "--fresh-candidate": "give the file to --score, beside the one of the first answers",
    "--base": "the baseline's commit is that of its stored run, which --baseline names by results, label or hash",
    "--let-go": "name the case in main's suite file, as in `let_go: [CASE]`",
    "--confirm": "`suite compare` decides by the plain rule",
    "--seed": "every run resamples with the same one",
    "--commit": "it is that of the candidate's checkout",
}
"""Options of earlier releases of `suite run`, and what does their work."""


def without(gone: Mapping[str, str]) -> type[FramedCommand]:
    """A command that refuses these options by name."""
    return type("Command", (FramedCommand,), {"gone": gone})


def register(app: typer.Typer) -> None:
    app.add_typer(group, name="suite")


@group.callback()
def suite() -> None:
    """The offline pipeline: runs of a suite of cases, and what they say of a candidate."""


group.command("compare", cls=without(gone_options(compare)))(callback(compare))


@group.command("run", cls=without(GONE))
def run_command(
    suite_file: Annotated[Path, typer.Argument(metavar="SUITE", help="the suite's YAML file")],
    smoke: Annotated[bool, typer.Option("--smoke", help="the smoke set alone, as each commit does")] = False,
    baseline: Annotated[
        str | None,
        typer.Option(help="file of results, or a stored run's label or hash; default: main's last run that passed"),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="where the results go; default: .rampgate beside the suite")] = None,
    store: StoreOption = None,
    generate: Annotated[
        Path | None, typer.Option(metavar="FILE", help="half a run: have the candidate answer into this file")
    ] = None,
    score: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="the other half: score its answers; again for each file of fresh answers"),
    ] = None,
    cases: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="with --generate: answer again what --score wrote beside its results"),
    ] = None,
    plan: Annotated[bool, typer.Option("--plan", help="report calls and cost, and ask no one")] = False,
    max_cost: Annotated[
        float | None,
        typer.Option(min=0, help="US dollars that it may cost; what would cost more is left"),
    ] = None,
    label: Annotated[str, typer.Option(help="what the run is kept as; `main`: it becomes the baseline")] = "",
    first_run: Annotated[
        bool, typer.Option("--first-run", help="let it pass without a baseline, as main may, where there can be none")
    ] = False,
    canary: Annotated[
        Path | None, typer.Option(help="where the ramp-step requests of a full run that passed go, JSON Lines")
    ] = None,
    proposed: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="the suite's folder as a pull request proposes it: the candidate's alone"),
    ] = None,
    report: ReportsOption = None,
    format: FormatOption = Format.TEXT,
    configs: ConfigsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Have the candidate answer the suite's cases, score the answers, and compare them with a baseline's.

    What was answered or scored before, of the same configuration, is not asked again. With --proposed the candidate and
    its parts are those of that folder, and cases, checks and judges those of SUITE. Exit code 1 if the candidate is
    worse, not yet confirmed, the run incomplete (--max-cost), or without a baseline (--first-run), 2 for a bad suite.

    Example: rampgate suite run examples/suite/suite.yaml --smoke --baseline main.jsonl
    """
    from rampgate.suite.run import Options, run_suite

    options = Options(
        suite_file, smoke, baseline, out, store, generate, tuple(score or ()), cases, plan, max_cost, label, first_run,
        canary, proposed, configs, tuple(report or ()), format, as_json,
    )  # fmt: skip
    raise typer.Exit(run_suite(options))


group.command("report", cls=without(gone_options(report_command)))(callback(report_command))
group.command("check", cls=without(gone_options(check)))(callback(check))
group.command("blame", cls=without(gone_options(blame)))(callback(blame))
