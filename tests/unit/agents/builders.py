"""Events to put in, as their producers send them, and the records that hold them."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from agents.codec import TraceFacts

NOW = 1_800_000_000_000
SECOND, MINUTE, HOUR, DAY = 1_000, 60_000, 3_600_000, 86_400_000
THUMBS_SCORE, REROLL_SCORE = "user_signal_thumbs", "user_signal_reroll"
_NAMESPACE = uuid.UUID("00000000-0000-5000-8000-000000000000")


@dataclass(frozen=True)
class Rec:
    """A Kafka record."""

    value: bytes | None
    topic: str = "rampgate.thumbs"
    partition: int = 0
    offset: int = 0
    timestamp: int = NOW
    key: bytes | None = None
    headers: tuple[tuple[str, bytes], ...] = ()


def encode(event: Any) -> bytes | None:
    return event if event is None or isinstance(event, bytes) else json.dumps(event).encode()


def trace_id(name: str) -> str:
    """The trace id that stands for a name in these tests."""
    return str(uuid.uuid5(_NAMESPACE, name))


def thumb(
    rid: str, value: str | None = "down", at: int = NOW, sequence: int | str | None = None, **more: Any
) -> dict[str, Any]:
    """The plain form. Times in ms."""
    event = {"response_id": rid, "user_id": "u", "value": value, "occurred_at": at / 1000, **more}
    if sequence is not None:
        event["sequence"] = sequence
    event.setdefault("event_id", trace_id(json.dumps(event))[:13])
    return event


def change(
    rid: str = "r",
    value: str | int | None = "down",
    sequence: int | str = 1,
    at: int = NOW,
    vertical: str | None = None,
    **more: Any,
) -> dict[str, Any]:
    """A DynamoDB stream record: MODIFY unless `eventName` says otherwise; `value` None for a cleared attribute."""
    image: dict[str, Any] = {"MessageId": {"S": "m-" + rid}, "UserId": {"S": "u"}, "ResponseId": {"S": rid}}
    if vertical is not None:
        image["Vertical"] = {"S": vertical}
    if value is not None:
        image["Thumbs"] = {"N": str(value)} if isinstance(value, int) else {"S": value}
    name = more.pop("eventName", "MODIFY")
    images = {"OldImage": image} if name == "REMOVE" else {"NewImage": image}
    body = {
        "Keys": {"MessageId": {"S": "m-" + rid}},
        "SequenceNumber": str(sequence),
        "ApproximateCreationDateTime": at / 1000,
        **images,
    }
    return {"eventID": f"{rid}-{sequence}", "eventName": name, "dynamodb": body, **more}


def reroll(rid: str, by: str = "", at: int = NOW, elapsed: float = 10.0, **more: Any) -> dict[str, Any]:
    event = {
        "response_id": rid,
        "new_response_id": by or rid + "-again",
        "session_id": "s",
        "user_id": "u",
        "input_hash": "h",
        "elapsed_seconds": elapsed,
        "occurred_at": at / 1000,
        **more,
    }
    event.setdefault("event_id", trace_id(json.dumps(event))[:13])
    return event


def trace(
    rid: str,
    at: int = NOW,
    *,
    name: str = "",
    started: int | None = None,
    vertical: str | None = "shopping",
    judges: Iterable[str] = (),
    session: str | None = None,
    said: Any = None,
    **more: Any,
) -> dict[str, Any]:
    """A completed trace that ended `at`; `name` tells two traces of one response apart."""
    metadata: dict[str, Any] = {"user_id": "u", "agent_id": "assistant", "sub_agent": "search", "category": "faq"}
    if vertical is not None:
        metadata["vertical"] = vertical
    if session is not None:
        metadata["session_id"] = session
    event = {
        "event_id": "e-" + rid,
        "trace_id": trace_id(name or rid),
        "response_id": rid,
        "project_name": "project",
        "started_at": (at - SECOND if started is None else started) / 1000,
        "ended_at": at / 1000,
        "metadata": metadata,
        "feedback_scores": [{"name": judge, "value": 0.5, "source": "sdk"} for judge in judges],
        **more,
    }
    if said is not None:
        event["input"] = said
    return event


def found_trace(rid: str, at: int = NOW, *, judged: bool = False, vertical: str = "shopping") -> TraceFacts:
    """A trace as Opik answers a search for it."""
    return TraceFacts(
        response_id=rid,
        trace=uuid.UUID(trace_id(rid)).bytes,
        project="project",
        vertical=vertical,
        sub_agent="search",
        category="faq",
        started=at - SECOND,
        ended=at,
        judged=judged,
    )
