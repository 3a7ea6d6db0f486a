"""`rampgate coverage`, `conservation`, `turn`, `settings` and `refresh` (contracts §5).

All but `refresh` read the state themselves: they need no worker.
"""

from __future__ import annotations

from typing import Annotated

import typer

from rampgate.console import print_json, user
from rampgate.options import JsonOption, OpikOption, RedisOption

WindowOption = Annotated[str | None, typer.Option("--window", help="90, 15m, 24h or 7d; default: the lookback window")]
AuditKafkaOption = Annotated[str | None, typer.Option("--kafka", help="Brokers, comma-separated; for the audit")]


def register(app: typer.Typer) -> None:
    for command in (coverage, conservation, turn, settings, refresh):
        app.command(command.__name__)(command)


def coverage(
    vertical: Annotated[str | None, typer.Option("--vertical", help="One vertical, registered or not")] = None,
    window: WindowOption = None,
    as_json: JsonOption = False,
    redis: RedisOption = None,
) -> None:
    """Show, of the turns with a user signal or a judged trace, the share with a signal and a trace.

    Example: rampgate coverage --vertical receipts --window 24h
    """
    from rampgate.cli.jobs.state import queries

    found = queries.run_query({"redis": redis}, lambda state: state.coverage(vertical, window))
    print_json(found.model_dump()) if as_json else queries.show_coverage(found)


def conservation(window: WindowOption = None, as_json: JsonOption = False, redis: RedisOption = None) -> None:
    """Show that every consumed record ended in exactly one state. Exit code 1 if not.

    Example: rampgate conservation --json
    """
    from rampgate.cli.jobs.state import queries

    found = queries.run_query({"redis": redis}, lambda state: state.conservation(window), registry=False)
    print_json(found.model_dump()) if as_json else queries.show_conservation(found)
    raise typer.Exit(0 if found.balanced else 1)


def turn(
    response_id: Annotated[str, typer.Argument(help="The turn's response id")],
    purpose: Annotated[str, typer.Option(help="feedback, or eval: with all texts, and audited")] = "feedback",
    as_json: JsonOption = False,
    redis: RedisOption = None,
    opik: OpikOption = None,
    kafka: AuditKafkaOption = None,
) -> None:
    """Show a turn with its user signals, judge scores and metadata, as PS-5 reconstructs it.

    Example: rampgate turn resp_abc --json
    """
    from rampgate.cli.jobs.state import queries

    flags = {"redis": redis, "opik": opik, "kafka": kafka}
    found = queries.run_query(flags, lambda state: state.turn(response_id, purpose, f"cli:{user()}"))
    print_json(found.model_dump()) if as_json else queries.show_turn(found)


def settings(as_json: JsonOption = False) -> None:
    """Show the settings in force here, from environment, rampgate.toml and defaults; never a secret.

    Example: RAMPGATE_WRITE=true rampgate settings
    """
    from rampgate.cli.jobs.state import queries
    from rampgate.settings_sources import load_settings, shown_settings

    found = load_settings()
    shown = shown_settings(found)
    print_json(shown) if as_json else queries.show_settings(shown, found.model_fields_set)


def refresh(
    http: Annotated[str | None, typer.Option(help="The worker's address:port; default: RAMPGATE_HTTP")] = None,
    as_json: JsonOption = False,
) -> None:
    """Make a running worker read the registry's files again, without a restart.

    Exit code 0 if it serves the new files, 1 if it refuses them: then it shows the findings and serves the version
    before. Of several workers, refresh each, or wait for RAMPGATE_REGISTRY_TTL_SECONDS. The token is RAMPGATE_TOKEN.

    Example: rampgate refresh --http 127.0.0.1:8350
    """
    from rampgate.cli.jobs.registry import refresh as job
    from rampgate.settings_sources import load_settings

    done = job.request_refresh(load_settings({"http": http}))
    print_json(done.model_dump(mode="json")) if as_json else job.show(done)
    raise typer.Exit(0 if done.outcome in job.TAKEN else 1)
