"""Drives the product over made-up traffic: its codecs, steps, due work, rebuild, samples and decisions, on twins of its
ports. All that depends on how the product is called stands here."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from typing import Any

from agents import rerolls, thumbs, traces
from agents.codec import TraceFacts
from agents.gates.ports import GatePorts, Item
from agents.join.batches import Agent, Batch, handle
from agents.join.due_turns import revisit
from agents.join.join import latest_first
from agents.join.rebuilding import adopt
from agents.keys import FOREVER
from agents.newcomers import Newcomers
from agents.policy import Policy
from agents.ports import Outcome, Ports, Write
from agents.ramp_steps import answer
from evalcore.gates.requests import RampRequest, read
from evalcore.registry.registry import Judge, Registry
from evalcore.remediation.sealing import TraceForms
from evalcore.scoring.answers import Answer, Scored, Unscored
from evalcore.scoring.assignments import assign
from schemas.outcomes import Kind
from schemas.publish.examples import RAMP_STEP
from schemas.topics import Topics
from schemas.verdicts import Verdict
from streams.gates.samples import FrozenSamples, PooledTraces
from streams.opik.traces import facts_of, has_judge_score
from streams.redis.state import RedisStore
from tests.memory_ports import ManualClock, MemoryDeadLetters, MemoryLog, MemoryStore
from tests.samples import natural_orders
from tests.samples.oracle import Bounds, Judged, Told, is_bad
from tests.samples.turns import (
    LARGEST,
    PROJECT,
    Ask,
    Copy,
    Happening,
    Post,
    Trace,
    Traffic,
    Turn,
    metadata,
    rerolls_of,
    thumbs_of,
)
from tests.samples.turns import record as trace_record
from tests.unit.agents.builders import Rec
from tests.unit.evalcore.registry.registry_disk import built
from tests.unit.streams.gates.sample_world import Told as Others

AGENTS: Mapping[str, Agent] = {agent.kind: agent for agent in (thumbs.AGENT, rerolls.AGENT, traces.AGENT)}
POLICY = Policy(max_record_bytes=LARGEST)
TOPICS = Topics()
PARTITIONS, WORKERS, BATCH = 3, 2, 120
SECOND, MINUTE, HOUR = 1_000, 60_000, 3_600_000
BOUNDS = {"pre_ramp": Bounds(40, 20, 3 * HOUR), "pre_full": Bounds(60, 20, 6 * HOUR)}
FEW_NAMES = 40
"""So many new agent versions an hour where names are to run out; a thousand is what ships."""


@cache
def registry(scope: str = "version", bounds: tuple[tuple[str, Bounds], ...] = tuple(BOUNDS.items())) -> Registry:
    """One judge decides: four answers in five have to be good."""
    manifest = {
        "dataset": {"items": 1},
        "sample": {"scope": scope, "size": {name: one.wanted for name, one in bounds}},
        "gates": {
            "minimum_sample": {name: one.needed for name, one in bounds},
            "window_seconds": {name: one.window // SECOND for name, one in bounds},
        },
        "global_metrics": {"judges": ["refusal"]},
    }
    judge = json.dumps({"threshold": 0.8, "floor": 0.5})
    return built(
        {"evaluation_manifest.yaml": json.dumps(manifest), "rules/refusal.yaml": judge, "rules/honesty.yaml": None}
    )


class MemoryOpik:
    """Opik's traces as its API answers them, and the scores on them: the agents' `Traces` and `Scores`."""

    def __init__(self) -> None:
        self.traces: dict[str, dict[str, Any]] = {}
        self._of_turn: dict[str, list[str]] = {}

    def put(self, turn: Turn, trace: Trace, copy: Copy) -> None:
        known = self.traces.get(trace.id)
        if known is None:
            self._of_turn.setdefault(turn.id, []).append(trace.id)
        self.traces[trace.id] = {
            "id": trace.id,
            "project_name": PROJECT,
            "start_time": _instant(trace.started),
            "end_time": _instant(copy.ended) if copy.ended is not None else None,
            "input": f"question {turn.id}",
            "output": copy.output,
            "metadata": metadata(turn, trace),
            "feedback_scores": (known or {}).get("feedback_scores", []),
        }

    async def find(self, since_ms: Mapping[str, int]) -> dict[str, TraceFacts]:
        out = {}
        for response_id in since_ms:
            found = [self._facts(trace) for trace in self._of_turn.get(response_id, ())]
            if found:
                out[response_id] = latest_first(found)[response_id][0]
        return out

    async def judged(self, turns: Mapping[str, tuple[str, str, int]]) -> set[str]:
        held = {response_id: self.traces.get(trace) for response_id, (trace, _, _) in turns.items()}
        return {response_id for response_id, trace in held.items() if trace is not None and has_judge_score(trace)}

    async def held(self, trace_ids: Mapping[str, str]) -> dict[str, dict[str, float]]:
        known = {response_id: self.traces[trace] for response_id, trace in trace_ids.items() if trace in self.traces}
        return {
            response_id: {score["name"]: score["value"] for score in trace["feedback_scores"]}
            for response_id, trace in known.items()
        }

    async def write(self, writes: Sequence[Write]) -> Sequence[Outcome]:
        for write in writes:
            trace = self.traces.get(write.trace_id)
            if trace is not None:
                others = [score for score in trace["feedback_scores"] if score["name"] != write.name]
                one = {"name": write.name, "value": write.value, "source": write.source}
                trace["feedback_scores"] = others + ([one] if write.value is not None else [])
        return [None] * len(writes)

    def scored(self) -> list[TraceFacts]:
        """What a rebuild adopts."""
        return [self._facts(one["id"]) for one in self.traces.values() if one["feedback_scores"]]

    async def get(self, trace_id: str) -> dict[str, Any] | None:
        return self.traces.get(trace_id)

    def _facts(self, trace_id: str) -> TraceFacts:
        facts = facts_of(self.traces[trace_id], PROJECT)
        assert facts is not None
        return facts


class Reader(Others):
    """The judge: what begins with "bad" is worth the least, all else the most. Keeps what it was shown."""

    def __init__(self) -> None:
        self.shown: list[Item] = []

    async def score(
        self, gate: Any, judges: Sequence[Judge], items: Sequence[Item], *_: Any
    ) -> dict[str, list[Answer]]:
        self.shown = list(items)
        out: dict[str, list[Answer]] = {}
        for judge, item in assign(judges, items):
            worst, best = judge.score_range
            said = Scored(worst if is_bad(str(item.source.get("output"))) else best)
            out.setdefault(judge.id, []).append(Unscored(item.missing) if item.missing else said)
        return out


class MemoryState(MemoryStore):
    """The join's state in memory."""

    async def first_due(self) -> int | None:
        return min(self.due.values(), default=None)

    async def empty(self) -> None:
        self.flush()


class RedisState(RedisStore):
    """The same in a Redis of the run's own."""

    async def first_due(self) -> int | None:
        found = await self.redis.zrange(f"{self.prefix}due2", 0, 0, withscores=True)
        return int(found[0][1]) if found else None

    async def empty(self) -> None:
        await self.redis.flushall()


@dataclass
class Product:
    """Two workers over a store, their topics and Opik. `most`: new names an hour that each takes."""

    clock: ManualClock
    store: MemoryState | RedisState
    most: int = 1_000
    opik: MemoryOpik = field(default_factory=MemoryOpik)
    letters: MemoryDeadLetters = field(default_factory=MemoryDeadLetters)
    log: MemoryLog = field(default_factory=MemoryLog)
    logs: dict[tuple[str, int], list[Rec]] = field(default_factory=dict)
    committed: dict[tuple[str, int], int] = field(default_factory=dict)
    settled: dict[tuple[str, int], int] = field(default_factory=dict)
    shift: int = 0
    policy: Policy = POLICY

    def __post_init__(self) -> None:
        self.workers = [self._worker() for _ in range(WORKERS)]

    def _worker(self) -> Ports:
        known = Newcomers({"shop", "travel"}, self.most)
        return Ports(self.store, self.opik, self.letters, self.log, self.opik, self.clock, known)

    # ---- what others do

    def post(self, kind: str, key: str, value: bytes, headers: Sequence[tuple[str, bytes]] = ()) -> Rec:
        """Append a record to the partition that its key has."""
        partition, topic = zlib.crc32(key.encode()) % PARTITIONS, TOPICS.of(kind)
        log = self.logs.setdefault((kind, partition), [])
        one = Rec(value, topic, partition, len(log), self.clock.ms, key.encode(), tuple(headers))
        log.append(one)
        self.log.records[topic, partition, one.offset] = one
        return one

    # ---- what workers do

    async def consume(self) -> None:
        """Handle all that lies on the topics, partition by partition in turns."""
        while waiting := [at for at, log in self.logs.items() if self.committed.get(at, 0) < len(log)]:
            for kind, partition in waiting:
                await self._batch(kind, partition)

    async def _batch(self, kind: str, partition: int) -> None:
        at, agent = (kind, partition), AGENTS[kind]
        base = self.committed.get(at, 0)
        batch = Batch(TOPICS.of(kind), partition, base, self.logs[at][base : base + BATCH])
        if base == 0:
            await self.store.start_at(batch.watermark_key, b"0", FOREVER, b"")
        ports = self.workers[(partition + self.shift) % WORKERS]
        decoded = agent.decode(batch.records, self.clock.ms, self.policy)
        await handle(batch, decoded, agent, ports, self.policy, TOPICS, settled=self.settled.get(at, 0))
        self.committed[at] = batch.end

    async def look(self) -> None:
        """What is due now."""
        while ready := await self.store.claim_due(self.clock.ms, 1_000, MINUTE):
            await revisit(ready, self.workers[0], self.policy, TOPICS)

    async def wait(self, until: int) -> None:
        """Let time pass, with all that falls due on the way."""
        while (due := await self.store.first_due()) is not None and due < until:
            self.clock.ms = max(self.clock.ms, due)
            await self.look()
        self.clock.ms = max(self.clock.ms, until)
        await self.look()

    def restart(self, *numbers: int) -> None:
        for number in numbers or range(WORKERS):
            self.workers[number] = self._worker()

    def rewind(self, by: int) -> None:
        """Records come again that were not committed."""
        for at in self.committed:
            self.committed[at] = max(self.committed[at] - by, 0)

    async def lose_state(self, adopted_first: bool) -> None:
        """Redis is emptied; what Opik holds is adopted, and all topics are read again."""
        began = self.clock.ms
        await self.store.empty()
        self.settled = dict(self.committed)
        self.committed.clear()
        if adopted_first:
            await self.adopt(began)
        await self.consume()
        if not adopted_first:
            await self.adopt(began)

    async def adopt(self, began: int) -> None:
        found = self.opik.scored()
        for first in range(0, len(found), 50):
            await adopt(found[first : first + 50], self.workers[0], self.policy, began + MINUTE)

    # ---- what is read

    def pools(self) -> PooledTraces:
        """The product's reader of pools."""
        return PooledTraces(self.store, self.log, TOPICS.of(Kind.TRACE), self.clock, self.opik.get, TraceForms())

    async def verdict(self, ask: Ask, number: int, known: Registry) -> tuple[Verdict, Reader]:
        request = ramp_step(ask, f"q-{number}")
        nobody: Any = None
        reader = Reader()
        samples = FrozenSamples(self.store, self.pools(), self.policy, self.clock, nobody, nobody)
        others: Any = reader
        ports = GatePorts(samples, others, others, others)
        return await answer(request, known, ports, datetime.fromtimestamp(self.clock.ms / 1000, UTC)), reader

    async def told(self, ask: Ask, number: int, known: Registry) -> Told:
        verdict, reader = await self.verdict(ask, number, known)
        shown = [_judged(item) for item in reader.shown]
        return said_of(verdict, shown)


def ramp_step(ask: Ask, request_id: str) -> RampRequest:
    step = {
        **RAMP_STEP,
        "request_id": request_id,
        "agent_id": "assistant",
        "agent_version": ask.version,
        "vertical": ask.vertical,
        "from_percent": 0 if ask.milestone == "pre_ramp" else 50,
        "to_percent": 5 if ask.milestone == "pre_ramp" else 100,
        "eval_gates": {"pre_ramp": ["refusal"], "pre_full": ["refusal"]},
        "deadline_seconds": None,
    }
    found = read(json.dumps(step).encode())
    assert isinstance(found, RampRequest), found
    return found


def said_of(verdict: Verdict, judged: Sequence[Judged]) -> Told:
    """What the oracle reads of a verdict."""
    sample: Any = verdict.sample
    signals = getattr(sample, "signals", None)
    return Told(
        action=str(verdict.action),
        codes=frozenset(str(reason.code) for reason in verdict.reasons),
        size=sample.size if sample is not None else 0,
        eligible=getattr(sample, "eligible", None),
        pooled=getattr(sample, "pooled", None),
        left_out={str(reason): count for reason, count in left.items()}
        if (left := getattr(sample, "left_out", None)) is not None
        else None,
        signals={name: _pair(_of(signals, name)) for name in ("rated", "rerolled")} if signals is not None else None,
        judged=judged,
    )


def _of(whole: Any, name: str) -> Any:
    return whole[name] if isinstance(whole, Mapping) else getattr(whole, name)


def _pair(one: Any) -> tuple[int, int]:
    return _of(one, "eligible"), _of(one, "sampled")


def _judged(item: Item) -> Judged:
    return Judged(str(item.source.get("response_id")), str(item.source.get("trace_id")), item.source.get("output"))


def _instant(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds")


Deed = Callable[[], Any]


def deeds(made: Traffic, product: Product) -> Iterator[tuple[int, Deed]]:
    """What producers and Opik do, each with its time."""
    for turn in made.turns:
        for trace in turn.traces:
            for copy in trace.copies:
                yield copy.at, lambda turn=turn, trace=trace, copy=copy: product.opik.put(turn, trace, copy)
            for one in trace.posts:
                value = trace_record(turn, trace, one)
                yield one.at, lambda key=turn.id, value=value: product.post(Kind.TRACE, key, value)
        for at, value in thumbs_of(turn):
            yield at, lambda key=turn.id, value=value: product.post(Kind.THUMBS, key, value)
        for at, value in rerolls_of(turn):
            yield at, lambda key=turn.id, value=value: product.post(Kind.REROLL, key, value)
    for number, bad in enumerate(made.garbage):
        yield bad.at, lambda number=number, bad=bad: product.post(Kind.TRACE, f"garbage-{number}", bad.value)


async def happen(product: Product, one: Happening) -> None:
    match one.what:
        case "state lost, read again, adopted":
            await product.lose_state(adopted_first=False)
        case "state lost, adopted, read again" | "state lost before the traffic ends":
            await product.lose_state(adopted_first=True)
        case natural_orders.NEW_NAMES:
            product.restart()
            for number in range(product.most * PARTITIONS):
                junk = Turn(f"junk-{number}", [Trace(_id(number), f"junk-{number}", one.at - 1_000, "shadow")])
                value = trace_record(junk, junk.traces[0], Post(one.at, one.at - 500, "good junk"))
                product.post(Kind.TRACE, junk.id, value)
            await product.consume()
        case "workers change places":
            product.shift += 1
            product.restart(0)
        case "records come again":
            product.rewind(by=30)
        case "everything is posted again":
            earlier = [(kind, record) for (kind, _), log in product.logs.items() for record in log]
            for kind, record in sorted(earlier, key=lambda one: one[1].timestamp):
                product.post(kind, (record.key or b"").decode(), record.value or b"")


def _id(number: int) -> str:
    return f"00000000-0000-4000-8000-{number:012x}"


async def run(made: Traffic, product: Product, tick: int = 500) -> None:
    """Let all of it come to pass, up to the first gate."""
    steps: list[tuple[int, Any]] = [*deeds(made, product), *((one.at, one) for one in made.happenings)]
    steps.sort(key=lambda step: step[0])
    until = 0
    for at, step in steps:
        if at > until:
            await product.consume()
            await product.wait(at)
            until = at + tick
        product.clock.ms = max(product.clock.ms, at)
        if isinstance(step, Happening):
            await product.consume()
            await happen(product, step)
        else:
            step()
    await product.consume()
    await product.wait(min(ask.at for ask in made.asks))
