"""The central log of overrides of gates (PC5 §5.5; contracts §5): `rampgate overrides report` and `publish`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from rampgate.command import Context, Document, command
from rampgate.console import Failure
from rampgate.report.model import Report, Section, Value

COUNTS = ("by_kind", "by_milestone", "by_repository", "by_author", "by_approver", "by_pair")


def overrides_report(made: Document) -> Report:
    """Each override in a row, and below them how many by what."""
    heads = ("When", "What", "Pull request", "Author", "Approved by", "Until", "Why")
    rows: list[list[Value]] = []
    for one in made["overrides"]:
        what = one.get("milestone") or ", ".join(map(str, one.get("judges") or ()))
        where = f"{one.get('repository', '')}{one.get('pull_request', '')}"
        cells = (one.get("at"), f"{one['kind']} {what}", where, one.get("author"), one.get("approved_by"))
        rows.append([*(str(cell or "") for cell in (*cells, one.get("expires"), one.get("justification")))])
    counts = [f"{name.replace('_', ' ')}: {_counts(made[name])}" for name in COUNTS]
    result = f"{made['count']} overrides in {made['quarter']}"
    return Report("Overrides of gates", result, "pass", [Section("", heads, rows, counts)])


def _counts(found: dict[str, int]) -> str:
    return ", ".join(f"{word} {count}" for word, count in found.items()) or "none"


@command(overrides_report, flags="kafka")
async def report_quarter(
    context: Context,
    quarter: Annotated[str, Option(metavar="Q", help="such as 2026-Q4")],
    audit: Annotated[
        list[Path] | None, Option(help="read this file of an audit, once or more, and not the topic")
    ] = None,
) -> Document:
    """Show the overrides of a quarter, each once, and who asked for and allowed how many.

    Example: rampgate overrides report --quarter 2026-Q4
    """
    from rampgate.input_files import lines
    from rampgate.overrides import Quarter, read, report

    try:
        of = Quarter.of(quarter)
    except ValueError as error:
        raise Failure(f"--quarter: {error}") from error
    entries = [one for path in audit or () for _, one in lines(path)] if audit else await read(context.settings, of)
    return Document(report(entries, of))


def published_report(told: Document) -> Report:
    """How many overrides the central log has now of the file."""
    return Report("Overrides of gates", f"{told['published']} overrides are in the central log", "pass")


@command(published_report, flags="kafka")
async def publish(
    context: Context, audit: Annotated[Path, Argument(metavar="FILE", help="an audit: overrides, JSON Lines")]
) -> Document:
    """Send the overrides of an audit to the central log; one that it has already counts once.

    So that the step with Kafka's password is another than the one that reads a pull request. Exit code 2 if the log
    does not have them all: none of them holds then.

    Example: rampgate overrides publish audit.jsonl
    """
    from agents.ports import Unavailable
    from rampgate import overrides
    from rampgate.input_files import lines

    entries = [entry for _, entry in lines(audit) if entry.get("kind") in overrides.KINDS]
    for number, entry in enumerate(entries, start=1):
        if not entry.get("repository"):
            raise Failure(f"{audit}: override {number} names no repository")
    try:
        if entries:
            await overrides.publish(context.settings, entries)
    except Unavailable as error:
        raise Failure(f"no override holds that the central log does not have: {error}") from error
    return Document({"published": len(entries)})
