"""Verdicts of rollout gates whose samples have several parts (PC5 §5.5, §9.5)."""

from __future__ import annotations

import json

from schemas.verdicts import Code, Composition, Verdict, VerdictLevel
from tests.unit.evalcore.registry.registry_disk import built
from tests.unit.streams.gates.sample_world import GOLDEN, MINUTE, NOW, RED_TEAM, World, known


def codes(found: Verdict) -> set[Code]:
    return {reason.code for reason in found.reasons}


async def test_pc5_5_5_each_gate_of_a_jump_says_what_its_own_sample_was() -> None:
    world = World()
    await world.traced(30)
    found = await world.verdict(known(adversarial=RED_TEAM), to_percent=100)
    first, second = (gate.sample for gate in found.gates)
    assert first is not None
    assert second is not None
    assert (found.verdict, found.sample) == (VerdictLevel.PASS, first)
    assert (first.composition, first.dataset_version) == (Composition(4, 10, 0), "golden v7")
    assert (second.composition, second.dataset_version) == (Composition(4, 20, 3), "golden v7 + red-team v2")


async def test_the_same_evidence_at_another_time_has_the_same_verdict_id() -> None:
    world = World()
    await world.traced(30)
    first = await world.verdict(known())
    world.store.values = {key: held for key, held in world.store.values.items() if not key.startswith("f:")}
    world.clock.ms += MINUTE
    again = await world.verdict(known())
    assert (again.sample or first.sample) != first.sample, "it was frozen later"
    assert again.verdict_id == first.verdict_id


async def test_pc5_5_5_golden_items_alone_begin_no_ramp() -> None:
    """A gate of a rollout is about production: however large the dataset is, it does not stand for it."""
    found = await World().verdict(built({"evaluation_manifest.yaml": json.dumps({
        "dataset": {"items": GOLDEN}, "sample": {"candidate": {"url": "http://agents"}},
        "gates": {"minimum_sample": {"pre_ramp": 4}}})}))  # fmt: skip
    assert (found.verdict, codes(found)) == (VerdictLevel.FAIL, {Code.INSUFFICIENT_SAMPLE})
    assert "none of the sample's 4 items is of production" in found.reasons[0].message


async def test_pc5_9_5_a_candidate_that_is_down_fails_closed_and_is_named() -> None:
    world = World(down=True)
    await world.traced(20, "v2")
    found = await world.verdict(known())
    assert (found.verdict, codes(found)) == (VerdictLevel.FAIL, {Code.JUDGE_UNAVAILABLE})
    assert "4 of 14 items (down)" in found.reasons[0].message


async def test_a_candidate_that_is_slow_is_cut_off_by_the_deadline() -> None:
    world = World(seconds=30.0)
    found = await world.verdict(known(), requested_at=NOW.isoformat(), deadline_seconds=0.5)
    assert (found.verdict, codes(found)) == (VerdictLevel.FAIL, {Code.DEADLINE_EXCEEDED})
