"""A world whose turns have live judges (PC5 §5.2, FR-11)."""

from __future__ import annotations

import json
import uuid
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from uuid6 import uuid7

from agents.judge_scores import live_events
from agents.live.balance import Balance, Whose
from agents.live.judging import LiveJudging
from agents.ports import Unavailable
from evalcore.judges.evaluator import Prompt
from evalcore.registry.registry import Registry
from evalcore.scoring.answers import Judgement, Scored
from evalcore.scoring.cache import MemoryScoreCache
from evalcore.scoring.calls import Reply
from evalcore.scoring.sampling import share
from schemas.outcomes import Kind
from schemas.wire_forms import ScoreEvent
from tests.memory_ports import MemoryScoreEvents
from tests.unit.agents.builders import MINUTE
from tests.unit.agents.builders import trace as trace_event
from tests.unit.agents.join.world import World
from tests.unit.evalcore.registry.registry_disk import built
from tests.unit.evalcore.scoring.scoring_rig import Model, scorer

REGISTRY = built({"rules/helpfulness.yaml": "{sampling_rate: 0.3}"})
RARE = REGISTRY.judge("helpfulness")
JUDGES = REGISTRY.all()
PARTIAL = {"messages": [{"content": "so far"}]}


class Willing(Model):
    """Gives every judge an answer on its scale."""

    async def complete(self, asked: Prompt) -> Reply:
        await super().complete(asked)
        boolean = asked.schema["properties"]["score"]["anyOf"][0]["type"] == "boolean"
        return Reply(json.dumps({"score": True if boolean else 1, "reason": "fine"}), 10)


class Otherwise(Willing):
    """Gives every judge another answer than Willing does."""

    async def complete(self, asked: Prompt) -> Reply:
        await super().complete(asked)
        scale = asked.schema["properties"]["score"]["anyOf"][0]["type"]
        return Reply(json.dumps({"score": {"boolean": False, "integer": 2}.get(scale, 0.5), "reason": "otherwise"}), 10)


@dataclass
class MemoryFigures:
    """The counts of live judging over all processes of a test."""

    fell_due: Counter[Whose] = field(default_factory=Counter)
    ends: Counter[tuple[Whose, StrEnum]] = field(default_factory=Counter)
    waits: Counter[Whose] = field(default_factory=Counter)

    def due(self, whose: Whose) -> None:
        self.fell_due[whose] += 1

    def ended(self, whose: Whose, end: StrEnum) -> None:
        self.ends[whose, end] += 1

    def waiting(self, whose: Whose, by: int) -> None:
        self.waits[whose] += by

    def differences(self) -> dict[Whose, int]:
        """What fell due and neither waits nor ended, where that is not 0."""
        found = Counter(self.fell_due)
        found.subtract(self.waits)
        for (whose, _), by in self.ends.items():
            found[whose] -= by
        return {whose: by for whose, by in found.items() if by}

    def ended_as(self, end: StrEnum, rated: str | None = None) -> int:
        return sum(by for (whose, how), by in self.ends.items() if how is end and rated in (None, whose.rated))


class Rig:
    """A world whose turns have live judges. `model`: what it answers instead of a score on each judge's scale."""

    def __init__(self, registry: Registry | None = None, own_key: bytes = b"", **model: Any) -> None:
        self.world = World()
        self.world.policy = replace(self.world.policy, own_key=own_key)
        self.escapes: list[str] = []
        self.events = MemoryScoreEvents()
        self.registry: Registry | None = REGISTRY if registry is None else registry
        self.model = Model(**model) if model else Willing()
        self.cache = MemoryScoreCache()
        self.in_opik: dict[str, dict[str, Any]] = {}
        self.left: frozenset[str] = frozenset()
        self.opik_is_away = False
        self.figures = MemoryFigures()
        self.balance = Balance(self.figures)
        self.parked: dict[str, list[Any]] = {Kind.TRACE: [], Kind.THUMBS: []}

    def judging(self) -> LiveJudging:
        """As after a restart: nothing is remembered but what the stores hold."""
        world = self.world

        async def whole(trace_id: str) -> dict[str, Any] | None:
            if self.opik_is_away:
                raise Unavailable("Opik")
            return self.in_opik.get(trace_id)

        topic, ours = world.topics["traces"], scorer(self.model, self.cache)
        return LiveJudging(
            world.ports, world.policy, ours, lambda: self.registry, whole, self.left, topic, self.events, self.balance,
            escapes=self.escapes.append,
        )  # fmt: skip

    async def traces(self, *events: dict[str, Any]) -> None:
        sent = self.world.send(Kind.TRACE, *events)
        await self.world.run(Kind.TRACE)
        self.world.wait(MINUTE)
        assert await self.judging().traces(sent) == []

    async def thumbs(self, *events: dict[str, Any]) -> list[Any]:
        sent = self.world.send(Kind.THUMBS, *events)
        await self.world.run(Kind.THUMBS)
        self.world.wait(MINUTE)
        return list(await self.judging().thumbs(sent))

    async def come(self, kind: str, *events: Any) -> None:
        """Events come, and the join takes them."""
        self.parked[kind] += self.world.send(kind, *events)
        await self.world.run(kind)

    async def settle(self) -> None:
        """The settle time passes, and live judging takes what has come or waits, as a worker that has just started."""
        self.world.wait(MINUTE)
        judging = self.judging()
        for kind, handle in ((Kind.THUMBS, judging.thumbs), (Kind.TRACE, judging.traces)):
            if self.parked[kind]:
                self.parked[kind] = await handle(self.parked[kind])

    async def age(self, ms: int) -> None:
        """Time passes, with the join's maintenance and looks at what waits."""
        for _ in range(ms // MINUTE):
            await self.world.due()
            await self.settle()

    def written(self, event: dict[str, Any]) -> dict[str, float]:
        return {
            name: value
            for (trace_id, name), value in self.world.scores.held.items()
            if trace_id == event["trace_id"] and not name.startswith("user_signal_")
        }


def live_trace(rid: str = "r", *, sampled: bool = True, **more: Any) -> dict[str, Any]:
    """A whole trace that the rate of RARE takes, or does not."""
    number = next(n for n in (str(uuid7()) for _ in range(500)) if (share(uuid.UUID(n).bytes) < 0.3) is sampled)
    content = {
        "input": {"messages": [{"content": f"how {rid}?"}]},
        "output": {"messages": [{"content": f"so {rid}."}]},
    }
    return trace_event(rid, **{"vertical": None, **more}) | {"trace_id": number} | content


def started(event: dict[str, Any]) -> dict[str, Any]:
    return {**event, "ended_at": None, "output": PARTIAL}


def bare(event: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in event.items() if name not in ("input", "output")}


def running_in_opik(event: dict[str, Any]) -> dict[str, Any]:
    """A trace as Opik shows it while it runs."""
    return {**bare(event), "ended_at": None, "end_time": None, "input": event["input"], "output": PARTIAL}


def in_opik(event: dict[str, Any]) -> dict[str, Any]:
    return {**{name: value for name, value in event.items() if name != "ended_at"}, "end_time": event["ended_at"]}


def events(traces: int) -> Iterator[ScoreEvent]:
    """The events of so many traces that all judges score at their best."""
    said = [(judge, Judgement(Scored(judge.score_range[1]))) for judge in JUDGES]
    for number in range(traces):
        yield from live_events(f"trace-{number}", f"r-{number}", {"agent_id": "a"}, said, 1_800_000_000_000)
