"""A trace that names a workflow, from its bare record to scores and a verdict: real Kafka and Redis, the stand-ins of
Opik and of a judges' model, and a cluster in memory."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from redis.asyncio import Redis

from evalcore import reloading
from evalcore.registry.disk import today
from evalcore.remediation.objects import Object, Why
from evalcore.remediation.sealing import TRACES, Seals
from rampgate.local.demo.registry import seeded
from rampgate.local.services.http_services import LocalModel
from rampgate.local.services.kafka import KafkaCluster
from rampgate.settings import SettingsError
from rampgate.wiring import Parts, make_parts
from rampgate.worker.gates import Gates
from rampgate.worker.worker import Worker
from streams.cluster.port import Unread
from streams.cluster.twin import Twin
from tests.fault.ledger.kafka_log import KafkaLog
from tests.stream.gates.ramp_rig import Rig, ramp_rig, step, thumb
from tests.stream.gates.ramp_rig import trace as traced
from tests.unit.agents.completing.completing_rig import analysis, iso, proposal

KEY = "a seal key of this test"
ENDED = ("Analyzed=True", "Executed=True", "Verified=True")
MANY, OTHERS = 12, 100


class Cluster(Twin):
    """`away`: a request of an object ends in nothing, once this is set."""

    away: asyncio.Event | None = None

    async def get(self, kind: str, namespace: str, name: str) -> Object | Unread:
        if self.away is None:
            return await super().get(kind, namespace, name)
        await self.away.wait()
        return Unread(Why.TIMED_OUT)


class Stage(Rig):
    """Workers whose cluster is in memory; `prefix` names what they share."""

    cluster: Cluster

    async def begin(self, *, commits: bool = True) -> Worker:
        """Start a worker; without `commits` the reader that completes traces commits nothing, as if it were killed."""
        parts = make_parts(self.settings)
        worker = Worker(parts, Gates(parts))
        self.workers.append((worker, parts, asyncio.create_task(worker.run())))
        while worker.completer.consumer is None:  # noqa: ASYNC110 - it has no event
            await asyncio.sleep(0.05)
        if not commits:

            async def nothing(places: Any) -> None: ...

            worker.completer.consumer._commit = nothing  # type: ignore[method-assign]
        return worker

    def on_topic(self, name: str = "traces") -> list[dict[str, Any]]:
        log = KafkaLog(self.kafka.bootstrap, self.settings.topic_prefix, seconds=10.0)
        return [json.loads(record.value or b"{}") for record in log.records(name)]

    def completed(self) -> list[dict[str, Any]]:
        return [event for event in self.on_topic() if "proposal_seal" in event]

    async def until(self, what: Any, seconds: float = 60.0) -> Any:
        async with asyncio.timeout(seconds):
            while not (found := await asyncio.to_thread(what)):  # noqa: ASYNC110 - what is waited for has no event
                await asyncio.sleep(0.3)
        return found

    def in_opik(self, event: dict[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = httpx.get(f"{self.settings.opik}/v1/private/traces/{event['trace_id']}").json()
        return found

    def judged(self, event: dict[str, Any]) -> set[str]:
        scores = self.in_opik(event).get("feedback_scores") or ()
        return {score["name"] for score in scores if not score["name"].startswith("user_signal_")}

    def metric(self, name: str) -> float:
        return sum(
            sample.value
            for _, parts, _ in self.workers
            for family in parts.metrics.registry.collect()
            for sample in family.samples
            if sample.name == name
        )


@pytest.fixture
async def stage(
    kafka: KafkaCluster,
    redis_url: str,
    local_opik: Any,
    judges_model: LocalModel,
    topic_prefix: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> AsyncIterator[Stage]:
    configs = seeded(tmp_path, today())
    file = configs / "verticals" / "remediation.yaml"
    file.write_text(f"name: remediation\nproject: {topic_prefix}project\nproposal_namespaces: [shop]\n")
    async with ramp_rig(kafka, redis_url, local_opik.url, topic_prefix, configs) as made:
        made.__class__ = Stage
        assert isinstance(made, Stage)
        made.cluster = cluster = Cluster()
        monkeypatch.setattr("rampgate.worker.completing.open_cluster", lambda settings, namespaces: cluster)
        changes = {
            "model_url": judges_model.url,
            "write": True,
            "live_judging": True,
            "live_settle_seconds": 0.5,
            "seal_key": KEY,
            "session_timeout_seconds": 2.0,
            "trace_lookup_seconds": 0.5,
        }
        made.settings = type(made.settings).model_validate(made.settings.model_dump(exclude_unset=True) | changes)
        reloading.use(configs)
        reloading.current()
        yield made


async def begun(stage: Stage, many: int = MANY) -> list[dict[str, Any]]:
    """Send traces whose workflows run, as tracing does: into Opik and onto the topic."""
    events = []
    for number in range(many):
        events.append(plain(stage, f"r{number}") | {"proposal": {"namespace": "shop", "name": f"r{number}"}})
        await stage.cluster.apply(proposal(f"r{number}", "Analyzed=True", at=now_ms()))
        await stage.cluster.apply(analysis(f"r{number}"))
    await in_opik(stage, events)
    await stage.send("traces", *events)
    return events


def plain(stage: Stage, name: str) -> dict[str, Any]:
    event = traced(name, "v1") | {"project_name": f"{stage.settings.topic_prefix}project"}
    event["metadata"] |= {"vertical": "remediation", "category": "general_qa", "sub_agent": "remediation"}
    return event


async def in_opik(stage: Stage, events: list[dict[str, Any]]) -> None:
    rows = [
        {
            "id": event["trace_id"], "project_name": event["project_name"], "name": "turn",
            "start_time": event["started_at"], "end_time": event["ended_at"], "input": event["input"],
            "output": event["output"], "metadata": {**event["metadata"], "response_id": event["response_id"]},
        }
        for event in events
    ]  # fmt: skip
    url = f"{stage.settings.opik}/v1/private/traces/batch"
    async with httpx.AsyncClient() as client:
        assert (await client.post(url, json={"traces": rows})).status_code == 204


def now_ms() -> int:
    from time import time

    return round(time() * 1000)


async def end(stage: Stage, many: int = MANY) -> None:
    for number in range(many):
        await stage.cluster.apply(proposal(f"r{number}", *ENDED, at=now_ms(), ended=now_ms()))


def scores(verdict: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = verdict["per_judge_scores"]
    return {judge: (one["score"], one["n"], one["unscored"]) for judge, one in found.items()}


async def decided(stage: Stage, name: str) -> dict[str, Any]:
    await stage.send("ramp-steps", step(name, experiment_id=name, agent_version="v1", vertical="remediation"))
    found: dict[str, Any] = await stage.until(
        lambda: next((one for one in stage.on_topic("verdicts") if one["request_id"] == name), None)
    )
    return found


async def test_from_bare_traces_to_scores_and_the_same_verdict_without_the_cluster_and_from_an_emptied_redis(
    stage: Stage,
) -> None:
    await stage.begin()
    events = await begun(stage)
    await stage.send("thumbs", {**thumb("r0"), "value": "down"})
    await stage.joined(trace=MANY, thumbs=1)
    await asyncio.sleep(2.0)
    assert not any(stage.judged(event) for event in events), "they wait, also the one voted down"
    assert stage.metric("rampgate_workflows_waiting_records") == MANY

    await end(stage)
    await stage.until(lambda: len(stage.completed()) == MANY)
    await stage.until(lambda: all("jailbreaking" in stage.judged(event) for event in events))
    there = stage.in_opik(events[1])
    assert "the limit is too low" in there["output"]["messages"][-1]["content"][-1]["text"]
    assert (there["metadata"]["proposal_phase"], there["metadata"]["response_id"]) == ("Completed", "r1")
    first = await decided(stage, "first")
    assert {one[1] for one in scores(first).values()} == {MANY}

    stage.cluster.away = asyncio.Event()
    stage.cluster.objects.clear()
    assert scores(await decided(stage, "again")) == scores(first)

    await stage.stop()
    async with Redis.from_url(stage.settings.redis) as client:
        await client.flushall()
    await stage.begin()
    await stage.joined(trace=2 * MANY)
    assert scores(await decided(stage, "rebuilt")) == scores(first)
    assert len(stage.completed()) == MANY
    assert (await stage.balances())["trace"].difference == 0


async def test_a_reader_that_dies_between_publishing_and_committing_completes_none_twice(stage: Stage) -> None:
    await stage.begin(commits=False)
    await begun(stage)
    await end(stage)
    await stage.until(lambda: len(stage.completed()) == MANY)
    await stage.stop()
    stage.cluster.objects.clear()

    await stage.begin()
    await stage.until(lambda: stage.metric("rampgate_workflows_due_total") == MANY)
    await stage.until(lambda: stage.metric("rampgate_workflows_waiting_records") == 0)

    assert len(stage.completed()) == MANY
    assert stage.on_topic("dead-letters") == []


async def test_without_the_api_it_becomes_a_dead_letter_no_other_trace_waits_and_a_replay_mends_it(
    stage: Stage,
) -> None:
    stage.settings = stage.settings.model_copy(update={"enrichment_wait_seconds": 6.0})
    stage.cluster.away = answers = asyncio.Event()
    await stage.begin()
    (event,) = await begun(stage, 1)
    await end(stage, 1)
    others = [plain(stage, f"o{number}") for number in range(OTHERS)]
    await in_opik(stage, others[:1])
    await stage.send("traces", *others)
    await stage.joined(trace=1 + OTHERS)
    await stage.until(lambda: "jailbreaking" in stage.judged(others[0]))
    assert stage.metric("rampgate_workflows_waiting_records") == 1, "the API has not answered yet"
    answers.set()
    forged = event | {"ended_at": iso(now_ms()), "proposal_phase": "Completed", "proposal_seal": "0" * 64}
    await stage.send("traces", forged)
    log = KafkaLog(stage.kafka.bootstrap, stage.settings.topic_prefix, seconds=10.0)
    letters = await stage.until(lambda: log.records("dead-letters"), 40.0)
    headers = dict(letters[0].headers or ())
    assert headers["rampgate.cause"] == b"cluster_unavailable"
    assert headers["rampgate.detail"] == b"Proposal/r0: timed_out"
    assert stage.completed() == [forged], "nothing was published"
    assert stage.judged(event) == set()
    assert stage.metric("rampgate_forged_traces_total") >= 1

    stage.cluster.away = None
    await stage.producer.send([(stage.topic("traces"), b"k", letters[0].value, ())])
    made = await stage.until(lambda: [one for one in stage.completed() if Seals.of(TRACES, KEY).hold(one)])
    assert made[0]["proposal_phase"] == "Completed"
    await stage.until(lambda: "jailbreaking" in stage.judged(event))


async def test_a_worker_whose_vertical_names_namespaces_needs_the_seal_key(stage: Stage) -> None:
    parts: Parts = make_parts(stage.settings.model_copy(update={"seal_key": None}))
    with pytest.raises(SettingsError, match=r"seal_key: must be set, since remediation names proposal_namespaces"):
        Worker(parts)
    await parts.close()
