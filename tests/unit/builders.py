"""A small world for tests of the agents: topic logs, a clock, the ports' twins, and events to put in. No services.

`World.send` appends to a log as a producer would; `World.run` reads on from the committed offset as a worker would;
`World.rewind` takes the committed offset back, which is all that a crash or a rebalance is to Kafka.
"""

from __future__ import annotations

import json
import uuid
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from agents import rerolls, thumbs, traces
from agents.counting import CLASSES, CONSUMED
from agents.items import TraceFacts
from agents.memory import ManualClock, MemoryLetters, MemoryLog, MemoryScores, MemoryStore, MemoryTraces
from agents.policy import Policy
from agents.ports import Ports
from agents.settling import revisit
from agents.steps import FOREVER, Agent, Batch, handle
from agents.turn import Turn, decode_turn
from agents.work import Report
from schemas.outcomes import Kind
from schemas.topics import Topics

NOW = 1_800_000_000_000
SECOND, MINUTE, HOUR, DAY = 1_000, 60_000, 3_600_000, 86_400_000
AGENTS: dict[Kind, Agent] = {Kind.THUMBS: thumbs.AGENT, Kind.REROLL: rerolls.AGENT, Kind.TRACE: traces.AGENT}
THUMBS_SCORE, REROLL_SCORE = "user_signal_thumbs", "user_signal_reroll"
_NAMESPACE = uuid.UUID("00000000-0000-5000-8000-000000000000")


@dataclass(frozen=True)
class Rec:
    """A Kafka record."""

    value: bytes | None
    topic: str = "rampgate.thumbs"
    partition: int = 0
    offset: int = 0
    timestamp: int = NOW
    key: bytes | None = None
    headers: tuple[tuple[str, bytes], ...] = ()


def encode(event: Any) -> bytes | None:
    return event if event is None or isinstance(event, bytes) else json.dumps(event).encode()


def trace_id(name: str) -> str:
    """The trace id that stands for a name in these tests."""
    return str(uuid.uuid5(_NAMESPACE, name))


def thumb(
    rid: str, value: str | None = "down", at: int = NOW, sequence: int | str | None = None, **more: Any
) -> dict[str, Any]:
    """The plain form. Times in ms."""
    event = {"response_id": rid, "user_id": "u", "value": value, "occurred_at": at / 1000, **more}
    if sequence is not None:
        event["sequence"] = sequence
    event.setdefault("event_id", trace_id(json.dumps(event))[:13])
    return event


def change(
    rid: str = "r", value: str | int | None = "down", sequence: int | str = 1, at: int = NOW, **more: Any
) -> dict[str, Any]:
    """A DynamoDB stream record: MODIFY unless `eventName` says otherwise; `value` None for a cleared attribute."""
    image: dict[str, Any] = {"MessageId": {"S": "m-" + rid}, "UserId": {"S": "u"}, "ResponseId": {"S": rid}}
    if value is not None:
        image["Thumbs"] = {"N": str(value)} if isinstance(value, int) else {"S": value}
    name = more.pop("eventName", "MODIFY")
    images = {"OldImage": image} if name == "REMOVE" else {"NewImage": image}
    body = {
        "Keys": {"MessageId": {"S": "m-" + rid}},
        "SequenceNumber": str(sequence),
        "ApproximateCreationDateTime": at / 1000,
        **images,
    }
    return {"eventID": f"{rid}-{sequence}", "eventName": name, "dynamodb": body, **more}


def reroll(rid: str, by: str = "", at: int = NOW, elapsed: float = 10.0, **more: Any) -> dict[str, Any]:
    event = {
        "response_id": rid,
        "new_response_id": by or rid + "-again",
        "session_id": "s",
        "user_id": "u",
        "input_hash": "h",
        "elapsed_seconds": elapsed,
        "occurred_at": at / 1000,
        **more,
    }
    event.setdefault("event_id", trace_id(json.dumps(event))[:13])
    return event


def trace(
    rid: str,
    at: int = NOW,
    *,
    name: str = "",
    started: int | None = None,
    vertical: str | None = "shopping",
    judges: Iterable[str] = (),
    session: str | None = None,
    said: Any = None,
    **more: Any,
) -> dict[str, Any]:
    """A completed trace that ended `at`; `name` tells two traces of one response apart."""
    metadata: dict[str, Any] = {"user_id": "u", "agent_id": "assistant", "sub_agent": "search", "category": "faq"}
    if vertical is not None:
        metadata["vertical"] = vertical
    if session is not None:
        metadata["session_id"] = session
    event = {
        "event_id": "e-" + rid,
        "trace_id": trace_id(name or rid),
        "response_id": rid,
        "project_name": "project",
        "started_at": (at - SECOND if started is None else started) / 1000,
        "ended_at": at / 1000,
        "metadata": metadata,
        "feedback_scores": [{"name": judge, "value": 0.5, "source": "sdk"} for judge in judges],
        **more,
    }
    if said is not None:
        event["input"] = said
    return event


@dataclass
class World:
    """Everything around the agents. Change `ports` or `policy` in a test as it needs."""

    policy: Policy = field(default_factory=Policy)
    topics: Topics = field(default_factory=Topics)
    clock: ManualClock = field(default_factory=lambda: ManualClock(NOW + MINUTE))
    scores: MemoryScores = field(default_factory=MemoryScores)
    letters: MemoryLetters = field(default_factory=MemoryLetters)
    log: MemoryLog = field(default_factory=MemoryLog)
    traces: MemoryTraces = field(default_factory=MemoryTraces)
    logs: dict[tuple[Kind, int], list[Rec]] = field(default_factory=dict)
    committed: dict[tuple[Kind, int], int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.store = MemoryStore(self.clock)
        self.ports = Ports(self.store, self.scores, self.letters, self.log, self.traces, self.clock)

    # What producers and time do.

    def send(self, kind: Kind, *events: Any, partition: int = 0, headers: Any = ()) -> list[Rec]:
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

    async def run(self, kind: Kind, partition: int = 0, count: int | None = None, again: bool = False) -> Report:
        """Handle the next `count` records (all by default) as one batch and commit."""
        at = (kind, partition)
        base, log = self.committed.get(at, 0), self.logs.get(at, [])
        records = log[base:] if count is None else log[base : base + count]
        if not records:
            return Report()
        batch = Batch(self.topics.of(kind), partition, base, records, again=again)
        if base == 0:
            self.start(batch)
        report = await handle(batch, AGENTS[kind], self.ports, self.policy, self.topics)
        self.committed[at] = batch.end
        return report

    def start(self, batch: Batch) -> None:
        """A partition that was never read gets its first watermark, as `streams.positions` would give it one."""
        self.store.values.setdefault(batch.cell, (b"0", FOREVER))

    async def drain(self) -> None:
        for kind, partition in sorted(self.logs):
            await self.run(kind, partition)

    async def tell(self, kind: Kind, *events: Any, partition: int = 0) -> Report:
        """Send, and handle at once."""
        self.send(kind, *events, partition=partition)
        return await self.run(kind, partition)

    def rewind(self, kind: Kind, partition: int = 0, by: int = 1) -> None:
        """Records come again: their offset was not committed before the worker went away."""
        at = (kind, partition)
        self.committed[at] = max(self.committed.get(at, 0) - by, 0)

    async def due(self) -> Report:
        """What upkeep does with the turns whose time has come."""
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
        return decode_turn(self.store.values["t:" + rid][0])

    def score(self, rid: str, name: str = THUMBS_SCORE) -> float | None:
        return self.scores.held.get((trace_id(rid), name))

    def signals(self, rid: str) -> tuple[float | None, float | None]:
        """(thumbs, reroll) as Opik holds them."""
        return self.score(rid), self.score(rid, REROLL_SCORE)

    def coverage(self) -> dict[tuple[str, str], int]:
        """(vertical, class) -> turns. The per-second fields of the edge cells must add up to the same."""
        whole: Counter[tuple[str, str]] = Counter()
        edges: Counter[tuple[str, str]] = Counter()
        for cell, (_, fields) in self.store.counters.items():
            for name, by in fields.items():
                vertical, _, rest = name.partition("|")
                if cell.startswith("c:"):
                    assert rest in CLASSES
                    whole[vertical, rest] += by
                elif cell.startswith("e:"):
                    edges[vertical, CLASSES[int(rest.partition("|")[0])]] += by
        assert +whole == +edges, "hours and seconds must tell the same"
        return {key: by for key, by in whole.items() if by}

    def conservation(self, kind: Kind) -> dict[str, int]:
        """Field -> records, over all hours; without what has gone to 0."""
        total: Counter[str] = Counter()
        for cell, (_, fields) in self.store.counters.items():
            if cell.startswith("k:") and cell.endswith(f":{kind}"):
                total.update(fields)
        return {name: by for name, by in total.items() if by}

    def balance(self) -> None:
        """Promise 3: each record consumed is in one state, none twice, and no counter is below zero."""
        for cell, (_, fields) in self.store.counters.items():
            assert all(by >= 0 for by in fields.values()), f"{cell} has a negative counter: {fields}"
        for kind in Kind:
            counted = self.conservation(kind)
            consumed = counted.pop(CONSUMED, 0)
            assert consumed == sum(counted.values()), (kind, consumed, counted)
            ended = sum(end for (of, _), end in self.committed.items() if of == kind)
            assert consumed == ended, f"{consumed} of {ended} {kind} records were counted"

    def replay_ids(self) -> Counter[str]:
        return Counter(letter.replay_id for letter in self.letters.letters)

    def causes(self) -> list[str]:
        return [letter.cause.value for letter in self.letters.letters]


def found_trace(rid: str, at: int = NOW, *, judged: bool = False, vertical: str = "shopping") -> TraceFacts:
    """A trace as Opik answers a search for it."""
    return TraceFacts(
        response_id=rid,
        trace=uuid.UUID(trace_id(rid)).bytes,
        project="project",
        vertical=vertical,
        sub_agent="search",
        category="faq",
        started=at - SECOND,
        ended=at,
        judged=judged,
    )


@dataclass
class Expected:
    """What the events say, turn by turn."""

    scores: dict[tuple[str, str], float] = field(default_factory=dict)
    coverage: Counter[tuple[str, str]] = field(default_factory=Counter)


def recount(events: list[tuple[Kind, dict[str, Any]]]) -> Expected:
    """The oracle: from all events at once, by rules written here and not taken from the code, with no notion of
    arrival. A turn's thumbs must all be from the stream or all plain, and its traces tell the same but for scores."""
    out = Expected()
    traces: dict[str, list[dict[str, Any]]] = {}
    thumbs: dict[str, list[tuple[int, float]]] = {}
    rerolled: set[str] = set()
    for kind, event in events:
        if kind is Kind.TRACE:
            traces.setdefault(event["response_id"], []).append(event)
        elif kind is Kind.REROLL:
            if event["elapsed_seconds"] <= 300:
                rerolled.add(event["response_id"])
        elif "dynamodb" in event:
            body = event["dynamodb"]
            image = body.get("NewImage") or body.get("OldImage")
            said = {"up": 1.0, "down": -1.0}.get(image.get("Thumbs", {}).get("S"), 0.0)
            value = 0.0 if event["eventName"] == "REMOVE" else said
            thumbs.setdefault(image["ResponseId"]["S"], []).append((int(body["SequenceNumber"]), value))
        else:
            value = {"up": 1.0, "down": -1.0, None: 0.0}[event["value"]]
            thumbs.setdefault(event["response_id"], []).append((round(event["occurred_at"] * 1000), value))
    turns = [
        (t["metadata"].get("session_id"), t.get("input"), t["started_at"], t["ended_at"], rid)
        for rid, (t, *_) in traces.items()
    ]
    for session, said, _, ended, rid in turns:
        for session2, said2, started2, _, rid2 in turns:
            if (
                rid != rid2
                and session
                and session == session2
                and said
                and said == said2
                and 0 <= started2 - ended <= 300
            ):
                rerolled.add(rid)
    for rid in {*traces, *thumbs, *rerolled}:
        value = max(thumbs.get(rid, [(0, 0.0)]))[1]
        said_something = bool(value) or rid in rerolled
        if rid not in traces:
            if said_something:
                out.coverage["unknown", "missing_trace"] += 1
            continue
        judged = any(
            not score["name"].startswith("user_signal_") for t in traces[rid] for score in t["feedback_scores"]
        )
        vertical = traces[rid][0]["metadata"]["vertical"]
        if said_something:
            out.coverage[vertical, "both_present"] += 1
        elif judged:
            out.coverage[vertical, "missing_signal"] += 1
        if value:
            out.scores[trace_id(rid), "user_signal_thumbs"] = value
        if said_something:
            out.scores[trace_id(rid), "user_signal_reroll"] = 1.0 if rid in rerolled else 0.0
    return out
