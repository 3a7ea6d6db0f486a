"""Shows live traces as Opik holds them: labels and scores, and nobody's words (PC5 §2).

What may be shown without an audit record is decided where turns are shown (`streams.queries.turn_view`).
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rich.console import Console

from agents.join.turn import Turn
from agents.ports import Unauthorized, Unavailable
from agents.traces import trace_bytes
from rampgate.console import Failure, plain, print_json, run
from rampgate.logs import configure_logs
from rampgate.opik_reading import opened
from rampgate.registry.verticals import load_verticals, workspace_of
from rampgate.registry.view import require_vertical
from rampgate.settings import Settings
from rampgate.tables import make_table
from schemas.dead_letters import clean
from schemas.verticals import Vertical
from streams.queries.turn_view import joined, number, text_of, without_text

LONGEST = 200
"""Characters of one label."""
MOST_SCORES = 100
"""Scores of one kind that are shown of a trace; who writes traces says how many there are."""


@dataclass(frozen=True)
class TracesAsked:
    agent: str | None
    version: str | None
    vertical: str | None
    limit: int

    def metadata(self) -> dict[str, str]:
        """What the metadata of a trace has to hold."""
        wanted = {"agent_id": self.agent, "agent_version": self.version, "vertical": self.vertical}
        return {name: value for name, value in wanted.items() if value is not None}


def list_traces(settings: Settings, asked: TracesAsked, as_json: bool) -> int:
    """Show the newest that match, and return the exit code. Raises Failure for a vertical that is not registered."""
    configure_logs("error", "console")
    verticals = load_verticals(settings.configs)
    if not verticals:
        raise Failure(
            f"{settings.configs}/verticals: no vertical is registered; `rampgate vertical scaffold` makes one"
        )
    owners = list(verticals.values()) if asked.vertical is None else [_registered(verticals, asked.vertical)]
    places = {(workspace_of(one, settings), one.project): one for one in owners}

    async def read() -> tuple[dict[str, dict[str, Any]], dict[str, str]]:
        found: dict[str, dict[str, Any]] = {}
        troubles: dict[str, str] = {}
        for owner in places.values():
            try:
                async with opened(settings, owner) as traces:
                    for trace in await traces.newest(owner.project, asked.metadata(), asked.limit):
                        found[str(trace.get("id"))] = described(trace, owner.project)
            except (Unauthorized, Unavailable) as error:
                troubles[owner.project] = clean(str(error), 500)
        return found, troubles

    found, troubles = run(read)
    # A trace's id begins with its time.
    newest = [found[trace_id] for trace_id in sorted(found, reverse=True)[: asked.limit]]
    if as_json:
        print_json({"traces": newest, "limit": asked.limit, "errors": troubles})
    else:
        _show_all(newest, [project for _, project in places if project not in troubles])
        for project, trouble in troubles.items():
            Console(stderr=True, highlight=False, soft_wrap=True).print(f"{plain(project)}: {plain(trouble, 500)}")
    return 2 if troubles else 0


def show_trace(settings: Settings, trace_id: str, vertical: str | None, as_json: bool) -> int:
    """Show one, and return the exit code. Raises Failure for an id that is none, a vertical that is not registered and
    an Opik that can't be read."""
    configure_logs("error", "console")
    owner = None if vertical is None else _registered(load_verticals(settings.configs), vertical)
    try:
        wanted = str(uuid.UUID(bytes=trace_bytes(trace_id)))
    except ValueError as error:
        raise Failure(
            f"{error}; `rampgate traces list` shows ids of traces, `rampgate turn` takes a response id"
        ) from error

    async def read() -> dict[str, Any] | None:
        async with opened(settings, owner) as traces:
            return await traces.get(wanted)

    try:
        trace = run(read)
    except (Unauthorized, Unavailable) as error:
        raise Failure(str(error)) from error
    if trace is None:
        workspace = settings.opik_workspace if owner is None else workspace_of(owner, settings)
        trouble = (
            f"Opik shows no trace {wanted} in workspace {clean(workspace, LONGEST)}: it has none of this id, or one "
            "too long to be read. `rampgate traces list` shows the newest; --vertical asks with a vertical's own key"
        )
        if as_json:
            print_json({"trace_id": wanted, "trace": None, "error": trouble})
        else:
            Console(stderr=True, highlight=False, soft_wrap=True).print(plain(trouble, 500))
        return 1
    shown = described(trace, text_of(trace.get("project_name")) or text_of(trace.get("project_id")) or "")
    if as_json:
        print_json({"trace_id": wanted, "trace": shown, "error": None})
    else:
        _show_one(shown)
    return 0


def described(trace: Mapping[str, Any], project: str) -> dict[str, Any]:
    """What is shown of a trace: its labels, bounded and without control characters, and its scores by kind."""
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
    return {clean(name, LONGEST): scores[name] for name in sorted(scores)[:MOST_SCORES]}


def _registered(verticals: Mapping[str, Vertical], name: str) -> Vertical:
    require_vertical(name, verticals)
    return verticals[name]


def _show_all(found: list[dict[str, Any]], read: list[str]) -> None:
    console = Console(highlight=False, soft_wrap=True)
    if not found:
        if read:
            console.print(f"no trace matches in {plain(', '.join(read), 500)}")
        return
    table = make_table(None, "Time", "Trace", "Turn", "Agent", "Version", "Vertical", ">Signals", ">Judges")
    labels = ("timestamp", "trace_id", "response_id", "agent_id", "agent_version", "vertical")
    for one in found:
        cells = [*(one[name] for name in labels), len(one["feedback_scores"]), len(one["judge_scores"])]
        table.add_row(*(plain("-" if cell is None else cell) for cell in cells))
    console.print(table)


def _show_one(one: Mapping[str, Any]) -> None:
    table = make_table(f"Trace {plain(one['trace_id'])}", "field", "value")
    table.show_header = False
    for name, value in one.items():
        if isinstance(value, str | None) and name != "trace_id":
            table.add_row(name, "-" if value is None else plain(value))
    judges = {judge["judge_id"]: judge["score"] for judge in one["judge_scores"]}
    for kind, scores in (
        ("user signal", one["feedback_scores"]),
        ("judge", judges),
        ("other score", one["other_scores"]),
    ):
        table.add_section()
        for name, score in scores.items():
            table.add_row(f"{kind} {plain(name)}", "-" if score is None else f"{score:g}")
    if one["scores_left_out"]:
        table.add_row("left out", f"{one['scores_left_out']:,} scores")
    Console(highlight=False, soft_wrap=True).print(table)
