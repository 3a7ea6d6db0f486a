"""`rampgate worker`."""

from __future__ import annotations

from typing import Annotated

import typer

from rampgate.console import run
from rampgate.logs import configure_logs
from rampgate.settings import load_settings


def register(app: typer.Typer) -> None:
    app.command("worker")(worker)


def worker(
    kafka: Annotated[str | None, typer.Option(help="Brokers, comma-separated")] = None,
    redis: Annotated[str | None, typer.Option(help="Redis URL")] = None,
    opik: Annotated[str | None, typer.Option(help="Opik URL")] = None,
    group: Annotated[str | None, typer.Option(help="Consumer group")] = None,
    http: Annotated[str | None, typer.Option(help="address:port of probes, metrics and answers")] = None,
    write: Annotated[bool | None, typer.Option("--write/--no-write", help="Write scores to Opik")] = None,
) -> None:
    """Consume the topics, join, write scores, keep coverage. Start more of them to share the work.

    Example: rampgate worker --kafka localhost:9092 --redis redis://localhost:6379/0 --write
    """
    flags = {"kafka": kafka, "redis": redis, "opik": opik, "group": group, "http": http, "write": write}
    settings = load_settings(flags)
    configure_logs(settings.log_level, settings.log_format)

    async def job() -> int:
        from rampgate.worker.process import serve_worker

        return await serve_worker(settings)

    raise typer.Exit(run(job))
