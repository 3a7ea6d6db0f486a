"""A rollout controller in one file: asks for each step, waits for its verdict, goes on or halts, as PC6 does.

    python examples/pc6_subscriber.py --kafka 127.0.0.1:9092 --agent assistant --version v2 --vertical receipts

It needs aiokafka and nothing of Rampgate's. Exit codes: 0 the rollout is at its last step, 1 it was halted.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

ASK_AGAIN_SECONDS = 30.0
"""Seconds before the same record is sent again: an unchanged request may be repeated, and still gets one verdict."""
GRACE_SECONDS = 30.0
"""Seconds after the deadline in which a verdict may still arrive."""


@dataclass(frozen=True)
class Plan:
    agent: str
    version: str
    vertical: str | None
    steps: list[float]
    judges: list[str]
    deadline_seconds: float
    experiment: str
    prefix: str = "rampgate."


class Controller:
    """Takes a step when its verdict says `proceed`, and otherwise stays at `percent`, the share of users with the
    version."""

    def __init__(self, plan: Plan, producer: AIOKafkaProducer, consumer: AIOKafkaConsumer) -> None:
        self.plan, self._producer, self._consumer = plan, producer, consumer
        self.percent = 0.0

    async def roll_out(self) -> bool:
        for step in self.plan.steps:
            verdict = await self._ask(step)
            if verdict is None:
                print(f"halted at {self.percent:g} %: no verdict in time", flush=True)
                return False
            tell(step, verdict)
            if verdict["action"] != "proceed":
                halt = verdict["halt_at_percent"]
                self.percent = self.percent if halt is None else min(self.percent, halt)
                print(f"halted at {self.percent:g} %", flush=True)
                return False
            self.percent = step
        print(f"done: {self.percent:g} %", flush=True)
        return True

    async def _ask(self, step: float) -> dict[str, Any] | None:
        """Request the step; return its verdict, None where none came in time."""
        request_id = f"{self.plan.experiment}-{uuid.uuid4()}"
        key, value = self.plan.experiment.encode(), json.dumps(self._request(request_id, step)).encode()
        waiting = asyncio.create_task(self._verdict(request_id))
        ends = asyncio.get_running_loop().time() + self.plan.deadline_seconds + GRACE_SECONDS
        try:
            while (left := ends - asyncio.get_running_loop().time()) > 0:
                await self._producer.send_and_wait(f"{self.plan.prefix}ramp-steps", value, key=key)
                done, _ = await asyncio.wait({waiting}, timeout=min(left, ASK_AGAIN_SECONDS))
                if done:
                    return await waiting
            return None
        finally:
            waiting.cancel()

    async def _verdict(self, request_id: str) -> dict[str, Any]:
        """Read the topic, which has all controllers' verdicts, up to the one with our request id."""
        async for record in self._consumer:
            verdict: dict[str, Any] = json.loads(record.value)
            if verdict["request_id"] == request_id:
                return verdict
        raise RuntimeError("the consumer was closed")

    def _request(self, request_id: str, step: float) -> dict[str, Any]:
        plan = self.plan
        return {
            "request_id": request_id,
            "experiment_id": plan.experiment,
            "agent_id": plan.agent,
            "agent_version": plan.version,
            "vertical": plan.vertical,
            "from_percent": self.percent,
            "to_percent": step,
            "ramp_steps": plan.steps,
            "eval_gates": {"pre_ramp": plan.judges, "pre_full": plan.judges},
            "requested_at": datetime.now(UTC).isoformat(),
            "deadline_seconds": plan.deadline_seconds,
        }


def tell(step: float, verdict: dict[str, Any]) -> None:
    gate = verdict["milestone"] or "no gate"
    print(f"to {step:g} %: {verdict['verdict']} ({gate}), {verdict['action']}", flush=True)
    for reason in verdict["reasons"]:
        print(f"  {reason['code']}: {reason['message']}", flush=True)


async def run(kafka: str, plan: Plan) -> bool:
    producer = AIOKafkaProducer(bootstrap_servers=kafka, acks="all")
    consumer = AIOKafkaConsumer(f"{plan.prefix}verdicts", bootstrap_servers=kafka, auto_offset_reset="latest")
    async with producer, consumer:
        await consumer.seek_to_end()  # before the first request, so that its verdict comes after
        return await Controller(plan, producer, consumer).roll_out()


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--kafka", default="127.0.0.1:9092", help="brokers, comma-separated")
    parser.add_argument("--agent", default="assistant")
    parser.add_argument("--version", required=True, help="the agent version that is to be ramped")
    parser.add_argument("--vertical", help="default: all of its traces")
    parser.add_argument("--steps", type=float, nargs="+", default=[5, 25, 50, 100], metavar="PERCENT")
    parser.add_argument(
        "--judges", nargs="+", default=["ux_quality"], help="beside the safety judges, which always run"
    )
    parser.add_argument("--deadline", type=float, default=600, metavar="SECONDS", help="for each verdict")
    parser.add_argument("--prefix", default="rampgate.", help="of the topics")
    return parser.parse_args()


def main() -> int:
    given = arguments()
    experiment = f"{given.agent}-{given.version}-{uuid.uuid4().hex[:8]}"
    plan = Plan(
        agent=given.agent,
        version=given.version,
        vertical=given.vertical,
        steps=given.steps,
        judges=given.judges,
        deadline_seconds=given.deadline,
        experiment=experiment,
        prefix=given.prefix,
    )
    return 0 if asyncio.run(run(given.kafka, plan)) else 1


if __name__ == "__main__":
    sys.exit(main())
