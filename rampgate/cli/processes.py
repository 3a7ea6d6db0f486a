"""`rampgate worker`, `feed dynamodb` and `sweep`: the processes that consume, publish and reconcile (contracts §5)."""

from __future__ import annotations

import gc
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rampgate.command import Context, command
from rampgate.console import Failure, print_json, run
from rampgate.options import DryRunOption

if TYPE_CHECKING:
    from rampgate.settings import Settings

TableOption = Annotated[str | None, typer.Option(help="The thumbs table; a feed finds its stream by it")]
GONE = {
    "--endpoint": "RAMPGATE_DYNAMODB_ENDPOINT names it",
    "--group": "RAMPGATE_GROUP names it",
    "--region": "RAMPGATE_DYNAMODB_REGION names it",
    "--segments": "a sweep reads two parts of the table side by side",
}
WriteOption = Annotated[bool | None, typer.Option("--write/--no-write", help="Write scores to Opik")]


@command(None, flags="kafka redis opik http", gone=GONE)
def worker(
    context: Context,
    write: WriteOption = None,
) -> int:
    """Consume the topics, join, write scores, keep coverage. Start more of them to share the work.

    Example: rampgate worker --kafka localhost:9092 --redis redis://localhost:6379/0 --write
    """
    settings = logged_settings(context, write=write)

    async def job() -> int:
        gc.disable()  # for the imports, which make no garbage; `quiet_collector` takes over
        from rampgate.worker.process import serve_worker

        return await serve_worker(settings)

    return run(job)


@command(None, flags="kafka redis http json", gone=GONE)
def dynamodb(
    context: Context,
    table: TableOption = None,
    once: Annotated[bool, typer.Option("--once", help="Publish what there is, then exit")] = False,
) -> None:
    """Publish the table's stream to the thumbs topic, resuming where a feed of this table left off.

    It publishes every record at least once and in order. A second feed shares the shards or takes over. It finds AWS
    credentials as every AWS program does. Exit code 2: the stream or a setting can't be used.

    Example: rampgate feed dynamodb --table thumbs --once
    """
    settings = logged_settings(context, thumbs_table=table)

    async def job() -> dict[str, Any]:
        from rampgate.worker.feed import run_feed
        from streams.dynamodb.client import Misconfigured
        from streams.redis.fitness import Evicting

        try:
            return await run_feed(settings, once=once)
        except (Misconfigured, Evicting) as error:
            raise Failure(str(error)) from error

    summary = run(job)
    if context.as_json:
        print_json(summary)
    elif once:
        sys.stderr.write(f"{summary['published']} records published in {summary['seconds']} s\n")


@command(None, flags="kafka redis opik metrics_file json", gone=GONE)
def sweep(
    context: Context,
    since: Annotated[str, typer.Option(help="How far back: a duration (36h, 7d) or an ISO time")],
    sweep_id: Annotated[str | None, typer.Option("--id", help="Name of the sweep, by which it is resumed")] = None,
    restart: Annotated[bool, typer.Option("--restart", help="Forget an interrupted run and begin again")] = False,
    rerolls: Annotated[
        bool, typer.Option("--rerolls/--no-rerolls", help="Rerolls: of their topic and from traces")
    ] = True,
    dry_run: DryRunOption = False,
    table: TableOption = None,
    write: WriteOption = None,
) -> None:
    """Read the thumbs table, the rerolls topic and Opik's traces; join what the state lacks: PF-9's scheduled batch.

    Safe to repeat, and safe beside feed and worker. Exit code 2: a part is out of reach, or a lost state is being
    rebuilt; run it again to go on.

    Example: rampgate sweep --since 36h --write
    """
    from schemas.settings import parse_moment

    settings = logged_settings(context, thumbs_table=table, write=write)
    try:
        since_ms = parse_moment(since)
    except ValueError as error:
        raise Failure(f"--since: {error}") from error

    async def job() -> dict[str, Any]:
        from agents.ports import Unauthorized, Unavailable
        from rampgate.worker.sweep import run_sweep
        from streams.dynamodb.client import Busy, Gone, Misconfigured
        from streams.redis.fitness import Evicting

        name = sweep_id or f"{settings.thumbs_table}:{since}"
        asked: dict[str, Any] = {
            "restart": restart,
            "dry_run": dry_run,
            "rerolls": rerolls,
            "metrics_file": context.metrics_file,
        }
        try:
            return await run_sweep(settings, since_ms, name, **asked)
        except Unauthorized as error:
            raise Failure(f"Opik refuses our key: {error}") from error
        except Evicting as error:
            raise Failure(str(error)) from error
        except (Unavailable, Busy, Gone, Misconfigured) as error:
            raise Failure(f"{error}. What was done is kept; run the sweep again to go on") from error
        except TimeoutError as error:
            raise Failure(f"Kafka at {settings.kafka} or its topics can't be reached") from error

    summary = run(job)
    if context.as_json:
        print_json(summary)
    else:
        for name, value in summary.items():
            sys.stdout.write(f"{name.replace('_', ' '):20}{value}\n")


def logged_settings(context: Context, **flags: Any) -> Settings:
    """The settings with the context's and these flags; also configures the logs by them."""
    from rampgate.logs import configure_logs
    from rampgate.settings_sources import load_settings

    settings = load_settings({**context.given_settings, **flags})
    configure_logs(settings.log_level, settings.log_format)
    return settings
