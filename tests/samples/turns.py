"""Turns of a rollout as they really were: traces, what was posted of them and when, what Opik held, what users said.

None of the product is imported: an oracle reads this. Times in ms.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

Fate = Literal["accepted", "long category", "too large"]
AGENT, PROJECT = "assistant", "shop-eval"
LARGEST = 20_000
"""Bytes of a record that are taken; the run's policy says the same."""
LONGEST_CATEGORY = 128
GOOD, BAD = "good", "bad"


@dataclass(frozen=True)
class Post:
    """A record of a trace, as it reaches the topic `at`. `ended` is None while the trace runs; an `output` of None is
    null. Without `texts` the record leaves input and output to Opik; without being `named` it has no agent and no
    version."""

    at: int
    ended: int | None
    output: str | None = None
    texts: bool = True
    fate: Fate = "accepted"
    named: bool = True


@dataclass(frozen=True)
class Copy:
    """What Opik holds of a trace from `at` on."""

    at: int
    ended: int | None
    output: str | None = None


@dataclass
class Trace:
    id: str
    version: str
    started: int
    environment: str = "production"
    vertical: str = "shop"
    posts: list[Post] = field(default_factory=list)
    copies: list[Copy] = field(default_factory=list)


@dataclass(frozen=True)
class Thumb:
    at: int
    value: Literal[1, -1, 0]


@dataclass
class Turn:
    """`id` is its response id. A thumb of 0 withdraws the one before."""

    id: str
    traces: list[Trace] = field(default_factory=list)
    thumbs: list[Thumb] = field(default_factory=list)
    rerolls: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class Garbage:
    """A trace record of which no one can say whose it is: since it can't be read, or since it is `nameless`."""

    at: int
    value: bytes
    nameless: bool = False


@dataclass(frozen=True)
class Happening:
    """What befalls the workers: see `natural_orders.HAPPENINGS`."""

    at: int
    what: str


@dataclass(frozen=True)
class Ask:
    """A ramp step about a version; `vertical` None is all of them."""

    at: int
    version: str
    milestone: Literal["pre_ramp", "pre_full"]
    vertical: str | None = None
    scope: Literal["version", "agent"] = "version"


@dataclass
class Traffic:
    """`strangers`: versions that were first heard of after the hour's bound on new names."""

    turns: list[Turn] = field(default_factory=list)
    garbage: list[Garbage] = field(default_factory=list)
    happenings: list[Happening] = field(default_factory=list)
    asks: list[Ask] = field(default_factory=list)
    strangers: set[str] = field(default_factory=set)
    orders: dict[str, str] = field(default_factory=dict)
    """Version -> the order in which its turns come, for the messages."""


def record(turn: Turn, trace: Trace, post: Post) -> bytes:
    """The trace event of a post (contracts §1)."""
    category = "c" * (LONGEST_CATEGORY + 1) if post.fate == "long category" else "general_qa"
    event: dict[str, Any] = {
        "event_id": f"{trace.id}/{post.at}",
        "trace_id": trace.id,
        "response_id": turn.id,
        "project_name": PROJECT,
        "started_at": trace.started / 1000,
        "ended_at": None if post.ended is None else post.ended / 1000,
        "metadata": metadata(turn, trace) | {"category": category},
    }
    if not post.named:
        event["metadata"] = {name: said for name, said in event["metadata"].items() if not name.startswith("agent")}
    if post.texts:
        event |= {"input": f"question {turn.id}", "output": post.output}
    if post.fate == "too large":
        event["output"] = f"{post.output} " + "x" * LARGEST
    return json.dumps(event).encode()


def metadata(turn: Turn, trace: Trace) -> dict[str, str]:
    return {
        "response_id": turn.id,
        "user_id": "u",
        "agent_id": AGENT,
        "agent_version": trace.version,
        "environment": trace.environment,
        "vertical": trace.vertical,
        "sub_agent": "shop",
        "category": "general_qa",
    }


def thumbs_of(turn: Turn) -> Iterator[tuple[int, bytes]]:
    """When each thumb reaches its topic, and its event: in the plain form, or as DynamoDB's stream has it."""
    plain = len(turn.id) % 2 == 0
    for number, thumb in enumerate(turn.thumbs):
        word = {1: "up", -1: "down", 0: None}[thumb.value]
        event: dict[str, Any] = {
            "event_id": f"{turn.id}/thumb/{number}",
            "response_id": turn.id,
            "user_id": "u",
            "value": word,
            "occurred_at": thumb.at / 1000,
            "sequence": str(number + 1),
        }
        if not plain:
            item = {"MessageId": {"S": "m"}, "UserId": {"S": "u"}, "ResponseId": {"S": turn.id}}
            change = {
                "Keys": {"MessageId": {"S": "m"}},
                "NewImage": item | ({"Thumbs": {"S": word}} if word else {}),
                "SequenceNumber": str(number + 1),
                "ApproximateCreationDateTime": thumb.at / 1000,
            }
            event = {"eventID": f"{turn.id}/{number}", "eventName": "MODIFY", "dynamodb": change}
        yield thumb.at, json.dumps(event).encode()


def rerolls_of(turn: Turn) -> Iterator[tuple[int, bytes]]:
    for number, at in enumerate(turn.rerolls):
        event = {
            "event_id": f"{turn.id}/reroll/{number}",
            "response_id": turn.id,
            "new_response_id": f"{turn.id}-again",
            "elapsed_seconds": 5.0,
            "occurred_at": at / 1000,
        }
        yield at, json.dumps(event).encode()
