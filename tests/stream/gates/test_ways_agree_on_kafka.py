"""On a real Kafka a ramp step has the verdict that `evaluate_gate` gives the same traces (contracts §3, "One way").

`tests/unit/evalcore/gates/test_ways_agree.py` draws many more, with the broker in memory.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest
from uuid6 import uuid7

from evalcore import aevaluate_gate, reloading
from rampgate.local.services.http_services import LocalModel
from rampgate.local.services.kafka import KafkaCluster
from tests.stream.gates.ramp_rig import Rig, by_request, ramp_rig, step, thumb, trace
from tests.unit.evalcore.registry.registry_disk import written

SEED = 20_261_122
DUE = json.dumps({
    "recalibration_due": str(date.today() + timedelta(days=30)), "calibration": {"seeded_on": str(date.today())}
})  # fmt: skip
CHANGES: dict[str, str | None] = {
    "evaluation_manifest.yaml": "{gates: {preceding_gate: 'off', minimum_sample: {pre_ramp: 10, pre_full: 12}}}",
    **{f"rules/{name}.yaml": DUE for name in ("helpfulness", "brevity", "refusal", "honesty", "shop/helpfulness")},
}
MIXES = {"good": ("1",), "poor": ("1", "0.5", "0"), "odd": ("1", "1", "1", "na", "")}
"""What the stand-in thinks of an answer; "" is a turn without one."""


@pytest.fixture
async def rig(
    kafka: KafkaCluster, redis_url: str, local_opik: Any, topic_prefix: str, tmp_path: Path, judges_model: LocalModel
) -> AsyncIterator[Rig]:
    async with ramp_rig(kafka, redis_url, local_opik.url, topic_prefix, written(tmp_path, CHANGES)) as made:
        made.settings = made.settings.model_copy(update={"model_url": judges_model.url})
        made.scoring = None  # what the settings say: a real model's client
        yield made


def drawn(random: Random, agent: str, mix: str, vertical: str | None) -> list[dict[str, Any]]:
    """Traces of one agent: some posted twice, with another answer; some of a turn that has another trace."""
    began, made = datetime.now(UTC) - timedelta(minutes=5), list[dict[str, Any]]()
    for number in range(16):
        one = trace(f"{agent}-{random.choice([number, number // 2])}")
        if made and random.random() < 0.2:
            earlier = random.choice(made)
            one |= {name: earlier[name] for name in ("trace_id", "response_id")}
        quality = random.choice(MIXES[mix])
        said = {"messages": [{"content": f"{number}: in your wallet #quality:{quality}"}]} if quality else None
        made.append({
            **one,
            "event_id": str(uuid7()),
            "ended_at": (began + timedelta(seconds=random.randrange(60))).isoformat(),
            "output": said,
            "metadata": {**one["metadata"], "agent_id": agent, "vertical": vertical, "sub_agent": "shop"},
        })  # fmt: skip
    return made


def told(level: str, scores: dict[str, dict[str, Any]], reasons: list[Any]) -> Any:
    numbers = ("score", "threshold", "n", "unscored", "not_applicable", "passed")
    return str(level), {name: [one[key] for key in numbers] for name, one in scores.items()}, sorted(set(reasons))


async def test_a_ramp_step_has_the_verdict_that_evaluate_gate_gives_its_traces(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = Random(SEED)
    traces: dict[str, list[dict[str, Any]]] = {}
    steps: dict[str, tuple[str, str | None]] = {}
    for milestone in ("pre_ramp", "pre_full"):
        for mix in MIXES:
            of, named = random.choice(["shop", "travel", None]), random.random() < 0.5
            agent = f"{milestone}-{mix}"
            traces[agent], steps[agent] = drawn(random, agent, mix, of), (milestone, of if named else None)
    events = [one for many in traces.values() for one in many]
    voted = {one["response_id"] for one in events[::3]}
    await rig.start()
    await rig.send("traces", *events)
    await rig.send("thumbs", *map(thumb, sorted(voted)))
    await rig.joined(trace=len(events), thumbs=len(voted))
    for agent, (milestone, vertical) in steps.items():
        percents = {"from_percent": 0, "to_percent": 5} if milestone == "pre_ramp" else {}
        percents = percents or {"from_percent": 50, "to_percent": 100}
        judges = {"eval_gates": {"pre_ramp": ["helpfulness"], "pre_full": ["helpfulness"]}}
        await rig.send("ramp-steps", step(agent, agent_id=agent, vertical=vertical, **percents, **judges))
    found = by_request(await rig.verdicts(len(steps), 120.0))
    monkeypatch.setenv("RAMPGATE_MODEL_URL", str(rig.settings.model_url))
    levels = set()
    for agent, (milestone, vertical) in steps.items():
        verdict = await aevaluate_gate(
            milestone, traces[agent], ["helpfulness"], vertical=vertical, registry=reloading.current()
        )
        scores = {name: vars(one) for name, one in verdict.per_judge_scores.items()}
        wanted = told(verdict.verdict, scores, [reason.code.value for reason in verdict.reasons])
        got = found[agent]
        assert told(got["verdict"], got["per_judge_scores"], [one["code"] for one in got["reasons"]]) == wanted, agent
        levels.add(wanted[0])
    assert levels >= {"pass", "fail"}, "of every kind, or they might agree for want of anything to differ on"
