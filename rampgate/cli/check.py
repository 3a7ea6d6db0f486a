"""`rampgate check …`: what moves a judge's score, and do judges and people agree (contracts §5)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rampgate.command import callback
from rampgate.limits.cadence import cadence
from rampgate.options import ConfigsOption, JsonOption, KafkaOption

StandingOption = Annotated[
    Path | None, typer.Option("--standing", help="append the results to this file, JSON Lines, for gate run")
]
ReportOption = Annotated[
    list[Path] | None,
    typer.Option("--report", help="also write a page, FILE.html, or Markdown at the end of any other; repeatable"),
]
group = typer.Typer(help="Checks of the judges themselves.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    app.add_typer(group, name="check")


@group.command("canaries")
def canaries_command(
    judge: Annotated[
        list[str] | None,
        typer.Option(help="only this judge, once or more; default: all that ask a model"),
    ] = None,
    items: Annotated[int, typer.Option(min=2, help="turns made up for each judge, half of them bad ones")] = 24,
    dataset: Annotated[
        Path | None, typer.Option(help="your own items in their place, JSON Lines with an `output` each, good and bad")
    ] = None,
    repeats: Annotated[int, typer.Option(min=1, help="times that each question is asked")] = 1,
    seed: Annotated[
        str | None, typer.Option(help="makes turns and planted texts; the same, the same. Default: today's date")
    ] = None,
    model: Annotated[str | None, typer.Option(help="the model's URL; default: RAMPGATE_MODEL_URL")] = None,
    publish: Annotated[
        bool,
        typer.Option("--publish", help="suspend and reinstate by the results: write them to the topic judge-standing"),
    ] = False,
    standing: StandingOption = None,
    kafka: KafkaOption = None,
    configs: ConfigsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Ask judges about the same turns with and without planted instructions, and show whom these move.

    Each judge is asked at each position that strangers write (input, output, a tool's arguments and result) about texts
    of ten classes. Exit code 1 if one moves beyond its limits (canaries.yaml) or nobody can tell, 2 without a model.

    Example: rampgate check canaries --judge ux-quality --seed 2026-W48
    """
    from rampgate.checks.canaries import Options, check_canaries

    options = Options(
        tuple(judge or ()), items, dataset, repeats, seed, model, publish, standing, kafka, configs, as_json
    )
    raise typer.Exit(check_canaries(options))


@group.command("noise")
def noise_command(
    dataset: Annotated[
        Path | None, typer.Option(help="items, JSON Lines with an `output` each; default: turns made up from --seed")
    ] = None,
    items: Annotated[int, typer.Option(min=2, help="without --dataset: turns to make up, half of them bad ones")] = 40,
    seed: Annotated[str | None, typer.Option(help="makes those turns. Default: today's date")] = None,
    judge: Annotated[
        list[str] | None, typer.Option(help="only this judge, once or more; default: all that ask a model")
    ] = None,
    asks: Annotated[int, typer.Option(min=2, help="times that each judge is asked about each item")] = 5,
    model: Annotated[str | None, typer.Option(help="the model's URL; default: RAMPGATE_MODEL_URL")] = None,
    configs: ConfigsOption = None,
    write: Annotated[bool, typer.Option("--write", help="note it in judge-noise.yaml, which gates read")] = False,
    as_json: JsonOption = False,
) -> None:
    """Ask judges again and again about the same items, and show how much each disagrees with itself.

    Verdicts tell by it how often a clean candidate passes and what fall a sample finds. Exit code 1 if a judge could
    not be measured, 2 without a model.

    Example: rampgate check noise --asks 5 --write
    """
    from rampgate.checks.noise import Options, check_noise

    options = Options(dataset, items, seed, tuple(judge or ()), asks, model, configs, write, as_json)
    raise typer.Exit(check_noise(options))


@group.command("drift")
def drift_command(
    baseline: Annotated[
        Path | None, typer.Argument(help="scores at the calibration, JSON Lines {judge_id, item_id, score}")
    ] = None,
    current: Annotated[Path | None, typer.Argument(help="scores now, best of the same items")] = None,
    outputs: Annotated[
        Path | None,
        typer.Option(help="ask the judges: these stored outputs, JSON Lines with `input` and `output` each"),
    ] = None,
    seed: Annotated[
        str | None, typer.Option(help="ask the judges: outputs made up from this seed; the same, the same")
    ] = None,
    items: Annotated[int, typer.Option(min=2, help="with --seed: how many outputs")] = 120,
    base: Annotated[
        str | None, typer.Option(help="only judges whose rule file, or a component it names, differs from this version")
    ] = None,
    judge: Annotated[list[str] | None, typer.Option(help="only this judge, once or more")] = None,
    capture: Annotated[
        int | None, typer.Option(min=1, help="calibrate: so many runs; write the last as baseline, show the limit")
    ] = None,
    baselines: Annotated[
        Path | None, typer.Option(help="the baseline's file; default: drift-baseline.jsonl of registry or vertical")
    ] = None,
    model: Annotated[str | None, typer.Option(help="the model's URL; default: RAMPGATE_MODEL_URL")] = None,
    vertical: Annotated[
        str | None, typer.Option("--vertical", help="whose limits hold; default: the platform's")
    ] = None,
    configs: ConfigsOption = None,
    report: ReportOption = None,
    as_json: JsonOption = False,
) -> None:
    """Hold judges' scores now against those of their calibration, and show whose have moved.

    KL divergence in nats, now from then, against the limit in the judge's rule file (`drift`). Of two files each judge
    is answered, also one that is not registered, on the scale that its scores fit. With --outputs or --seed the judges
    are asked about the same outputs as at their calibration (--capture 3), past all kept answers. Exit code 1 if a
    judge has drifted or nobody can tell, 2 without a model.

    Example: rampgate check drift calibration.jsonl today.jsonl --json
    """
    from rampgate.checks.drift import Options, check_drift
    from rampgate.cli.jobs.drift_again import ask_again

    asking = (outputs, seed, items, base, tuple(judge or ()), capture, baselines, model)
    options = Options(baseline, current, *asking, vertical, configs, as_json, tuple(report or ()))
    raise typer.Exit(check_drift(options) if outputs is None and seed is None else ask_again(options))


@group.command("inversion")
def inversion_command(
    file: Annotated[Path | None, typer.Argument(help="JSON Lines: judge_id, item_id, judge_score, human_score")] = None,
    users: Annotated[
        bool, typer.Option("--users", help="against users' thumbs in Opik instead: a closed week and the one before")
    ] = False,
    vertical: Annotated[
        str | None,
        typer.Option(help="without FILE: against this vertical's reference set; with --users: its users alone"),
    ] = None,
    judge: Annotated[list[str] | None, typer.Option(help="of a reference set: only this judge, once or more")] = None,
    scores: Annotated[
        Path | None, typer.Option(help="for a reference set: judge_id, judge_version, item_id, score, JSON Lines")
    ] = None,
    outputs: Annotated[
        Path | None, typer.Option(help="for a reference set: ask the judges about its turns, as a round's --outputs")
    ] = None,
    model: Annotated[str | None, typer.Option(help="with --outputs: the model's URL")] = None,
    week: Annotated[str | None, typer.Option(help="with --users: as 2026-W47; default: the last closed week")] = None,
    publish: Annotated[
        bool,
        typer.Option("--publish", help="suspend and reinstate by the results: lines need a judge_version"),
    ] = False,
    standing: StandingOption = None,
    kafka: KafkaOption = None,
    configs: ConfigsOption = None,
    report: ReportOption = None,
    as_json: JsonOption = False,
) -> None:
    """Hold judges' scores against people's of the same items, and show who scores against them (PF-9 FR-10).

    Also composites of the manifest, and slices where lines have a category, vertical or sub_agent. Exit code 1 if a
    judge or composite is inverted or nobody can tell, 2 for a bad file.

    With --vertical and no FILE: against the vertical's reference set, by the scores that its rounds kept of the judges
    as they are now; --outputs asks those that changed. Decided once of a version by the same scores of people. Exit
    code 1 also where a judge was not held against people for 92 days.

    With --users no file is read: a judge is inverted that scored against users in two closed weeks in a row. Nobody is
    suspended by that.

    Example: rampgate check inversion specs/verticals/receipts/eval/human-scores.jsonl
    """
    from rampgate.checks.inversion import Options, check_inversion
    from rampgate.console import Failure

    if users:
        if file or publish or standing or report or judge or scores or outputs or model:
            raise Failure("--users reads Opik and suspends nobody: it goes with --vertical, --week and --json alone")
        from rampgate.inversion.users import UsersAsked, check_users

        raise typer.Exit(check_users(UsersAsked(vertical, week, configs, as_json)))
    if vertical is not None and file is None and week is None:
        from rampgate.inversion.reference import ReferenceAsked, check_reference

        of = (vertical, tuple(judge or ()), scores, outputs, model, publish, standing, kafka, configs, as_json)
        raise typer.Exit(check_reference(ReferenceAsked(*of, tuple(report or ()))))
    if file is None or vertical is not None or week is not None or judge or scores or outputs or model:
        raise Failure(
            "give a file of people's scores, --vertical for its reference set, or --users (--week goes with it)"
        )
    raise typer.Exit(check_inversion(Options(file, publish, standing, kafka, configs, as_json, tuple(report or ()))))


@group.command("agreement")
def agreement_command(
    file: Annotated[Path, typer.Argument(help="JSON Lines: category, item_id, annotator, score")],
    level: Annotated[
        str | None,
        typer.Option(help="nominal, ordinal, interval or ratio; default: ordinal"),
    ] = None,
    thresholds: Annotated[
        Path | None, typer.Option(help="level and threshold of each category, YAML; default: 0.667 for all")
    ] = None,
    reference: Annotated[
        Path | None, typer.Option(help="the reference set that the round enters once every category clears")
    ] = None,
    round_name: Annotated[str | None, typer.Option("--round", help="the round's name in the reference set")] = None,
    report: ReportOption = None,
    as_json: JsonOption = False,
) -> None:
    """Measure how far annotators agree: Krippendorff's alpha by category, and what lowers it (PF-9 FR-14).

    Exit code 1 if a category is quarantined: alpha below its threshold or not defined, or fewer than ten items that two
    or more rated; 2 for a bad file.

    Example: rampgate check agreement round-2.jsonl --level ordinal
    """
    from rampgate.checks.agreement import Options, check_agreement

    options = Options(file, level, thresholds, reference, round_name, as_json, tuple(report or ()))
    raise typer.Exit(check_agreement(options))


group.command("cadence")(callback(cadence))
