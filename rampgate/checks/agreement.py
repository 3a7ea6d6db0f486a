"""Measures how far the annotators of a file agree, and what lowers it: `rampgate check agreement`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from rampgate.command import Context, Document, command
from rampgate.console import Failure, plain
from rampgate.report.checks import agreement_report
from schemas.terms import Level

if TYPE_CHECKING:
    from evalcore.agreement.check import Agreement, Rated
    from evalcore.agreement.reference import Entry
    from schemas.checks.agreement import AgreementFile


@command(agreement_report)
def agreement(
    context: Context,
    file: Annotated[Path, Argument(help="JSON Lines: category, item_id, annotator, score")],
    level: Annotated[Level | None, Option(help="how scores compare; default: ordinal")] = None,
    thresholds: Annotated[
        Path | None, Option(help="level and threshold of each category, YAML; default: 0.667 for all")
    ] = None,
    reference: Annotated[
        Path | None, Option(help="the reference set that the round enters once every category clears")
    ] = None,
    round_name: Annotated[str | None, Option("--round", help="the round's name in the reference set")] = None,
) -> Document:
    """Measure how far annotators agree: Krippendorff's alpha by category, and what lowers it (PF-9 FR-14).

    Exit code 1 if a category is quarantined: alpha below its threshold or not defined, or fewer than ten items that two
    or more rated; 2 for a bad file.

    Example: rampgate check agreement round-2.jsonl --level ordinal
    """
    from evalcore.agreement.check import Bound, check
    from evalcore.agreement.reference import bounds
    from rampgate.checks.score_files import read_ratings
    from rampgate.files import locked

    if level is not None and thresholds is not None:
        raise Failure("--level: the file of thresholds says each category's level")
    if (reference is None) is not (round_name is None):
        raise Failure("--reference and --round: the one needs the other")
    if reference is not None and thresholds is None:
        raise Failure("--reference: a round enters the set by --thresholds of its categories alone")
    with locked(reference.absolute().parent) if reference is not None else nullcontext():
        entries = read_reference(reference) if reference is not None else []
        stated = bounds(read_thresholds(thresholds), entries, context.today) if thresholds else {}
        otherwise = Bound(level) if level is not None else Bound()
        if thresholds is not None:
            otherwise = replace(otherwise, wrong=f"{thresholds} has no threshold for it")
        rounds = read_ratings(file, lambda category: stated.get(category, otherwise).level)
        found = check(rounds, stated, otherwise)
        document: dict[str, Any] = {"categories": [_document(one) for one in found]}
        if reference is not None:
            document["reference"] = _enter(reference, round_name or "", rounds, found, entries)
    return Document(document, 1 if any(one.quarantined for one in found) else 0)


def read_thresholds(path: Path) -> AgreementFile:
    """What the categories of a vertical have to reach. Raises Failure."""
    from rampgate.input_files import file_as
    from schemas.checks.agreement import AgreementFile

    return file_as(AgreementFile, path)


def read_reference(path: Path) -> list[Entry]:
    """The entries of a reference set; none where there is no file yet. Raises BadFile where its chain is broken."""
    from evalcore.agreement.reference import BrokenChain, verified
    from rampgate.input_files import BadFile, lines

    if not path.exists():
        return []
    try:
        return verified([one for _, one in lines(path)])
    except BrokenChain as error:
        raise BadFile(f"{path}:{error.line}: {error}") from error


def _enter(
    path: Path, name: str, rounds: Mapping[str, Rated], found: Sequence[Agreement], entries: Sequence[Entry]
) -> dict[str, Any]:
    """Nothing of a round enters before every category of it clears (PF-9 FR-14)."""
    from evalcore.agreement.reference import extended, version
    from rampgate.files import replace_file

    if any(entry["round"] == name for entry in entries):
        raise Failure(
            f"--round: {plain(name, 80)} is in {path} already; a round that was scored again has another name"
        )
    added: list[Entry] = []
    whole = [*entries]
    if not any(one.quarantined for one in found):
        try:
            added = extended(entries, rounds, name, datetime.now(UTC).isoformat(timespec="seconds"))
        except ValueError as error:
            raise Failure(str(error)) from error
        whole = [*entries, *added]
        replace_file(path, "".join(f"{json.dumps(entry, ensure_ascii=False)}\n" for entry in whole))
    return {"file": str(path), "round": name, "entered": len(added), "version": version(whole)}


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
