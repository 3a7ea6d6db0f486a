"""`rampgate export`: turns that people curate, as JSON Lines, audited (PF-9 FR-12)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rampgate.options import ConfigsOption, JsonOption, OpikOption


def register(app: typer.Typer) -> None:
    app.command("export")(export_command)


def export_command(
    where: Annotated[
        str,
        typer.Option("--where", help="comparisons of scores and labels, joined by AND; a missing value never matches"),
    ] = "",
    vertical: Annotated[str, typer.Option("--vertical", help="whose turns; read with its own key")] = "",
    sub_agent: Annotated[str | None, typer.Option("--sub-agent", help="only this sub-agent's")] = None,
    since: Annotated[str, typer.Option("--since", help="how long ago (7d, 24h) or an ISO 8601 time")] = "7d",
    limit: Annotated[int | None, typer.Option("--limit", min=1, help="the newest so many that match")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", help="write the lines to this file, whole or not at all; else stdout")
    ] = None,
    pairs: Annotated[
        bool,
        typer.Option("--pairs", help="a line for each match that the user rerolled: it, and the answer they kept"),
    ] = False,
    verify: Annotated[
        Path | None, typer.Option("--verify", help="export nothing; compare this file with the audit's chain")
    ] = None,
    as_json: JsonOption = False,
    opik: OpikOption = None,
    kafka: Annotated[str | None, typer.Option("--kafka", help="Brokers, comma-separated; for the audit")] = None,
    configs: ConfigsOption = None,
) -> None:
    """Write the turns that match, a line of JSON each, newest first: ids, labels, texts, judges' and users' scores.

    Each page of lines is audited before it is written, for purpose `eval`; without audit no line. With --json the lines
    go to --output and a summary to stdout. Exit code 1 if --verify finds that file or audit lacks something; 2 for bad
    input, or if Opik or Kafka is out of reach.

    Example: rampgate export --where 'feedback_scores.user_signal_thumbs < 0' --vertical receipts --output down.jsonl
    """
    from rampgate.console import Failure
    from rampgate.export.command import Options, export_turns
    from rampgate.export.verification import verify_export
    from rampgate.settings_sources import load_settings

    settings = load_settings({"configs": configs, "opik": opik, "kafka": kafka})
    if verify is not None:
        raise typer.Exit(verify_export(settings, verify, as_json=as_json))
    if not where or not vertical:
        raise Failure("--where and --vertical: say which turns of whom to export")
    raise typer.Exit(export_turns(settings, Options(where, vertical, sub_agent, since, limit, output, as_json, pairs)))
