"""A rollout gate's sample where the manifest names a candidate: composed once, the same ever after (PC5 §5.5)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from registry_disk import built

from agents.counting import HOUR
from agents.gate_ports import Sample
from agents.memory import ManualClock, MemoryStore
from agents.policy import Policy
from agents.pools import pool_cell
from agents.ports import Change, Pool, Unauthorized, Unavailable
from evalcore.gates.golden import CandidateAnswer, Failed, GoldenSet
from evalcore.gates.requests import Asked, read
from evalcore.gates.sampling import Candidate
from evalcore.registry import Registry
from schemas.gate_examples import RAMP_STEP
from schemas.judges import Milestone
from schemas.manifests import CandidateEndpoint, Dataset
from schemas.ramps import RampStep
from streams.pooled_traces import PooledTraces
from streams.samples import PooledSamples

MERGE, RAMP, FULL = Milestone
GOLDEN, ADVERSARIAL = 4, 3
WEEK = 604_800_000
MINUTE = 60_000


def known(**sample: Any) -> Registry:
    said = {"candidate": {"url": "http://agents"}, "size": {"pre_ramp": 14, "pre_full": 27}, **sample}
    content = {
        "dataset": {"items": GOLDEN},
        "sample": {name: value for name, value in said.items() if value is not None},
        "gates": {"minimum_sample": {"pre_ramp": 5, "pre_full": 5}},
    }
    return built({"evaluation_manifest.yaml": json.dumps(content)})


RED_TEAM = {"name": "red-team", "version": 2, "items": ADVERSARIAL}


def asked(request_id: str = "r-1", **changes: Any) -> Asked:
    found = read(json.dumps({**RAMP_STEP, "request_id": request_id, "agent_version": "v2", **changes}).encode())
    assert isinstance(found, Asked)
    return found


@dataclass
class World:
    """All that a sample is drawn from. `seen`: the inputs that the candidate was run on, call by call."""

    clock: ManualClock = field(default_factory=lambda: ManualClock(2_000 * WEEK))
    store: MemoryStore = field(init=False)
    topic: list[Any] = field(default_factory=list)
    datasets: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    out_of_reach: Exception | None = None
    seen: list[list[str]] = field(default_factory=list)
    down: bool = False

    def __post_init__(self) -> None:
        self.store = MemoryStore(self.clock)
        category = {"category": "general_qa"}
        self.datasets["golden"] = [{"input": f"golden {n}", "metadata": {"id": str(n), **category}} for n in range(4)]
        self.datasets["red-team"] = [{"input": f"red {n}", "metadata": {"id": str(n)}} for n in range(ADVERSARIAL)]

    async def traced(self, count: int, version: str = "v1", environment: str = "production") -> None:
        now, step = self.clock.now_ms(), asked().step
        versions = (version, None) if environment == "production" else (version,)
        for _ in range(count):
            place = len(self.topic)
            metadata = {"agent_version": version, "vertical": step.vertical, "category": "general_qa"}
            said = {"input": f"turn {place}", "output": f"said by {version}", "ended_at": "2026-11-21T12:00:00Z"}
            self.topic.append({**said, "metadata": metadata})
            one = Candidate(place.to_bytes(16, "big"), now - 1, 0, place)
            for whose in versions:
                cell = pool_cell(step.vertical, step.agent_id, whose, now // HOUR)
                await self.store.apply(Change(pools={cell: Pool(now + WEEK, 600, {one.pack(): one.number})}))

    async def fetch(self, places: Sequence[Any]) -> list[Any]:
        found = [self.topic[offset] for _, _, offset in places]
        return [None if one is None else SimpleNamespace(value=json.dumps(one).encode()) for one in found]

    async def read(self, wanted: Dataset) -> GoldenSet | None:
        if self.out_of_reach is not None:
            raise self.out_of_reach
        items = self.datasets.get(wanted.name)
        return GoldenSet(items, wanted.name, wanted.name, wanted.version) if items is not None else None

    async def to(
        self, items: Sequence[Mapping[str, Any]], endpoint: CandidateEndpoint, step: RampStep
    ) -> list[CandidateAnswer]:
        self.seen.append([str(item["input"]) for item in items])
        return [Failed("down") if self.down else {"output": f"{step.agent_version} says"} for _ in items]

    async def sample(self, request: Asked | None = None, registry: Registry | None = None, at: Any = RAMP) -> Sample:
        this: Any = self
        traces = PooledTraces(self.store, this, "traces", self.clock)
        samples = PooledSamples(self.store, traces, Policy(), self.clock, self.read, this)
        return await samples.frozen(request or asked(), at, registry or known())


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
