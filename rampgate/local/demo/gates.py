"""The demo's last part: three versions ask to ramp, and a plain Kafka consumer reads the gates' verdicts."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import orjson
from aiokafka import AIOKafkaConsumer
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from agents.ports import Unavailable
from evalcore.gates.verdict import Moment, as_json, of_pull_request
from rampgate.local.demo.candidates import Candidate, ramp_step
from rampgate.local.demo.show import explained
from rampgate.report.console import table
from rampgate.report.model import Section
from rampgate.wiring import Parts
from schemas.judges import Milestone
from schemas.verdicts import GateVerdict, VerdictLevel

SECONDS = 120.0
"""Longest wait for one verdict, on a slow machine too."""


async def ask_gates(parts: Parts, seed: int, versions: Sequence[Candidate]) -> list[dict[str, Any]]:
    """Request a step for each version, as a controller does; return the verdicts as published."""
    consumer = AIOKafkaConsumer(
        parts.topics["verdicts"], bootstrap_servers=parts.settings.kafka, auto_offset_reset="earliest"
    )
    await consumer.start()
    try:
        await _merged(parts, seed, versions)
        return [await _ask(parts, consumer, ramp_step(one, seed, time.time_ns() // 1_000_000)) for one in versions]
    finally:
        await consumer.stop()


async def _merged(parts: Parts, seed: int, versions: Sequence[Candidate]) -> None:
    """Publish what the versions' pull requests came to, as `gate run --publish` does: a first step asks for it."""
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    passed = GateVerdict({}, VerdictLevel.PASS, [], Milestone.PRE_MERGE)
    for one in versions:
        name = f"demo-{seed}-{one.version}-merged"
        verdict = of_pull_request(
            one.agent, one.version, passed, Moment(now, 0.0), request_id=name, vertical=one.vertical
        )
        await parts.producer.send([(parts.topics["verdicts"], one.agent.encode(), orjson.dumps(as_json(verdict)), ())])


async def _ask(parts: Parts, consumer: AIOKafkaConsumer, request: dict[str, Any]) -> dict[str, Any]:
    key = request["experiment_id"].encode()
    await parts.producer.send([(parts.topics["ramp-steps"], key, orjson.dumps(request), ())])
    try:
        async with asyncio.timeout(SECONDS):
            while True:
                verdict: dict[str, Any] = orjson.loads((await consumer.getone()).value)
                if verdict["request_id"] == request["request_id"]:
                    return verdict
    except TimeoutError as error:
        raise Unavailable(f"no verdict for {request['request_id']} within {SECONDS:.0f} s") from error


def shown(one: Candidate, verdict: dict[str, Any]) -> RenderableType:
    """A verdict with its numbers and its reasons."""
    word, action = verdict["verdict"], verdict["action"]
    halts = f" at {verdict['halt_at_percent']:g} %" if action == "halt" else ""
    sample, evidence = verdict["sample"] or {"size": 0}, verdict["evidence"]
    head = Text.assemble(
        f"{one.version} {one.about}. It asks to go from {verdict['from_percent']:g} to {verdict['to_percent']:g} %.\n",
        (f"{word}, {action}{halts}", {"pass": "bold green", "warn": "bold yellow"}.get(word, "bold red")),
        f"  ({verdict['milestone']}: {sample['size']} traces, {evidence['duration_seconds']:.1f} s)",
    )
    tail = Text(_why(verdict))
    return explained(f"A verdict, read from the topic: {word}", Group(head, *_tables(verdict), tail))


def _tables(verdict: dict[str, Any]) -> Iterator[Table]:
    """The judges' numbers, and what the sample could have seen by each judge's measured noise."""
    judges = verdict["per_judge_scores"]
    heads = ("Judge", "Score", "Threshold", "Floor", "Baseline", "Items", "On fail", "Standing", "")
    names = ("score", "threshold", "floor", "baseline", "n", "enforcement", "standing")
    found = [[judge, *(one[name] for name in names), "passed" if one["passed"] else one["rule"]]
             for judge, one in judges.items()]  # fmt: skip
    yield table(Section("", heads, found))
    seen = [
        [judge, one["detectable_drop"], "" if (clean := one["clean_pass_probability"]) is None else f"{clean:.2%}"]
        for judge, one in judges.items()
    ]
    yield table(Section("", ("Judge", "Finds a fall of, 80 % power", "A clean candidate passes"), seen))


def _why(verdict: dict[str, Any]) -> str:
    reasons = "\n".join(f"{reason['code']}: {reason['message']}" for reason in verdict["reasons"])
    meaning = {
        "pass": "Every judge is at its limits or above: the step may be taken.",
        "warn": "A judge that may only warn at this gate did not pass: the step may be taken; have a look.",
        "fail": "The step may not be taken; the rollout stays where it is.",
    }[verdict["verdict"]]
    return f"{reasons}\n{meaning}" if reasons else meaning
