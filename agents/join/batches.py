"""A batch of one topic's records: read the state, merge, write scores, send dead letters, record. One shape for all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from agents.codec import Decoded, SignalEvent
from agents.join.counting import CONSUMED, DONE, HOUR, arrival, field_of
from agents.join.dead_letters import letters_for, send_letters
from agents.join.join import merge_signal
from agents.join.step import (
    ATTEMPTS,
    Report,
    RetryState,
    StepContext,
    TurnSnapshot,
    exhausted,
    record,
    remember,
    write_scores,
)
from agents.join.turn import Signal
from agents.keys import FOREVER, WATERMARK, Key, turn_keys
from agents.policy import Policy
from agents.ports import Ports, StateLost
from schemas.dead_letters import DeadLetter, Record
from schemas.outcomes import State
from schemas.signals import UserSignal
from schemas.topics import Topics


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


@dataclass(frozen=True)
class Agent:
    """What makes a topic's agent: its codec, and how its items merge into turns (which may read more of the state).

    `signal`: the user signal that the topic carries, if any. `prepare` is the fast path of the topic's common case: it
    takes what it can from what was read and returns the items that go the general way.
    """

    kind: str
    decode: Callable[[Sequence[Record], int, Policy], Decoded[Any]]
    merge: Callable[[Batch, Sequence[Any], StepContext, Ports], Awaitable[list[MergeResult]]]
    prepare: Callable[[Batch, Sequence[Any], dict[str, bytes], StepContext], Sequence[Any]] | None = None
    signal: UserSignal | None = None


def signal_agent(
    declared: UserSignal,
    decode: Callable[[Sequence[Record], int, Policy], Decoded[SignalEvent]],
    prepare: Callable[[Batch, Sequence[Any], dict[str, bytes], StepContext], Sequence[Any]] | None = None,
) -> Agent:
    """The agent of a declared signal's topic: its events merge as the signal's rule says."""

    async def merge(
        batch: Batch, items: Sequence[SignalEvent], context: StepContext, ports: Ports
    ) -> list[MergeResult]:
        turns, records, partition = context.turns, batch.records, batch.partition
        out = []
        for item in items:
            snapshot = turns[item.response_id]
            won = merge_signal(snapshot.turn, declared, item, partition, records[item.index].offset)
            snapshot.touched |= won
            signal = snapshot.turn.signal(declared.kind) if won else None
            out.append(MergeResult(item.index, item.time, snapshot, signal))
        return out

    return Agent(declared.kind, decode, merge, prepare, declared)


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
    earlier_recorded: Callable[[], Awaitable[None]] | None = None,
) -> Report:
    """Bring a batch to its end. On return every record has one of the five outcomes, durably.

    `settled` and `doubtful` as in FetchedBatch; scores of doubtful records are written also where the state says that
    Opik holds them. `floor`: the base of the partition's oldest batch in flight, from which on the state must have
    everything. `earlier_recorded` returns when the partition's earlier batches are recorded, or raises.

    Raises StateLost, Unauthorized or Unavailable; nothing is acknowledged then, and a repetition is harmless.
    """
    retry_state = RetryState()
    if doubtful:
        retry_state.forced.update(item.response_id for item in decoded.items)
    for _ in range(ATTEMPTS):
        context = StepContext(ports.clock.now_ms(), policy, retry_state, replaying=batch.end <= settled)
        seen, fresh = await read(batch, decoded, agent, context, ports, floor)
        results = await agent.merge(batch, fresh.items, context, ports)
        refused = await write_scores(context, ports)
        if context.prepared is not None and any(context.prepared.outcomes):
            remember(context, set())
            continue
        letters = undecodable(batch, fresh, agent, settled, context.now)
        if refused:
            letters += await letters_for(refused, ports, topics, finder(batch), f"{agent.kind}.write")
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
        if await record(context, ports):
            return context.report
    raise exhausted()


async def read(
    batch: Batch, decoded: Decoded[Any], agent: Agent, context: StepContext, ports: Ports, floor: int | None
) -> tuple[int, Decoded[Any]]:
    """Load the turns into the context. Return the watermark, and what of the batch goes on the general way."""
    response_ids = list(dict.fromkeys([item.response_id for item in decoded.items]))
    mark, *stored_turns = await ports.store.read([batch.watermark_key, *turn_keys(response_ids)])
    seen = watermark(batch, mark, floor)
    decoded = unseen(decoded, batch, seen)
    turns = dict(zip(response_ids, stored_turns, strict=True))
    if agent.prepare is not None and context.plain:
        items = agent.prepare(batch, decoded.items, turns, context)
        decoded = Decoded(list(items), decoded.bad, decoded.dropped)
    context.load(list(turns), list(turns.values()))
    return seen, decoded


def watermark(batch: Batch, mark: bytes, floor: int | None = None) -> int:
    """Up to where the state has this partition's records. StateLost if it lacks any before the oldest in flight."""
    seen = int(mark) if mark else None
    if seen is None or seen < (batch.base if floor is None else floor):
        raise StateLost(batch.topic, batch.partition, seen)
    return seen


def unseen(decoded: Decoded[Any], batch: Batch, seen: int) -> Decoded[Any]:
    """Without the records that the state has already: what they did is in it, and in Opik, dead letters included."""
    if seen <= batch.base:
        return decoded
    records = batch.records
    return Decoded(
        [one for one in decoded.items if records[one.index].offset >= seen],
        [one for one in decoded.bad if records[one.index].offset >= seen],
        [one for one in decoded.dropped if records[one.index].offset >= seen],
    )


def undecodable(batch: Batch, decoded: Decoded[Any], agent: Agent, settled: int, now: int) -> list[DeadLetter]:
    """Dead letters of the records no item was made of, except those whose letter exists (below `settled`)."""
    return [
        DeadLetter(batch.records[bad.index], bad.cause, bad.detail, f"{agent.kind}.decode", now)
        for bad in decoded.bad
        if batch.records[bad.index].offset >= settled
    ]


def finder(batch: Batch) -> Callable[[str, int, int], Record | None]:
    """A function that finds a record of this batch by its place."""

    def in_batch(topic: str, partition: int, offset: int) -> Record | None:
        if topic != batch.topic or partition != batch.partition or not batch.base <= offset < batch.end:
            return None
        return next((one for one in batch.records if one.offset == offset), None)

    return in_batch


def count(batch: Batch, decoded: Decoded[Any], results: list[MergeResult], context: StepContext, kind: str) -> None:
    """Count each record as consumed, and in exactly one state (promise 3)."""
    records = batch.records
    ended = []
    for _, time, snapshot, signal, otherwise in results:
        turn = snapshot.turn
        if signal is not None and any(signal is one for _, one in turn.signals()):
            otherwise = field_of(signal.mark, signal.cause)
        ended.append((time // HOUR, otherwise))
    tally = Counter(ended)
    if context.prepared is not None:
        tally.update(Counter([(hour, DONE) for hour in context.prepared.hours]))
    now, lookback = context.now, context.policy.lookback
    for dropped in decoded.dropped:
        key = (arrival(records[dropped.index], now, lookback) // HOUR, f"{State.FILTERED}:{dropped.reason}")
        tally[key] += 1
    for bad in decoded.bad:
        key = (arrival(records[bad.index], now, lookback) // HOUR, f"{State.DEAD_LETTERED}:{bad.cause}")
        tally[key] += 1
    for (hour, name), by in tally.items():
        context.count(kind, hour * HOUR, CONSUMED, by)
        context.count(kind, hour * HOUR, name, by)
