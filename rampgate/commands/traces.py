"""Runs `rampgate traces`: live traces as Opik holds them, labels and scores, and no one's words (PC5 §2).

What may be shown without an audit record is decided where turns are shown (`streams.queries.turn_view`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from typer import Argument, Option

from rampgate.command import Context, Document, command
from rampgate.console import Failure
from rampgate.report.model import Reason, Report, Section

MOST = 500
LONGEST = 200
"""Characters of one label."""
MOST_SCORES = 100
"""Scores of one kind that are shown of a trace; who writes traces says how many there are."""


def traces_report(told: Mapping[str, Any]) -> Report:
    """The report of the newest traces, or of one."""
    if "traces" in told:
        heads = ("Time", "Trace", "Turn", "Agent", "Version", "Vertical", "Signals", "Judges")
        labels = ("timestamp", "trace_id", "response_id", "agent_id", "agent_version", "vertical")
        rows = [
            [*(one[name] or "-" for name in labels), len(one["feedback_scores"]), len(one["judge_scores"])]
            for one in told["traces"]
        ]
        why = [Reason("error", text, about=project, undecided=True) for project, text in told["errors"].items()]
        result = f"the newest {len(rows)}" if rows else "none matches"
        return Report("Traces", result, "fail" if why else "pass", [Section("", heads, rows)], why)
    one = told["trace"]
    if one is None:
        why = [Reason("error", told["error"], about=told["trace_id"])]
        return Report("Trace", "not found", "fail", reasons=why)
    rows = [[name, value or "-"] for name, value in one.items() if isinstance(value, str | None) and name != "trace_id"]
    judges = {judge["judge_id"]: judge["score"] for judge in one["judge_scores"]}
    kinds = (("user signal", one["feedback_scores"]), ("judge", judges), ("other score", one["other_scores"]))
    rows += [
        [f"{kind} {name}", "-" if score is None else f"{score:g}"]
        for kind, scores in kinds
        for name, score in scores.items()
    ]
    notes = [f"{one['scores_left_out']:,} scores are left out"] if one["scores_left_out"] else []
    return Report(f"Trace {told['trace_id']}", "found", "pass", [Section("", rows=rows, notes=notes)])


@command(traces_report, flags="configs opik")
async def traces(
    context: Context,
    trace_id: Annotated[str | None, Argument(help="Only the trace with this id in Opik, with its scores")] = None,
    agent: Annotated[str | None, Option(help="Only this metadata.agent_id")] = None,
    version: Annotated[str | None, Option(help="Only this metadata.agent_version")] = None,
    vertical: Annotated[
        str | None,
        Option(help="Only this metadata.vertical, in its project and with its key; default: all registered"),
    ] = None,
    limit: Annotated[int, Option(min=1, max=MOST, help="The newest so many")] = 20,
) -> Document:
    """Show the newest traces of the registered verticals' projects, or one: turn, agent, version, vertical and scores.

    It only reads, and shows labels and scores: `turn --purpose eval` shows texts, and is audited. Each project is read
    with its vertical's key. Exit code 1 if Opik shows no trace of this id, 2 if the id is none or a project can't be
    read; the others are shown all the same.

    Example: rampgate traces --agent rewards --version v12 --limit 50
    """
    from rampgate.registry.view import require_vertical

    if vertical is not None:
        require_vertical(vertical, context.verticals)
    if trace_id is not None:
        return await _one(context, trace_id, vertical)
    wanted = {"agent_id": agent, "agent_version": version, "vertical": vertical}
    return await _newest(context, {name: value for name, value in wanted.items() if value is not None}, limit)


async def _newest(context: Context, wanted: Mapping[str, str], limit: int) -> Document:
    """The newest traces whose metadata holds what is wanted."""
    from agents.ports import Unauthorized, Unavailable
    from rampgate.registry.opik_reading import opened
    from rampgate.registry.verticals import workspace_of
    from schemas.dead_letters import clean

    settings, verticals = context.settings, context.verticals
    if not verticals:
        raise Failure(
            f"{settings.configs}/verticals: no vertical is registered; `rampgate vertical scaffold` makes one"
        )
    owners = [one for one in verticals.values() if wanted.get("vertical") in (None, one.name)]
    places = {(workspace_of(one, settings), one.project): one for one in owners}
    found: dict[str, dict[str, Any]] = {}
    troubles: dict[str, str] = {}
    for owner in places.values():
        try:
            async with opened(settings, owner) as reading:
                for trace in await reading.newest(owner.project, dict(wanted), limit):
                    found[str(trace.get("id"))] = described(trace, owner.project)
        except (Unauthorized, Unavailable) as error:
            troubles[owner.project] = clean(str(error), 500)
    # A trace's id begins with its time.
    newest = [found[each] for each in sorted(found, reverse=True)[:limit]]
    return Document({"traces": newest, "limit": limit, "errors": troubles}, 2 if troubles else 0)


async def _one(context: Context, trace_id: str, vertical: str | None) -> Document:
    import uuid

    from agents.traces import trace_bytes
    from rampgate.registry.opik_reading import opened
    from rampgate.registry.verticals import workspace_of
    from schemas.dead_letters import clean
    from streams.queries.turn_view import text_of

    settings = context.settings
    owner = None if vertical is None else context.verticals[vertical]
    try:
        wanted = str(uuid.UUID(bytes=trace_bytes(trace_id)))
    except ValueError as error:
        raise Failure(f"{error}; `rampgate traces` shows ids of traces, `rampgate turn` takes a response id") from error
    async with opened(settings, owner) as reading:
        trace = await reading.get(wanted)
    if trace is None:
        workspace = settings.opik_workspace if owner is None else workspace_of(owner, settings)
        trouble = (
            f"Opik shows no trace {wanted} in workspace {clean(workspace, LONGEST)}: it has none of this id, or one "
            "too long to be read. `rampgate traces` shows the newest; --vertical asks with a vertical's own key"
        )
        return Document({"trace_id": wanted, "trace": None, "error": trouble}, 1)
    shown = described(trace, text_of(trace.get("project_name")) or text_of(trace.get("project_id")) or "")
    return Document({"trace_id": wanted, "trace": shown, "error": None})


def described(trace: Mapping[str, Any], project: str) -> dict[str, Any]:
    """What is shown of a trace: its labels, bounded and without control characters, and its scores by kind."""
    from agents.join.turn import Turn
    from schemas.dead_letters import clean
    from streams.queries.turn_view import joined, number, text_of, without_text

    held = trace.get("metadata")
    metadata: Mapping[str, Any] = held if isinstance(held, dict) else {}
    view = without_text(joined(text_of(metadata.get("response_id")) or "", Turn(), project, dict(trace)))
    labels = {
        "trace_id": text_of(trace.get("id")),
        "project": project,
        "response_id": view.response_id or None,
        "agent_id": text_of(metadata.get("agent_id")),
        "agent_version": view.agent_version,
        "vertical": view.vertical,
        "sub_agent": view.sub_agent,
        "prompt_version": view.prompt_version,
        "category": view.category,
        "environment": view.environment,
        "session_id": view.session_id,
        "user_id": view.user_id,
        "timestamp": view.timestamp,
    }
    known = {*view.feedback_scores, *(judge.judge_id for judge in view.judge_scores)}
    others = {
        str(score.get("name")): number(score.get("value"))
        for score in trace.get("feedback_scores") or ()
        if str(score.get("name")) not in known
    }
    judges = {judge.judge_id: judge.score for judge in view.judge_scores}
    return {
        **{name: None if value is None else clean(value, LONGEST) for name, value in labels.items()},
        "feedback_scores": _bounded(view.feedback_scores),
        "judge_scores": [{"judge_id": name, "score": score} for name, score in _bounded(judges).items()],
        "other_scores": _bounded(others),
        "scores_left_out": sum(max(len(some) - MOST_SCORES, 0) for some in (view.feedback_scores, judges, others)),
    }


def _bounded(scores: Mapping[str, float | None]) -> dict[str, float | None]:
    from schemas.dead_letters import clean

    return {clean(name, LONGEST): scores[name] for name in sorted(scores)[:MOST_SCORES]}
