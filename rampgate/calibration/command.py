"""Limits of judges from single scores: `rampgate calibrate` (PF-9 §5.3)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from rampgate.command import Context, Document, command
from rampgate.console import Failure, plain
from rampgate.report.model import Cell, Report, Section, Value
from schemas.terms import BaselineSource

Told = Mapping[str, Any]


def limits_report(told: Told) -> Report:
    heads = ("Judge", "Scores", "Mean", "σ", "p5", "Limit", "Breached", "Sees a fall of", "Why not")
    names = ("judge_id", "n", "mean", "sigma", "p5")
    rows: list[list[Value]] = [
        [
            *(one[name] for name in names), one["threshold"] if "threshold" in one else one["floor"],
            one["breach_probability"], one["detectable_drop"], one["reason"] or one["warning"] or "",
        ]
        for one in told["judges"]
    ]  # fmt: skip
    daily = [[one["judge_id"], *days.values()] for one in told["judges"] if (days := one["daily_means"])]
    days = ("Judge", "Days", "Over days", "Mean", "σ", "p5", "Limit", "Breached")
    text = "".join(one["diff"] for one in told["changes"])
    if told["vertical"] is None:
        text = "".join(f"{one['judge_id']}\n{one['block']}" for one in told["judges"] if one["block"])
    missing = sum(not one["proposed"] for one in told["judges"])
    return Report(
        f"Limits, at a gate of {told['gate_items']} items",
        f"{missing} without a proposal" if missing else "proposed" if told["judges"] else "there is no score",
        "fail" if missing or not told["judges"] else "pass",
        [
            Section("Judges", heads, rows, _window(told.get("window"))),
            *([Section("By the means of days", days, daily)] if daily else []),
            Section("Rule files", notes=[_written(told)], text=text),
        ],
    )


def _window(window: Told | None) -> list[str]:
    if window is None:
        return []
    left = ", ".join(f"{many:,} {why}" for why, many in window["left_out"].items())
    read = f"{window['turns']:,} turns of {window['project']}, {window['since']} to before {window['until']}"
    return [f"{read}; left out: {left or 'none'}"]


def _written(told: Told) -> str:
    if told["vertical"] is None:
        return "Nothing was written; --vertical and --write do it."
    if not told["changes"]:
        return f"Nothing changes in the rule files of {told['vertical']}."
    if told["written"]:
        return f"written: {', '.join(one['file'] for one in told['changes'])}"
    return "Nothing was written; --write does it."


def round_report(told: Told) -> Report:
    """Of a round how far it came; of a file of scores its limits."""
    if "steps" not in told:
        return limits_report(told)
    tones = {"done": "pass", "refused": "fail"}
    rows: list[list[Value]] = [
        [name, Cell(step["state"], tones.get(step["state"], "warn")), step["told"]]
        for name, step in told["steps"].items()
    ]
    refused = any(step["state"] == "refused" for step in told["steps"].values())
    result = "done" if told["done"] else "a step was refused" if refused else "waits"
    took = f"{told['seconds']:,.0f} s without the time of people (PF-9 NFR-3: 4 hours)" if told["seconds"] else ""
    files = f"{told['folder']}: report.md, report.html, limits.diff" if told["done"] else told["folder"]
    return Report(
        f"Calibration of {told['vertical']}, {told['round']}",
        result,
        "fail" if refused else "pass" if told["done"] else "warn",
        [Section("Steps", ("Step", "State", ""), rows, [files, *([took] if took else [])])],
    )


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
