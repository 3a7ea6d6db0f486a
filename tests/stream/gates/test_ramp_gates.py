"""Ramp-step requests in, verdicts out, on a real Kafka and Redis; only the judges' model is scripted (PC5 AC-4)."""

from __future__ import annotations

import asyncio

from tests.stream.gates.ramp_rig import Rig, by_request, step, thumb, trace
from tests.waiting import come


async def test_pc5_ac4_each_request_gets_one_verdict_with_its_evidence(rig: Rig) -> None:
    await rig.start()
    await rig.send("traces", *(trace(f"r{n}") for n in range(260)))
    await rig.send("thumbs", *(thumb(f"r{n}") for n in range(30)))
    await rig.joined(trace=260, thumbs=30)
    rig.scoring.values = {"response_quality": 2.5}
    await rig.send(
        "ramp-steps",
        step("good"),
        step("bad", eval_gates={"pre_ramp": ["response-quality"]}),
        step("unknown-version", agent_version="v9"),
        step("between", agent_version="never-ramped", from_percent=5, to_percent=25),
        step("invalid", to_percent=101),
        step("late", deadline_seconds=0),
        step("good"),
        b"{",
        step("good", to_percent=7),
    )
    found = by_request(await rig.verdicts(6))
    assert {name: verdict["verdict"] for name, verdict in found.items()} == {
        "good": "warn", "bad": "fail", "unknown-version": "fail", "between": "warn", "invalid": "fail", "late": "fail",
    }  # fmt: skip
    good = found["good"]
    assert (good["milestone"], good["action"], good["sample"]["size"]) == ("pre_ramp", "proceed", 200)
    assert good["sample"]["composition"] == {"golden": 0, "production": 200, "adversarial": 0}
    assert good["evidence"]["coverage"] == 1.0
    assert set(good["per_judge_scores"]) >= {"ux_quality", "jailbreaking", "safety_restricted", "sensitive_topics"}
    assert (found["bad"]["halt_at_percent"], found["bad"]["failing_judges"]) == (0.0, ["response_quality"])
    codes = {name: {reason["code"] for reason in verdict["reasons"]} for name, verdict in found.items()}
    assert codes["unknown-version"] >= {"insufficient_sample"}
    assert (codes["good"], codes["between"]) == ({"gate_missing"}, {"no_gate_at_step", "gate_missing"})
    assert (codes["invalid"], codes["late"]) == ({"invalid_request"}, {"deadline_exceeded"})


async def test_a_restart_in_the_middle_of_a_gate_resumes_it_and_doubles_nothing(rig: Rig) -> None:
    rig.scoring.hold = asyncio.Event()
    await rig.start()
    await rig.send("ramp-steps", step("long"), step("short", from_percent=5, to_percent=25))
    await come(lambda: "long" in rig.scoring.began)
    assert set(by_request(await rig.verdicts(1))) == {"short"}
    await rig.stop()
    rig.scoring.hold.set()
    await rig.start()
    found = by_request(await rig.verdicts(2))
    assert set(found) == {"long", "short"}
    assert found["long"]["sample"]["size"] == 0


async def test_pc5_ac4_an_operator_is_told_of_each_failed_verdict_once_also_over_a_restart(rig: Rig) -> None:
    worker = await rig.start()
    between = step("between", from_percent=5, to_percent=25)
    await rig.send("ramp-steps", step("invalid", to_percent=101), between, step("late", deadline_seconds=0))
    await come(lambda: len(rig.told) == 2)
    await come(lambda: worker.operators.consumer and sum(worker.operators.consumer.done.values()) == 3)
    await rig.stop()
    await rig.start()
    await rig.send("ramp-steps", step("late", deadline_seconds=0), step("nobody", agent_version="v9"))
    await come(lambda: len(rig.told) == 3)
    await rig.verdicts(4)
    assert len(rig.told) == 3
    told = "\n".join(rig.told)
    for part in ("(invalid_request)", "(deadline_exceeded)", "(insufficient_sample)", "experiment e-1", "Halt at 0 %"):
        assert part in told, part
    assert all(told.count(f"request {name};") == 1 for name in ("invalid", "late", "nobody"))
