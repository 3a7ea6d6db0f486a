"""Asks the state for coverage, conservation and turns, and shows the answers as tables.

Text that came from outside is escaped: it can neither mark up nor control the terminal.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any, TypeVar

import orjson
from rich.console import Console

from agents.ports import Unauthorized, Unavailable
from rampgate.console import BadQuery, Failure, plain, run
from rampgate.logs import configure_logs
from rampgate.queries import Queries, reasons_of
from rampgate.settings_sources import load_settings
from rampgate.tables import conservation_table, coverage_table, make_table
from rampgate.wiring import make_parts
from schemas.answers import Answer, Conservation, CoverageAnswer, TurnView
from streams.queries.turn_view import TurnNotFound
from streams.redis.state import RedisStore

AnswerT = TypeVar("AnswerT", bound=Answer)
TIMEOUT_SECONDS = 20.0


def run_query(flags: dict[str, Any], query: Callable[[Queries], Awaitable[AnswerT]]) -> AnswerT:
    """The answer to a query, over connections that give up soon. Raises Failure for what the caller has to correct."""
    settings = load_settings(flags)
    configure_logs("error", "console")

    async def job() -> AnswerT:
        parts = make_parts(settings.model_copy(update={"opik_retry_seconds": min(settings.opik_retry_seconds, 5.0)}))
        try:
            await parts.store.close()
            parts.store = RedisStore(settings.redis_url, settings.redis_prefix, timeout=3.0, tries=2)
            return await query(Queries(parts, TIMEOUT_SECONDS))
        finally:
            await parts.close()

    try:
        return run(job)
    except BadQuery as error:
        raise Failure(error.as_option()) from error
    except (TurnNotFound, Unavailable, Unauthorized) as error:
        raise Failure(str(error)) from error


def show_coverage(answer: CoverageAnswer) -> None:
    Console().print(coverage_table(answer))


def show_conservation(answer: Conservation) -> None:
    console = Console()
    console.print(conservation_table(answer))
    for signal, state, reason, records in reasons_of(answer):
        console.print(f"  {signal}: {records:,} {state.replace('_', ' ')}, {plain(reason)}")
    for signal, row in answer.signals.items():
        if row.gaps:
            console.print(f"  {signal}: {row.gap:,} offsets lost by Kafka before they were read, in {row.gaps:,} gaps")
    samples = answer.samples
    console.print(
        f"  samples: {samples.pooled:,} turns pooled, {samples.record_not_come:,} whose record has not come, "
        f"{samples.dead_lettered:,} dead-lettered, {samples.running:,} running; pools differ by {samples.difference:,}"
    )
    if answer.balanced:
        console.print("[green]balanced[/]: every record is in exactly one state")
    else:
        console.print("[red]out of balance[/]: a difference is a bug or a loss; the worker's log may say which")


def show_turn(view: TurnView) -> None:
    table = make_table(f"Turn {plain(view.response_id)}", "field", "value")
    table.show_header = False
    for name in (
        *("timestamp", "user_id", "session_id", "environment", "agent_version"),
        *("vertical", "sub_agent", "prompt_version", "category"),
    ):
        value = getattr(view, name)
        table.add_row(name, plain(value) if value is not None else "[dim]-[/]")
    table.add_section()
    for name, score in view.feedback_scores.items():
        table.add_row(plain(name), f"[bold]{score:g}[/]")
    table.add_section()
    for judge in view.judge_scores:
        score_text = "[dim]none[/]" if judge.score is None else f"[bold]{judge.score:g}[/]"
        table.add_row(plain(judge.judge_id), score_text + (f"  {plain(judge.reason)}" if judge.reason else ""))
    table.add_section()
    for pool in view.pools:
        word = "in the pool" if pool.pooled else f"not in the pool: {pool.why}"
        table.add_row("evidence", f"{plain(pool.agent_version or 'another version')}: {plain(word)}")
    for name, why in view.unreadable.items():
        table.add_row(f"no {name}", plain(why, 500))
    table.add_row("trace", plain(f"{view.trace.get('id')} in {view.trace.get('project_name')}"))
    for name in ("input", "output"):
        if name in view.trace:
            table.add_row(name, plain(orjson.dumps(view.trace[name]).decode(), 1_000))
    if view.frames:
        table.add_row("frames", str(len(view.frames)))
    Console().print(table)


def show_settings(shown: Mapping[str, Any], given: Collection[str]) -> None:
    table = make_table("Settings in force; those that you gave are bold", "Environment variable", "Value")
    for name, value in shown.items():
        text = plain("" if value is None else value if isinstance(value, str) else orjson.dumps(value).decode())
        label = f"RAMPGATE_{name.upper()}"
        table.add_row(*((f"[bold]{label}[/]", f"[bold]{text}[/]") if name in given else (label, text)))
    Console().print(table)
