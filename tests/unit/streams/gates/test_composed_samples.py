"""A rollout gate's sample where the manifest names a candidate: composed once, the same ever after (PC5 §5.5). Verdicts
of rollout gates whose samples have several parts (PC5 §5.5, §9.5)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agents.gates.ports import Sample
from agents.join.counting import HOUR
from agents.ports import Unauthorized, Unavailable
from schemas.judges import Milestone
from schemas.verdicts import Code, Composition, Verdict, VerdictLevel
from tests.unit.evalcore.registry.registry_disk import built
from tests.unit.streams.gates.sample_world import FULL, GOLDEN, MINUTE, NOW, RAMP, RED_TEAM, WEEK, World, asked, known


def made_of(sample: Sample) -> tuple[int, int, int, int]:
    made = sample.facts.composition
    return made.golden, made.production, made.adversarial, sample.facts.topped_up


def ids(sample: Sample) -> list[str]:
    return [item.id for item in sample.items]


async def test_pc5_5_5_pre_ramp_is_golden_and_production_topped_up() -> None:
    world = World()
    await world.traced(3, "v2", "shadow")
    await world.traced(30)
    sample = await world.sample()
    assert made_of(sample) == (4, 10, 0, 7)
    assert (sample.facts.scope, sample.facts.size, sample.facts.dataset_version) == ("version", 14, "golden v7")
    said = [item.source.get("output") for item in sample.items]
    assert said.count("said by v2") == 3
    assert said.count("v2 says") == 11
    assert "said by v1" not in said


async def test_pc5_5_5_pre_full_has_the_adversarial_set_as_well() -> None:
    world = World()
    await world.traced(30)
    sample = await world.sample(registry=known(adversarial=RED_TEAM), at=FULL)
    assert made_of(sample) == (4, 20, 3, 20)
    assert sample.facts.dataset_version == "golden v7 + red-team v2"


@pytest.mark.parametrize(("at", "window"), [(RAMP, 24 * HOUR), (FULL, WEEK)])
@pytest.mark.parametrize(("scope", "version"), [("version", "v2"), ("version", "v1"), ("agent", "v1")])
@pytest.mark.parametrize(("since_its_end", "judged"), [(-MINUTE, True), (MINUTE, False)])
async def test_pc5_5_5_a_gate_looks_a_day_or_a_week_back_and_no_further(
    at: Milestone, window: int, scope: str, version: str, since_its_end: int, judged: bool
) -> None:
    """For the version's own traces, for the production inputs that it is run on, and for those of the agent."""
    world = World()
    await world.traced(30, version)
    world.clock.ms += window + since_its_end
    sample = await world.sample(registry=known(scope=scope), at=at)
    assert sample.facts.window_seconds == window // 1000
    assert (sample.facts.composition.production > 0) is judged


async def test_enough_traces_of_its_own_are_not_topped_up() -> None:
    world = World()
    await world.traced(30, "v2", "canary")
    await world.traced(30)
    assert made_of(await world.sample()) == (4, 10, 0, 0)


async def test_contracts_3_scope_agent_takes_production_of_any_version_and_nothing_else() -> None:
    world = World()
    await world.traced(30, "v2", "shadow")
    await world.traced(4)
    await world.traced(2, "v2")
    sample = await world.sample(registry=known(scope="agent"))
    assert (sample.facts.scope, made_of(sample)) == ("agent", (4, 6, 0, 0))


async def test_a_sample_without_a_candidate_is_production_alone() -> None:
    world = World()
    await world.traced(30, "v2")
    sample = await world.sample(registry=known(candidate=None))
    assert (made_of(sample), sample.facts.dataset_version, world.seen) == ((0, 14, 0, 0), "", [])


async def test_pc5_5_5_what_the_manifest_does_not_name_is_a_zero_of_the_composition() -> None:
    """At pre_full, which asks for all three parts: without a candidate, and without an adversarial set."""
    world = World()
    await world.traced(30, "v2")
    without_candidate = await world.sample(registry=known(candidate=None), at=FULL)
    without_adversarial = await world.sample(asked("r-2"), known(), FULL)
    assert (made_of(without_candidate), made_of(without_adversarial)) == ((0, 27, 0, 0), (4, 23, 0, 0))


async def test_what_is_frozen_is_the_same_later_whatever_came_since() -> None:
    world = World()
    await world.traced(3, "v2")
    await world.traced(12)
    first = await world.sample()
    world.clock.ms += 5 * MINUTE
    await world.traced(50, "v2")
    again = await world.sample()
    assert (ids(again), again.facts) == (ids(first), first.facts)
    assert (await world.sample(asked("r-2"))).facts.fingerprint != first.facts.fingerprint


async def test_another_dataset_version_is_another_sample() -> None:
    world = World()
    first = (await world.sample()).facts
    newer = built({"evaluation_manifest.yaml": json.dumps({"dataset": {"version": 8, "items": GOLDEN}, "sample": {
        "candidate": {"url": "http://agents"}}})})  # fmt: skip
    later = (await world.sample(registry=newer)).facts
    assert (first.dataset_version, later.dataset_version) == ("golden v7", "golden v8")
    assert first.fingerprint != later.fingerprint


async def test_pc5_5_5_versions_that_ask_within_a_week_are_run_on_the_same_inputs() -> None:
    world = World()
    await world.traced(30)
    await world.sample()
    world.clock.ms += 20 * HOUR
    await world.traced(200)
    await world.sample(asked("r-2", agent_version="v3"))
    assert world.seen[0] == world.seen[1]
    world.clock.ms += WEEK
    await world.traced(200)
    await world.sample(asked("r-3", agent_version="v4"))
    assert len(world.seen[2]) == len(world.seen[0])
    assert not {*world.seen[2]} & {one for one in world.seen[0] if one.startswith("turn")}


async def test_too_few_inputs_are_added_to_and_those_that_were_drawn_stay() -> None:
    world = World()
    await world.traced(4)
    assert made_of(await world.sample()) == (4, 4, 0, 4)
    world.clock.ms += MINUTE
    await world.traced(30)
    assert made_of(await world.sample(asked("r-2", agent_version="v3"))) == (4, 10, 0, 10)
    assert world.seen[1][: len(world.seen[0])] == world.seen[0]


async def test_inputs_outlive_their_records_on_the_topic() -> None:
    world = World()
    await world.traced(30)
    first = await world.sample()
    world.topic = [None] * len(world.topic)
    assert ids(await world.sample()) == ids(first)


async def test_its_own_traces_are_no_inputs_for_it() -> None:
    world = World()
    await world.traced(3, "v2")
    await world.traced(9)
    sample = await world.sample()
    assert made_of(sample) == (4, 10, 0, 7)
    assert len({item.source["input"] for item in sample.items}) == 14


async def test_what_can_not_be_read_back_is_topped_up_too() -> None:
    world = World()
    await world.traced(5, "v2", "shadow")
    world.topic[0] = None
    await world.traced(30)
    sample = await world.sample()
    assert made_of(sample) == (4, 10, 0, 6)
    assert "1 of those drawn" in sample.shortage


async def test_a_candidate_that_answers_nothing_leaves_its_items_unscored() -> None:
    world = World(down=True)
    await world.traced(3, "v2")
    await world.traced(30)
    sample = await world.sample()
    assert made_of(sample) == (4, 10, 0, 7)
    assert [item.missing for item in sample.items].count("down") == 11


async def test_too_few_items_are_told_with_where_was_looked() -> None:
    world = World()
    await world.traced(1, "v2", "shadow")
    await world.traced(2)
    shortage = (await world.sample()).shortage
    assert "1 are traces of" in shortage
    assert "2 production inputs that the candidate was run on, 4 golden items" in shortage
    assert "no sample.candidate" in (await world.sample(asked("r-2"), known(candidate=None))).shortage


@pytest.mark.parametrize("lost", [Unavailable("no Opik"), Unauthorized("no key")])
async def test_while_opik_can_not_be_read_the_request_waits(lost: Exception) -> None:
    world = World(out_of_reach=lost)
    with pytest.raises(Unavailable):
        await world.sample()


async def test_a_dataset_that_is_not_the_manifests_is_told() -> None:
    world = World()
    world.datasets["golden"].pop()
    del world.datasets["red-team"]
    found = (await world.sample(registry=known(adversarial=RED_TEAM), at=FULL)).mismatches
    assert found == (
        "golden has 3 items, the manifest's dataset.items is 4",
        "Opik has no dataset 'red-team', version 2 (sample.adversarial)",
    )


SHOPS = {
    "shop": {"name": "shop-eval", "version": 4, "items": 6, "adversarial": {"name": "edges", "version": 1, "items": 2}}
}


def of_shop() -> World:
    world, category = World(), {"category": "shop_returns"}
    world.datasets["shop-eval"] = [{"input": f"shop {n}", "metadata": {"id": str(n), **category}} for n in range(6)]
    world.datasets["edges"] = [{"input": f"edge {n}", "metadata": {"id": str(n)}} for n in range(2)]
    return world


@pytest.mark.parametrize("named", ["shop", None])
@pytest.mark.parametrize("version", ["v2", "v1"], ids=["its own traces", "topped up"])
async def test_pc5_fr7_a_verticals_sample_has_the_verticals_golden_set_named_or_not(
    named: str | None, version: str
) -> None:
    world = of_shop()
    await world.traced(30, version, vertical="shop")
    sample = await world.sample(asked(vertical=named), known(SHOPS, adversarial=RED_TEAM), FULL)
    assert made_of(sample)[0::2] == (6, 5)
    assert sample.facts.dataset_version == "shop-eval v4 + red-team v2 + edges v1"
    assert sample.mismatches == ()
    others = await world.sample(asked("r-2", vertical="travel"), known(SHOPS), FULL)
    assert others.facts.dataset_version == "golden v7"


async def test_a_verticals_golden_set_that_is_not_as_its_extension_says_is_told() -> None:
    world = of_shop()
    world.datasets["shop-eval"].pop()
    del world.datasets["edges"]
    assert (await world.sample(asked(vertical="shop"), known(SHOPS), FULL)).mismatches == (
        "shop-eval has 5 items, the manifest's datasets.shop.items is 6",
        "Opik has no dataset 'edges', version 1 (datasets.shop.adversarial)",
    )


async def test_a_turn_that_can_not_be_sent_or_kept_is_no_input_and_breaks_no_gate() -> None:
    world = World()
    await world.traced(12)
    deep: Any = "down here"
    for _ in range(400):
        deep = [deep]
    world.topic[0]["input"], world.topic[1]["input"] = deep, "x" * 100_000
    sample = await world.sample()
    assert made_of(sample) == (4, 10, 0, 10)
    assert not {"x" * 100_000, str(deep)} & {*world.seen[0]}


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
