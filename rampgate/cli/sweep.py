"""`rampgate sweep`."""

from __future__ import annotations

import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from rampgate.console import Failure, print_json, run
from rampgate.logs import configure_logs
from rampgate.settings import Settings, load_settings
from schemas.settings import parse_seconds


def register(app: typer.Typer) -> None:
    app.command("sweep")(sweep)


def sweep(
    since: Annotated[str, typer.Option(help="How far back: a duration (36h, 7d) or an ISO time")],
    sweep_id: Annotated[str | None, typer.Option("--id", help="Name of the sweep, by which it is resumed")] = None,
    restart: Annotated[bool, typer.Option("--restart", help="Forget an interrupted run and begin anew")] = False,
    segments: Annotated[int, typer.Option(min=1, max=64, help="Parts of the table read side by side")] = 2,
    rerolls: Annotated[bool, typer.Option("--rerolls/--no-rerolls", help="Derive rerolls from Opik's traces")] = True,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Count what would change, change nothing")] = False,
    table: Annotated[str | None, typer.Option(help="The thumbs table")] = None,
    endpoint: Annotated[str | None, typer.Option(help="DynamoDB endpoint, for DynamoDB Local")] = None,
    kafka: Annotated[str | None, typer.Option(help="Brokers, comma-separated")] = None,
    redis: Annotated[str | None, typer.Option(help="Redis URL")] = None,
    opik: Annotated[str | None, typer.Option(help="Opik URL")] = None,
    write: Annotated[bool | None, typer.Option("--write/--no-write", help="Write scores to Opik")] = None,
    metrics_file: Annotated[Path | None, typer.Option(help="Leave the metrics there, for a textfile collector")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="The summary as JSON on stdout")] = False,
) -> None:
    """Read the thumbs table and Opik's traces, and bring in what the stream has not: PF-9's scheduled batch.

    Safe to repeat, and safe beside feed and worker. Exit code 2: a part is out of reach; run it again to go on.

    Example: rampgate sweep --since 36h --write
    """
    flags = {
        "thumbs_table": table,
        "dynamodb_endpoint": endpoint,
        "kafka": kafka,
        "redis": redis,
        "opik": opik,
        "write": write,
    }
    settings = load_settings(flags)
    configure_logs(settings.log_level, settings.log_format)
    since_ms = moment_ms(since)

    async def job() -> dict[str, Any]:
        from agents.ports import Unauthorized, Unavailable
        from rampgate.worker.sweep import Asked
        from streams.dynamodb.client import Busy, Gone, Misconfigured

        name = sweep_id or f"{settings.thumbs_table}:{since}"
        asked = Asked(since_ms, name, segments, restart, dry_run, rerolls, metrics_file)
        try:
            return await show(settings, asked)
        except Unauthorized as error:
            raise Failure(f"Opik refuses our key: {error}") from error
        except (Unavailable, Busy, Gone, Misconfigured) as error:
            raise Failure(f"{error}. What was done stands; run the sweep again to go on") from error
        except TimeoutError as error:
            raise Failure(f"Kafka at {settings.kafka} or its topics can't be reached") from error

    summary = run(job)
    if as_json:
        print_json(summary)
    else:
        for name, value in summary.items():
            sys.stdout.write(f"{name.replace('_', ' '):20}{value}\n")


async def show(settings: Settings, asked: Any) -> dict[str, Any]:
    """Run it, with a progress bar where a person watches."""
    from rampgate.worker.sweep import run_sweep

    if not sys.stderr.isatty():
        return await run_sweep(settings, asked)
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("reading traces", total=None)

        def watch(phase: str, tally: Any, about: int | None) -> None:
            if phase == "traces":
                progress.update(task, description="reading traces", completed=tally.traces)
            else:
                total = max(about or 0, tally.scanned) or None
                text = f"reading the table, {tally.published:,} new"
                progress.update(task, description=text, completed=tally.scanned, total=total)

        return await run_sweep(settings, asked, watch)


def moment_ms(text: str) -> int:
    """A duration back from now, or an ISO 8601 time (no zone means UTC), in ms since 1970. Raises Failure."""
    try:
        return round((time.time() - parse_seconds(text)) * 1000)
    except ValueError as error:
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            raise Failure(f"--since: {error}, or an ISO time like 2026-01-31T00:00:00Z") from error
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return round(moment.timestamp() * 1000)
