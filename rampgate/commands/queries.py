"""Runs `rampgate coverage`, `conservation`, `turn`, `settings` and `refresh` (contracts §5).

All but `refresh` read the state themselves: they need no worker.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

from typer import Argument, Option

from rampgate.command import Context, Document, command
from rampgate.console import Failure, user
from rampgate.report.findings import reason_of
from rampgate.report.model import Passage, Report, Section
from rampgate.report.state import conservation_report, coverage_report

if TYPE_CHECKING:
    from schemas.answers import Conservation, CoverageAnswer, Refresh, TurnView

SECONDS = 20.0
WindowOption = Annotated[str | None, Option(help="90, 15m, 24h or 7d; default: the lookback window")]


@command(coverage_report, flags="redis")
async def coverage(
    context: Context,
    vertical: Annotated[str | None, Option(help="One vertical, registered or not")] = None,
    window: WindowOption = None,
) -> CoverageAnswer:
    """Show, of the turns with a user signal or a judged trace, the share with a signal and a trace.

    Example: rampgate coverage --vertical receipts --window 24h
    """
    from rampgate.queries import Queries

    async with context.parts(registry=True, soon=True) as parts:
        return await Queries(parts, SECONDS).coverage(vertical, window)


@command(conservation_report, flags="redis")
async def conservation(context: Context, window: WindowOption = None) -> Conservation:
    """Show that every consumed record ended in exactly one state. Exit code 1 if not.

    Example: rampgate conservation --json
    """
    from rampgate.queries import Queries

    async with context.parts(soon=True) as parts:
        return await Queries(parts, SECONDS).conservation(window)


def turn_report(view: TurnView) -> Report:
    labels = (
        *("timestamp", "user_id", "session_id", "environment", "agent_version"),
        *("vertical", "sub_agent", "prompt_version", "category"),
    )
    rows: list[list[Any]] = [[name, getattr(view, name) or "-"] for name in labels]
    rows += [[name, f"{score:g}"] for name, score in view.feedback_scores.items()]
    for judge in view.judge_scores:
        score = "none" if judge.score is None else f"{judge.score:g}"
        rows.append([judge.judge_id, f"{score}  {judge.reason}" if judge.reason else score])
    for pool in view.pools:
        word = "in the pool" if pool.pooled else f"not in the pool: {pool.why}"
        rows.append(["evidence", f"{pool.agent_version or 'another version'}: {word}"])
    rows += [[f"no {name}", why] for name, why in view.unreadable.items()]
    rows.append(["trace", f"{view.trace.get('id')} in {view.trace.get('project_name')}"])
    if view.frames:
        rows.append(["frames", str(len(view.frames))])
    rows += [[name, Passage(_text(view.trace[name]))] for name in ("input", "output") if name in view.trace]
    return Report(f"Turn {view.response_id}", "found", "pass", [Section("", rows=rows)])


def _text(value: Any) -> str:
    import orjson

    return orjson.dumps(value).decode()[:1_000]


@command(turn_report, flags="redis opik kafka")
async def turn(
    context: Context,
    response_id: Annotated[str, Argument(help="The turn's response id")],
    purpose: Annotated[Literal["feedback", "eval"], Option(help="eval: with all texts, and audited")] = "feedback",
) -> TurnView:
    """Show a turn with its user signals, judge scores and metadata, as PS-5 reconstructs it.

    Example: rampgate turn resp_abc --json
    """
    from rampgate.queries import Queries
    from streams.queries.turn_view import TurnNotFound

    async with context.parts(registry=True, soon=True) as parts:
        try:
            return await Queries(parts, SECONDS).turn(response_id, purpose, f"cli:{user()}")
        except TurnNotFound as error:
            raise Failure(str(error)) from error


def settings_report(told: Mapping[str, Any]) -> Report:
    rows = [[f"RAMPGATE_{name.upper()}", "" if value is None else str(value)] for name, value in told.items()]
    return Report("Settings", "in force", "pass", [Section("", ("Environment variable", "Value"), rows)])


@command(settings_report)
def settings(context: Context) -> Document:
    """Show the settings in force here, from environment, rampgate.toml and defaults; never a secret.

    Example: RAMPGATE_WRITE=true rampgate settings
    """
    from rampgate.settings_sources import shown_settings

    return Document(shown_settings(context.settings))


def refresh_report(done: Refresh) -> Report:
    found = [*done.errors, *done.warnings]
    left = done.error_count + done.warning_count - len(found)
    facts = f"{left} findings more; `rampgate rules validate` shows all" if left else ""
    tone = "fail" if done.outcome == "refused" else "warn" if done.outcome == "empty" else "pass"
    why = [reason_of(one.model_dump()) for one in found]
    return Report("Registry of the worker", f"{done.outcome}: {done.message}", tone, reasons=why, facts=facts)


@command(refresh_report, flags="http")
async def refresh(context: Context) -> Refresh:
    """Make a running worker read the registry's files again, without a restart.

    Exit code 0 if it serves the new files, 1 if it refuses them: then it shows the findings and serves the version
    before. Of several workers, refresh each, or wait for RAMPGATE_REGISTRY_TTL_SECONDS. The token is RAMPGATE_TOKEN.

    Example: rampgate refresh --http 127.0.0.1:8350
    """
    from rampgate.registry.refresh import request_refresh

    return await request_refresh(context.settings)
