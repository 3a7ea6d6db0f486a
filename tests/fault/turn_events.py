"""What a turn sends: thumbs (as events, or as records of DynamoDB's stream), rerolls and traces; and the unreadable.

None of our code is imported.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from tests.fault.turns import THUMBS, Message, Thumb, Topic, Turn

AGENT = "assistant"
USER_SCORE = {"name": THUMBS, "value": 1.0, "source": "sdk"}
"""A user's signal is no judge score."""


def events(turn: Turn, dice: random.Random) -> Iterator[Message]:
    """As they happened; the trace's own brings its judge's score where `judged` says that it stands there."""
    key = turn.response_id.encode()
    before = 0
    for thumb in turn.thumbs:
        yield Message("thumbs", key, encode(_thumb(turn, thumb, before, dice)))
        before = thumb.value
    for number, at in enumerate(turn.rerolls):
        event = {
            "event_id": f"{turn.response_id}/reroll/{number}",
            "response_id": turn.response_id,
            "new_response_id": f"{turn.response_id}-new-{number}",
            "session_id": "",
            "elapsed_seconds": round((at - turn.ended) / 1000, 3),
            "occurred_at": iso(at),
            "vertical": turn.vertical,
        }
        yield Message("rerolls", key, encode(event))
    if turn.trace_in == "event":
        scores = [{"name": "helpfulness", "value": 0.7, "source": "online_scoring"}]
        given = scores if turn.judged == "event" else dice.choice(([], None, [USER_SCORE]))
        yield trace_of(turn, {"ended_at": iso(turn.ended), "feedback_scores": given})


def trace_of(turn: Turn, said: dict[str, Any], category: str = "") -> Message:
    """A record of the turn's trace; `said` has its end, None while it runs. Where the turn names a version, an
    output."""
    whose = {"agent_id": AGENT, "agent_version": turn.version} if turn.version else {}
    event = {
        "event_id": f"{turn.response_id}/trace",
        "trace_id": turn.trace_id,
        "response_id": turn.response_id,
        "project_name": turn.project,
        "started_at": iso(turn.started),
        "input": {"text": turn.said},
        **({"output": {"text": "so"}} if turn.version else {}),
        "metadata": {"vertical": turn.vertical, "sub_agent": "main", "session_id": turn.session, **whose},
        **said,
    }
    if category:
        event["metadata"] = {**event["metadata"], "category": category}  # type: ignore[dict-item]
    return Message("traces", turn.response_id.encode(), encode(event))


def _thumb(turn: Turn, thumb: Thumb, before: int, dice: random.Random) -> dict[str, Any]:
    """As our own event now and then, else as the record of DynamoDB's stream."""
    word = {1: "up", -1: "down", 0: None}[thumb.value]
    if dice.random() < 0.3:
        return {
            "event_id": f"{turn.response_id}/{thumb.sequence}",
            "response_id": turn.response_id,
            "user_id": "u",
            "value": word,
            "occurred_at": iso(thumb.at),
            "sequence": str(thumb.sequence),
        }
    return change(turn.response_id, thumb.sequence, thumb.at, thumb.value, before)


def expiry(turn: Turn) -> Message:
    """An expiry by time-to-live with a higher sequence than any of the user's: it must change nothing."""
    record = change(turn.response_id, 10**22, turn.ended, 0, 1)
    record["userIdentity"] = {"type": "Service", "principalId": "dynamodb.amazonaws.com"}
    return Message("thumbs", turn.response_id.encode(), encode(record))


def undecodable(name: str, number: int, now: int, dice: random.Random) -> Message:
    """A record no one can decode. The key, of `name` and `number`, tells it from others."""
    topic: Topic = dice.choice(("thumbs", "rerolls", "traces"))
    good: dict[str, Any] = {"event_id": "e", "response_id": f"bad{number}"}
    key = f"bad-{name}-{number}".encode()
    value = dice.choice(
        (
            b"{not json %d" % number,
            b"\xff\xfe\x00 bad utf-8 %d" % number,
            None,
            b"[" * 2_000,
            encode({"hello": number}),
            encode(good | {"value": "sideways", "occurred_at": iso(now)}),
            encode(good | {"value": "up", "occurred_at": "yesterday"}),
            encode(good | {"value": "up", "occurred_at": 1e300}),
            b'{"response_id": "x", "event_id": "e", "value": "up", "occurred_at": NaN}',
        )
    )
    return Message(topic, key, value)


def change(response_id: str, sequence: int, at: int, value: int, before: int) -> dict[str, Any]:
    """A DynamoDB stream record. A withdrawal is a REMOVE, or a MODIFY whose attribute is gone."""
    keys = {"MessageId": {"S": "m-" + response_id}}
    item = keys | {"ResponseId": {"S": response_id}, "UserId": {"S": "u"}}
    word = {1: {"S": "up"}, -1: {"N": "-1"}}
    removed = value == 0 and sequence % 2 == 0
    record: dict[str, Any] = {
        "Keys": keys,
        "SequenceNumber": str(sequence),
        "ApproximateCreationDateTime": at / 1000,
        "OldImage": item | ({"Thumbs": word[before]} if before else {}),
    }
    if not removed:
        record["NewImage"] = item | ({"Thumbs": word[value]} if value else {})
    name = "REMOVE" if removed else "MODIFY" if before else "INSERT"
    return {"eventID": f"{response_id}/{sequence}", "eventName": name, "dynamodb": record}


def encode(document: Any) -> bytes:
    return json.dumps(document, separators=(",", ":")).encode()


def iso(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds")
