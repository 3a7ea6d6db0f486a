"""Shows one turn (PF-9 §5.10, PS-5's `reconstruct`): the join's state names the trace, and Opik has the rest."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from agents.join.counting import HOUR
from agents.join.turn import Turn, decode_turn
from agents.join.versions import Came, standings
from agents.keys import POOL_EDGE, REFUSED, TURN_POOL, UNNAMED, names_of, pool_place, spelled, turn_key
from agents.ports import Store
from agents.traces import RESERVED, is_judge_score
from evalcore.judges.bindings import PLAIN, unreadable
from evalcore.scoring.sampling import number_of, turn_hash
from schemas.answers import JudgeOpinion, PooledView, TurnView
from schemas.verticals import TraceLayout
from streams.opik.traces import OpikTraces

PURPOSES = ("feedback", "eval")
NO_TEXT = frozenset(
    ("id", "project_id", "project_name", "start_time", "end_time", "duration", "created_at", "last_updated_at")
) | {"span_count", "llm_span_count", "total_estimated_cost"}
"""Fields of Opik's trace in which no one's words can stand."""


WHY = {
    Came.RUNNING: "not_ended: no record of its end has come",
    Came.NOT_COME: "record_not_come: it is known from Opik, and its record has not come",
    Came.DEAD: "dead_lettered: its last record is a dead letter",
}
NAMELESS = "its trace names no agent, or no version"
TOO_NEW = "its version was one of too many new ones in its hour"


class TurnNotFound(LookupError):
    """Neither the state nor Opik has a trace for this response id; the message says what each of them has."""


async def view_turn(response_id: str, store: Store, traces: OpikTraces, layouts: Mapping[str, TraceLayout]) -> TurnView:
    """The turn of a response. Only reads, so a key for reading suffices. Raises TurnNotFound, Unavailable,
    Unauthorized."""
    (encoded,) = await store.read([turn_key(response_id)])
    turn = decode_turn(encoded) if encoded else Turn()
    project = turn.project
    trace = await traces.get(turn.trace_id) if turn.trace else None
    if trace is None:
        found = (await traces.find({response_id: 0})).get(response_id)
        if found is not None:
            project, trace = found.project, await traces.get(Turn(trace=found.trace).trace_id)
    if trace is None:
        raise TurnNotFound(unknown(response_id, turn))
    view = joined(response_id, turn, project, trace)
    unread = unreadable(trace, layouts.get(view.vertical or "", PLAIN))
    return view.model_copy(update={"pools": await pools_of(response_id, turn, trace, store), "unreadable": unread})


async def pools_of(response_id: str, turn: Turn, trace: dict[str, Any], store: Store) -> list[PooledView]:
    """Whether the turn is in the pools of each version that it has traces of. Raises Unavailable."""
    metadata = trace.get("metadata") or {}
    version = text_of(metadata.get("agent_version"))
    own = names_of(text_of(metadata.get("agent_id")) or "", version or "")
    out = []
    for one in standings(turn):
        turn_is = turn_hash(response_id, one.names)
        why: str | None = WHY.get(one.came)
        if one.names in (UNNAMED, REFUSED):
            why = NAMELESS if one.names == UNNAMED else TOO_NEW
        elif one.came == Came.POOLED:
            place = pool_place(None, spelled(one.names), one.time // HOUR)
            seen = await store.at_once((), [POOL_EDGE.key(*place)], [TURN_POOL.key(*place)])
            if number_of(turn_is) >= seen.counts[0].get("edge", math.inf):
                why = "beyond_pool: its hour has more turns than a pool keeps, and its hash leaves it out"
            elif not any(member.startswith(turn_is) for member in seen.pools[0]):
                why = "its record came, and it is not in the pool: a loss, which fails the gate"
        out.append(PooledView(agent_version=version if one.names == own else None, pooled=why is None, why=why))
    return out


def unknown(response_id: str, turn: Turn) -> str:
    if turn.trace:
        return f"response {response_id!r} belongs to trace {turn.trace_id}, which Opik does not have (yet)"
    if turn.active:
        return f"response {response_id!r} has a user signal, and no trace has come for it (yet)"
    return f"no event has told of response {response_id!r} and no trace in Opik has it in metadata.response_id"


def joined(response_id: str, turn: Turn, project: str, trace: dict[str, Any]) -> TurnView:
    """The view of a turn. Pure. What the trace's metadata lacks comes from the state, where the event had it."""
    held = trace.get("metadata")
    metadata: dict[str, Any] = held if isinstance(held, dict) else {}
    signals: dict[str, float] = {}
    judges: list[JudgeOpinion] = []
    for score in trace.get("feedback_scores") or ():
        name, value = str(score.get("name")), number(score.get("value"))
        if name.startswith(RESERVED) and value is not None:
            signals[name] = value
        elif is_judge_score(name, score.get("source")):
            judges.append(JudgeOpinion(judge_id=name, score=value, reason=text_of(score.get("reason"))))
    frames = metadata.get("frames")
    return TurnView(
        response_id=response_id,
        user_id=text_of(metadata.get("user_id")),
        session_id=text_of(metadata.get("session_id")) or text_of(trace.get("thread_id")),
        environment=text_of(metadata.get("environment")) or text_of(trace.get("environment")),
        agent_version=text_of(metadata.get("agent_version")),
        vertical=text_of(metadata.get("vertical")) or turn.vertical or None,
        sub_agent=text_of(metadata.get("sub_agent")) or turn.sub_agent or None,
        prompt_version=text_of(metadata.get("prompt_version")),
        category=text_of(metadata.get("category")) or turn.category or None,
        timestamp=text_of(metadata.get("timestamp"))
        or text_of(trace.get("end_time"))
        or text_of(trace.get("start_time")),
        feedback_scores=dict(sorted(signals.items())),
        judge_scores=sorted(judges, key=lambda judge: judge.judge_id),
        trace={name: value for name, value in trace.items() if value is not None} | {"project_name": project},
        frames=frames if isinstance(frames, list) else [],
    )


def without_text(view: TurnView) -> TurnView:
    """The view as it may be read without an audit record: labels, scores and times. A judge's reason may quote the
    user, and any other field of the trace, its metadata too, may hold what was said."""
    return view.model_copy(
        update={
            "judge_scores": [judge.model_copy(update={"reason": None}) for judge in view.judge_scores],
            "trace": {name: value for name, value in view.trace.items() if name in NO_TEXT},
            "frames": [],
        }
    )


def number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def text_of(value: Any) -> str | None:
    """The text, or a number as text, since versions often are numbers; None for anything else and for no text."""
    if isinstance(value, str):
        return value or None
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
