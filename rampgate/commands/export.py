"""Runs `rampgate export`: turns that people curate, as JSON Lines, audited (PF-9 FR-12)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from typer import Option

from rampgate.command import Context, Document, command
from rampgate.console import Failure
from rampgate.report.model import Reason, Report, Section
from schemas.counting import counted


def export_report(told: Mapping[str, Any]) -> Report:
    """The report of an export's summary, or of the comparison of a file with the audit."""
    if "holds" in told:
        why = [Reason("error", told["reason"], about=told["file"])] if told["reason"] else []
        return Report(told["file"], told["reason"] or "is what the audit has", "fail" if why else "pass", reasons=why)
    notes = []
    if told["without_text"]:
        notes.append(
            f"{told['without_text']:,} lack a text: their trace has none, or is too long to be read (`rampgate turn "
            "RESPONSE_ID --purpose eval`)"
        )
    if told["limit_reached"]:
        notes.append("the limit is reached; there may be more")
    many = counted(told["lines"], "turn")
    result = f"{many} of {told['vertical']} in {told['project']} since {told['since']}"
    return Report(
        "Export", f"{result}, {counted(told['pages'], 'audit record')}", "pass", [Section("Lines", notes=notes)]
    )


GONE = {"--pairs": "--where 'feedback_scores.user_signal_reroll > 0' exports the answers that users rerolled"}


@command(export_report, flags="configs opik kafka", gone=GONE)
async def export(
    context: Context,
    where: Annotated[
        str, Option(help="comparisons of scores and labels, joined by AND; a missing value never matches")
    ] = "",
    vertical: Annotated[str, Option(help="whose turns; read with its own key")] = "",
    sub_agent: Annotated[str | None, Option(help="only this sub-agent's")] = None,
    since: Annotated[str, Option(help="how long ago (7d, 24h) or an ISO 8601 time")] = "7d",
    limit: Annotated[int | None, Option(min=1, help="the newest so many that match")] = None,
    output: Annotated[
        Path | None, Option(help="write the lines to this file, whole or not at all; else stdout")
    ] = None,
    verify: Annotated[Path | None, Option(help="export nothing; compare this file with the audit's chain")] = None,
) -> Document | None:
    """Write the turns that match, a line of JSON each, newest first: ids, labels, texts, judges' and users' scores.

    Each page of lines is audited before it is written, for purpose `eval`; without audit no line. With --json the lines
    go to --output and a summary to stdout. Exit code 1 if --verify finds that file or audit lacks something; 2 for bad
    input, or if Opik or Kafka is out of reach.

    Example: rampgate export --where 'feedback_scores.user_signal_thumbs < 0' --vertical receipts --output down.jsonl
    """
    from rampgate.export.command import Options, export_turns
    from rampgate.export.verification import verified
    from rampgate.progress import stderr
    from rampgate.report.console import show

    if verify is not None:
        told = await verified(context.settings, verify)
        return Document(told, 0 if told["holds"] else 1)
    if not where or not vertical:
        raise Failure("--where and --vertical: say which turns of whom to export")
    if output is None and (context.as_json or context.reports):
        raise Failure("--json, --report: stdout has the summary then; say with --output FILE where the lines go")
    summary = await export_turns(context.settings, Options(where, vertical, sub_agent, since, limit, output))
    if summary is not None and not context.as_json:
        show(export_report(summary), stderr())
    return Document(summary) if summary is not None and (context.as_json or context.reports) else None
