"""Runs `rampgate check agreement`: measures how far the annotators of a file agree, and says what lowers it."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from evalcore.agreement.check import Agreement, Bound, Rated, check
from evalcore.agreement.reference import BrokenChain, Entry, bounds, extended, verified, version
from evalcore.registry import disk
from rampgate.checks.score_files import read_ratings
from rampgate.ci_gate.inputs import BadFile, file_as, lines
from rampgate.console import Failure, plain, print_json
from rampgate.registry.file_writer import locked, replace_file
from rampgate.report.checks import agreement_report
from rampgate.report.files import check_paths, write_all
from rampgate.tables import make_table
from schemas.checks.agreement import AgreementFile, Level

SHOWN = 5
"""Items, and codebook entries, of a category that a terminal shows; `--json` has all."""


@dataclass(frozen=True)
class Options:
    """The options of the command. With `reference`, a round that clears enters that set under the name `round`."""

    file: Path
    level: str | None
    thresholds: Path | None
    reference: Path | None
    round: str | None
    as_json: bool
    reports: tuple[Path, ...] = ()


@dataclass(frozen=True)
class Entered:
    """What became of the round in the reference set, and the set's version."""

    round: str
    ratings: int
    version: str


def check_agreement(options: Options) -> int:
    """Check, report, and return the exit code. Raises Failure."""
    check_paths(options.reports)
    if options.level is not None and options.thresholds is not None:
        raise Failure("--level: the file of thresholds says each category's level")
    if (options.reference is None) is not (options.round is None):
        raise Failure("--reference and --round: the one needs the other")
    if options.reference is not None and options.thresholds is None:
        raise Failure("--reference: a round enters the set by --thresholds of its categories alone")
    holding = locked(options.reference.absolute().parent) if options.reference is not None else nullcontext()
    try:
        with holding:
            return _checked(options)
    except OSError as error:
        raise Failure(f"{options.reference}: can't be written: {error.strerror or error}") from error
    except BadFile as error:
        raise Failure(str(error)) from error


def _checked(options: Options) -> int:
    entries = read_reference(options.reference) if options.reference is not None else []
    stated = bounds(read_thresholds(options.thresholds), entries, disk.today()) if options.thresholds else {}
    otherwise = Bound(_level(options.level)) if options.level is not None else Bound()
    if options.thresholds is not None:
        otherwise = replace(otherwise, wrong=f"{options.thresholds} has no threshold for it")
    rounds = read_ratings(options.file, lambda category: stated.get(category, otherwise).level)
    found = check(rounds, stated, otherwise)
    entered = _enter(options, rounds, found, entries) if options.reference is not None else None
    document: dict[str, Any] = {"categories": [_document(one) for one in found]}
    write_all(options.reports, agreement_report(document))
    if options.as_json:
        if entered is not None:
            document["reference"] = {
                "file": str(options.reference), "round": entered.round, "entered": entered.ratings,
                "version": entered.version,
            }  # fmt: skip
        print_json(document)
    else:
        _show(found)
        if entered is not None:
            sys.stdout.write(f"{entered.ratings} ratings entered the reference set, now {entered.version}\n")
    return 1 if any(one.quarantined for one in found) else 0


def read_thresholds(path: Path) -> AgreementFile:
    """What the categories of a vertical have to reach. Raises Failure."""
    try:
        return file_as(AgreementFile, path)
    except BadFile as error:
        raise Failure(str(error)) from error


def read_reference(path: Path) -> list[Entry]:
    """The entries of a reference set; none where there is no file yet. Raises BadFile where its chain is broken."""
    if not path.exists():
        return []
    try:
        return verified([one for _, one in lines(path)])
    except BrokenChain as error:
        raise BadFile(f"{path}:{error.line}: {error}") from error


def _enter(
    options: Options, rounds: Mapping[str, Rated], found: Sequence[Agreement], entries: Sequence[Entry]
) -> Entered:
    """Nothing of a round enters before every category of it clears (PF-9 FR-14)."""
    name, path = options.round or "", options.reference
    if any(entry["round"] == name for entry in entries):
        raise Failure(
            f"--round: {plain(name, 80)} is in {path} already; a round that was scored again has another name"
        )
    if path is None or any(one.quarantined for one in found):
        return Entered(name, 0, version(entries))
    try:
        added = extended(entries, rounds, name, datetime.now(UTC).isoformat(timespec="seconds"))
    except ValueError as error:
        raise Failure(str(error)) from error
    replace_file(path, "".join(f"{json.dumps(entry, ensure_ascii=False)}\n" for entry in [*entries, *added]))
    return Entered(name, len(added), version(added))


def _level(word: str) -> Level:
    try:
        return Level(word)
    except ValueError:
        raise Failure(f"--level: {plain(word, 40)} is none of {', '.join(Level)}") from None


def _document(one: Agreement) -> dict[str, Any]:
    return {
        "category": one.category,
        "level": one.bound.level,
        "alpha": one.alpha,
        "alpha_ci95": list(one.ci95) if one.ci95 is not None else None,
        "n_items": len(one.items),
        "n_single": one.single,
        "n_ratings": one.ratings,
        "threshold": one.bound.threshold,
        "baseline_source": one.bound.source,
        "passed": not one.quarantined,
        "quarantined": one.quarantined,
        "reason": one.why,
        "pairwise_agreement": one.pairwise,
        "items": [
            {"item_id": item.item, "pairwise_agreement": item.pairwise, "disagreement": item.part} for item in one.items
        ],
        "annotators": [
            {"annotator": each.annotator, "n_ratings": each.ratings, "alpha_without": each.alpha}
            for each in one.annotators
        ],
        "codebook": [
            {"ratings": list(entry.ratings), "n_items": entry.items, "disagreement": entry.part}
            for entry in one.codebook
        ],
    }


def _show(found: Sequence[Agreement]) -> None:
    from rich.console import Console

    console = Console(highlight=False)
    heads = ("Category", "Level", ">Items", ">Alpha", "95 %", ">Threshold", "Source", "Result")
    table = make_table("Agreement of annotators", *heads)
    for one in found:
        ends = "" if one.ci95 is None else f"{one.ci95[0]:.3f} to {one.ci95[1]:.3f}"
        result = "[red]quarantined[/]" if one.quarantined else "[green]clears[/]"
        threshold, source = f"{one.bound.threshold:g}", str(one.bound.source)
        items = f"{len(one.items):,}"
        table.add_row(plain(one.category), one.bound.level, items, _figure(one.alpha), ends, threshold, source, result)
    console.print(table)
    for one in found:
        if one.quarantined:
            console.print(f"{plain(one.category)}: {plain(one.why, 400)}")
            worst = [item for item in one.items if item.part > 0][:SHOWN]
            console.print(_list("items", [f"{item.item} ({item.part:.0%})" for item in worst]))
            without = sorted(one.annotators, key=lambda each: -(each.alpha if each.alpha is not None else -1.0))
            console.print(_list("alpha without", [f"{each.annotator} {_figure(each.alpha)}" for each in without]))
            pairs = [
                f"{_rating(entry.ratings[0])} or {_rating(entry.ratings[1])} ({entry.part:.0%})"
                for entry in one.codebook
            ]
            console.print(_list("codebook", pairs))


def _list(head: str, told: Sequence[str]) -> str:
    return plain(f"  {head}: {', '.join(told[:SHOWN]) or 'none'}", 1_000)


def _rating(rating: float | str) -> str:
    return rating if isinstance(rating, str) else f"{rating:g}"


def _figure(value: float | None) -> str:
    return "none" if value is None else f"{value:.3f}"
