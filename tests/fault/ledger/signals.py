"""Reads records as the contracts describe them (contracts §1), with nothing but `json`.

A record that is none of the described forms is bad: `None` stands for it.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

EXPIRY = "dynamodb.amazonaws.com"
"""Who deletes an item whose time is over; a user's withdrawal has another identity, or none."""
LONGEST_NAME = 128
"""Characters of a category, a vertical, an agent or a version."""
_VALUES: dict[Any, int] = {"up": 1, "down": -1, None: 0}


@dataclass(frozen=True)
class Thumb:
    response: str
    sequence: int
    value: int


@dataclass(frozen=True)
class Reroll:
    """The user asked again instead of `response`."""

    response: str


@dataclass(frozen=True)
class Trace:
    """Times in seconds; `ended` is None while it runs. `version`: of the agent, "" where it names none."""

    response: str
    trace: str
    project: str
    session: str
    said: str
    started: float
    ended: float | None
    version: str = ""
    vertical: str = ""


@dataclass(frozen=True)
class Request:
    """A ramp-step request that can be answered: it has an id. `valid`: it asks for a step that there can be."""

    request: str
    experiment: Any
    body: str
    valid: bool
    first: bool
    last: bool
    climbs: bool
    halted_by: frozenset[str]
    """Gates of which a standing failure halts it."""
    version: Any = ""
    vertical: Any = ""


@dataclass(frozen=True)
class Nothing:
    """A good record that changes nothing."""


Signal = Thumb | Reroll | Trace | Request | Nothing
Topic = Literal["thumbs", "rerolls", "traces", "ramp-steps"]
TOPICS: tuple[Topic, ...] = ("thumbs", "rerolls", "traces", "ramp-steps")


def read(topic: str, value: bytes | None) -> Signal | None:
    """What a record of a topic says; None for a bad one."""
    try:
        content = json.loads((value or b"").decode(), parse_constant=_no_constant)
        if not isinstance(content, dict):
            return None
        return _READERS[topic](content)
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
        return None


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is no JSON")


def _thumb(content: dict[str, Any]) -> Thumb | Nothing:
    if "dynamodb" in content:
        return _change(content)
    _text(content["event_id"])
    _time(content["occurred_at"])
    return Thumb(_text(content["response_id"]), int(content["sequence"]), _VALUES[content["value"]])


def _change(content: dict[str, Any]) -> Thumb | Nothing:
    change = content["dynamodb"]
    sequence = int(change["SequenceNumber"])
    if content["eventName"] == "REMOVE":
        if (content.get("userIdentity") or {}).get("principalId") == EXPIRY:
            return Nothing()
        return Thumb(_text(change["OldImage"]["ResponseId"]["S"]), sequence, 0)
    item = change["NewImage"]
    attribute = item.get("Thumbs") or {"S": None}
    number = attribute.get("N")
    value = _VALUES[attribute["S"]] if number is None else {1: 1, -1: -1}[int(number)]
    return Thumb(_text(item["ResponseId"]["S"]), sequence, value)


def _reroll(content: dict[str, Any]) -> Reroll:
    _text(content["new_response_id"])
    _time(content["occurred_at"])
    return Reroll(_text(content["response_id"]))


def _trace(content: dict[str, Any]) -> Trace:
    told = content.get("metadata") or {}
    if len(told.get("category") or "") > LONGEST_NAME:
        raise ValueError("no category")
    ended = content["ended_at"]
    return Trace(
        response=_text(content["response_id"]),
        trace=_text(content["trace_id"]),
        project=_text(content["project_name"]),
        session=str(told.get("session_id") or ""),
        said=json.dumps(content.get("input"), sort_keys=True),
        started=_time(content["started_at"]),
        ended=None if ended is None else _time(ended),
        version=str(told.get("agent_version") or ""),
        vertical=str(told.get("vertical") or ""),
    )


def _request(content: dict[str, Any]) -> Request:
    before, after = content.get("from_percent"), content.get("to_percent")
    valid = all(isinstance(one, int | float) and 0 <= one <= 100 for one in (before, after))
    return Request(
        request=_text(content["request_id"]),
        experiment=content.get("experiment_id"),
        body=json.dumps(content, sort_keys=True),
        valid=valid,
        first=valid and before == 0 < after,
        last=valid and before < 100 == after,
        climbs=valid and before < after,
        halted_by=frozenset({"pre_ramp"} | ({"pre_full"} if after < 100 else set()))
        if valid and 0 < before <= after
        else frozenset(),
        version=content.get("agent_version"),
        vertical=content.get("vertical"),
    )


_READERS: dict[str, Any] = {"thumbs": _thumb, "rerolls": _reroll, "traces": _trace, "ramp-steps": _request}


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError("no text")
    return value


def _time(value: Any) -> float:
    """Seconds."""
    if isinstance(value, str):
        return datetime.fromisoformat(value).timestamp()
    if isinstance(value, bool) or not math.isfinite(value) or abs(value) > 1e14:
        raise ValueError("no time")
    return float(value) / (1000 if abs(value) > 1e11 else 1)
