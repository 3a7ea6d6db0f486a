"""`rampgate calibrate jade / production / seed / diff`: limits of judges from single scores, and what changed between
two rounds (contracts §5; PF-9 §5.3)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rampgate.options import ConfigsOption, JsonOption, MetricsOption, OpikOption

group = typer.Typer(help="Limits of judges from scores.", no_args_is_help=True)
FileArgument = Annotated[Path, typer.Argument(help="JSON Lines: judge_id, item_id, score")]
OwnOption = Annotated[str | None, typer.Option("--vertical", help="whose limits; never below the platform's")]
GateOption = Annotated[
    int | None, typer.Option(min=1, help="a gate's items; default: the manifest's minimum at pre_ramp")
]
WriteOption = Annotated[
    bool, typer.Option("--write", help="write them into the rule files of --vertical; without it the diff is shown")
]
TicketOption = Annotated[
    str | None, typer.Option(help="what the limits cite, such as PLT-700; default: the hash of the scores")
]


def register(app: typer.Typer) -> None:
    app.add_typer(group, name="calibrate")


@group.command("jade")
def jade_command(
    file: Annotated[
        Path | None, typer.Argument(help="JSON Lines: judge_id, item_id, judge_score, human_score; none: a whole round")
    ] = None,
    acceptable: Annotated[
        list[str] | None,
        typer.Option(help="the lowest score of people's that is acceptable, of a round also JUDGE=SCORE"),
    ] = None,
    at_gate: GateOption = None,
    vertical: OwnOption = None,
    write: WriteOption = False,
    ticket: Annotated[str | None, typer.Option(help="the round's ticket, such as PLT-700")] = None,
    report: Annotated[str | None, typer.Option(help="where the round's report is")] = None,
    round_name: Annotated[str | None, typer.Option("--round", help="the round's name; default: this month")] = None,
    turns: Annotated[
        Path | None,
        typer.Option(help="a round: turns to draw from, as `rampgate export` writes them; default: those in Opik"),
    ] = None,
    since: Annotated[
        str | None, typer.Option(help="a round of turns in Opik: how long ago (7d) or an ISO 8601 time; default: 30d")
    ] = None,
    until: Annotated[str | None, typer.Option(help="a round of turns in Opik: its end; default: today")] = None,
    sheet: Annotated[
        Path | None, typer.Option(help="a round: write the annotators' empty sheet, CSV with users' texts")
    ] = None,
    annotations: Annotated[
        list[Path] | None, typer.Option(help="a round: a sheet with scores, once or more; each time all of them")
    ] = None,
    queue: Annotated[
        bool, typer.Option("--queue", help="a round: have people score in an annotation queue in Opik")
    ] = False,
    outputs: Annotated[
        Path | None, typer.Option(help="a round: write the drawn turns for `check drift --outputs`")
    ] = None,
    size: Annotated[int | None, typer.Option(min=200, help="a round: turns to draw; default: 200")] = None,
    runs: Annotated[
        int | None, typer.Option(min=2, help="a round: times that judges are asked for their drift's limit; default: 3")
    ] = None,
    model: Annotated[str | None, typer.Option(help="a round: the model's URL; default: RAMPGATE_MODEL_URL")] = None,
    metrics_file: MetricsOption = None,
    opik: OpikOption = None,
    kafka: Annotated[str | None, typer.Option("--kafka", help="Brokers, comma-separated; for the audit")] = None,
    configs: ConfigsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show each judge's floor: the 5th percentile of its scores of the turns that people found acceptable.

    Without FILE a vertical's whole round: draw, annotate, agreement, inversion, floors, drift, report, diff. Each run
    goes on where the last one stopped. Exit code 1 if a judge gets no proposal, or annotators do not agree.

    Example: rampgate calibrate jade --vertical receipts --ticket PLT-700 --acceptable 4 --sheet to-score.csv
    """
    from rampgate.limits.cuts import cuts_of, one_cut

    cuts = cuts_of(acceptable or ())
    if file is None:
        from rampgate.calibration.cycle import Options as Round
        from rampgate.calibration.cycle import calibrate_vertical
        from rampgate.console import Failure

        if vertical is None:
            raise Failure("give a file of scores, or --vertical: whose round it is")
        if at_gate is not None:
            raise Failure("--at-gate: a round takes the manifest's minimum at pre_ramp")
        given = (vertical, round_name, turns, tuple(annotations or ()), sheet, outputs)
        fixed = (cuts, ticket, report, size, runs)
        where = (since, until, opik, kafka, queue)
        asked = Round(*given, *fixed, write, model, metrics_file, configs, as_json, *where)
        raise typer.Exit(calibrate_vertical(asked))
    from rampgate.limits.calibration import Options, calibrate
    from schemas.judges import BaselineSource

    source = BaselineSource.JADE_CALIBRATION
    of = (file, one_cut(cuts), None, at_gate, vertical)
    raise typer.Exit(calibrate(Options(source, *of, configs, as_json, write, ticket, report)))


@group.command("production")
def production_command(
    file: Annotated[
        Path | None,
        typer.Argument(help="JSON Lines: judge_id, item_id, score; default: live scores of --vertical, from Opik"),
    ] = None,
    window_days: Annotated[int, typer.Option(min=7, max=365, help="days that the scores are of")] = 30,
    at_gate: GateOption = None,
    vertical: OwnOption = None,
    write: WriteOption = False,
    ticket: TicketOption = None,
    opik: OpikOption = None,
    configs: ConfigsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show each judge's floor: the 5th percentile of its scores in production, less two standard deviations.

    Without FILE they are read from the vertical's own Opik project: the last --window-days full days. Exit code 1 if a
    judge gets no proposal: such a floor often is so low that nothing could breach it. 2 where Opik can't be read.

    Example: rampgate calibrate production --vertical receipts
    """
    from rampgate.limits.calibration import Options, calibrate
    from schemas.judges import BaselineSource

    source = BaselineSource.PRODUCTION_DISTRIBUTION
    of = (file, None, window_days, at_gate, vertical)
    raise typer.Exit(calibrate(Options(source, *of, configs, as_json, write, ticket, None, opik)))


@group.command("seed")
def seed_command(
    file: FileArgument,
    at_gate: GateOption = None,
    vertical: OwnOption = None,
    write: WriteOption = False,
    ticket: TicketOption = None,
    configs: ConfigsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show each judge's threshold for its first 90 days: the mean of a small run, less two standard deviations.

    Exit code 1 if a judge gets no proposal.

    Example: rampgate calibrate seed bootstrap.jsonl --vertical receipts
    """
    from rampgate.limits.calibration import Options, calibrate
    from schemas.judges import BaselineSource

    source = BaselineSource.PROVISIONAL_SEED
    of = (file, None, None, at_gate, vertical)
    raise typer.Exit(calibrate(Options(source, *of, configs, as_json, write, ticket)))


@group.command("diff")
def diff_command(
    then: Annotated[str, typer.Argument(metavar="ROUND", help="the earlier round's name")],
    now: Annotated[str, typer.Argument(metavar="ROUND", help="the later one's")],
    vertical: Annotated[str, typer.Option("--vertical", help="whose rounds")],
    configs: ConfigsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what changed between two rounds of a vertical.

    Floors, alphas, limits of drift, judges' versions and correlation with people, whether they are inverted, and the
    judges that one round alone has. Both rounds have their reports.

    Example: rampgate calibrate diff 2026-06 2026-12 --vertical receipts
    """
    from rampgate.calibration.difference import Options, show_difference

    raise typer.Exit(show_difference(Options(then, now, vertical, configs, as_json)))
