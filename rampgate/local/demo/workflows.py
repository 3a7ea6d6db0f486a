"""The demo's remediation workflows: traces that name them, and a stand-in for the cluster in which they ran.

All of its objects are copies of one YAML file.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping, Sequence
from typing import Any, Final

import orjson
from rich.console import Group, RenderableType
from rich.text import Text

from agents.ports import Unavailable
from evalcore.remediation.objects import Object
from evalcore.remediation.sealing import SEAL
from rampgate.local.demo.candidates import HOUR_MS, Candidate
from rampgate.local.demo.day import Message, iso, trace_event, uuid7
from rampgate.local.demo.registry import NAMESPACE, SHIPPED
from rampgate.local.demo.show import explained
from rampgate.wiring import Parts
from schemas.topics import Topics
from streams.cluster.twin import read_objects, written_objects
from streams.kafka.client import make_consumer, started

CASE: Final = "oomkill-completed-openai"
FILE: Final = SHIPPED / "examples" / "remediation" / "cases" / f"{CASE}.yaml"
VERTICAL, PROJECT, CATEGORY = "remediation", "remediation-eval", "remediation_oomkill"
JUDGE: Final = "proposal_evaluation_correctness"
REMEDIATOR: Final = Candidate(
    "r1",
    "remediates faults of a cluster",
    agent="remediator",
    vertical=VERTICAL,
    judges=(JUDGE, *(f"{JUDGE}.{name}" for name in ("diagnosis", "action", "verification"))),
)
TRACES: Final = 105
SECONDS: Final = 120.0


def named(number: int) -> str:
    return f"oomkill-{number}"


def began(number: int, now_ms: int) -> int:
    """When a workflow and its trace began (ms)."""
    return now_ms - HOUR_MS - number * 60_000


def traces(seed: int, now_ms: int, topics: Topics) -> list[Message]:
    """The agent's traces as it sends them: each names its workflow, and says nothing of what became of it. Every fifth
    has a thumb."""
    rng, out = random.Random(f"{seed} workflows"), []  # noqa: S311 - traffic, not a secret
    for number in range(TRACES):
        at = began(number, now_ms)
        turn: dict[str, Any] = {
            "trace_id": uuid7(at, rng),
            "response_id": f"resp_{rng.getrandbits(96):024x}",
            "project": PROJECT,
            "started": at,
            "ended": at + 20_000,
            "question": {"messages": [{"role": "user", "content": "The shop restarts again and again: restore it."}]},
            "answer": {
                "messages": [{"role": "assistant", "content": [{"type": "text", "text": "It is being fixed."}]}]
            },
            "user": f"user_{rng.randrange(500)}",
            "session": f"sess_{rng.getrandbits(32):08x}",
            "metadata": {
                "vertical": VERTICAL,
                "sub_agent": VERTICAL,
                "category": CATEGORY,
                "environment": "shadow",
                "agent_id": REMEDIATOR.agent,
                "agent_version": REMEDIATOR.version,
            },
            "judged": False,
        }
        event = trace_event(turn, rng) | {"proposal": {"namespace": NAMESPACE, "name": named(number)}}
        out.append(Message(topics["traces"], turn["response_id"].encode(), orjson.dumps(event)))
        if number % 5 == 0:
            thumb = {
                "event_id": f"thumb-{turn['trace_id']}",
                "response_id": turn["response_id"],
                "user_id": turn["user"],
                "value": "up",
                "occurred_at": iso(at + 60_000),
            }
            out.append(Message(topics["thumbs"], turn["response_id"].encode(), orjson.dumps(thumb)))
    return out


def cluster(now_ms: int) -> str:
    """The YAML of a stand-in for the cluster: the file's objects once for each trace, at its time."""
    case: Sequence[Object] = read_objects(FILE.read_text())
    text, first = orjson.dumps(case).decode(), case[0]["metadata"]["creationTimestamp"]
    objects: list[Object] = []
    for number in range(TRACES):
        moved = orjson.loads(text.replace(CASE, named(number)))
        objects += [_at(one, first, began(number, now_ms)) for one in moved]
    return written_objects(objects)


def _at(value: Any, first: str, at_ms: int) -> Any:
    """The value with its times moved, so that what was at `first` is at `at_ms`."""
    if isinstance(value, dict):
        return {name: _at(inner, first, at_ms) for name, inner in value.items()}
    if isinstance(value, list):
        return [_at(inner, first, at_ms) for inner in value]
    if isinstance(value, str) and len(value) == len(first) and value[:11] == first[:11]:
        return iso(at_ms + _seconds(value) * 1000 - _seconds(first) * 1000)
    return value


def _seconds(time: str) -> int:
    hours, minutes, seconds = (int(part) for part in time[11:19].split(":"))
    return (hours * 60 + minutes) * 60 + seconds


async def completed(parts: Parts, traces: Sequence[Message]) -> dict[str, Any]:
    """The last of the traces as it was completed, once all are. Raises Unavailable."""
    left = {message.key for message in traces}
    consumer = make_consumer(parts.access)
    consumer.subscribe([parts.topics["traces"]])
    try:
        async with started(consumer), asyncio.timeout(SECONDS):
            while True:
                event: dict[str, Any] = orjson.loads((await consumer.getone()).value)
                if SEAL in event:
                    left.discard(event["response_id"].encode())
                    if not left:
                        return event
    except TimeoutError as error:
        raise Unavailable(f"{len(left)} workflows were not completed within {SECONDS:.0f} s") from error


def shown(event: Mapping[str, Any], verdict: Mapping[str, Any]) -> RenderableType:
    """One of the traces as it was completed, and the judge's dimensions over all of them."""
    scores = verdict["per_judge_scores"]
    steps = ", ".join(f"{step} {what}" for step, what in event["proposal_steps"].items())
    results = sum(map(len, event["proposal_results"].values()))
    dimensions = ", ".join(
        f"{name.partition('.')[2]} {scores[name]['score']:.2f}" for name in REMEDIATOR.judges[1:] if name in scores
    )
    return explained(
        "A remediation workflow, from its bare trace to dimensions",
        Group(
            Text(
                f"The agent's trace names Proposal {event['proposal']['name']}; until that has ended no one judges it."
            ),
            Text(f"A stand-in for the cluster, read from {FILE.name}, has it: {event['proposal_phase']}."),
            Text(f"Published once more, under our seal: {results} results; {steps}; ended {event['ended_at']}."),
            Text(f"{JUDGE} over {TRACES} of them: {dimensions}."),
        ),
    )
