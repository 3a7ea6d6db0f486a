"""Brings a batch to its end in one step: reads its turns, merges, writes scores, sends dead letters, records. All
topics go this way.

A step reads the state before it decides and writes it afterwards, in one atomic change. If another worker changed a
turn meanwhile, the record fails its checks: then the step reads and decides again, and writes only what Opik may hold
wrongly by now.
"""

from __future__ import annotations

import itertools
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, NamedTuple, TypeVar

from agents.codec import Decoded, SignalEvent, TraceFacts
from agents.join.counting import (
    CONSUMED,
    DONE,
    HOUR,
    NOWHERE,
    UNREADABLE,
    Counted,
    account,
    arrival,
    count_moves,
    count_tallies,
    field_of,
    move,
    short_name,
    standing,
    tally,
)
from agents.join.dead_letters import letters_for, send_letters
from agents.join.join import Wanted, bury, distrust, merge_signal, note_written, rest, wanted
from agents.join.step_data import PreparedTurns, Refused, Report, RetryState
from agents.join.turn import MAYBE, NOW, Mark, Signal, Turn, decode_turn, encode_turn, has_withheld
from agents.join.versions import standings
from agents.keys import FOREVER, NAMES, WATERMARK, WITHHELD, Key, turn_ids, turn_key, turn_keys
from agents.policy import Policy
from agents.ports import Change, Outcome, Ports, Refusal, StateLost, Unavailable, Write
from schemas.dead_letters import DeadLetter, Record, UnreadableRecord
from schemas.outcomes import Kind, State
from schemas.signals import DECLARED, UserSignal
from schemas.topics import Topics

ATTEMPTS = 50
AFTER_REPLAY_MS = 3_000
"""How long a write that a replay holds back waits before it is looked at again."""
T = TypeVar("T")
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


@dataclass(eq=False)
class Hold:
    """Which turns must not be written yet, while a lost state is rebuilt: those whose trace began before `before` (ms;
    0 where none is rebuilt), except those of projects whose name comes before `project`. Nobody knows yet what Opik
    holds of them, or which of their records have still to be read again."""

    before: int = 0
    project: str = ""


NO_HOLD = Hold()
ALL = Hold(1 << 62)
"""Holds every turn."""


class TurnSnapshot:
    """A turn as it was read (`stored`; `signals`: kind, signal, (mark, cause)) and as the step changes it (`turn`).
    `trace_came`: when Kafka had the trace that this step brings (ms), 0 where it brings none."""

    __slots__ = ("before", "signals", "stored", "touched", "trace_came", "turn")

    def __init__(self, stored: bytes, touched: bool) -> None:
        self.stored = stored
        self.touched = touched
        self.trace_came = 0
        self.turn = turn = decode_turn(stored) if stored else Turn()
        self.signals = [(kind, signal, (signal.mark, signal.cause)) for kind, signal in turn.signals()]
        self.before = standing(turn) if stored else NOWHERE


Planned = list[tuple[str, TurnSnapshot, list[Wanted]]]
"""Response id, its turn, and the scores to write for it."""


@dataclass
class StepContext:
    """The turns of one attempt at a step, and the change it will record. `now` in ms.

    `replaying`: the records were brought to an end before the state was lost, so a later record may overrule what they
    ask for; writes wait until all of them have been read. `hold`: other turns that wait. `consumed`: events that the
    watermark passes in this step. `lost`: as in `Decoded`. `written`: turns in doubt of which a score is written.
    `unsure`: turns of which a try got no answer.
    """

    now: int
    policy: Policy
    retry_state: RetryState = field(default_factory=RetryState)
    replaying: bool = False
    hold: Hold = NO_HOLD
    consumed: int = 0
    lost: Sequence[TraceFacts] = ()
    turns: dict[str, TurnSnapshot] = field(default_factory=dict)
    change: Change = field(default_factory=Change)
    report: Report = field(default_factory=Report)
    tallies: dict[tuple[str, int, str], int] = field(default_factory=dict)
    planned: Planned = field(default_factory=list)
    outcomes: Sequence[Outcome] = ()
    written: set[str] = field(default_factory=set)
    unsure: set[str] = field(default_factory=set)
    prepared: PreparedTurns | None = None

    @property
    def plain(self) -> bool:
        """Whether the fast path may prepare turns: a first attempt that writes, only today's score names, and of
        records that nobody has handled before."""
        fresh = not (self.retry_state.outcomes or self.retry_state.read or self.retry_state.doubtful)
        held_back = self.replaying or self.hold.before > 0
        return fresh and self.policy.write and not self.policy.mirror_legacy_names and not held_back

    def waits(self, turn: Turn) -> bool:
        """Whether the turn's scores must not be written in this step."""
        hold = self.hold
        return self.replaying or (hold.before > 0 and turn.began < hold.before and turn.project >= hold.project)

    def load(self, response_ids: Sequence[str], stored_turns: Sequence[bytes]) -> None:
        turns, forced, read = self.turns, self.retry_state.forced, self.retry_state.read
        if read:
            pairs = zip(response_ids, stored_turns, strict=True)
            self.retry_state.overtaken({one for one, stored in pairs if read.get(one, stored) != stored})
        for response_id, stored in zip(response_ids, stored_turns, strict=True):
            turns[response_id] = TurnSnapshot(stored, response_id in forced)


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


async def until_recorded(attempt: Callable[[], Awaitable[T | None]]) -> T:
    """Repeat an attempt to read, merge and record until its change is recorded; return what it returns.

    An attempt returns None where another worker changed what it had read: it reads and merges again. Raises Unavailable
    after ATTEMPTS, for then something else is wrong.
    """
    for _ in range(ATTEMPTS):
        result = await attempt()
        if result is not None:
            return result
    raise Unavailable(f"state kept changing under {ATTEMPTS} attempts at one step; is the clock or Redis unwell?")


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
    for each further change in a wrapper that holds several, and one for each further offset that nobody can read.

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


def stood_still(context: StepContext, ports: Ports) -> bool:
    """Whether so much time has passed since the turns were read that the step must begin anew, as in a process that
    was stopped: what it would send now is older than other workers reckon with (`Policy.doubt`)."""
    return ports.clock.now_ms() - context.now > context.policy.doubt // 10


def plan_scores(context: StepContext) -> Planned:
    """Return the scores that touched turns want and that may be written now; mark the signals of the others."""
    policy, now, forced = context.policy, context.now, context.retry_state.forced
    planned: Planned = []
    for response_id, snapshot in context.turns.items():
        if not snapshot.touched:
            continue
        turn = snapshot.turn
        pending = wanted(turn, response_id in forced)
        if pending and policy.write and not context.waits(turn):
            planned.append((response_id, snapshot, pending))
            continue
        if response_id in forced:
            distrust(turn, pending)
        if rest(turn, now, pending):
            context.change.due[response_id] = now + policy.trace_lookup
        elif pending and policy.write:
            context.change.due[response_id] = now + AFTER_REPLAY_MS
    return planned


async def write_scores(context: StepContext, planned: Planned, ports: Ports) -> list[Refused]:
    """Write these scores and those of prepared turns, note what Opik took; return the signals that it refused."""
    if not planned and context.prepared is None:
        return []
    outcomes = await send(context, ports, planned)
    context.planned, context.outcomes = planned, outcomes
    return note_outcomes(context, ports, planned, outcomes)


async def send(context: StepContext, ports: Ports, planned: Planned) -> Sequence[Outcome]:
    """Return one outcome for each planned score, in order; prepared turns get theirs in `prepared.outcomes`.

    What an earlier attempt at this step wrote is not sent again.
    """
    known, legacy, prepared = context.retry_state.outcomes, context.policy.mirror_legacy_names, context.prepared
    writes: list[Write] = list(prepared.writes) if prepared is not None else []
    first, places, outcomes = len(writes), list[int](), list[Outcome]()
    for response_id, snapshot, pending in planned:
        trace_id, project = snapshot.turn.trace_id, snapshot.turn.project
        for want in pending:
            declared, value = DECLARED[want.kind], want.value
            asked = response_id, want.kind, value
            if asked not in known:
                names = [declared.score, declared.legacy_name] if legacy and declared.legacy_name else [declared.score]
                writes += [Write(trace_id, project, name, value, declared.label) for name in names]
                places += [len(outcomes)] * len(names)
            outcomes.append(known.get(asked))
    found = await ports.scores.write(writes) if writes else ()
    if prepared is not None:
        prepared.outcomes = found[:first]
    for place, outcome in zip(places, found[first:], strict=True):
        outcomes[place] = worse(outcomes[place], outcome)
    return outcomes


def worse(one: Outcome, other: Outcome) -> Outcome:
    """Return the outcome of two writes of one score under two names."""
    refusal = one if isinstance(one, Refusal) else other
    if isinstance(refusal, Refusal):
        return refusal._replace(unsure=any(outcome is not None and outcome.unsure for outcome in (one, other)))
    return one or other


def note_outcomes(context: StepContext, ports: Ports, planned: Planned, outcomes: Sequence[Outcome]) -> list[Refused]:
    """Note in each turn what Opik took; bury the signals of what it refused, and return them."""
    report, stored_at, now = context.report, ports.clock.now_ms(), context.now
    written, lags = report.written, report.lags_ms
    refused: list[Refused] = []
    at = 0
    for response_id, snapshot, pending in planned:
        turn = snapshot.turn
        if turn.doubt_until:
            context.written.add(response_id)
        dimensions = (turn.vertical, turn.sub_agent, turn.category)
        buried: list[Signal] = []
        for want in pending:
            outcome = outcomes[at]
            at += 1
            if outcome is not None and outcome.unsure:
                context.unsure.add(response_id)
            if not isinstance(outcome, Refusal):
                note_written(turn, want)
                key = (*dimensions, want.kind)
                written[key] = written.get(key, 0) + 1
                continue
            if outcome.unsure:
                turn.note(want.kind, MAYBE)
            signal = want.owner
            if not any(signal is other for other in buried):
                buried.append(signal)
                if signal.mark != Mark.DEAD:
                    refused.append((response_id, signal, outcome))
                bury(signal, outcome.cause)
        if not buried:
            lag = max(stored_at - max(pending[0].owner.time, turn.time, snapshot.trace_came), 0)
            lags.setdefault(pending[0].kind, []).append(lag)
        rest(turn, now, [])
    if (prepared := context.prepared) is not None:
        lags.setdefault(prepared.kinds[0], []).extend([max(stored_at - since, 0) for since in prepared.since])
        for dimensions, by in prepared.written.items():
            for kind in prepared.kinds:
                written[*dimensions, kind] = written.get((*dimensions, kind), 0) + by
    return refused


async def record(context: StepContext, ports: Ports) -> bool:
    """Apply the atomic change; return False where a turn changed since it was read: then the step is repeated."""
    change, now, policy = context.change, context.now, context.policy
    lookback = policy.lookback
    prepared = context.prepared
    moves: dict[Counted, int] = {}
    if prepared is not None:
        moves, change.swaps = dict(prepared.moves), prepared.swaps
    unsure = bool(context.unsure or context.retry_state.unsure or context.retry_state.doubtful)
    checks, sets, forced = change.checks, change.sets, context.retry_state.forced
    for response_id, snapshot in context.turns.items():
        if not snapshot.touched:
            continue
        turn = snapshot.turn
        for kind, was, marked in snapshot.signals:
            account(context.tallies, was, marked, turn.signal(kind))
        if unsure or turn.doubt_until or turn.left:
            doubt(context, response_id, turn, ports.clock.now_ms())
        stored = encode_turn(turn)
        if stored == snapshot.stored:
            if response_id not in forced or not turn.trace:
                continue
            # Scores were written again and nothing else changed. A step that read the turn before us and writes now
            # must fail its check, so that the last to write is the one that knows both.
            turn.rewritten = (turn.rewritten + 1) % 100
            stored = encode_turn(turn)
        move(moves, snapshot.before, standing(turn))
        key = turn_key(response_id)
        checks[key] = snapshot.stored
        sets[key] = (stored, turn_expiry(turn, now, policy))
    if not policy.write and any(has_withheld(one.turn) for one in context.turns.values() if one.touched):
        # In the same change as the signals, so that no crash parts them; unlike every other marker, so that a worker
        # which has just written all that was withheld before does not delete it with its own.
        sets[WITHHELD.key()] = (uuid.uuid4().hex.encode(), FOREVER)
    count_moves(change, moves, now, lookback)
    count_tallies(change, context.tallies, now, lookback)
    stale = await ports.store.apply(change)
    if not stale:
        counts = context.report.counts
        for (kind, _, name), by in context.tallies.items():
            counts[kind, name] = counts.get((kind, name), 0) + by
        return True
    remember(context, turn_ids(stale))
    return False


def turn_expiry(turn: Turn, now: int, policy: Policy) -> int:
    """Return until when a turn may live (ms): as long as its latest event can still be joined, the lookback and an
    hour."""
    last = max([turn.time, *[signal.time for _, signal in turn.signals()]])
    if len(turn.versions) > 1 + NAMES:  # they are counted by times of their own
        last = max(last, *(one.time for one in standings(turn)))
    return max(last + policy.lookback, now) + HOUR


def doubt(context: StepContext, response_id: str, turn: Turn, now: int) -> None:
    """Note in the turn until when a write without an answer may still change a score of it, and have it looked at then
    if it may end up with another score than the one it wants: `agents.join.late_writes`.

    A late write does no harm while all that may come late is what Opik should hold; so a turn is looked at only where
    something else is written meanwhile, or where nobody knows what was sent.
    """
    retry_state, due = context.retry_state, context.change.due
    if turn.doubt_until == NOW or (turn.left and response_id in retry_state.forced):
        # The signals have another trace now: scores are deleted from the one before at once, and once more when what
        # others may be sending there has come.
        turn.doubt_until, due[response_id] = now + context.policy.doubt, now
        return
    unknown = response_id in retry_state.unsure or (retry_state.doubtful and bool(turn.trace and turn.signals()))
    look = unknown or (bool(turn.doubt_until) and (response_id in due or response_id in context.written))
    if unknown or response_id in context.unsure:
        turn.doubt_until = now + context.policy.doubt
    if look and response_id in due:
        due[response_id] = min(due[response_id] or turn.doubt_until, turn.doubt_until)
    elif look:
        context.change.due_by[response_id] = turn.doubt_until


def remember(context: StepContext, stale: set[str]) -> None:
    """Keep what was written for the next attempt, but not for `stale` turns: there it may be wrong by now."""
    retry_state = context.retry_state
    outcomes = iter(context.outcomes)
    for response_id, _, pending in context.planned:
        for want in pending:
            retry_state.outcomes[response_id, want.kind, want.value] = next(outcomes)
    read = {response_id: snapshot.stored for response_id, snapshot in context.turns.items()}
    if (prepared := context.prepared) is not None:
        scored = itertools.product(prepared.ids, prepared.kinds)
        for (response_id, kind), write, outcome in zip(scored, prepared.writes, prepared.outcomes, strict=True):
            retry_state.outcomes[response_id, kind, write.value] = outcome
        read.update(zip(prepared.ids, prepared.swaps.before, strict=True))
    retry_state.overtaken(stale)
    retry_state.read = read
