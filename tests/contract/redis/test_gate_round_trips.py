"""How often a gate whose judges' answers are all in Redis waits for Redis: each time costs the network's latency."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from redis.asyncio.connection import AbstractConnection

from agents.gates.ports import GatePorts
from agents.gates.scoring import JudgeScoring
from agents.keys import WATERMARK
from agents.policy import Policy
from agents.ports import Change
from agents.ramp_steps import answer
from evalcore.judges.evaluator import Prompt
from evalcore.remediation.sealing import TraceForms
from evalcore.scoring.calls import Reply
from evalcore.scoring.runner import Scorer
from schemas.settings import KafkaAccess
from streams.gates.samples import FrozenSamples, PooledTraces
from streams.gates.traffic import StateCompleteness
from streams.queries.coverage import WindowCoverage
from streams.redis.score_cache import RedisScoreCache
from streams.redis.state import RedisStore
from tests.memory_ports import MemoryScoreEvents
from tests.unit.streams.gates.sample_world import NOW, WEEK, Told, World, asked, known, not_in_opik

TRACES = 200
MOST = 11
"""The sample's key, marks, pools, marks, its turns and its freezing; marks, counters and marks for the coverage; two
questions for 800 answers. What publishes and counts the verdict comes on top, and waits for Kafka as well."""


class Model:
    def source(self, model: str) -> str:
        return "test"

    calls = 0

    async def complete(self, prompt: Prompt) -> Reply:
        self.calls += 1
        kinds = [one["type"] for one in prompt.schema["properties"]["score"]["anyOf"]]
        best: Any = True if "boolean" in kinds else 5 if "integer" in kinds else 1.0
        return Reply(json.dumps({"score": best, "reason": "r"}), 100)


@pytest.fixture
async def store(redis_url: str) -> AsyncIterator[RedisStore]:
    made = RedisStore(redis_url, "trips:")
    yield made
    await made.close()


async def test_a_verdict_from_redis_alone_waits_for_redis_a_few_times(
    store: RedisStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, model, told = World(), Model(), Told()
    monkeypatch.setattr(world, "store", store)  # a real one in place of its twin
    world.clock.ms = await store.now_ms() // WEEK * WEEK + WEEK
    assert not await store.apply(Change(sets={WATERMARK.key("traces", 0): (b"9", world.clock.ms + WEEK)}))
    await world.traced(TRACES, "v2")
    for turn in world.topic:
        turn |= {name: {"messages": [{"content": turn[name]}]} for name in ("input", "output")}
    whole = StateCompleteness(store, KafkaAccess(("127.0.0.1:1",)), "group", ["traces"])

    async def committed() -> dict[tuple[str, int], int]:
        return {("traces", 0): 9}

    monkeypatch.setattr(whole._committed, "committed", committed)
    registry = known(candidate=None, size={"pre_ramp": TRACES})
    this: Any = world
    traces = PooledTraces(store, this, "traces", world.clock, not_in_opik, TraceForms(), whole.guard)
    samples = FrozenSamples(store, traces, Policy(), world.clock, world.read, this)
    coverage = WindowCoverage(store, world.clock, [], whole.guard)

    async def decided(request_id: str) -> Any:
        kept = RedisScoreCache(store.redis, store.prefix, 3_600)
        scoring = JudgeScoring(Scorer(model, kept), MemoryScoreEvents(), world.clock)
        beside: Any = told
        judges = ["helpfulness", "brevity", "honesty"]
        request = asked(request_id, deadline_seconds=None, eval_gates={"pre_ramp": judges, "pre_full": judges})
        return await answer(request, registry, GatePorts(samples, scoring, beside, coverage), NOW)

    await decided("r-1")
    asked_before, sent = model.calls, 0
    send = AbstractConnection.send_packed_command

    async def counted(self: AbstractConnection, *arguments: Any, **named: Any) -> None:
        nonlocal sent
        sent += 1
        await send(self, *arguments, **named)

    monkeypatch.setattr(AbstractConnection, "send_packed_command", counted)
    verdict = await decided("r-2")
    scores = verdict.per_judge_scores.values()
    assert (verdict.sample.size, sum(one.n - one.unscored for one in scores)) == (TRACES, 4 * TRACES)
    assert 0 < asked_before == model.calls
    assert 0 < sent <= MOST
