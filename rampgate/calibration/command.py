"""Limits of judges from single scores: `rampgate calibrate` (PF-9 §5.3)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from rampgate.calibration.shown import limits_report, round_report
from rampgate.command import Context, Document, command
from rampgate.console import Failure, plain
from schemas.terms import BaselineSource

ALL = "*"
"""In `--acceptable`: all judges that have no cut of their own."""
METRIC = "eval_recalibration_cycle_duration_seconds"
FileArgument = Annotated[Path, Argument(help="JSON Lines: judge_id, item_id, score")]
OwnOption = Annotated[str | None, Option("--vertical", help="whose limits; never below the platform's")]
WriteOption = Annotated[
    bool, Option("--write", help="write them into the rule files of --vertical; without it the diff is shown")
]
GONE = {"--at-gate": "limits are for gates of the manifest's minimum at pre_ramp"}
TicketOption = Annotated[
    str | None, Option(help="what the limits cite, such as PLT-700; default: the hash of the scores")
]


@command(round_report, flags="metrics_file opik kafka configs", metrics=(METRIC,), gone=GONE)
def jade(
    context: Context,
    file: Annotated[
        Path | None, Argument(help="JSON Lines: judge_id, item_id, judge_score, human_score; none: a whole round")
    ] = None,
    acceptable: Annotated[
        list[str] | None, Option(help="the lowest score of people's that is acceptable, of a round also JUDGE=SCORE")
    ] = None,
    vertical: OwnOption = None,
    write: WriteOption = False,
    ticket: Annotated[str | None, Option(help="the round's ticket, such as PLT-700")] = None,
    report: Annotated[str | None, Option(help="where the round's report is")] = None,
    round_name: Annotated[str | None, Option("--round", help="the round's name; default: this month")] = None,
    turns: Annotated[
        Path | None, Option(help="a round: turns to draw from, as `rampgate export` writes them; default: Opik's")
    ] = None,
    since: Annotated[
        str | None, Option(help="a round of turns in Opik: how long ago (7d) or an ISO 8601 time; default: 30d")
    ] = None,
    until: Annotated[str | None, Option(help="a round of turns in Opik: its end; default: today")] = None,
    sheet: Annotated[
        Path | None, Option(help="a round: write the annotators' empty sheet, CSV with users' texts")
    ] = None,
    annotations: Annotated[
        list[Path] | None, Option(help="a round: a sheet with scores, once or more; each time all of them")
    ] = None,
    queue: Annotated[bool, Option("--queue", help="a round: have people score in an annotation queue in Opik")] = False,
    outputs: Annotated[Path | None, Option(help="a round: write the drawn turns for `check drift --outputs`")] = None,
    size: Annotated[int | None, Option(min=200, help="a round: turns to draw; default: 200")] = None,
    runs: Annotated[
        int | None, Option(min=2, help="a round: times that judges are asked for their drift's limit; default: 3")
    ] = None,
) -> Document:
    """Show each judge's floor: the 5th percentile of its scores of the turns that people found acceptable.

    Without FILE a vertical's whole round: draw, annotate, agreement, inversion, floors, drift, report, diff. Each run
    resumes where the last one stopped. Exit code 1 if a judge gets no proposal, or annotators do not agree.

    Example: rampgate calibrate jade --vertical receipts --ticket PLT-700 --acceptable 4 --sheet to-score.csv
    """
    cuts = cuts_of(acceptable or ())
    if file is None:
        from rampgate.calibration.cycle import calibrate_vertical
        from rampgate.calibration.steps.given import Options

        if vertical is None:
            raise Failure("give a file of scores, or --vertical: whose round it is")
        files = (vertical, round_name, turns, tuple(annotations or ()), sheet, outputs)
        return calibrate_vertical(
            Options(context, *files, cuts, ticket, report, size, runs, write, since, until, queue)
        )  # fmt: skip
    from rampgate.limits import calibration as limits

    of = (file, one_cut(cuts), None, context, vertical)
    return limits.calibrate(limits.Options(BaselineSource.JADE_CALIBRATION, *of, write, ticket, report))


@command(limits_report, flags="opik configs", gone=GONE)
def production(
    context: Context,
    file: Annotated[
        Path | None,
        Argument(help="JSON Lines: judge_id, item_id, score; default: live scores of --vertical, from Opik"),
    ] = None,
    window_days: Annotated[int, Option(min=7, max=365, help="days that the scores are of")] = 30,
    vertical: OwnOption = None,
    write: WriteOption = False,
    ticket: TicketOption = None,
) -> Document:
    """Show each judge's floor: the 5th percentile of its scores in production, less two standard deviations.

    Without FILE they are read from the vertical's own Opik project: the last --window-days full days. Exit code 1 if a
    judge gets no proposal: such a floor often is so low that nothing could breach it. 2 where Opik can't be read.

    Example: rampgate calibrate production --vertical receipts
    """
    from rampgate.limits.calibration import Options, calibrate

    of = (file, None, window_days, context, vertical)
    return calibrate(Options(BaselineSource.PRODUCTION_DISTRIBUTION, *of, write, ticket))


@command(limits_report, flags="configs", gone=GONE)
def seed(
    context: Context,
    file: FileArgument,
    vertical: OwnOption = None,
    write: WriteOption = False,
    ticket: TicketOption = None,
) -> Document:
    """Show each judge's threshold for its first 90 days: the mean of a small run, less two standard deviations.

    Exit code 1 if a judge gets no proposal.

    Example: rampgate calibrate seed bootstrap.jsonl --vertical receipts
    """
    from rampgate.limits.calibration import Options, calibrate

    return calibrate(Options(BaselineSource.PROVISIONAL_SEED, file, None, None, context, vertical, write, ticket))


def cuts_of(words: Sequence[str]) -> dict[str, float]:
    """Returns the cut of each judge that is named; of all others it is that of `*`. Raises Failure."""
    found: dict[str, float] = {}
    for word in words:
        name, _, number = word.rpartition("=")
        try:
            cut = float(number) if number.isascii() else math.nan
        except ValueError:
            cut = math.nan
        if not math.isfinite(cut):
            raise Failure(f"--acceptable: {plain(word, 80)!r} is no score; give a number, or JUDGE=NUMBER")
        if (name or ALL) in found:
            raise Failure(f"--acceptable: {plain(name or 'all judges', 80)} has two")
        found[name or ALL] = cut
    return found


def one_cut(cuts: Mapping[str, float]) -> float:
    """Returns the one cut of a file of scores. Raises Failure."""
    if {*cuts} != {ALL}:
        raise Failure("--acceptable: give one number, the lowest score of people's that is acceptable")
    return cuts[ALL]
