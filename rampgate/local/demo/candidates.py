"""Makes the shadow traffic of three versions of the agent, and their requests to ramp. Seeded.

The stand-in for a judges' model follows marks in a trace's text: `#quality:0.6` gives that quality, and a text without
a mark is good (`rampgate.local.model.judging`). The versions differ only in their answers.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any, Final

import orjson

from rampgate.local.demo.day import QUESTIONS, Message, iso, trace_event, uuid7
from schemas.topics import Topics

VERTICAL, PROJECT, AGENT = "rewards_assistant", "consumer-agent", "assistant"
TRACES = 105
"""Traces of each version; pre_ramp needs 100."""
HOUR_MS = 3_600_000
ANSWERS = ("You have three offers.", "Your receipt went through.", "Oat milk is in aisle 4.", "Your list has 6 items.")
JUDGES: Final = ("ux_quality",)
"""The judges of the experiment; the safety judges run at every gate anyway."""


@dataclass(frozen=True)
class Candidate:
    """A version that asks to ramp. `quality`: the range of its answers' marks; None: good answers without a mark.
    `unsafe`: the number of answers that fail every safety judge."""

    version: str
    about: str
    quality: tuple[float, float] | None = None
    unsafe: int = 0
    agent: str = AGENT
    vertical: str = VERTICAL
    judges: tuple[str, ...] = JUDGES

    @property
    def experiment(self) -> str:
        return f"demo-{self.version}"


CANDIDATES: Final = (
    Candidate("v2", "answers well"),
    Candidate("v3", "has become long-winded", quality=(0.55, 0.74)),
    Candidate("v4", "answers well, but gives way in a few turns when a user pushes", unsafe=4),
)


def shadow_traffic(seed: int, now_ms: int, topics: Topics) -> list[Message]:
    """The trace events of the versions' answers in the last hours, beside the version that users saw."""
    rng = random.Random(f"{seed} candidates")  # noqa: S311 - traffic, not a secret
    return [
        Message(topics["traces"], event["response_id"].encode(), orjson.dumps(event))
        for one in CANDIDATES
        for event in (
            _trace(one, number, now_ms - HOUR_MS - rng.randrange(18 * HOUR_MS), rng) for number in range(TRACES)
        )
    ]


def ramp_step(one: Candidate, seed: int, now_ms: int) -> dict[str, Any]:
    """The controller's request: may the first 5 % of users see this version?"""
    return {
        "request_id": f"demo-{seed}-{one.version}",
        "experiment_id": one.experiment,
        "agent_id": one.agent,
        "agent_version": one.version,
        "vertical": one.vertical,
        "from_percent": 0,
        "to_percent": 5,
        "ramp_steps": [5, 25, 100],
        "eval_gates": {"pre_ramp": one.judges, "pre_full": one.judges},
        "requested_at": iso(now_ms),
        "deadline_seconds": 120,
    }


def _trace(one: Candidate, number: int, at: int, rng: random.Random) -> dict[str, Any]:
    answer = f"{rng.choice(ANSWERS)} ({number})"
    if number < one.unsafe:
        answer += " #quality:0.1"
    elif one.quality is not None:
        answer += f" #quality:{rng.uniform(*one.quality):.2f}"
    trace_id, response_id = uuid7(at, rng), f"resp_{rng.getrandbits(96):024x}"
    turn = {
        "trace_id": trace_id,
        "response_id": response_id,
        "project": PROJECT,
        "started": at,
        "ended": at + rng.randrange(800, 9000),
        "question": {"messages": [{"role": "user", "content": f"{rng.choice(QUESTIONS)} ({number})"}]},
        "answer": {"messages": [{"role": "assistant", "content": [{"type": "text", "text": answer}]}]},
        "user": f"user_{rng.randrange(500)}",
        "session": f"sess_{rng.getrandbits(32):08x}",
        "metadata": {
            "vertical": VERTICAL,
            "sub_agent": VERTICAL,
            "category": "general_qa",
            "environment": "shadow",
            "agent_version": one.version,
        },
        "judged": False,
    }
    return trace_event(turn, rng)
