"""`rampgate coverage`, `conservation`, `turn` and `settings`: what the state says, no worker needed (contracts §5)."""

from __future__ import annotations

import getpass
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from rampgate.cli.common import JsonOption, OpikOption, RedisOption
from rampgate.cli.jobs import query_view as view
from rampgate.console import Failure, print_json, run
from rampgate.logs import configure_logs
from rampgate.settings import load_settings, shown_settings
from schemas.answers import Answer

if TYPE_CHECKING:
    from rampgate.queries import Answers

AnswerT = TypeVar("AnswerT", bound=Answer)
PATIENCE = 20.0

WindowOption = Annotated[str | None, typer.Option("--window", help="90, 15m, 24h or 7d; default: the lookback window")]
KafkaOption = Annotated[str | None, typer.Option("--kafka", help="Brokers, comma-separated; for the audit")]


def register(app: typer.Typer) -> None:
    app.command("coverage")(coverage)
    app.command("conservation")(conservation)
    app.command("turn")(turn)
    app.command("settings")(settings)


def coverage(
    vertical: Annotated[str | None, typer.Option("--vertical", help="One vertical, registered or not")] = None,
    window: WindowOption = None,
    as_json: JsonOption = False,
    redis: RedisOption = None,
) -> None:
    """How much of the join there is, per vertical: turns with both sides, and those that miss one.

    Example: rampgate coverage --vertical receipts --window 24h
    """
    answer = asked({"redis": redis}, lambda answers: answers.coverage(vertical, window))
    print_json(answer.model_dump()) if as_json else view.show_coverage(answer)


def conservation(window: WindowOption = None, as_json: JsonOption = False, redis: RedisOption = None) -> None:
    """Whether every consumed record ended in exactly one state. Exit code 1 if not.

    Example: rampgate conservation --json
    """
    answer = asked({"redis": redis}, lambda answers: answers.conservation(window))
    print_json(answer.model_dump()) if as_json else view.show_conservation(answer)
    raise typer.Exit(0 if answer.balanced else 1)


def turn(
    response_id: Annotated[str, typer.Argument(help="The turn's response id")],
    purpose: Annotated[str, typer.Option(help="feedback or eval; a read for eval is audited")] = "feedback",
    as_json: JsonOption = False,
    redis: RedisOption = None,
    opik: OpikOption = None,
    kafka: KafkaOption = None,
) -> None:
    """One turn with its user signals, judge scores and metadata, as PS-5 reconstructs it.

    Example: rampgate turn resp_abc --json
    """
    flags = {"redis": redis, "opik": opik, "kafka": kafka}
    answer = asked(flags, lambda answers: answers.turn(response_id, purpose, f"cli:{user()}"))
    print_json(answer.model_dump()) if as_json else view.show_turn(answer)


def settings(as_json: JsonOption = False) -> None:
    """The settings in force here, from environment, rampgate.toml and defaults. Secrets are not shown.

    Example: RAMPGATE_WRITE=true rampgate settings
    """
    found = load_settings()
    shown = shown_settings(found)
    print_json(shown) if as_json else view.show_settings(shown, found.model_fields_set)


def asked(flags: dict[str, Any], question: Callable[[Answers], Awaitable[AnswerT]]) -> AnswerT:
    """The answer, from parts of our own that give up soon. Raises Failure for what the caller has to mend."""
    # Imported here: other commands start a second faster without it.
    from agents.ports import Unauthorized, Unavailable
    from rampgate.queries import Answers, BadQuestion
    from rampgate.wiring import make_parts
    from streams.queries.turn_view import TurnNotFound
    from streams.redis.state import RedisStore

    found = load_settings(flags)
    configure_logs("error", "console")

    async def job() -> AnswerT:
        parts = make_parts(found.model_copy(update={"opik_retry_seconds": min(found.opik_retry_seconds, 5.0)}))
        try:
            await parts.store.close()
            parts.store = RedisStore(found.redis, found.redis_prefix, timeout=3.0, tries=2)
            return await question(Answers(parts, PATIENCE))
        finally:
            await parts.close()

    try:
        return run(job)
    except (BadQuestion, TurnNotFound, Unavailable, Unauthorized) as error:
        raise Failure(str(error)) from error


def user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"
