"""Everything that a rollout gate's sample is drawn from, in memory: traces on a topic, datasets, a candidate."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, time
from types import SimpleNamespace
from typing import Any
from uuid import UUID

from agents import traces
from agents.gates.ports import GatePorts, Item, Sample
from agents.join.batches import Batch, handle
from agents.keys import FOREVER
from agents.newcomers import Newcomers
from agents.policy import Policy
from agents.ports import Ports
from agents.ramp_steps import answer
from evalcore.gates.golden import CandidateAnswer, GoldenSet
from evalcore.gates.history import Stand
from evalcore.gates.requests import RampRequest, read
from evalcore.registry.registry import Judge, Registry
from evalcore.remediation.sealing import TraceForms
from evalcore.scoring.answers import Answer, Scored, Unscored
from evalcore.scoring.assignments import assign
from evalcore.scoring.items import Failed
from schemas.judges import Milestone
from schemas.manifests import CandidateEndpoint, Dataset
from schemas.publish.examples import RAMP_STEP
from schemas.ramp_steps import RampStep
from schemas.topics import Topics
from schemas.verdicts import Verdict
from streams.gates.samples import FrozenSamples, PooledTraces
from tests.memory_ports import ManualClock, MemoryDeadLetters, MemoryScores, MemoryStore
from tests.unit.agents.builders import Rec, encode
from tests.unit.evalcore.registry.registry_disk import built
from tests.unit.evalcore.registry.registry_files import TODAY

MERGE, RAMP, FULL = Milestone
GOLDEN, ADVERSARIAL = 4, 3
WEEK = 604_800_000
MINUTE = 60_000
NOW = datetime.combine(TODAY, time(12), UTC)


def known(datasets: Mapping[str, Any] | None = None, **sample: Any) -> Registry:
    said = {"candidate": {"url": "http://agents"}, "size": {"pre_ramp": 14, "pre_full": 27}, **sample}
    content = {
        "dataset": {"items": GOLDEN},
        "sample": {name: value for name, value in said.items() if value is not None},
        "gates": {"minimum_sample": {"pre_ramp": 5, "pre_full": 5}},
        "datasets": datasets or {},
    }
    return built({"evaluation_manifest.yaml": json.dumps(content)})


RED_TEAM = {"name": "red-team", "version": 2, "items": ADVERSARIAL}


def asked(request_id: str = "r-1", **changes: Any) -> RampRequest:
    found = read(json.dumps({**RAMP_STEP, "request_id": request_id, "agent_version": "v2", **changes}).encode())
    assert isinstance(found, RampRequest)
    return found


async def not_in_opik(trace_id: str) -> None:
    return None


class Records:
    """What lies on the topic of traces, by its offset there."""

    def __init__(self, values: Sequence[Mapping[str, Any] | None]) -> None:
        self.values = values

    async def fetch(self, places: Sequence[Any]) -> list[Any]:
        found = [self.values[offset] for _, _, offset in places]
        return [None if one is None else SimpleNamespace(value=json.dumps(one).encode()) for one in found]


def event(clock: ManualClock, place: int, version: str = "v2", **more: Any) -> dict[str, Any]:
    """The record at this place of the topic: a turn of its own that ended just now."""
    ended = datetime.fromtimestamp((clock.now_ms() - 1) / 1000, UTC).isoformat()
    step = asked().step
    whose = {"agent_id": step.agent_id, "agent_version": version, "vertical": step.vertical}
    found = {
        "event_id": f"event-{place}",
        "trace_id": str(UUID(int=place)),
        "response_id": f"turn-{place}",
        "project_name": "project",
        "started_at": ended,
        "ended_at": ended,
        **more,
    }
    return found | {"metadata": whose | {"category": "general_qa"} | found.get("metadata", {})}


async def come(store: Any, clock: Any, records: Sequence[Mapping[str, Any]], first: int = 0) -> None:
    """Bring records of traces into the state, as a worker does; the first lies at that place of the topic."""
    nothing: Any = None
    ports = Ports(store, MemoryScores(), MemoryDeadLetters(), nothing, nothing, clock, Newcomers())
    batch = Batch("brought", 0, first, [Rec(encode(one), "brought", 0, at) for at, one in enumerate(records, first)])
    await store.start_at(batch.watermark_key, b"0", FOREVER, b"")
    decoded = traces.AGENT.decode(batch.records, clock.now_ms(), Policy())
    assert not decoded.bad, decoded.bad
    await handle(batch, decoded, traces.AGENT, ports, Policy(), Topics())


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
    seconds: float = 0.0

    def __post_init__(self) -> None:
        self.store = MemoryStore(self.clock)
        category = {"category": "general_qa"}
        self.datasets["golden"] = [{"input": f"golden {n}", "metadata": {"id": str(n), **category}} for n in range(4)]
        self.datasets["red-team"] = [{"input": f"red {n}", "metadata": {"id": str(n)}} for n in range(ADVERSARIAL)]

    async def traced(
        self, count: int, version: str = "v1", environment: str = "production", vertical: str | None = None
    ) -> None:
        first = len(self.topic)
        for place in range(first, first + count):
            metadata = {"vertical": vertical or asked().step.vertical, "environment": environment}
            said = {"input": f"turn {place}", "output": f"said by {version}", "metadata": metadata}
            self.topic.append(event(self.clock, place, version, **said))
        await come(self.store, self.clock, self.topic[first:], first)

    async def fetch(self, places: Sequence[Any]) -> list[Any]:
        return await Records(self.topic).fetch(places)

    async def read(self, wanted: Dataset) -> GoldenSet | None:
        if self.out_of_reach is not None:
            raise self.out_of_reach
        items = self.datasets.get(wanted.name)
        return GoldenSet(items, wanted.name, wanted.name, wanted.version) if items is not None else None

    async def to(
        self, items: Sequence[Mapping[str, Any]], endpoint: CandidateEndpoint, step: RampStep
    ) -> list[CandidateAnswer]:
        self.seen.append([str(item["input"]) for item in items])
        await asyncio.sleep(self.seconds)
        return [Failed("down") if self.down else {"output": f"{step.agent_version} says"} for _ in items]

    @property
    def samples(self) -> FrozenSamples:
        this: Any = self
        traces = PooledTraces(self.store, this, "traces", self.clock, not_in_opik, TraceForms())
        return FrozenSamples(self.store, traces, Policy(), self.clock, self.read, this)

    async def sample(
        self, request: RampRequest | None = None, registry: Registry | None = None, at: Any = RAMP
    ) -> Sample:
        return await self.samples.frozen(request or asked(), at, registry or known())

    async def verdict(self, registry: Registry, **changes: Any) -> Verdict:
        """Every judge gives its best to what has an output."""
        told: Any = Told()
        changes = {"eval_gates": {"pre_ramp": ["helpfulness"], "pre_full": ["helpfulness"]}, **changes}
        request = asked(**{"deadline_seconds": None, **changes})
        return await answer(request, registry, GatePorts(self.samples, told, told, told), NOW)


class Told:
    """The other ports of a gate, whose answers are not what these tests are about."""

    async def score(
        self, request_id: str, judges: Sequence[Judge], items: Sequence[Item], *_: Any
    ) -> dict[str, list[Answer]]:
        out: dict[str, list[Answer]] = {}
        for judge, item in assign(judges, items):
            said = Unscored(item.missing) if item.missing else Scored(judge.score_range[1])
            out.setdefault(judge.id, []).append(said)
        return out

    async def baseline(self, *_: Any) -> list[float]:
        return []

    async def stand(self, *_: Any) -> Stand:
        return Stand(passed="2026-11-20")

    async def suspended(self, judge: str, version: str) -> str:
        return ""

    async def rate(self, *_: Any) -> float:
        return 1.0
