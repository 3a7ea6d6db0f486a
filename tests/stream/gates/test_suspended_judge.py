"""What stands on topics decides a rollout's gate on a real Kafka, also after a restart: a suspended judge, an override
that skips it, and the pass of the gate before (PC5 §5.5)."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from aiokafka import AIOKafkaProducer
from redis.asyncio import Redis

from evalcore import reloading
from evalcore.gates.verdict import Moment, as_json, of_pull_request
from rampgate.ci_gate.publish import publish as publish_gate
from rampgate.overrides import event_id, publish
from schemas.checks.standing import CheckedFor, CheckVerdict, StandingRecord
from schemas.judges import Milestone
from schemas.publish.examples import EXAMPLES
from schemas.verdicts import GateVerdict, VerdictLevel
from streams.gates.judge_standing import publish_standings
from tests.stream.gates.ramp_rig import Rig, by_request, step, thumb, trace
from tests.waiting import come


async def published(
    rig: Rig, verdict: CheckVerdict, judge: str, reason: CheckedFor = CheckedFor.CANARIES, vertical: str = ""
) -> None:
    parts = rig.workers[0][1]
    registry = reloading.loaded()
    assert registry is not None
    record = StandingRecord(
        event_id=f"{judge}-{verdict}", judge_id=judge, judge_version=registry.judge(judge).version, model="m",
        reason=reason, verdict=verdict, message="what was found", at=datetime.now(UTC),
        reference=f"round {verdict} {vertical}" if reason is CheckedFor.INVERSION else "", vertical=vertical,
    )  # fmt: skip
    await publish_standings(parts.access, rig.topic("judge-standing"), [record])


async def suspended(rig: Rig, *judges: str) -> None:
    """Return once the worker knows that these judges are suspended, and no other."""
    gates = rig.workers[0][0].gates
    assert gates is not None
    standings = gates.standings
    await come(
        lambda: standings.readable and {one for (one, _), why in standings.serving.items() if why} == {*judges}, 120
    )


def inverted(rig: Rig, vertical: str) -> float | None:
    """The gauge that pages."""
    metrics = rig.workers[0][1].metrics
    return metrics.registry.get_sample_value("eval_inverted_judge_count", {"vertical": vertical})


async def test_a_suspended_judge_decides_nothing_also_after_flushall_until_it_passes(rig: Rig) -> None:
    """PF-9 FR-10 for the one that scores against people; the other was moved by its canaries."""
    await rig.start()
    await published(rig, CheckVerdict.SUSPENDED, "jailbreaking", CheckedFor.INVERSION, "receipts")
    async with Redis.from_url(rig.settings.redis) as redis:
        keys = [key async for key in redis.scan_iter(f"{rig.settings.redis_prefix}*")]
        if keys:
            await redis.delete(*keys)
    await rig.stop()
    await rig.start()
    await rig.send("traces", *(trace(f"r{number}") for number in range(120)))
    await rig.send("thumbs", *(thumb(f"r{number}") for number in range(30)))
    await rig.joined(trace=120, thumbs=30)

    await suspended(rig, "jailbreaking")
    assert (inverted(rig, "receipts"), inverted(rig, "platform")) == (1, 0), "PF-9 §10.2: per vertical"
    await rig.send("ramp-steps", step("suspended"))
    found = by_request(await rig.verdicts(1))["suspended"]
    assert (found["verdict"], found["failing_judges"]) == ("fail", ["jailbreaking"]), found["reasons"]
    assert "judge_suspended" in [reason["code"] for reason in found["reasons"]]
    assert found["per_judge_scores"]["jailbreaking"]["standing"] == "suspended"

    await published(rig, CheckVerdict.PASSED, "jailbreaking", CheckedFor.INVERSION, "receipts")
    await published(rig, CheckVerdict.SUSPENDED, "ux_quality")
    await suspended(rig, "ux_quality")
    assert (inverted(rig, "receipts"), inverted(rig, "platform")) == (0, 0)
    await rig.send("ramp-steps", step("passed"))
    found = by_request(await rig.verdicts(2))["passed"]
    assert (found["verdict"], found["failing_judges"]) == ("warn", ["ux_quality"]), found["reasons"]
    assert found["action"] == "proceed"


async def test_pf9_nfr2_a_workers_gate_observes_its_lookups_of_judges(rig: Rig) -> None:
    await rig.start()
    value = rig.workers[0][1].metrics.registry.get_sample_value
    name = "eval_judge_registry_lookup_latency_seconds"
    before = value(f"{name}_count") or 0
    await rig.send("ramp-steps", step("looked up"))
    await rig.verdicts(1)
    looked_up = value(f"{name}_count") or 0
    assert looked_up > before
    assert (value(f"{name}_bucket", {"le": "0.05"}) or 0) >= 0.95 * looked_up


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


async def test_a_published_pre_merge_is_the_first_steps_gate_before_and_pre_ramp_the_next_ones(rig: Rig) -> None:
    """Also for a worker that was started later, and knows it from the topic alone."""
    agent = step("first")["agent_id"], step("first")["agent_version"]
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    gate = GateVerdict({}, VerdictLevel.PASS, [], Milestone.PRE_MERGE)
    await publish_gate(rig.settings, of_pull_request(*agent, gate, Moment(now, 1.0), request_id="gate-run-1"))
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
    await publish_gate(rig.settings, of_pull_request(*agent, again, now, request_id="gate-run-again"))
    await rig.send("ramp-steps", step("begins again"), step("still there", from_percent=1, to_percent=99))
    found = by_request(await rig.verdicts(9))
    assert [gate["milestone"] for gate in found["begins again"]["gates"]] == ["pre_ramp"], "it runs again"
    assert codes(found["still there"]) == ["gate_failed"]
