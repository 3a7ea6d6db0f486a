"""A judge that a check suspended decides nothing in a rollout's gate, also after Redis was emptied and the worker was
restarted, until it passes."""

from __future__ import annotations

from datetime import UTC, datetime

from redis.asyncio import Redis

from evalcore import reloading
from schemas.checks.standing import CheckedFor, CheckVerdict, StandingRecord
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
