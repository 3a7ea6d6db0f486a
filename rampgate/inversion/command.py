"""Compares judges' scores with people's or users': who scores against them? `rampgate check inversion` (PF-9 FR-10)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from rampgate.command import Context, Document, command
from rampgate.console import Failure
from rampgate.report.checks import inversion_report


@command(inversion_report, flags="standing kafka configs")
def inversion(
    context: Context,
    file: Annotated[Path | None, Argument(help="JSON Lines: judge_id, item_id, judge_score, human_score")] = None,
    users: Annotated[
        bool, Option("--users", help="against users' thumbs in Opik instead: a closed week and the one before")
    ] = False,
    vertical: Annotated[
        str | None, Option(help="without FILE: against this vertical's reference set; with --users: its users alone")
    ] = None,
    judge: Annotated[list[str] | None, Option(help="of a reference set: only this judge, once or more")] = None,
    scores: Annotated[
        Path | None, Option(help="for a reference set: judge_id, judge_version, item_id, score, JSON Lines")
    ] = None,
    outputs: Annotated[
        Path | None, Option(help="for a reference set: ask the judges about its turns, as a round's --outputs")
    ] = None,
    week: Annotated[str | None, Option(help="with --users: as 2026-W47; default: the last closed week")] = None,
    publish: Annotated[
        bool, Option("--publish", help="suspend and reinstate by the results: lines need a judge_version")
    ] = False,
) -> Document:
    """Compare judges' scores with people's of the same items, and show who scores against them (PF-9 FR-10).

    Also composites of the manifest, and slices where lines have a category, vertical or sub_agent. Exit code 1 if a
    judge or composite is inverted or that is unknown, 2 for a bad file.

    With --vertical and no FILE: against the vertical's reference set, by the scores that its rounds kept of the judges
    as they are now; --outputs asks those that changed. Decided once of a version by the same scores of people. Exit
    code 1 also where a judge was not compared with people for 92 days.

    With --users no file is read: a judge is inverted that scored against users in two closed weeks in a row. It is not
    suspended by that.

    Example: rampgate check inversion specs/verticals/receipts/eval/human-scores.jsonl
    """
    if users:
        if file or publish or context.standing or judge or scores or outputs:
            raise Failure("--users reads Opik and suspends no judge: it goes with --vertical and --week alone")
        from rampgate.inversion.users import against_users

        return against_users(context, vertical, week)
    if vertical is not None and file is None and week is None:
        from rampgate.inversion.reference import Asked, against_reference

        return against_reference(Asked(context, vertical, tuple(judge or ()), scores, outputs, publish))
    if file is None or vertical is not None or week is not None or judge or scores or outputs:
        raise Failure(
            "give a file of people's scores, --vertical for its reference set, or --users (--week goes with it)"
        )
    return _against_file(context, file, publish)


def _against_file(context: Context, file: Path, publish: bool) -> Document:
    from evalcore.inversion.check import check, check_composites, check_slices
    from rampgate.checks.drift_scores import registered, require_on_scale
    from rampgate.checks.score_files import read_pairs
    from rampgate.checks.standing import standings
    from rampgate.inversion.documents import composites_of, records, slice_told, told, undecided

    judges = read_pairs(file)
    stores = standings(context, publish=publish)
    known = stores or context.given.get("configs") is not None or context.settings.configs.exists()
    registry = context.registry if known else None
    for name, pairs in judges.items():
        if (judge := registered(registry, name, None)) is not None:
            require_on_scale(file, "judge_score", pairs.judge, pairs.lines, judge)
    found = check(judges)
    composites = check_composites(*composites_of(judges, registry.composites if registry else {}))
    if stores:
        made = records(judges, found, registry)
        for store in stores:
            store.add(undecided(store.known, made))
    fields: dict[str, Any] = {
        "judges": [{"judge_id": one.name, **told(one)} for one in found],
        "inverted_count": sum(one.inverted is True for one in found),
        "composites": [{"composite": one.name, **told(one)} for one in composites],
        "slices": [slice_told(one) for one in check_slices(judges)],
    }
    return Document(fields, 0 if all(one.inverted is False for one in (*found, *composites)) else 1)
