"""The agent of the topic `traces`: completed traces, the other side of the join (PF-9 §5.4)."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Sequence
from typing import Any

import orjson

from agents.codec import Bad, Decoded, Dropped, TraceFacts, load, quoted, time_ms, validate
from agents.gates.pools import PRODUCTION, pool
from agents.join.due_turns import next_check
from agents.join.join import merge_trace
from agents.join.sessions import derive
from agents.join.step import Agent, Batch, MergeResult, StepContext
from agents.own_calls import is_own
from agents.policy import Policy
from agents.ports import Ports
from schemas.dead_letters import Record
from schemas.events import TRACES, TraceEvent
from schemas.outcomes import Cause, FilterReason, Kind, State
from schemas.signals import DECLARED

RESERVED = "user_signal_"
TEXT_LIMIT = 128


def decode(records: Sequence[Record], now: int, policy: Policy) -> Decoded[TraceFacts]:
    out: Decoded[TraceFacts] = Decoded()
    rows = []
    for index, event in load(enumerate(records), policy, out.bad):
        if isinstance(event, dict) and ("trace_id" in event or "response_id" in event):
            rows.append((index, event))
        else:
            out.bad.append(Bad(index, Cause.UNKNOWN_SCHEMA, "not a trace event: trace_id and response_id are missing"))
    earliest = now - policy.lookback

    def build(index: int, event: TraceEvent) -> TraceFacts | None:
        started = time_ms(event["started_at"], "started_at", now, policy)
        ended = started if event["ended_at"] is None else time_ms(event["ended_at"], "ended_at", now, policy)
        metadata = event["metadata"]
        facts = TraceFacts(
            response_id=event["response_id"],
            trace=trace_bytes(event["trace_id"]),
            project=event["project_name"],
            vertical=short(metadata.get("vertical"), "metadata.vertical"),
            sub_agent=short(metadata.get("sub_agent"), "metadata.sub_agent"),
            category=short(metadata.get("category"), "metadata.category"),
            started=started,
            ended=ended,
            judged=any(
                is_judge_score(score["name"], score.get("source")) for score in event.get("feedback_scores") or ()
            ),
            session=metadata.get("session_id") or "",
            said=input_hash(event["input"]) if event.get("input") is not None else b"",
            index=index,
            agent=short(metadata.get("agent_id"), "metadata.agent_id"),
            agent_version=short(metadata.get("agent_version"), "metadata.agent_version"),
            production=(metadata.get("environment") or "").lower() in PRODUCTION,
        )
        if ended < earliest:
            out.dropped.append(Dropped(index, FilterReason.OUT_OF_WINDOW, ended))
            return None
        if is_own(metadata, facts.trace, policy.own_key):
            out.dropped.append(Dropped(index, FilterReason.OWN_TRAFFIC, ended))
            return None
        return facts

    validate(TRACES, rows, out.bad, build, out)
    return out


def is_judge_score(name: str, source: str | None) -> bool:
    """Return whether a feedback score is a judge's: neither a user signal nor set by a person in Opik's pages."""
    legacy = any(name == signal.legacy_name for signal in DECLARED.values())
    return not name.startswith(RESERVED) and not legacy and source != "ui"


def input_hash(value: Any) -> bytes:
    """Return eight bytes that are equal for equal input, whatever the order of keys; b"" for input nested too deep."""
    try:
        return hashlib.sha256(orjson.dumps(value, option=orjson.OPT_SORT_KEYS)).digest()[:8]
    except orjson.JSONEncodeError:
        return b""


def trace_bytes(text: str) -> bytes:
    try:
        return uuid.UUID(text).bytes
    except ValueError:
        raise ValueError(f"trace_id: {quoted(text)} is not a UUID") from None


def short(text: str | None, field: str) -> str:
    if text is None:
        return ""
    if len(text) > TEXT_LIMIT:
        raise ValueError(f"{field}: longer than {TEXT_LIMIT} characters")
    return text


async def merge(batch: Batch, items: Sequence[TraceFacts], context: StepContext, ports: Ports) -> list[MergeResult]:
    """Merge each trace into its turn. A trace without judge scores is looked at again while judges may still run."""
    out = []
    for facts in items:
        snapshot = context.turns[facts.response_id]
        changed = merge_trace(snapshot.turn, ports.newcomers.placed(facts, context.now))
        if changed:
            snapshot.touched = True
            snapshot.trace_came = min(batch.records[facts.index].timestamp, context.now)
            pool(batch, facts, context, ports.newcomers)
            if not snapshot.turn.judged:
                context.change.due[facts.response_id] = next_check(context.now, facts.ended, context.policy, first=True)
        out.append(MergeResult(facts.index, facts.ended, snapshot, None, State.DONE if changed else State.SUPERSEDED))
    await derive(batch, items, context, ports)
    return out


AGENT = Agent(Kind.TRACE, decode, merge)
