"""A worker's figures of its gates, as its own wiring counts them on a real Kafka (PC5 §10.2)."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from pathlib import Path

from streams.metrics import Metrics
from tests.root import ROOT
from tests.stream.commands import in_process_of_its_own
from tests.stream.gates.ramp_rig import Rig, by_request, step, thumb, trace
from tests.unit.rampgate.ci_gate import gate_rig
from tests.waiting import come


def counted(metrics: Metrics, name: str) -> dict[tuple[str, ...], float]:
    """What is not zero of one metric, by its labels' values in the order of their names."""
    samples = [one for family in metrics.registry.collect() for one in family.samples if one.name == name]
    return {tuple(label for _, label in sorted(one.labels.items())): one.value for one in samples if one.value}


async def test_pc5_10_2_a_worker_counts_each_verdict_and_each_score_it_was_made_of(rig: Rig) -> None:
    await rig.start()
    await rig.send("traces", *(trace(f"r{number}") for number in range(120)))
    await rig.send("thumbs", *(thumb(f"r{number}") for number in range(30)))
    await rig.joined(trace=120, thumbs=30)
    await rig.send(
        "ramp-steps",
        step("good"),
        step("unknown-version", agent_version="v9"),
        step("late", deadline_seconds=0),
        step("good"),
    )
    found = by_request(await rig.verdicts(3))
    metrics = rig.workers[0][1].metrics
    scores = sum(entry["n"] for entry in found["good"]["per_judge_scores"].values())
    assert scores >= 4 * 120, "the judge that is asked for, and the three of safety"
    await come(lambda: sum(counted(metrics, "eval_gate_verdict_total").values()) == len(found))
    verdicts = counted(metrics, "eval_gate_verdict_total")
    assert verdicts == {("pre_ramp", "pass"): 1, ("pre_ramp", "fail"): 1, ("pre_ramp", "error"): 1}
    ran = sum(len(verdict["gates"]) for verdict in found.values())
    assert counted(metrics, "eval_gate_duration_seconds_count") == {("pre_ramp",): ran}
    given = counted(metrics, "eval_judge_score_distribution_count")
    assert {milestone for _, milestone in given} == {"pre_ramp"}
    by_judge = Counter({judge: round(many) for (judge, _), many in given.items()})
    assert by_judge == {judge: entry["n"] for judge, entry in found["good"]["per_judge_scores"].items()}


async def test_pc5_10_2_a_pre_merge_that_ci_publishes_is_counted_by_one_worker_and_a_ramp_gate_not_again(
    rig: Rig, tmp_path: Path
) -> None:
    """Two workers read the verdicts; after both are started again, what was counted before is not counted again."""
    with gate_rig.local_model() as model:
        ci = gate_rig.Rig(tmp_path, model.url)
        environment = {**os.environ, **ci.environment, "PYTHONPATH": str(ROOT), "RAMPGATE_KAFKA": rig.settings.kafka}
        environment["RAMPGATE_TOPIC_PREFIX"] = rig.settings.topic_prefix
        gate = ("gate", "run", "--dataset", str(ci.dataset), "--outputs", str(ci.outputs), "--json")
        gate += ("--publish", "--agent-id", "shop-agent", "--agent-version")

        async def published(version: str, worst: float) -> str:
            ci.answers(lambda number: worst)
            ran = await asyncio.to_thread(in_process_of_its_own, environment, *gate, version)
            assert ran.code == (worst < 1), ran.err
            return str(ran.json["verdict"])

        for _ in range(2):
            await rig.start()
        await rig.send("traces", *(trace(f"r{number}") for number in range(120)))
        await rig.joined(trace=120)
        levels = [await published("good", 1), await published("bad", 0.1)]
        await rig.send("ramp-steps", step("ramp"), step("late", deadline_seconds=0))
        ramp = by_request(await rig.verdicts(4))
        await come(lambda: fired(rig)["pre_merge"] == 2)
        await come(lambda: fired(rig)["pre_ramp"] == 2)
        verdicts = total(rig, "eval_gate_verdict_total")
        assert Counter({level: many for (at, level), many in verdicts.items() if at == "pre_merge"}) == Counter(levels)
        assert len([one for one in ramp.values() if one["milestone"] == "pre_ramp"]) == 2
        await rig.stop()

        for _ in range(2):
            await rig.start()
        await published("next", 1)
        await come(lambda: fired(rig)["pre_merge"] >= 1)
        assert fired(rig) == {"pre_merge": 1}


def total(rig: Rig, name: str) -> Counter[tuple[str, ...]]:
    """A metric's sum over the workers."""
    found: Counter[tuple[str, ...]] = Counter()
    for _, parts, _ in rig.workers:
        for labels, value in counted(parts.metrics, name).items():
            found[labels] += int(value)
    return found


def fired(rig: Rig) -> Counter[str]:
    return Counter({milestone: round(many) for (milestone,), many in total(rig, "eval_gate_fired_total").items()})
