"""A worker's figures of its gates, as its own wiring counts them on a real Kafka (PC5 §10.2)."""

from __future__ import annotations

from collections import Counter

from streams.metrics import Metrics
from tests.stream.gates.ramp_rig import Rig, by_request, step, thumb, trace
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
