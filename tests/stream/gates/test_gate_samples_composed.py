"""Golden set, production traces and adversarial items in one sample, on a real broker, Redis and Opik stand-in; the
candidate is a small HTTP server and the judges' model a labelled stand-in (PC5 §5.5, contracts §3)."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import uuid6

from evalcore import reloading
from rampgate.local.services.kafka import KafkaCluster
from rampgate.wiring import make_parts
from rampgate.worker.gates import Gates
from rampgate.worker.worker import Worker
from tests.asking import HTTP
from tests.stream.gates.ramp_rig import Rig, by_request, ramp_rig, step, thumb, trace
from tests.unit.evalcore.registry.registry_disk import written
from tests.unit.rampgate.ci_gate.gate_rig import FakeCandidate, candidate, local_model
from tests.waiting import come

GOLDEN, ADVERSARIAL = 6, 5


@dataclass
class Composed:
    """`manifest` writes the registry again and has it served."""

    rig: Rig
    fake: FakeCandidate
    folder: Path
    project: str

    def manifest(self, **sample: Any) -> None:
        asked = {"candidate": {"url": f"{self.fake.url}/{{agent_id}}/{{agent_version}}"}, **sample}
        content = {
            "dataset": {"name": "golden", "version": 1, "items": GOLDEN, "project": self.project},
            "sample": {"size": {"pre_ramp": 20, "pre_full": 30}, **asked},
            "gates": {"minimum_sample": {"pre_ramp": 10, "pre_full": 14}, "preceding_gate": "off"},
        }
        root = written(self.folder / uuid6.uuid7().hex, {"evaluation_manifest.yaml": json.dumps(content)})
        reloading.use(root)
        reloading.current()

    @property
    def red_team(self) -> dict[str, Any]:
        return {"name": "red-team", "version": 1, "items": ADVERSARIAL, "project": self.project}

    async def work(self) -> Worker:
        parts = make_parts(self.rig.settings)
        worker = Worker(parts, Gates(parts))
        self.rig.workers.append((worker, parts, asyncio.create_task(worker.run())))
        return worker

    async def start(self) -> None:
        await self.work()
        await self.rig.send("traces", *(turn(n, "v1") for n in range(40)), *(turn(n, "v2") for n in range(40, 44)))
        await self.rig.send("thumbs", *(thumb(f"r{n}") for n in range(20)))
        await self.rig.joined(trace=44, thumbs=20)

    async def verdict(self, request_id: str, count: int, **changes: Any) -> dict[str, Any]:
        judged = {"pre_ramp": ["helpfulness"], "pre_full": ["helpfulness"]}
        await self.rig.send("ramp-steps", step(request_id, vertical="shop", eval_gates=judged, **changes))
        return by_request(await self.rig.verdicts(count, 90.0))[request_id]


def turn(number: int, version: str) -> dict[str, Any]:
    event = trace(f"r{number}", version)
    event["metadata"] |= {"vertical": "shop", "sub_agent": "shop", "environment": "production"}
    event["output"] = {"messages": [{"content": "said then #quality:0"}]} if version == "v1" else said("own")
    event["feedback_scores"] = [{"name": "helpfulness", "value": 1.0}]
    return event


def said(text: object) -> dict[str, Any]:
    return {"messages": [{"content": f"so {text} #quality:1"}]}


@pytest.fixture
async def composed(
    kafka: KafkaCluster, redis_url: str, local_opik: Any, topic_prefix: str, tmp_path: Path, registry_of_today: Path
) -> AsyncIterator[Composed]:
    project = topic_prefix + "project"
    for name, count in (("golden", GOLDEN), ("red-team", ADVERSARIAL)):
        items = [item(name, number) for number in range(count)]
        put(local_opik.url, project, name, items)
    with local_model() as model, candidate(lambda body, _: (200, {"output": said(body["input"])})) as fake:
        async with ramp_rig(kafka, redis_url, local_opik.url, topic_prefix, registry_of_today) as rig:
            rig.settings = rig.settings.model_copy(update={"model_url": model.url})
            yield Composed(rig, fake, tmp_path, project)


def item(dataset: str, number: int) -> dict[str, Any]:
    metadata = {"id": f"{number}", **({"category": "general_qa"} if dataset == "golden" else {})}
    return {
        "input": {"messages": [{"content": f"{dataset} {number}"}]},
        "expected_output": "WRITTEN BY HAND #quality:0",
        "metadata": metadata,
    }


def put(url: str, project: str, name: str, items: list[dict[str, Any]]) -> None:
    content = {
        "dataset_name": name,
        "project_name": project,
        "items": [{"source": "sdk", "data": one} for one in items],
        "batch_group_id": str(uuid6.uuid7()),
    }
    HTTP.put(f"{url}/v1/private/datasets/items", json=content).raise_for_status()


def inputs(seen: list[dict[str, Any]]) -> list[str]:
    return [body["input"]["messages"][-1]["content"] for body in seen]


def of(sample: Mapping[str, Any]) -> tuple[str, dict[str, int], int, str]:
    return sample["scope"], sample["composition"], sample["topped_up"], sample["dataset_version"]


async def test_pc5_5_5_pre_ramp_judges_golden_and_production_items_topped_up_by_the_candidate(
    composed: Composed,
) -> None:
    composed.manifest()
    await composed.start()
    found = await composed.verdict("first", 1)
    assert (found["verdict"], found["reasons"]) == ("pass", [])
    assert of(found["sample"]) == ("version", {"golden": 6, "production": 14, "adversarial": 0}, 10, "golden v1")
    assert found["gates"][0]["sample"] == found["sample"]
    assert found["per_judge_scores"]["helpfulness"]["n"] == 20
    fake = composed.fake
    assert len(fake.seen) == 16
    assert set(fake.paths) == {"/answer/assistant/v2"}
    assert "WRITTEN BY HAND" not in json.dumps(fake.seen)
    assert all("user_id" not in body["metadata"] for body in fake.seen)
    again = await composed.verdict("again", 2, experiment_id="e-2")
    assert again["sample"]["fingerprint"] == found["sample"]["fingerprint"]
    assert len(fake.seen) == 16, "what was answered is not asked again"
    other = await composed.verdict("other", 3, agent_version="v3")
    assert of(other["sample"]) == ("version", {"golden": 6, "production": 14, "adversarial": 0}, 14, "golden v1")
    asked = [set(inputs(of_version)) for of_version in (fake.seen[:16], fake.seen[16:])]
    assert asked[0] < asked[1], "versions that ask in one week are run on the same inputs"


async def test_pc5_5_5_a_jump_to_full_judges_the_adversarial_set_at_pre_full(composed: Composed) -> None:
    composed.manifest(adversarial=composed.red_team)
    await composed.start()
    found = await composed.verdict("jump", 1, to_percent=100)
    assert (found["verdict"], found["reasons"]) == ("pass", [])
    first, second = (gate["sample"] for gate in found["gates"])
    assert of(first) == ("version", {"golden": 6, "production": 14, "adversarial": 0}, 10, "golden v1")
    assert of(second) == ("version", {"golden": 6, "production": 19, "adversarial": 5}, 15, "golden v1 + red-team v1")
    assert found["gates"][1]["per_judge_scores"]["helpfulness"]["n"] == 30
    assert len(inputs(composed.fake.seen)) == len(set(inputs(composed.fake.seen))) == 6 + 5 + 15


async def test_a_gate_that_is_resumed_asks_the_candidate_only_for_what_it_has_not_answered(composed: Composed) -> None:
    composed.manifest()
    answered: list[str] = []
    go_on = threading.Event()

    def slowly(body: dict[str, Any], _: int) -> tuple[int, Any]:
        if len(answered) >= 7:
            go_on.wait(60)
        answered.append(inputs([body])[0])
        return 200, {"output": said(answered[-1])}

    composed.fake.says = slowly
    await composed.start()
    judged = {"pre_ramp": ["helpfulness"], "pre_full": []}
    await composed.rig.send("ramp-steps", step("resumed", vertical="shop", eval_gates=judged))
    await come(lambda: len(answered) >= 7)
    await composed.rig.kept("a:*", 7)
    await composed.rig.stop()
    before = answered[:7]
    go_on.set()
    await composed.work()
    found = by_request(await composed.rig.verdicts(1, 90.0))["resumed"]
    assert (found["verdict"], of(found["sample"])[1]) == ("pass", {"golden": 6, "production": 14, "adversarial": 0})
    asked = inputs(composed.fake.seen)
    assert [one for one in before if asked.count(one) > 1] == []


async def test_a_dataset_that_is_not_there_and_a_candidate_that_is_down_are_named(composed: Composed) -> None:
    composed.manifest(adversarial={**composed.red_team, "version": 9})
    await composed.start()
    missing = await composed.verdict("missing", 1, from_percent=5, to_percent=100)
    assert {reason["code"] for reason in missing["reasons"]} == {"dataset_mismatch"}
    assert "'red-team', version 9" in missing["reasons"][0]["message"]
    composed.fake.says = lambda body, _: (500, {})
    composed.manifest()
    down = await composed.verdict("down", 2, agent_version="v4")
    assert {reason["code"] for reason in down["reasons"]} == {"judge_unavailable"}
    assert all("assistant v4 at http://" in reason["message"] for reason in down["reasons"])
    assert down["per_judge_scores"]["helpfulness"]["unscored"] == 20
