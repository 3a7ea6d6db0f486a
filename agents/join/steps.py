"""A batch, step by step: decode, read, merge, write, letter, record. One shape for every topic."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from agents.codec import Decoded
from agents.join.counting import CONSUMED, DONE, HOUR, field_of
from agents.join.turn import Signal
from agents.join.work import ATTEMPTS, Loaded, Memory, Report, Work, exhausted, record, remember
from agents.join.writing import letters_for, send_letters, write_scores
from agents.keys import WATERMARK, Key, turn_keys
from agents.policy import Policy
from agents.ports import Ports, StateLost
from schemas.dead_letters import DeadLetter, Record
from schemas.outcomes import Kind, State
from schemas.topics import Topics

FOREVER = 1 << 46
"""Expiry of a watermark: it lives as long as the store does (ms since 1970, the year 4199)."""


@dataclass(frozen=True)
class Batch:
    """Records of one partition, in order.

    `base`: where the consumer stood before them; nothing between was skipped. `floor`: the base of the oldest batch of
    this partition that is still in flight, from which on the state must have it all. `settled`: records below this
    offset were brought to an end once before (a rebuild reads them again), so their dead letters exist. `generation`
    tells batches fetched before a rewind. `turn` returns when the partition's earlier batches are recorded, or raises.
    `again`: the records may have been handled before and not recorded, by a worker that died or a step that failed;
    their scores are then written also where the state says that Opik holds them.
    """

    topic: str
    partition: int
    base: int
    records: Sequence[Record]
    floor: int | None = None
    settled: int = 0
    generation: int = 0
    turn: Callable[[], Awaitable[None]] | None = None
    again: bool = False

    @property
    def watermark_key(self) -> Key:
        return WATERMARK.key(self.topic, self.partition)

    @property
    def end(self) -> int:
        return self.records[-1].offset + 1


class Carried(NamedTuple):
    """What became of an item: the signal it put into its turn, or none; then it ends as `otherwise`."""

    position: int
    time: int
    loaded: Loaded
    signal: Signal | None
    otherwise: str = State.SUPERSEDED


@dataclass(frozen=True)
class Agent:
    """What makes a topic's agent: its codec, and how its items merge into turns (which may read more of the state)."""

    kind: Kind
    decode: Callable[[Sequence[Record], int, Policy], Decoded[Any]]
    merge: Callable[[Batch, Sequence[Any], Work, Ports], Awaitable[list[Carried]]]
    prepare: Callable[[Batch, Sequence[Any], dict[str, bytes], Work], Sequence[Any]] | None = None
    """The short way of the topic's common case: takes what it can from what was read, returns the other items."""


async def handle(batch: Batch, agent: Agent, ports: Ports, policy: Policy, topics: Topics) -> Report:
    """Bring a batch to its end. On return every record has one of the five outcomes, durably.

    Raises StateLost, Unauthorized or Unavailable; nothing is acknowledged then, and a repetition is harmless.
    """
    decoded = agent.decode(batch.records, ports.clock.now_ms(), policy)
    memory = Memory()
    if batch.again:
        memory.forced.update(item.response_id for item in decoded.items)
    for _ in range(ATTEMPTS):
        report = await attempt(batch, decoded, agent, ports, policy, topics, memory)
        if report is not None:
            return report
    raise exhausted()


async def attempt(
    batch: Batch, decoded: Decoded[Any], agent: Agent, ports: Ports, policy: Policy, topics: Topics, memory: Memory
) -> Report | None:
    now = ports.clock.now_ms()
    work = Work(now, policy, memory, replaying=batch.end <= batch.settled)
    response_ids = list(dict.fromkeys([item.response_id for item in decoded.items]))
    mark, *blobs = await ports.store.read([batch.watermark_key, *turn_keys(response_ids)])
    seen = watermark(batch, mark)
    decoded = unseen(decoded, batch, seen)
    items: Sequence[Any] = decoded.items
    read = dict(zip(response_ids, blobs, strict=True))
    if agent.prepare is not None and work.plain:
        items = agent.prepare(batch, items, read, work)
    work.load(list(read), list(read.values()))
    carried = await agent.merge(batch, items, work, ports)
    records = batch.records
    refused = await write_scores(work, ports)
    if work.prepared is not None and any(work.prepared.outcomes):
        remember(work, set())
        return None

    def at_hand(topic: str, partition: int, offset: int) -> Record | None:
        if topic != batch.topic or partition != batch.partition or not batch.base <= offset < batch.end:
            return None
        return next((r for r in records if r.offset == offset), None)

    letters = [
        DeadLetter(records[bad.index], bad.cause, bad.detail, f"{agent.kind}.decode", now)
        for bad in decoded.bad
        if records[bad.index].offset >= batch.settled
    ]
    if refused:
        letters += await letters_for(refused, ports, topics, at_hand, f"{agent.kind}.write")
    if letters:
        await send_letters(ports, memory, letters)
    count(batch, decoded, carried, work, agent.kind)
    if batch.turn is not None:
        await batch.turn()
    if batch.end > seen:
        work.change.checks[batch.watermark_key] = str(max(seen, batch.base)).encode()
        work.change.sets[batch.watermark_key] = (str(batch.end).encode(), FOREVER)
    return work.report if await record(work, ports) else None


def watermark(batch: Batch, mark: bytes) -> int:
    """Up to where the state has this partition's records. StateLost if it lacks any before the oldest in flight."""
    seen = int(mark) if mark else None
    if seen is None or seen < (batch.base if batch.floor is None else batch.floor):
        raise StateLost(batch.topic, batch.partition, seen)
    return seen


def unseen(decoded: Decoded[Any], batch: Batch, seen: int) -> Decoded[Any]:
    """Without the records that the state has already: what they did is in it, and to Opik, to the last letter."""
    if seen <= batch.base:
        return decoded
    records = batch.records
    return Decoded(
        [x for x in decoded.items if records[x.index].offset >= seen],
        [x for x in decoded.bad if records[x.index].offset >= seen],
        [x for x in decoded.dropped if records[x.index].offset >= seen],
    )


def count(batch: Batch, decoded: Decoded[Any], carried: list[Carried], work: Work, kind: Kind) -> None:
    """Each record is consumed, and in exactly one state."""
    records = batch.records
    ended = []
    for _, time, loaded, signal, otherwise in carried:
        turn = loaded.turn
        if signal is not None and (signal is turn.thumbs or signal is turn.reroll):
            otherwise = field_of(signal.mark, signal.cause)
        ended.append((time // HOUR, otherwise))
    tally = Counter(ended)
    if work.prepared is not None:
        tally.update(Counter([(hour, DONE) for hour in work.prepared.hours]))
    now, lookback = work.now, work.policy.lookback
    for dropped in decoded.dropped:
        key = (arrival(records[dropped.index], now, lookback) // HOUR, f"{State.FILTERED}:{dropped.reason}")
        tally[key] += 1
    for bad in decoded.bad:
        key = (arrival(records[bad.index], now, lookback) // HOUR, f"{State.DEAD_LETTERED}:{bad.cause}")
        tally[key] += 1
    for (hour, name), by in tally.items():
        work.count(kind, hour * HOUR, CONSUMED, by)
        work.count(kind, hour * HOUR, name, by)


def arrival(record: Record, now: int, lookback: int) -> int:
    """When a record that tells no usable time is counted: its Kafka timestamp, if that is in the window."""
    return record.timestamp if now - lookback <= record.timestamp <= now else now
