"""In-memory twins of the ports: same contracts, no services. For unit tests and for what-if runs."""

from __future__ import annotations

import math
import uuid
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from agents.codec import TraceFacts
from agents.keys import TURN
from agents.ports import Change, Places, Refusal, Seen, Unavailable, Write
from evalcore.scoring.sampling import PooledTurn, number_of
from schemas.dead_letters import DeadLetter, Record
from schemas.wire_forms import ScoreEvent


@dataclass
class ManualClock:
    ms: int = 1_800_000_000_000

    def now_ms(self) -> int:
        return self.ms


@dataclass
class MemoryStore:
    """Values with expiry, counters with expiry, and the due times; `apply` is all or nothing."""

    clock: ManualClock
    values: dict[str, tuple[bytes, int]] = field(default_factory=dict)
    counters: dict[str, tuple[int, dict[str, int]]] = field(default_factory=dict)
    due: dict[str, int] = field(default_factory=dict)
    lowest: dict[str, tuple[int, dict[bytes, int]]] = field(default_factory=dict)

    async def read(self, keys: Sequence[str]) -> list[bytes]:
        now = self.clock.now_ms()
        found = (self.values.get(key, (b"", 0)) for key in keys)
        return [value if expires > now else b"" for value, expires in found]

    async def apply(self, change: Change) -> list[str]:
        swaps = change.swaps
        checks = dict(zip(swaps.keys, swaps.before, strict=True)) | change.checks
        current = await self.read(list(checks))
        stale = [key for (key, seen), now in zip(checks.items(), current, strict=True) if seen != now]
        if stale:
            return stale
        self.values.update(zip(swaps.keys, zip(swaps.after, swaps.expires, strict=True), strict=True))
        self.values.update(change.sets)
        now = self.clock.now_ms()
        for key, (expires, fields) in change.counts.items():
            until, held = self.counters.get(key, (0, {}))
            kept = held if until > now else {}
            self.counters[key] = (expires, kept)
            for name, by in fields.items():
                kept[name] = kept.get(name, 0) + by
                if not kept[name]:
                    del kept[name]
        for response_id, at in change.due.items():
            if at is None:
                self.due.pop(response_id, None)
            else:
                self.due[response_id] = at
        for response_id, by in change.due_by.items():
            self.due[response_id] = min(self.due.get(response_id, by), by)
        for key, pool in change.pools.items():
            until, members = self.lowest.get(key, (0, {}))
            members = {**(members if until > now else {}), **pool.members}
            order = sorted(members.items(), key=lambda item: (item[1], item[0]))
            self.lowest[key] = (pool.expires, dict(order[: pool.keep]))
        for key, place in change.places.items():
            self._place(key, place)
        return []

    def _place(self, key: str, place: Places) -> None:
        now = self.clock.now_ms()
        until, members = self.lowest.get(key, (0, {}))
        held = {member[:8]: member for member in (members if until > now else ())}
        until, rim = self.counters.get(place.edge, (0, {}))
        rim = dict(rim) if until > now else {}
        edge, beyond = rim.get("edge", math.inf), rim.get("beyond", 0)
        for turn, (had, member) in place.turns.items():
            if number_of(turn) >= edge:
                beyond += bool(member) - had
            elif not member:
                held.pop(turn, None)
            elif not had or turn not in held or PooledTurn.unpack(member).later(PooledTurn.unpack(held[turn])):
                held[turn] = member
        order = sorted(held.values(), key=lambda one: (number_of(one), one))
        if len(order) > place.keep:
            rim["edge"] = number_of(order[place.keep])
            kept = [one for one in order if number_of(one) < rim["edge"]]
            beyond, order = beyond + len(order) - len(kept), kept
        if beyond or "beyond" in rim:
            rim["beyond"] = beyond
        self.lowest[key] = (place.expires, {one: number_of(one) for one in order})
        if rim:
            self.counters[place.edge] = (place.expires, rim)

    async def claim_due(self, now: int, limit: int, lease_ms: int) -> list[str]:
        ready = sorted((at, rid) for rid, at in self.due.items() if at <= now)[:limit]
        for _, rid in ready:
            self.due[rid] = now + lease_ms
        return [rid for _, rid in ready]

    async def counts(self, keys: Sequence[str]) -> list[dict[str, int]]:
        now = self.clock.now_ms()
        found = (self.counters.get(key, (0, {})) for key in keys)
        return [dict(fields) if expires > now else {} for expires, fields in found]

    async def pools(self, keys: Sequence[str]) -> list[list[bytes]]:
        now = self.clock.now_ms()
        found = (self.lowest.get(key, (0, {})) for key in keys)
        return [list(members) if expires > now else [] for expires, members in found]

    async def at_once(
        self, values: Sequence[str], counts: Sequence[str], pools: Sequence[str], sizes: Sequence[str] = ()
    ) -> Seen:
        held = list(map(len, await self.pools(sizes)))
        return Seen(await self.read(values), await self.counts(counts), await self.pools(pools), held)

    async def turns(self) -> AsyncIterator[list[tuple[str, bytes]]]:
        now, prefix = self.clock.now_ms(), TURN.prefix
        held = self.values.items()
        yield [(k.removeprefix(prefix), v) for k, (v, ends) in held if k.startswith(prefix) and ends > now]

    async def start_at(self, key: str, value: bytes, expires: int, instead_of: bytes) -> bytes:
        (held,) = await self.read([key])
        if held != instead_of:
            return held
        self.values[key] = (value, expires)
        return value

    def lease(self, key: str, milliseconds: int, owner: str = "") -> MemoryLease:
        return MemoryLease(self, key, milliseconds, (owner or uuid.uuid4().hex).encode())

    def flush(self) -> None:
        for part in (self.values, self.counters, self.due, self.lowest):
            part.clear()


@dataclass
class MemoryLease:
    store: MemoryStore
    key: str
    milliseconds: int
    value: bytes

    async def acquire(self) -> bool:
        (held,) = await self.store.read([self.key])
        if held in (b"", self.value):
            self.store.values[self.key] = (self.value, self.store.clock.now_ms() + self.milliseconds)
        return held in (b"", self.value)

    async def renew(self) -> bool:
        return await self.held() and await self.acquire()

    async def held(self) -> bool:
        return await self.store.read([self.key]) == [self.value]

    async def release(self) -> None:
        if await self.held():
            del self.store.values[self.key]


@dataclass
class MemoryScores:
    """Opik's feedback scores by (trace, name). `refuse` decides which writes are turned away; `log` has every put."""

    held: dict[tuple[str, str], float] = field(default_factory=dict)
    log: list[Write] = field(default_factory=list)
    refuse: Callable[[Write], Refusal | None] = lambda write: None

    async def write(self, writes: Sequence[Write]) -> list[Refusal | None]:
        out = []
        for write in writes:
            refusal = self.refuse(write)
            out.append(refusal)
            if refusal is None:
                self.log.append(write)
                if write.value is None:
                    self.held.pop((write.trace_id, write.name), None)
                else:
                    self.held[write.trace_id, write.name] = write.value
        return out


@dataclass
class MemoryDeadLetters:
    letters: list[DeadLetter] = field(default_factory=list)

    async def put(self, letters: Sequence[DeadLetter]) -> None:
        self.letters.extend(letters)


@dataclass
class MemoryScoreEvents:
    """A topic of judges' scores. While `down` it takes nothing."""

    events: list[ScoreEvent] = field(default_factory=list)
    down: bool = False

    async def put(self, events: Iterable[ScoreEvent]) -> None:
        if self.down:
            raise Unavailable("the topic is out of reach")
        self.events += events

    def distinct(self) -> dict[str, ScoreEvent]:
        """What a reader has that takes each event once."""
        return {event["event_id"]: event for event in self.events}


@dataclass
class MemoryLog:
    """Kafka's log, as far as reading a record back goes."""

    records: dict[tuple[str, int, int], Record] = field(default_factory=dict)

    async def fetch(self, places: Sequence[tuple[str, int, int]]) -> list[Record | None]:
        return [self.records.get(place) for place in places]


@dataclass
class MemoryTraces:
    """Opik's traces by response id."""

    known: dict[str, TraceFacts] = field(default_factory=dict)
    asked: list[set[str]] = field(default_factory=list)
    scores: MemoryScores = field(default_factory=MemoryScores)

    async def find(self, since_ms: Mapping[str, int]) -> dict[str, TraceFacts]:
        self.asked.append(set(since_ms))
        return {rid: self.known[rid] for rid in since_ms if rid in self.known}

    async def judged(self, turns: Mapping[str, tuple[str, str, int]]) -> set[str]:
        return {rid for rid in turns if rid in self.known and self.known[rid].judged}

    async def held(self, trace_ids: Mapping[str, str]) -> dict[str, dict[str, float]]:
        found: dict[str, dict[str, float]] = {rid: {} for rid in trace_ids}
        for rid, wanted in trace_ids.items():
            found[rid].update({name: value for (trace, name), value in self.scores.held.items() if trace == wanted})
        return found


class AuditSink:
    """The audit's producer; `failing_after`: it takes so many records and no more."""

    def __init__(self, failing_after: int | None = None) -> None:
        self.records: list[dict[str, Any]] = []
        self.failing_after = failing_after

    @property
    def pages(self) -> list[dict[str, Any]]:
        """The records of an export's pages."""
        return [one for one in self.records if "page" in one["query"]]

    async def send(self, messages: Any) -> None:
        if len(self.records) == self.failing_after:
            raise Unavailable("Kafka producer: gone")
        self.records += [orjson.loads(value) for _, _, value, _ in messages]

    async def close(self) -> None:
        pass
