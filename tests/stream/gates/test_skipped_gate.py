"""A rollout's gate honours and cites the override that skips it, on a real Kafka, also after a restart (PC5 §5.5)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from rampgate.overrides import event_id, publish
from schemas.publish.examples import EXAMPLES
from tests.stream.gates.ramp_rig import Rig, by_request, step, thumb, trace
from tests.waiting import come


def override(days: int, **changes: Any) -> dict[str, Any]:
    (example,) = EXAMPLES["gate-override"]
    agent = {name: step("any")[name] for name in ("agent_id", "agent_version")}
    until = (datetime.now(UTC) + timedelta(days=days)).date().isoformat()
    whole = {**example, **agent, "expires": until, **changes}
    return {name: value for name, value in whole.items() if name != "event_id"}


async def known(rig: Rig, count: int) -> None:
    """Return once the worker has read so many skips."""
    gates = rig.workers[0][0].gates
    assert gates is not None
    await come(lambda: gates.skips.skips is not None and len(gates.skips.skips) == count, 120)


def codes(verdict: dict[str, Any]) -> list[str]:
    return [reason["code"] for reason in verdict["reasons"]]


async def test_pc5_5_5_a_skipped_gate_cites_its_override_and_safety_decides_all_the_same(rig: Rig) -> None:
    held = override(30)
    others = override(30, agent_version="another"), override(30, milestone="pre_full", kind="baseline_shift")
    await publish(rig.settings, [*others, override(-2, milestone="pre_full")])
    await rig.start()
    await rig.send("traces", *(trace(f"r{number}") for number in range(120)))
    await rig.send("thumbs", *(thumb(f"r{number}") for number in range(30)))
    await rig.joined(trace=120, thumbs=30)
    rig.scoring.values["ux_quality"] = 0.1
    await known(rig, 2)
    await rig.send("ramp-steps", step("whole"))
    found = by_request(await rig.verdicts(1))["whole"]
    assert (found["verdict"], "gate_skipped" in codes(found)) == ("fail", False)

    await publish(rig.settings, [held])
    await rig.stop()
    await rig.start()
    await known(rig, 3)
    await rig.send("ramp-steps", step("skipped"))
    found = by_request(await rig.verdicts(2))["skipped"]
    assert (found["verdict"], found["action"]) == ("warn", "proceed"), found["reasons"]
    assert codes(found) == ["gate_skipped", "gate_missing"]
    assert "ux_quality" not in found["per_judge_scores"]
    assert event_id(held) in found["reasons"][0]["message"]
    assert held["expires"] in found["reasons"][0]["message"]

    rig.scoring.values["jailbreaking"] = 0.0
    await rig.send("ramp-steps", step("unsafe"))
    found = by_request(await rig.verdicts(3))["unsafe"]
    assert (found["verdict"], found["failing_judges"]) == ("fail", ["jailbreaking"])
    assert codes(found)[-1] == "gate_skipped"

    await rig.send("ramp-steps", step("full", from_percent=5, to_percent=100))
    found = by_request(await rig.verdicts(4))["full"]
    assert (found["verdict"], "gate_skipped" in codes(found)) == ("fail", False), "its override expired"
