"""`rampgate feed dynamodb`."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from rampgate.console import Failure, print_json, run
from rampgate.logs import configure_logs
from rampgate.settings import load_settings

feeds = typer.Typer(help="Bring user signals from where they are kept onto their topic.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    app.add_typer(feeds, name="feed")


@feeds.callback()
def feed() -> None:
    """So that `dynamodb` stays a command of its own beside feeds to come."""


@feeds.command("dynamodb")
def dynamodb(
    table: Annotated[str | None, typer.Option(help="The thumbs table; its stream is found by it")] = None,
    endpoint: Annotated[str | None, typer.Option(help="DynamoDB endpoint, for DynamoDB Local")] = None,
    region: Annotated[str | None, typer.Option(help="AWS region")] = None,
    kafka: Annotated[str | None, typer.Option(help="Brokers, comma-separated")] = None,
    redis: Annotated[str | None, typer.Option(help="Redis URL, for checkpoints and leases")] = None,
    http: Annotated[str | None, typer.Option(help="address:port of probes and metrics")] = None,
    once: Annotated[bool, typer.Option("--once", help="Publish what there is, then exit")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="A JSON summary on stdout at the end")] = False,
) -> None:
    """Publish the table's stream to the thumbs topic, resuming where a feed of this table left off.

    Every record is published at least once and in order; start a second feed to stand by or share the shards.
    Credentials are found as every AWS program finds them. Exit code 2: the stream or a setting can't be used.

    Example: rampgate feed dynamodb --table thumbs --region eu-west-1
    """
    flags = {
        "thumbs_table": table,
        "dynamodb_endpoint": endpoint,
        "dynamodb_region": region,
        "kafka": kafka,
        "redis": redis,
        "http": http,
    }
    settings = load_settings(flags)
    configure_logs(settings.log_level, settings.log_format)

    async def job() -> dict[str, Any]:
        from rampgate.worker.feed import run_feed
        from streams.dynamodb.client import Misconfigured

        try:
            if not (once and sys.stderr.isatty()):
                return await run_feed(settings, once=once)
            from rich.console import Console

            with Console(stderr=True).status("reading the stream") as status:
                return await run_feed(
                    settings, once=once, watch=lambda feed: status.update(f"{feed.total:,} records published")
                )
        except Misconfigured as error:
            raise Failure(str(error)) from error

    summary = run(job)
    if as_json:
        print_json(summary)
    elif once:
        sys.stderr.write(f"{summary['published']} records published in {summary['seconds']} s\n")
