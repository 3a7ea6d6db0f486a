"""Brings a batch of a topic to its end in one step: reads its turns, merges, has scores and dead letters written, and
counts what became of each record. All topics go this way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, NamedTuple

from agents.codec import Decoded, SignalEvent
from agents.join.counting import (
    CONSUMED,
    DONE,
    HOUR,
    UNREADABLE,
    arrival,
    field_of,
    short_name,
    tally,
)
from agents.join.dead_letters import letters_for, send_letters
from agents.join.join import merge_signal
from agents.join.step import (
    NO_HOLD,
    Hold,
    StepContext,
    TurnSnapshot,
    plan_scores,
    record,
    remember,
    stood_still,
    until_recorded,
    write_scores,
)
from agents.join.step_data import Report, RetryState
from agents.join.turn import Signal
from agents.keys import FOREVER, WATERMARK, Key, turn_keys
from agents.policy import Policy
from agents.ports import Ports, StateLost
from schemas.dead_letters import DeadLetter, Record, UnreadableRecord
from schemas.outcomes import Kind, State
from schemas.signals import UserSignal
from schemas.topics import Topics

index_of = attrgetter("index")


@dataclass(frozen=True)
class Batch:
    """Records of one partition, in order. `base`: the consumer's offset before them; it skipped nothing in between."""

    topic: str
    partition: int
    base: int
    records: Sequence[Record]

    @property
    def watermark_key(self) -> Key:
        return WATERMARK.key(self.topic, self.partition)

    @property
    def end(self) -> int:
        return self.records[-1].offset + 1


@dataclass(frozen=True)
class FetchedBatch(Batch):
    """A batch and what the consumer knows of its records.

    `generation` tells batches fetched before a rewind from those after. `settled`: records below this offset were
    brought to an end once before (a rebuild reads them again), so their dead letters exist. `doubtful`: a worker that
    died, or a step that failed, may have handled the records without recording them.
    """

    generation: int = 0
    settled: int = 0
    doubtful: bool = False


class MergeResult(NamedTuple):
    """What became of an item: the signal it put into its turn, or none; then it ends as `otherwise`."""

    position: int
    time: int
    snapshot: TurnSnapshot
    signal: Signal | None
    otherwise: str = State.SUPERSEDED


Decode = Callable[[Sequence[Record], int, Policy], Decoded[Any]]
Prepare = Callable[[Batch, Sequence[Any], dict[str, bytes], StepContext], Sequence[Any]]


@dataclass(frozen=True)
class Agent:
    """What makes a topic's agent: its codec, and how its items merge into turns (which may read more of the state).

    `signal`: the user signal that the topic carries, if any. `prepare` is the fast path of the topic's common case: it
    takes what it can from what was read and returns the items that go the general way.
    """

    kind: str
    decode: Decode
    merge: Callable[[Batch, Sequence[Any], StepContext, Ports], Awaitable[list[MergeResult]]]
    prepare: Prepare | None = None
    signal: UserSignal | None = None


def signal_agent(declared: UserSignal, decode: Decode, prepare: Prepare | None = None) -> Agent:
    """The agent of a declared signal's topic: its events merge as the signal's rule says."""

    async def merge(
        batch: Batch, items: Sequence[SignalEvent], context: StepContext, ports: Ports
    ) -> list[MergeResult]:
        turns, records, partition = context.turns, batch.records, batch.partition
        await place_verticals(items, context, ports)
        out = []
        for item in items:
            snapshot = turns[item.response_id]
            won = merge_signal(snapshot.turn, declared, item, partition, records[item.index].offset)
            snapshot.touched |= won
            signal = snapshot.turn.signal(declared.kind) if won else None
            out.append(MergeResult(item.index, item.time, snapshot, signal))
        return out

    return Agent(declared.kind, decode, merge, prepare, declared)


async def place_verticals(items: Sequence[SignalEvent], context: StepContext, ports: Ports) -> None:
    """Bound the verticals that signals of turns without a trace name, as those of traces are."""
    named = [item for item in items if item.vertical and not context.turns[item.response_id].turn.trace]
    for item in named:
        item.vertical = short_name(item.vertical)
    if named:
        place = ports.newcomers.place_verticals
        context.change.sets |= await place(named, ports.store, context.now, context.policy.lookback)


async def handle(
    batch: Batch,
    decoded: Decoded[Any],
    agent: Agent,
    ports: Ports,
    policy: Policy,
    topics: Topics,
    *,
    settled: int = 0,
    doubtful: bool = False,
    floor: int | None = None,
    hold: Hold = NO_HOLD,
    earlier_recorded: Callable[[], Awaitable[None]] | None = None,
) -> Report:
    """Bring a batch to its end. On return every record has one of the five outcomes, durably.

    `settled` and `doubtful` as in FetchedBatch; scores of doubtful records are written also where the state says that
    Opik holds them. `floor`: the base of the partition's oldest batch in flight, from which on the state must have
    everything. `hold`: turns that are not written yet. `earlier_recorded` returns when the partition's earlier batches
    are recorded, or raises.

    Raises StateLost, Unauthorized or Unavailable; nothing is acknowledged then, and a repetition is harmless.
    """
    retry_state = RetryState(doubtful=doubtful)
    if doubtful:
        retry_state.forced.update(item.response_id for item in decoded.items)

    async def attempt() -> Report | None:
        context = StepContext(ports.clock.now_ms(), policy, retry_state, replaying=batch.end <= settled, hold=hold)
        if context.replaying and batch.records[-1].timestamp > context.now - policy.doubt:
            # The lost state may have known of writes without an answer: its scores are compared, and not forced.
            retry_state.doubtful = True
        seen, fresh = await read(batch, decoded, agent, context, ports, floor)
        results = await agent.merge(batch, fresh.items, context, ports)
        if stood_still(context, ports):
            return None
        refused = await write_scores(context, plan_scores(context), ports)
        if context.prepared is not None and any(context.prepared.outcomes):
            remember(context, set())
            return None
        letters = undecodable(batch, fresh, agent, settled, context.now)
        if refused:
            letters += await letters_for(refused, ports, topics, batch.records, f"{agent.kind}.write")
        if letters:
            await send_letters(ports, retry_state, letters)
        count(batch, fresh, results, context, agent.kind)
        if earlier_recorded is not None:
            await earlier_recorded()
        if batch.end > seen:
            # The watermark moves with the state it describes, in one change. The earlier batches are recorded, so it
            # must be at our base by now; if another worker has moved it, the check fails and the next attempt finds
            # these records seen.
            context.change.checks[batch.watermark_key] = str(max(seen, batch.base)).encode()
            context.change.sets[batch.watermark_key] = (str(batch.end).encode(), FOREVER)
        return context.report if await record(context, ports) else None

    return await until_recorded(attempt)


async def read(
    batch: Batch, decoded: Decoded[Any], agent: Agent, context: StepContext, ports: Ports, floor: int | None
) -> tuple[int, Decoded[Any]]:
    """Load the turns into the context. Return the watermark, and what of the batch goes on the general way."""
    response_ids = list(dict.fromkeys([item.response_id for item in (*decoded.items, *decoded.lost)]))
    mark, *stored_turns = await ports.store.read([batch.watermark_key, *turn_keys(response_ids)])
    seen = watermark(batch, mark, floor)
    decoded = unseen(decoded, batch, seen)
    context.consumed, context.lost = passed(batch, decoded, seen), decoded.lost
    turns = dict(zip(response_ids, stored_turns, strict=True))
    if agent.prepare is not None and context.plain:
        items = agent.prepare(batch, decoded.items, turns, context)
        decoded = Decoded(list(items), decoded.bad, decoded.dropped, decoded.lost)
    context.load(list(turns), list(turns.values()))
    return seen, decoded


def watermark(batch: Batch, mark: bytes, floor: int | None = None) -> int:
    """Return the offset below which the state has this partition's records. Raises StateLost where it lacks some that
    no batch in flight will bring."""
    seen = int(mark) if mark else None
    if seen is None or seen < (batch.base if floor is None else floor):
        raise StateLost(batch.topic, batch.partition, seen)
    return seen


def unseen(decoded: Decoded[Any], batch: Batch, seen: int) -> Decoded[Any]:
    """Return what is new to the state. Of the other records, scores and dead letters exist already."""
    if seen <= batch.base:
        return decoded
    records = batch.records
    return Decoded(
        [one for one in decoded.items if records[one.index].offset >= seen],
        [one for one in decoded.bad if records[one.index].offset >= seen],
        [one for one in decoded.dropped if records[one.index].offset >= seen],
        [one for one in decoded.lost if records[one.index].offset >= seen],
    )


def passed(batch: Batch, decoded: Decoded[Any], seen: int) -> int:
    """Return how many events the watermark passes on its way from `seen` to the batch's end: one for each record, one
    for each further change in a wrapper that holds several, and one for each further offset that no one can read.

    It comes from the records' offsets, whatever became of them, so that the balance with their outcomes can fail.
    """
    records = batch.records
    many = len(records) if seen <= batch.base else sum(record.offset >= seen for record in records)
    unreadable = [one for one in (records[bad.index] for bad in decoded.bad) if isinstance(one, UnreadableRecord)]
    many += sum(one.count - 1 for one in unreadable)
    indices = [*map(index_of, decoded.items), *map(index_of, decoded.bad), *map(index_of, decoded.dropped)]
    return many + len(indices) - len(set(indices))


def undecodable(batch: Batch, decoded: Decoded[Any], agent: Agent, settled: int, now: int) -> list[DeadLetter]:
    """Return dead letters of the records that gave no item, except those below `settled`, whose dead letter exists."""
    return [
        DeadLetter(batch.records[bad.index], bad.cause, bad.detail, f"{agent.kind}.decode", now)
        for bad in decoded.bad
        if batch.records[bad.index].offset >= settled
    ]


def count(batch: Batch, decoded: Decoded[Any], results: list[MergeResult], context: StepContext, kind: str) -> None:
    """Count the records that the watermark passes as consumed, and each outcome in its state (promise 3).

    Where the two differ, a record was lost or doubled on its way: the difference counts in the hour that is now.
    """
    records = batch.records
    ended = []
    for _, time, snapshot, signal, otherwise in results:
        turn = snapshot.turn
        if signal is not None and any(signal is one for _, one in turn.signals()):
            otherwise = field_of(signal.mark, signal.cause)
        ended.append((time // HOUR, otherwise))
    counts = Counter(ended)
    if context.prepared is not None:
        counts.update(Counter([(hour, DONE) for hour in context.prepared.hours]))
    now, lookback = context.now, context.policy.lookback
    for dropped in decoded.dropped:
        key = (arrival(records[dropped.index], now, lookback) // HOUR, f"{State.FILTERED}:{dropped.reason}")
        counts[key] += 1
    for bad in decoded.bad:
        record = records[bad.index]
        key = (arrival(record, now, lookback) // HOUR, f"{State.DEAD_LETTERED}:{bad.cause}")
        counts[key] += record.count if isinstance(record, UnreadableRecord) else 1
    read = {facts.index for facts in decoded.lost}
    for bad in decoded.bad if kind == Kind.TRACE else ():
        if bad.index not in read:
            record = records[bad.index]
            many = record.count if isinstance(record, UnreadableRecord) else 1
            tally(context.tallies, kind, arrival(record, now, lookback), UNREADABLE, many)
    for (hour, name), by in counts.items():
        tally(context.tallies, kind, hour * HOUR, CONSUMED, by)
        tally(context.tallies, kind, hour * HOUR, name, by)
    if context.consumed != counts.total():
        tally(context.tallies, kind, now, CONSUMED, context.consumed - counts.total())
