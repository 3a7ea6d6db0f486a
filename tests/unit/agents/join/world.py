"""A small world for tests of the agents: topic logs, a clock, the ports' twins. No services.

`World.send` appends to a log as a producer would; `World.run` reads on from the committed offset as a worker would;
`World.rewind` takes the committed offset back, which is all that a crash or a rebalance is to Kafka.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any

from agents import rerolls, thumbs, traces
from agents.join.batches import Agent, Batch, handle
from agents.join.counting import CLASSES, CONSUMED, NO_CLASS, UNJUDGED, UNREADABLE
from agents.join.due_turns import revisit
from agents.join.step_data import Report
from agents.join.turn import Turn, decode_turn
from agents.keys import CONSERVATION, COVERAGE, COVERAGE_EDGE, FOREVER, turn_key
from agents.newcomers import Newcomers
from agents.policy import Policy
from agents.ports import Ports
from schemas.outcomes import Kind
from schemas.signals import kinds
from schemas.topics import Topics
from tests.memory_ports import ManualClock, MemoryDeadLetters, MemoryLog, MemoryScores, MemoryStore, MemoryTraces
from tests.unit.agents.builders import MINUTE, NOW, REROLL_SCORE, SECOND, THUMBS_SCORE, Rec, encode, thumb, trace_id

AGENTS: dict[str, Agent] = {agent.kind: agent for agent in (thumbs.AGENT, rerolls.AGENT, traces.AGENT)}
WAIT = 15 * MINUTE
"""The default wait for a missing trace."""


@dataclass
class World:
    """Everything around the agents. Change `ports` or `policy` in a test as it needs."""

    policy: Policy = field(default_factory=Policy)
    topics: Topics = field(default_factory=Topics)
    clock: ManualClock = field(default_factory=lambda: ManualClock(NOW + MINUTE))
    scores: MemoryScores = field(default_factory=MemoryScores)
    letters: MemoryDeadLetters = field(default_factory=MemoryDeadLetters)
    log: MemoryLog = field(default_factory=MemoryLog)
    traces: MemoryTraces = field(default_factory=MemoryTraces)
    logs: dict[tuple[str, int], list[Rec]] = field(default_factory=dict)
    committed: dict[tuple[str, int], int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.store = MemoryStore(self.clock)
        self.traces.scores = self.scores
        self.ports = Ports(self.store, self.scores, self.letters, self.log, self.traces, self.clock, Newcomers())

    # What producers and time do.

    def send(self, kind: str, *events: Any, partition: int = 0, headers: Any = ()) -> list[Rec]:
        """Append events (dicts, raw bytes or None) to a partition's log."""
        log = self.logs.setdefault((kind, partition), [])
        topic, sent = self.topics.of(kind), []
        for event in events:
            rec = Rec(encode(event), topic, partition, len(log), self.clock.ms, b"key", tuple(headers))
            log.append(rec)
            self.log.records[topic, partition, rec.offset] = rec
            sent.append(rec)
        return sent

    def wait(self, ms: int) -> None:
        self.clock.ms += ms

    # What a worker does.

    async def run(self, kind: str, partition: int = 0, count: int | None = None, doubtful: bool = False) -> Report:
        """Handle the next `count` records (all by default) as one batch and commit."""
        at = (kind, partition)
        base, log = self.committed.get(at, 0), self.logs.get(at, [])
        records = log[base:] if count is None else log[base : base + count]
        if not records:
            return Report()
        batch = Batch(self.topics.of(kind), partition, base, records)
        if base == 0:
            self.start(batch)
        report = await self.handle(batch, AGENTS[kind], doubtful=doubtful)
        self.committed[at] = batch.end
        return report

    async def handle(self, batch: Batch, agent: Agent, **more: Any) -> Report:
        """Decode and handle one batch, as a pipeline does."""
        decoded = agent.decode(batch.records, self.clock.now_ms(), self.policy)
        return await handle(batch, decoded, agent, self.ports, self.policy, self.topics, **more)

    def start(self, batch: Batch) -> None:
        """A partition that was never read gets its first watermark, as `streams.kafka.start_offsets` gives it one."""
        self.store.values.setdefault(batch.watermark_key, (b"0", FOREVER))

    async def drain(self) -> None:
        for kind, partition in sorted(self.logs):
            await self.run(kind, partition)

    async def tell(self, kind: str, *events: Any, partition: int = 0) -> Report:
        """Send, and handle at once."""
        self.send(kind, *events, partition=partition)
        return await self.run(kind, partition)

    def rewind(self, kind: str, partition: int = 0, by: int = 1) -> None:
        """Records come again: their offset was not committed before the worker went away."""
        at = (kind, partition)
        self.committed[at] = max(self.committed.get(at, 0) - by, 0)

    async def age(self, ms: int, step: int = 20 * SECOND) -> None:
        """Let time pass with maintenance running."""
        for _ in range(ms // step):
            self.wait(step)
            await self.due()

    async def due(self) -> Report:
        """What maintenance does with the turns whose time has come."""
        ready = await self.store.claim_due(self.clock.ms, 1_000, MINUTE)
        return await self.revisit(*ready) if ready else Report()

    async def revisit(self, *rids: str) -> Report:
        return await revisit(list(rids), self.ports, self.policy, self.topics)

    def switch(self, **changes: Any) -> None:
        """Change the policy, as a restart with other settings would."""
        self.policy = replace(self.policy, **changes)

    def lose_state(self) -> None:
        """FLUSHALL: everything is read again from the start."""
        self.store.flush()
        self.committed.clear()

    # What can be seen afterwards.

    def turn(self, rid: str) -> Turn:
        return decode_turn(self.store.values[turn_key(rid)][0])

    def score(self, rid: str, name: str = THUMBS_SCORE) -> float | None:
        return self.scores.held.get((trace_id(rid), name))

    def signals(self, rid: str) -> tuple[float | None, float | None]:
        """(thumbs, reroll) as Opik holds them."""
        return self.score(rid), self.score(rid, REROLL_SCORE)

    def coverage(self) -> dict[tuple[str, str], int]:
        """(vertical, class) -> turns. The per-second fields of the edge keys must add up to the same."""
        whole: Counter[tuple[str, str]] = Counter()
        edges: Counter[tuple[str, str]] = Counter()
        for key, (_, fields) in self.store.counters.items():
            for name, by in fields.items():
                vertical, _, token = name.partition("|")
                if key.startswith(COVERAGE.prefix):
                    whole[vertical, token] += by
                elif key.startswith(COVERAGE_EDGE.prefix):
                    edges[vertical, token.partition("|")[0]] += by
        assert +whole == +edges, "hours and seconds must tell the same"
        out: Counter[tuple[str, str]] = Counter()
        for (vertical, token), by in whole.items():
            if token[0] != NO_CLASS:
                out[vertical, CLASSES[int(token[0])]] += by
        return {key: by for key, by in out.items() if by}

    def unjudged(self) -> Counter[str]:
        """Vertical -> turns with a signal and a trace that no judge scored."""
        found: Counter[str] = Counter()
        for key, (_, fields) in self.store.counters.items():
            for name, by in fields.items() if key.startswith(COVERAGE.prefix) else ():
                vertical, _, token = name.partition("|")
                found[vertical] += by if token == UNJUDGED else 0
        return Counter({vertical: by for vertical, by in found.items() if by})

    def conservation(self, kind: str) -> dict[str, int]:
        """Field -> records, over all hours; without what has gone to 0."""
        total: Counter[str] = Counter()
        for key, (_, fields) in self.store.counters.items():
            if key.startswith(CONSERVATION.prefix) and key.endswith(f":{kind}"):
                total.update(fields)
        return {name: by for name, by in total.items() if by}

    def balance(self) -> None:
        """Promise 3: each record consumed is in one state, none twice, and no counter is below zero."""
        for key, (_, fields) in self.store.counters.items():
            assert all(by >= 0 for by in fields.values()), f"{key} has a negative counter: {fields}"
        for kind in kinds():
            counted = self.conservation(kind)
            consumed = counted.pop(CONSUMED, 0)
            counted.pop(UNREADABLE, 0)  # beside the states
            assert consumed == sum(counted.values()), (kind, consumed, counted)
            ended = sum(end for (of, _), end in self.committed.items() if of == kind)
            assert consumed == ended, f"{consumed} of {ended} {kind} records were counted"

    def replay_ids(self) -> Counter[str]:
        return Counter(letter.replay_id for letter in self.letters.letters)

    def causes(self) -> list[str]:
        return [letter.cause.value for letter in self.letters.letters]


async def given_up(world: World) -> None:
    """A signal whose trace did not come in time."""
    await world.tell(Kind.THUMBS, thumb("r", "up"))
    await world.age(WAIT + MINUTE)
    assert world.causes() == ["missing_trace"]
