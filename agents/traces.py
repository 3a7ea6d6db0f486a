"""The agent of the topic `traces`: completed traces, the other side of the join (PF-9 §5.4)."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Sequence
from typing import Any

import orjson

from agents.codec import Bad, Decoded, Dropped, TraceFacts, load, loads, quoted, time_ms, validate
from agents.gates.pools import PRODUCTION, pool
from agents.join.batches import Agent, Batch, MergeResult, index_of
from agents.join.due_turns import next_check
from agents.join.join import merge_lost, merge_trace
from agents.join.sessions import derive
from agents.join.step import StepContext
from agents.join.versions import Came, standing_of
from agents.keys import turn_key
from agents.own_calls import claimed, is_own
from agents.policy import Policy
from agents.ports import Ports
from evalcore.judges.bindings import PLAIN, unreadable
from evalcore.remediation.sealing import Form, Opened
from schemas.dead_letters import Record
from schemas.events import TRACES, TraceEvent
from schemas.outcomes import Cause, FilterReason, Kind, State
from schemas.signals import DECLARED

RESERVED = "user_signal_"
TEXT_LIMIT = 128
LONGEST = 512
"""Characters of a response id, as in `schemas.events`."""
_SCOPE = ("vertical", "environment")


def decode(records: Sequence[Record], now: int, policy: Policy) -> Decoded[TraceFacts]:
    out: Decoded[TraceFacts] = Decoded()
    rows = []
    opened: dict[int, Opened] = {}
    for index, event in load(enumerate(records), policy, out.bad):
        if isinstance(event, dict) and ("trace_id" in event or "response_id" in event):
            rows.append((index, event))
            opened[index] = policy.forms.open(event)
        else:
            out.bad.append(Bad(index, Cause.UNKNOWN_SCHEMA, "not a trace event: trace_id and response_id are missing"))
    earliest = now - policy.lookback

    def build(index: int, event: TraceEvent) -> TraceFacts | None:
        started = time_ms(event["started_at"], "started_at", now, policy)
        ended = started if event["ended_at"] is None else time_ms(event["ended_at"], "ended_at", now, policy)
        metadata, (form, _, forged) = event["metadata"], opened[index]
        running = event["ended_at"] is None or form is Form.BARE
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
            came=Came.RUNNING if running else Came.POOLED,
            readable=running
            or event.get("input") is None
            or event.get("output") is None
            or not unreadable(event, policy.layouts.get(metadata.get("vertical") or "", PLAIN)),
            forged=forged,
        )
        if ended < earliest:
            out.dropped.append(Dropped(index, FilterReason.OUT_OF_WINDOW, ended))
            return None
        if is_own(metadata, facts.trace, policy.own_key):
            out.dropped.append(Dropped(index, FilterReason.OWN_TRAFFIC, ended))
            return None
        return facts

    validate(TRACES, rows, build, out)
    for bad in out.bad:
        facts = lost(records[bad.index], bad.index, now, policy)
        if facts is not None:
            out.lost.append(facts)
    return out


def lost(record: Record, index: int, now: int, policy: Policy) -> TraceFacts | None:
    """Return what can be read of a trace's record that becomes a dead letter; None where it does not say of which turn
    and agent version it is."""
    try:
        event = loads((record.value or b"").decode(errors="replace").encode())
    except orjson.JSONDecodeError:
        return None
    metadata = event.get("metadata") if isinstance(event, dict) else None
    if not isinstance(metadata, dict):
        return None
    response_id, agent, version = event.get("response_id"), metadata.get("agent_id"), metadata.get("agent_version")
    named = (isinstance(one, str) and 0 < len(one) <= LONGEST for one in (response_id, agent, version))
    if not all(named) or claimed(metadata):
        return None
    came, ended = Came.DEAD, min(record.timestamp, now)
    try:
        ended = time_ms(event.get("ended_at"), "ended_at", now, policy)
    except ValueError:
        # No one knows that it ended later than an accepted record of the turn.
        came = Came.RUNNING if event.get("ended_at") is None else Came.NOT_COME
    vertical, environment = (text if isinstance(text, str) else "" for text in map(metadata.get, _SCOPE))
    return TraceFacts(
        response_id=str(response_id),
        started=ended,
        ended=ended,
        vertical=vertical[:TEXT_LIMIT],
        index=index,
        agent=str(agent),
        agent_version=str(version),
        production=environment.lower() in PRODUCTION,
        came=came,
    )


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
    """Merge each trace into its turn, and give the turn its place in the pools. A trace without judge scores is looked
    at again while judges may still run."""
    out, now, change, report = [], context.now, context.change, context.report
    change.sets |= await ports.newcomers.place([*items, *context.lost], ports.store, now, context.policy.lookback)
    for facts in sorted([*items, *context.lost], key=index_of) if context.lost else items:
        snapshot = context.turns[facts.response_id]
        turn = snapshot.turn
        for found, counts in ((not facts.readable, report.unreadable), (facts.forged, report.forged)):
            if found:
                counts[facts.vertical] = counts.get(facts.vertical, 0) + 1
        before = standing_of(turn, facts.names)
        if not facts.trace:
            changed = merge_lost(turn, facts)
        else:
            changed = merge_trace(turn, facts)
            out.append(
                MergeResult(facts.index, facts.ended, snapshot, None, State.DONE if changed else State.SUPERSEDED)
            )
        # Also where the turn stays as it is: it may be known from elsewhere, or this may be the trace's later record.
        pool(batch, facts, before, standing_of(turn, facts.names), context)
        change.checks[turn_key(facts.response_id)] = snapshot.stored
        if changed:
            snapshot.touched = True
        if changed and facts.trace:
            snapshot.trace_came = min(batch.records[facts.index].timestamp, now)
            if not turn.judged:
                change.due[facts.response_id] = next_check(now, facts.ended, context.policy, first=True)
    await derive(batch, items, context, ports)
    return out


AGENT = Agent(Kind.TRACE, decode, merge)
