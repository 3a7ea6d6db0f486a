"""A worker's ramp requests over twins of their parts: topic of verdicts, Redis, consumer. Any of them may fail."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from faust.types import TP

from agents.gates.ports import GatePorts
from agents.join.batches import FetchedBatch
from agents.join.counting import HOUR
from agents.join.step_data import Report
from agents.keys import CONSERVATION, FOREVER
from agents.ports import Change, Unavailable
from agents.ramp_steps import RampAnswers, RampCounting
from evalcore.gates.history import Asked, Stand
from evalcore.gates.requests import InvalidRequest, RampRequest
from evalcore.gates.verdict import Moment, of_gates, refused
from schemas.judges import Milestone
from schemas.outcomes import Kind
from schemas.verdicts import Code, Reason, Verdict
from streams.gates import ramp_requests
from streams.gates.ramp_requests import RampRequests
from tests.memory_ports import ManualClock, MemoryDeadLetters, MemoryStore
from tests.unit.agents.builders import Rec

TOPIC = "rampgate.ramp-steps"
LOOKBACK = 7 * 24 * HOUR
PASSED = Stand(passed="2026-11-20")


def request(request_id: str, **more: Any) -> bytes:
    return json.dumps(
        {
            "request_id": request_id,
            "experiment_id": "e",
            "agent_id": "a",
            "agent_version": "v",
            "from_percent": 5,
            "to_percent": 25,
            "requested_at": "2026-11-21T12:00:00Z",
            **more,
        }
    ).encode()


@dataclass
class Topic:
    """The verdicts' topic, which outlives every worker."""

    published: list[Verdict] = field(default_factory=list)
    held: dict[str, Asked] = field(default_factory=dict)
    down: bool = False

    async def caught_up(self) -> None:
        await asyncio.sleep(0)
        if self.down:
            raise Unavailable("Kafka is away")

    def answered(self, request_id: str) -> Asked | None:
        return self.held.get(request_id)

    async def publish(
        self, verdict: Verdict, body: str, place: str, key: str | None, last: Callable[[Verdict], Awaitable[Verdict]]
    ) -> Verdict | None:
        await self.caught_up()
        if verdict.request_id in self.held:
            return None
        self.published.append(await last(verdict))
        self.held[verdict.request_id] = Asked.of(body, place)
        return self.published[-1]


@dataclass
class State(MemoryStore):
    """Redis: outlives every worker, may be away and may be emptied. Partitions begin at 0."""

    clock: ManualClock = field(default_factory=ManualClock)
    away: bool = False

    def __post_init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        self.values |= {f"w2:{TOPIC}:{partition}": (b"0", FOREVER) for partition in range(4)}

    async def apply(self, change: Change) -> list[str]:
        if self.away:
            raise Unavailable("Redis is away")
        return await super().apply(change)

    def conservation(self) -> dict[str, int]:
        """Of ramp steps, all hours together. Balanced, or the test fails."""
        found: Counter[str] = Counter()
        for key, (_, fields) in self.counters.items():
            assert key == CONSERVATION.key(int(key.split(":")[1]), Kind.RAMP_STEP)
            found.update(fields)
        assert found["consumed"] == sum(found.values()) - found["consumed"]
        return dict(found)


@dataclass
class Consumer:
    flow_active: bool = True
    generation: int = 1
    abandoned: list[int] = field(default_factory=list)
    halted: set[TP] = field(default_factory=set)

    def current(self, batch: FetchedBatch) -> bool:
        return batch.generation == self.generation

    def halt(self, partition: TP) -> None:
        self.halted.add(partition)

    def release(self, partition: TP) -> None:
        self.halted.remove(partition)

    def abandon(self, batch: FetchedBatch) -> None:
        self.abandoned.append(batch.base)


@dataclass(frozen=True)
class WorkersAnswers(RampAnswers):
    """Those of a worker, of which `decide` stands for the gates."""

    decide: Callable[[RampRequest | InvalidRequest], Awaitable[Verdict]]

    async def decided(self, request: RampRequest | InvalidRequest) -> Verdict:
        return await self.decide(request)


@dataclass
class Worker:
    """One worker over a topic; `slow` holds up the requests named in it until they are let go."""

    topic: Topic = field(default_factory=Topic)
    state: State = field(default_factory=State)
    letters: MemoryDeadLetters = field(default_factory=MemoryDeadLetters)
    consumer: Consumer = field(default_factory=Consumer)
    slow: dict[str, asyncio.Event] = field(default_factory=dict)
    broken: set[str] = field(default_factory=set)
    begun: list[str] = field(default_factory=list)
    asked: list[RampRequest | InvalidRequest] = field(default_factory=list)
    unavailable: int = 0
    stands: Stand = PASSED
    acked: list[int] = field(default_factory=list)
    fatal: list[BaseException] = field(default_factory=list)
    reports: list[Report] = field(default_factory=list)

    def __post_init__(self) -> None:
        verdicts: Any = self.topic
        ports: Any = GatePorts(*[self] * 4)  # type: ignore[arg-type] # of which the history alone is asked
        self.requests = RampRequests(
            WorkersAnswers(lambda: None, ports, self.decide),
            verdicts,
            self.letters,
            RampCounting(self.state, self.state.clock, LOOKBACK, self.reports.append),
            self.state.clock,
            consumer=lambda: self.consumer,
            fatal=self.fatal.append,
            decided=lambda verdict: None,
        )

    async def stand(self, asked: RampRequest | InvalidRequest, milestone: Milestone) -> Stand:
        return self.stands

    async def decide(self, asked: RampRequest | InvalidRequest) -> Verdict:
        self.begun.append(asked.request_id)
        self.asked.append(asked)
        if self.unavailable:
            self.unavailable -= 1
            self.state.clock.ms += HOUR
            raise Unavailable("for an hour")
        if asked.request_id in self.slow:
            await self.slow[asked.request_id].wait()
        if asked.request_id in self.broken:
            raise ZeroDivisionError
        if isinstance(asked, InvalidRequest):
            return refused(asked, [Reason(Code.INVALID_REQUEST, asked.why[0])], Moment("now", 0.0))
        return of_gates(asked, [], Moment("now", 0.0))

    async def read(
        self, *values: bytes | None, base: int = 0, settled: int = 0, partition: int = 0, at_ms: int = 0
    ) -> None:
        """`at_ms`: the records' timestamp, 0 for none."""
        records: Sequence[Any] = [
            Rec(value, TOPIC, partition, base + n, at_ms, b"k", ()) for n, value in enumerate(values)
        ]
        batch = FetchedBatch(TOPIC, partition, base, records, settled=settled, generation=self.consumer.generation)
        await self.requests.submit(batch, lambda: self.acked.append(base))

    @property
    def verdicts(self) -> list[str]:
        return [verdict.request_id for verdict in self.topic.published]


def quicken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streams.retry.Retry.pause", lambda *_: 0.01)
    monkeypatch.setattr(ramp_requests, "OWNERSHIP_CHECK_SECONDS", 0.01)
    monkeypatch.setattr(ramp_requests, "UNCLAIMED_SECONDS", 0.3)
