"""One turn as PF-9 §5.10 shows it: the join's state tells which trace, Opik tells the rest (PS-5's `reconstruct`)."""

from __future__ import annotations

from typing import Any, Protocol

from agents.codec import TraceFacts
from agents.join.turn import Turn, decode_turn
from agents.keys import turn_key
from agents.ports import Store
from agents.traces import RESERVED, is_judge_score
from schemas.answers import JudgeOpinion, TurnView

PURPOSES = ("feedback", "eval")


class TurnNotFound(LookupError):
    """Neither the state nor Opik has a trace for this response id; the message says which of them knew what."""


class TraceReader(Protocol):
    async def get(self, trace_id: str) -> dict[str, Any] | None: ...
    async def find(self, since_ms: dict[str, int]) -> dict[str, TraceFacts]: ...


async def view_turn(response_id: str, store: Store, traces: TraceReader) -> TurnView:
    """Reads only, so an Opik key that may only read will do. Raises TurnNotFound, Unavailable or Unauthorized."""
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
    return joined(response_id, turn, project, trace)


def unknown(response_id: str, turn: Turn) -> str:
    if turn.trace:
        return f"response {response_id!r} belongs to trace {turn.trace_id}, which Opik does not have (yet)"
    if turn.active:
        return f"response {response_id!r} has a user signal, and no trace has come for it (yet)"
    return f"no event has told of response {response_id!r} and no trace in Opik has it in metadata.response_id"


def joined(response_id: str, turn: Turn, project: str, trace: dict[str, Any]) -> TurnView:
    """Pure. Metadata comes from the trace, and from the state where the trace lacks it (its event had it)."""
    held = trace.get("metadata")
    metadata: dict[str, Any] = held if isinstance(held, dict) else {}
    signals: dict[str, float] = {}
    judges: list[JudgeOpinion] = []
    for score in trace.get("feedback_scores") or ():
        name, value = str(score.get("name")), number(score.get("value"))
        if name.startswith(RESERVED) and value is not None:
            signals[name] = value
        elif is_judge_score(name, score.get("source")):
            judges.append(JudgeOpinion(judge_id=name, score=value, reason=word(score.get("reason"))))
    frames = metadata.get("frames")
    return TurnView(
        response_id=response_id,
        user_id=word(metadata.get("user_id")),
        session_id=word(metadata.get("session_id")) or word(trace.get("thread_id")),
        environment=word(metadata.get("environment")) or word(trace.get("environment")),
        agent_version=word(metadata.get("agent_version")),
        vertical=word(metadata.get("vertical")) or turn.vertical or None,
        sub_agent=word(metadata.get("sub_agent")) or turn.sub_agent or None,
        prompt_version=word(metadata.get("prompt_version")),
        category=word(metadata.get("category")) or turn.category or None,
        timestamp=word(metadata.get("timestamp")) or word(trace.get("end_time")) or word(trace.get("start_time")),
        feedback_scores=dict(sorted(signals.items())),
        judge_scores=sorted(judges, key=lambda judge: judge.judge_id),
        trace={name: value for name, value in trace.items() if value is not None} | {"project_name": project},
        frames=frames if isinstance(frames, list) else [],
    )


def number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def word(value: Any) -> str | None:
    """Text as it is; numbers as people write them, since versions often are some."""
    if isinstance(value, str):
        return value or None
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
