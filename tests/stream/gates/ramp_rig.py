"""A worker's gates on a real Kafka and Redis; only the judges' model is scripted."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from aiohttp import web
from redis.asyncio import Redis
from uuid6 import uuid7

from agents.gates.ports import AskingGate, Item
from evalcore import reloading
from evalcore.registry.registry import Judge
from evalcore.scoring.answers import Answer, Scored, Unscored
from rampgate.local.services.kafka import KafkaCluster
from rampgate.settings import Settings
from rampgate.wiring import Parts, make_parts
from rampgate.worker.gates import Gates
from rampgate.worker.worker import Worker
from schemas.answers import Balance
from schemas.settings import KafkaAccess
from schemas.topics import PRODUCED, consumed
from streams.kafka.client import Producer
from streams.queries.conservation import conservation
from tests.fault.ledger.kafka_log import KafkaLog


@dataclass
class ScriptedScoring:
    """Stands for the judges' model. `values`: judge -> its score for every item; others give their best."""

    values: dict[str, float] = field(default_factory=dict)
    down: bool = False
    hold: asyncio.Event | None = None
    began: list[str] = field(default_factory=list)

    async def score(
        self, gate: AskingGate, judges: Sequence[Judge], items: Sequence[Item], within: float | None = None
    ) -> dict[str, list[Answer]]:
        self.began.append(gate.request_id)
        if self.hold is not None and gate.request_id.startswith("long"):
            await self.hold.wait()
        if self.down:
            return {judge.id: [Unscored("refused")] * len(items) for judge in judges}
        return {j.id: [Scored(self.values.get(j.id, j.score_range[1]))] * len(items) for j in judges}


@dataclass
class Rig:
    kafka: KafkaCluster
    settings: Settings
    scoring: Any
    producer: Producer
    workers: list[tuple[Worker, Parts, asyncio.Task[int]]] = field(default_factory=list)
    told: list[str] = field(default_factory=list)
    """What Slack was sent."""

    def topic(self, name: str) -> str:
        return f"{self.settings.topic_prefix}{name}"

    async def start(self) -> Worker:
        parts = make_parts(self.settings)
        worker = Worker(parts, Gates(parts, self.scoring))
        self.workers.append((worker, parts, asyncio.create_task(worker.run())))
        return worker

    async def stop(self) -> None:
        for worker, parts, task in self.workers:
            worker.stop()
            assert await asyncio.wait_for(task, 30) == 0
            await parts.close()
        self.workers.clear()

    async def send(self, name: str, *events: Any) -> None:
        values = [event if isinstance(event, bytes) else json.dumps(event).encode() for event in events]
        await self.producer.send([(self.topic(name), b"k", value, ()) for value in values])

    async def balances(self) -> dict[str, Balance]:
        """By signal, as /conservation has them."""
        parts = self.workers[0][1]
        return (await conservation(parts.store, parts.clock.now_ms(), 3_600, parts.policy.future)).signals

    async def balance(self) -> Balance:
        """Of the ramp steps."""
        return (await self.balances())["ramp_step"]

    async def joined(self, **consumed: int) -> None:
        """The join has so many records of each signal."""
        async with asyncio.timeout(120.0):
            while True:
                found = await self.balances()
                if all(found[name].consumed == count for name, count in consumed.items()):
                    return
                await asyncio.sleep(0.1)

    async def kept(self, pattern: str, count: int) -> None:
        """So many keys of that pattern stand in Redis."""
        async with asyncio.timeout(40.0), Redis.from_url(self.settings.redis) as client:
            while True:
                if len(await client.keys(f"{self.settings.redis_prefix}{pattern}")) >= count:
                    return
                await asyncio.sleep(0.05)

    async def counted(self, consumed: int) -> Balance:
        """The balance once so many records are consumed, and nothing of it moves any more."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(30.0):
                while (await self.balance()).consumed < consumed:  # noqa: ASYNC110 - what is waited for has no event
                    await asyncio.sleep(0.1)
        await asyncio.sleep(1.5)
        return await self.balance()

    async def verdicts(self, count: int, seconds: float = 40.0) -> list[dict[str, Any]]:
        """What a plain consumer reads from the beginning: at least `count`, and all that comes in the next second."""
        return [json.loads(value) for value in await self._read("verdicts", count, seconds)]

    async def letters(self) -> list[bytes]:
        """All there are."""
        return await self._read("dead-letters", 0, 10.0)

    async def _read(self, name: str, count: int, seconds: float) -> list[bytes]:
        """To the end that the topic has once `count` have come; this loop's workers go on meanwhile."""
        log = KafkaLog(self.kafka.bootstrap, self.settings.topic_prefix, seconds=seconds)
        async with asyncio.timeout(seconds):
            while len(await asyncio.to_thread(log.records, name)) < count:  # noqa: ASYNC110 - it has no event
                await asyncio.sleep(0.5)
        if count:
            await asyncio.sleep(1.0)  # one too many may be on its way
        return [record.value or b"" for record in await asyncio.to_thread(log.records, name)]


@contextlib.asynccontextmanager
async def slack_hook() -> AsyncIterator[tuple[str, list[str]]]:
    """A webhook's address, and the texts it took."""
    told: list[str] = []

    async def take(request: web.Request) -> web.Response:
        told.append((await request.json())["text"])
        return web.Response(text="ok")

    app = web.Application()
    app.router.add_post("/hook", take)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}/hook", told
    await runner.cleanup()


@contextlib.asynccontextmanager
async def ramp_rig(
    kafka: KafkaCluster, redis_url: str, opik: str, topic_prefix: str, configs: Path
) -> AsyncIterator[Rig]:
    topics = (*consumed(), *PRODUCED)
    kafka.create_topics([topic_prefix + name for name in topics], 2)
    async with slack_hook() as (hook, told):
        settings = Settings(
            kafka=kafka.bootstrap,
            redis=redis_url,
            opik=opik,
            topic_prefix=topic_prefix,
            group=topic_prefix + "group",
            configs=configs,
            write=False,
            slack_webhook=hook,
        )
        reloading.use(configs)
        reloading.current()
        producer = Producer(KafkaAccess((kafka.bootstrap,)))
        rig = Rig(kafka, settings, ScriptedScoring(), producer, told=told)
        yield rig
        await rig.stop()
        await producer.close()


def trace(response_id: str, version: str = "v2") -> dict[str, Any]:
    now = datetime.now(UTC).isoformat()
    return {
        "event_id": f"e-{response_id}",
        "trace_id": str(uuid7()),
        "response_id": response_id,
        "project_name": "receipts-eval",
        "started_at": now,
        "ended_at": now,
        "input": {"messages": [{"content": f"where are my points of {response_id}?"}]},
        "output": {"messages": [{"content": [{"text": "in your wallet"}]}]},
        "metadata": {
            "user_id": "u", "agent_id": "assistant", "agent_version": version, "vertical": "receipts",
            "sub_agent": "receipts", "category": "receipt_scan",
        },
    }  # fmt: skip


def thumb(response_id: str) -> dict[str, Any]:
    now = datetime.now(UTC).isoformat()
    return {"event_id": f"t-{response_id}", "response_id": response_id, "value": "up", "occurred_at": now}


def step(request_id: str, **changes: Any) -> dict[str, Any]:
    return {
        "request_id": request_id,
        "experiment_id": "e-1",
        "agent_id": "assistant",
        "agent_version": "v2",
        "vertical": "receipts",
        "from_percent": 0,
        "to_percent": 5,
        "ramp_steps": [5, 25, 100],
        "eval_gates": {"pre_ramp": ["ux_quality"], "pre_full": ["ux_quality"]},
        "requested_at": datetime.now(UTC).isoformat(),
        "deadline_seconds": 300,
        **changes,
    }


def by_request(found: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    ids = [verdict["request_id"] for verdict in found]
    assert len(ids) == len(set(ids)), f"a request has two verdicts: {sorted(ids)}"
    return {verdict["request_id"]: verdict for verdict in found}
