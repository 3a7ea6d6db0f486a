"""Makes a day of traffic: what users did, which turns were traced, and what is wrong with some of it. Seeded."""

from __future__ import annotations

import random
import uuid
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import orjson

from schemas.topics import Topics

DAY_MS = 86_400_000
VERTICALS = (("rewards_assistant", "consumer-agent", 6), ("receipts", "receipts-eval", 3), ("travel", "travel", 1))
CATEGORIES = ("offer_discovery", "product_discovery", "general_qa", "shopping_list")
JUDGES = ("response_quality", "tool_compliance", "ux_quality", "fetch_legal")
QUESTIONS = ("Which offers do I have?", "Did my receipt go through?", "Find oat milk", "Where is my list?")


@dataclass(frozen=True)
class Message:
    topic: str
    key: bytes
    value: bytes


@dataclass
class Day:
    """The traffic. `messages` are in order of time; `opik` are the traces that Opik has; `told` counts the events by
    kind; `orphan` is the response id of a thumb without a trace."""

    messages: list[Message] = field(default_factory=list)
    opik: list[dict[str, Any]] = field(default_factory=list)
    told: Counter[str] = field(default_factory=Counter)
    orphan: str = ""


def uuid7(ms: int, rng: random.Random) -> str:
    """A version 7 id for a given time from a seeded source; the libraries accept neither."""
    bits = (ms << 80) | (0x7 << 76) | (rng.getrandbits(12) << 64) | (0b10 << 62) | rng.getrandbits(62)
    return str(uuid.UUID(int=bits))


def iso(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat()


def make_day(seed: int, turns: int, now_ms: int, topics: Topics) -> Day:
    """About nine turns in ten have a trace event, some are only in Opik, a few nowhere; one in four has a thumb."""
    rng, day = random.Random(seed), Day()  # noqa: S311 - traffic, not a secret
    timed: list[tuple[int, Message]] = []

    def send(at: int, name: str, key: str, event: dict[str, Any] | bytes) -> None:
        value = event if isinstance(event, bytes) else orjson.dumps(event)
        timed.append((at, Message(topics[name], key.encode(), value)))
        day.told[name] += 1

    weights = [weight for *_, weight in VERTICALS]
    for number in range(turns):
        vertical, project, _ = rng.choices(VERTICALS, weights)[0]
        at = now_ms - DAY_MS + round(DAY_MS * 0.98 * (number + rng.random()) / turns)
        turn: dict[str, Any] = {
            "response_id": f"resp_{rng.getrandbits(96):024x}",
            "trace_id": uuid7(at, rng),
            "project": project,
            "started": at,
            "ended": at + rng.randrange(800, 9000),
            "session": f"sess_{rng.getrandbits(32):08x}",
            "user": f"user_{rng.randrange(500)}",
            "question": f"{rng.choice(QUESTIONS)} ({number})",
            "metadata": {"vertical": vertical, "sub_agent": vertical, "category": rng.choice(CATEGORIES)},
            "judged": rng.random() < 0.85,
        }
        fate = rng.random()
        if fate < 0.93:
            send(turn["ended"], "traces", turn["response_id"], trace_event(turn, rng))
        if fate < 0.98:
            day.opik.append(opik_trace(turn, rng))
            day.told["only in Opik"] += fate >= 0.93
        else:
            day.told["traced nowhere"] += 1
        if fate >= 0.98 or rng.random() < 0.25:
            thumb(turn, rng, send, day)
            if fate >= 0.98:
                day.orphan = turn["response_id"]
        if fate < 0.93 and rng.random() < 0.06:
            again = dict(
                turn, response_id=f"resp_{rng.getrandbits(96):024x}", trace_id=uuid7(turn["ended"] + 40_000, rng)
            )
            again |= {"started": turn["ended"] + 40_000, "ended": turn["ended"] + 45_000}
            send(again["ended"], "traces", again["response_id"], trace_event(again, rng))
            day.opik.append(opik_trace(again, rng))
            day.told["rerolled, seen from traces"] += 1
    for value in (b'{"event_id": "broken", "response_id": ', b"\xff\xfe not text", b'{"hello": "world"}'):
        send(now_ms - rng.randrange(DAY_MS), "thumbs", "garbage", value)
    day.messages = [message for _, message in sorted(timed, key=lambda pair: pair[0])]
    return day


def thumb(turn: dict[str, Any], rng: random.Random, send: Any, day: Day) -> None:
    """Send a thumb, up or down; some twice, some taken back, some before their trace."""
    at = turn["ended"] + rng.randrange(-500, 240_000)
    value = rng.choice(("up", "up", "down"))
    event = {"event_id": uuid7(at, rng), "response_id": turn["response_id"], "user_id": turn["user"], "value": value}
    event["occurred_at"] = iso(at)
    send(at, "thumbs", turn["response_id"], event)
    if rng.random() < 0.05:
        send(at + 50, "thumbs", turn["response_id"], event)
        day.told["thumbs sent twice"] += 1
    elif rng.random() < 0.05:
        taken_back = event | {"event_id": uuid7(at + 900, rng), "value": None, "occurred_at": iso(at + 900)}
        send(at + 900, "thumbs", turn["response_id"], taken_back)
        day.told["thumbs taken back"] += 1


def scores(turn: dict[str, Any], rng: random.Random) -> list[dict[str, Any]]:
    return [{"name": judge, "value": round(rng.betavariate(6, 2), 2)} for judge in JUDGES] if turn["judged"] else []


def metadata(turn: dict[str, Any]) -> dict[str, Any]:
    whose: dict[str, Any] = {"user_id": turn["user"], "session_id": turn["session"], "agent_id": "assistant"}
    whose |= {"environment": "demo", "agent_version": "v1", "prompt_version": "demo"}
    return {**whose, **turn["metadata"]}


def trace_event(turn: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    return {
        "event_id": f"trace-{turn['trace_id']}",
        "trace_id": turn["trace_id"],
        "response_id": turn["response_id"],
        "project_name": turn["project"],
        "started_at": iso(turn["started"]),
        "ended_at": iso(turn["ended"]),
        "input": turn["question"],
        "output": turn.get("answer", "An answer."),
        "metadata": metadata(turn),
        "feedback_scores": scores(turn, rng),
    }


def opik_trace(turn: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    """A trace in the form that `POST /v1/private/traces/batch` accepts."""
    return {
        "id": turn["trace_id"],
        "project_name": turn["project"],
        "name": "turn",
        "start_time": iso(turn["started"]),
        "end_time": iso(turn["ended"]),
        "input": {"question": turn["question"]},
        "output": {"answer": "An answer."},
        "metadata": metadata(turn) | {"response_id": turn["response_id"]},
    }
