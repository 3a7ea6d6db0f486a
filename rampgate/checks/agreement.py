"""Runs `rampgate check agreement`: measures how far the annotators of a file agree, and says what lowers it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from evalcore.agreement.check import Agreement, Bound, check
from rampgate.checks.score_files import read_ratings
from rampgate.ci_gate.inputs import BadFile
from rampgate.console import Failure, plain, print_json
from rampgate.tables import make_table
from schemas.checks.agreement import Level

SHOWN = 5
"""Items, and codebook entries, of a category that a terminal shows; `--json` has all."""


def check_agreement(file: Path, level: str | None, as_json: bool) -> int:
    """Check, report, and return the exit code. Raises Failure."""
    otherwise = Bound(_level(level)) if level is not None else Bound()
    try:
        rounds = read_ratings(file, lambda category: otherwise.level)
    except BadFile as error:
        raise Failure(str(error)) from error
    found = check(rounds, {}, otherwise)
    print_json({"categories": [_document(one) for one in found]}) if as_json else _show(found)
    return 1 if any(one.quarantined for one in found) else 0


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
