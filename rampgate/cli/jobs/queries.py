"""Asks the state for coverage, conservation and turns, and shows the answers as tables.

Text from outside is shown as text, never as markup or control characters.
"""

from __future__ import annotations

import getpass
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any, TypeVar

import orjson
from rich import box
from rich.console import Console
from rich.table import Table

from agents.ports import Unauthorized, Unavailable
from rampgate.console import BadQuery, Failure, plain, run
from rampgate.logs import configure_logs
from rampgate.queries import Queries
from rampgate.settings import load_settings
from rampgate.wiring import make_parts
from schemas.answers import Answer, Conservation, CoverageAnswer, TurnView
from schemas.outcomes import State
from streams.queries.turn_view import TurnNotFound
from streams.redis.state import RedisStore

AnswerT = TypeVar("AnswerT", bound=Answer)
TIMEOUT_SECONDS = 20.0


def run_query(flags: dict[str, Any], query: Callable[[Queries], Awaitable[AnswerT]]) -> AnswerT:
    """The answer, from parts that give up soon. Raises Failure for what the caller has to mend."""
    settings = load_settings(flags)
    configure_logs("error", "console")

    async def job() -> AnswerT:
        parts = make_parts(settings.model_copy(update={"opik_retry_seconds": min(settings.opik_retry_seconds, 5.0)}))
        try:
            await parts.store.close()
            parts.store = RedisStore(settings.redis, settings.redis_prefix, timeout=3.0, tries=2)
            return await query(Queries(parts, TIMEOUT_SECONDS))
        finally:
            await parts.close()

    try:
        return run(job)
    except BadQuery as error:
        raise Failure(error.as_option()) from error
    except (TurnNotFound, Unavailable, Unauthorized) as error:
        raise Failure(str(error)) from error


def user() -> str:
    """The name of who runs this command, for the audit."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"


def show_coverage(answer: CoverageAnswer) -> None:
    table = Table(title=f"Join coverage, last {answer.window_seconds:,} s", title_justify="left", box=box.SIMPLE_HEAD)
    for head in ("Vertical", "Both present", "Missing signal", "Missing trace", "Coverage"):
        table.add_column(head, justify="left" if head == "Vertical" else "right")
    for row in answer.verticals:
        rate = "[dim]no turns[/]" if row.rate is None else f"{row.rate:.1%}"
        figures = (row.both_present, row.missing_signal, row.missing_trace)
        table.add_row(plain(row.vertical), *(f"{figure:,}" for figure in figures), rate)
    Console().print(table)


def show_conservation(answer: Conservation) -> None:
    table = Table(title=f"Conservation, last {answer.window_seconds:,} s", title_justify="left", box=box.SIMPLE_HEAD)
    for head in ("Signal", "Consumed", "Done", "Superseded", "Dead", "Parked", "Filtered", "Off by"):
        table.add_column(head, justify="left" if head == "Signal" else "right")
    notes = []
    for signal, one in answer.signals.items():
        figures = (one.consumed, one.done, one.superseded, one.dead_lettered, one.parked, one.filtered)
        mark = "red" if one.difference else "green"
        table.add_row(signal, *(f"{figure:,}" for figure in figures), f"[{mark}]{one.difference:,}[/]")
        for state in State:
            for reason, records in one.reasons.get(state.value, {}).items():
                notes.append(f"{signal}: {records:,} {state.replace('_', ' ')}, {plain(reason)}")
    console = Console()
    console.print(table)
    for note in notes:
        console.print(f"  {note}")
    if answer.balanced:
        console.print("[green]balanced[/]: every record is in exactly one state")
    else:
        console.print("[red]out of balance[/]: a difference is a bug or a loss; the worker's log may say which")


def show_turn(view: TurnView) -> None:
    table = Table(show_header=False, title=f"Turn {plain(view.response_id)}", title_justify="left", box=box.SIMPLE_HEAD)
    table.add_column("field", style="dim")
    table.add_column("value", overflow="fold")
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
    table.add_row("trace", plain(f"{view.trace.get('id')} in {view.trace.get('project_name')}"))
    for name in ("input", "output"):
        if name in view.trace:
            table.add_row(name, plain(orjson.dumps(view.trace[name]).decode(), 1_000))
    table.add_row("frames", str(len(view.frames)))
    Console().print(table)


def show_settings(shown: Mapping[str, Any], given: Collection[str]) -> None:
    table = Table(title="Settings in force; those that were given are bold", title_justify="left", box=box.SIMPLE_HEAD)
    table.add_column("Environment variable")
    table.add_column("Value", overflow="fold")
    for name, value in shown.items():
        text = plain("" if value is None else value if isinstance(value, str) else orjson.dumps(value).decode())
        label = f"RAMPGATE_{name.upper()}"
        table.add_row(*((f"[bold]{label}[/]", f"[bold]{text}[/]") if name in given else (label, text)))
    Console().print(table)
