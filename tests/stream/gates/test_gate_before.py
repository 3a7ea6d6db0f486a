"""Each step asks the topic for a standing pass of the gate before it, on a real Kafka (PC5 §5.5)."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from aiokafka import AIOKafkaProducer

from evalcore.gates.verdict import Moment, as_json, of_pull_request
from rampgate.ci_gate.publish import publish
from schemas.judges import Milestone
from schemas.verdicts import GateVerdict, VerdictLevel
from tests.stream.gates.ramp_rig import Rig, by_request, step, thumb, trace


def codes(verdict: dict[str, Any]) -> list[str]:
    return [reason["code"] for reason in verdict["reasons"]]


async def test_a_published_pre_merge_is_the_first_steps_gate_before_and_pre_ramp_the_next_ones(rig: Rig) -> None:
    """Also for a worker that was started later, and knows it from the topic alone."""
    agent = step("first")["agent_id"], step("first")["agent_version"]
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    gate = GateVerdict({}, VerdictLevel.PASS, [], Milestone.PRE_MERGE)
    await publish(rig.settings, of_pull_request(*agent, gate, Moment(now, 1.0), request_id="gate-run-1"))
    await rig.start()
    await rig.send("traces", *(trace(f"r{number}") for number in range(120)))
    await rig.send("thumbs", *(thumb(f"r{number}") for number in range(30)))
    await rig.joined(trace=120, thumbs=30)
    await rig.send("ramp-steps", step("too soon", from_percent=5, to_percent=50))
    found = by_request(await rig.verdicts(2))
    assert (found["too soon"]["verdict"], codes(found["too soon"])) == ("warn", ["gate_missing", "no_gate_at_step"])
    await rig.send("ramp-steps", step("first"))
    found = by_request(await rig.verdicts(3))
    assert (found["first"]["verdict"], codes(found["first"])) == ("pass", [])
    await rig.stop()
    await rig.start()
    await rig.send("ramp-steps", step("second", from_percent=5, to_percent=50))
    found = by_request(await rig.verdicts(4))
    assert (found["second"]["verdict"], codes(found["second"])) == ("pass", ["no_gate_at_step"])
    assert rig.told == []


async def test_a_gate_that_failed_stands_after_a_restart_however_long_ago_that_was(rig: Rig) -> None:
    """A worker reads the whole topic when it starts. The failure ends with the gate's next pass, here of CI's gate."""
    agent = step("old")["agent_id"], step("old")["agent_version"]
    at = datetime.now(UTC) - timedelta(days=200)
    producer = AIOKafkaProducer(bootstrap_servers=rig.kafka.bootstrap)
    await producer.start()
    try:
        for milestone in (Milestone.PRE_MERGE, Milestone.PRE_RAMP, Milestone.PRE_FULL):
            gate = GateVerdict({}, VerdictLevel.FAIL, [], milestone)
            then = Moment(at.isoformat(timespec="milliseconds"), 1.0)
            made = of_pull_request(*agent, gate, then, request_id=milestone)
            raw, time_ms = json.dumps(as_json(made)).encode(), int(at.timestamp() * 1000)
            await producer.send_and_wait(rig.topic("verdicts"), raw, b"k", timestamp_ms=time_ms)
    finally:
        await producer.stop()
    await rig.start()
    await rig.send(
        "ramp-steps",
        step("walks on", from_percent=1, to_percent=99),
        step("begins"),
        step("goes down", from_percent=50, to_percent=0),
    )
    found = by_request(await rig.verdicts(6))
    for name in ("walks on", "begins"):
        assert (found[name]["action"], codes(found[name])) == ("halt", ["gate_failed"])
        assert found[name]["halt_at_percent"] == 0
    assert (found["goes down"]["verdict"], codes(found["goes down"])) == ("pass", ["no_gate_at_step"])

    now = Moment(datetime.now(UTC).isoformat(timespec="milliseconds"), 1.0)
    again = GateVerdict({}, VerdictLevel.WARN, [], Milestone.PRE_MERGE)
    await publish(rig.settings, of_pull_request(*agent, again, now, request_id="gate-run-again"))
    await rig.send("ramp-steps", step("begins again"), step("still there", from_percent=1, to_percent=99))
    found = by_request(await rig.verdicts(9))
    assert [gate["milestone"] for gate in found["begins again"]["gates"]] == ["pre_ramp"], "it runs again"
    assert codes(found["still there"]) == ["gate_failed"]
