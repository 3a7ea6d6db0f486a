"""What a set of events must come to, counted without any of the agents' code."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from schemas.outcomes import Kind
from tests.unit.agents.builders import trace_id


@dataclass
class Expected:
    """What the events say, turn by turn."""

    scores: dict[tuple[str, str], float] = field(default_factory=dict)
    coverage: Counter[tuple[str, str]] = field(default_factory=Counter)
    unjudged: Counter[str] = field(default_factory=Counter)


def recount(events: list[tuple[Kind, dict[str, Any]]]) -> Expected:
    """The oracle: from all events at once, by rules written here and not taken from the code, with no notion of
    arrival. A turn's thumbs must all be from the stream or all plain, and its traces tell the same but for scores."""
    out = Expected()
    traces: dict[str, list[dict[str, Any]]] = {}
    thumbs: dict[str, list[tuple[int, float, float, str]]] = {}
    rerolled: set[str] = set()
    named: dict[str, list[tuple[float, str]]] = {}
    """By turn: when a reroll of it was, and the vertical that its event names."""
    for kind, event in events:
        if kind == Kind.TRACE:
            traces.setdefault(event["response_id"], []).append(event)
        elif kind == Kind.REROLL:
            if event["elapsed_seconds"] <= 300:
                rerolled.add(event["response_id"])
                said_of = (event["occurred_at"], event.get("vertical") or "")
                named.setdefault(event["response_id"], []).append(said_of)
        elif "dynamodb" in event:
            body = event["dynamodb"]
            image = body.get("NewImage") or body.get("OldImage")
            said = {"up": 1.0, "down": -1.0}.get(image.get("Thumbs", {}).get("S"), 0.0)
            value = 0.0 if event["eventName"] == "REMOVE" else said
            of = (body["ApproximateCreationDateTime"], image.get("Vertical", {}).get("S", ""))
            thumbs.setdefault(image["ResponseId"]["S"], []).append((int(body["SequenceNumber"]), value, *of))
        else:
            value = {"up": 1.0, "down": -1.0, None: 0.0}[event["value"]]
            at, vertical = event["occurred_at"], event.get("vertical") or ""
            thumbs.setdefault(event["response_id"], []).append((round(at * 1000), value, at, vertical))
    turns = [
        (t["metadata"].get("session_id"), t.get("input"), t["started_at"], t["ended_at"], rid)
        for rid, (t, *_) in traces.items()
    ]
    for session, said, _, ended, rid in turns:
        for session2, said2, started2, _, rid2 in turns:
            if (
                rid != rid2
                and session
                and session == session2
                and said
                and said == said2
                and 0 <= started2 - ended <= 300
            ):
                rerolled.add(rid)
    for rid in {*traces, *thumbs, *rerolled}:
        _, value, at, vertical = max(thumbs.get(rid, [(0, 0.0, 0.0, "")]))
        said_something = bool(value) or rid in rerolled
        if rid not in traces:
            if said_something:
                # The first signal that holds and names one; of rerolls the first holds.
                holding = [min(named[rid])] if rid in named else []
                holding += [(at, vertical)] if value else []
                out.coverage[min([one for one in holding if one[1]], default=(0, "unknown"))[1], "missing_trace"] += 1
            continue
        judged = any(
            not score["name"].startswith("user_signal_") for t in traces[rid] for score in t["feedback_scores"]
        )
        vertical = traces[rid][0]["metadata"]["vertical"]
        if said_something:
            out.coverage[vertical, "both_present"] += 1
            out.unjudged.update([] if judged else [vertical])
        elif judged:
            out.coverage[vertical, "missing_signal"] += 1
        if value:
            out.scores[trace_id(rid), "user_signal_thumbs"] = value
        if said_something:
            out.scores[trace_id(rid), "user_signal_reroll"] = 1.0 if rid in rerolled else 0.0
    return out
