"""One step of the join: turns as read, changed by a merge, written to Opik, then recorded in one atomic change.

A step reads the state before it decides and writes it afterwards. If another worker changed a turn meanwhile, the
record fails its checks: then the step reads and decides again, and writes only what Opik may hold wrongly by now.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field

from agents.join.counting import HOUR, NOWHERE, count_moves, count_tallies, field_of, move, standing
from agents.join.join import Wanted, bury, distrust, note_written, rest, wanted
from agents.join.turn import Mark, Signal, Turn, decode_turn, encode_turn, kind_of_origin
from agents.keys import turn_ids, turn_key
from agents.policy import Policy
from agents.ports import Change, Ports, Refusal, Swaps, Unavailable, Write
from schemas.outcomes import State
from schemas.signals import DECLARED

ATTEMPTS = 50
AFTER_REPLAY_MS = 3_000
"""How long a write that a replay holds back waits before it is looked at again."""
Refused = tuple[str, Signal, Refusal]
"""(response id, the signal that asked for the score, why Opik has not got it)."""


@dataclass
class Report:
    """What one step did, for metrics. `counts`: (kind, field) -> n, exactly as recorded in the state. `written`:
    (vertical, sub-agent, category, kind) -> scores. `lags_ms`: kind -> from the later of signal and trace to Opik."""

    counts: dict[tuple[str, str], int] = field(default_factory=dict)
    written: dict[tuple[str, str, str, str], int] = field(default_factory=dict)
    lags_ms: dict[str, list[int]] = field(default_factory=dict)


@dataclass
class PreparedTurns:
    """Turns whose step is prepared to the last byte before their scores are written: the fast path's, one row a turn,
    in columns.

    They hold if Opik takes every score and no one else changed a turn meanwhile. Else the whole step is decided again
    by the general way, which ends in the same state.

    `kinds`: of the signals scored, first the one that was heard; `writes` has one score of each for every turn.
    `since`: when the later of signal and trace came (ms), for the lag. `hours`: of the records' times, for
    conservation; all end as done. `moves`: as in `agents.join.counting`. `written`: (vertical, sub-agent, category) ->
    turns. `outcomes`: of `writes`, once they are made.
    """

    ids: list[str] = field(default_factory=list)
    kinds: tuple[str, ...] = ()
    writes: list[Write] = field(default_factory=list)
    swaps: Swaps = field(default_factory=Swaps)
    since: list[int] = field(default_factory=list)
    hours: list[int] = field(default_factory=list)
    moves: dict[tuple[str, str, int], int] = field(default_factory=dict)
    written: dict[tuple[str, str, str], int] = field(default_factory=dict)
    outcomes: list[Refusal | None] = field(default_factory=list)


class TurnSnapshot:
    """A turn as it was read (`stored`; `signals`: kind, signal, mark and cause of each), and as it becomes (`turn`)."""

    __slots__ = ("before", "signals", "stored", "touched", "turn")

    def __init__(self, stored: bytes, touched: bool) -> None:
        self.stored = stored
        self.touched = touched
        self.turn = turn = decode_turn(stored) if stored else Turn()
        self.signals = [(kind, signal, (signal.mark, signal.cause)) for kind, signal in turn.signals()]
        self.before = standing(turn) if stored else NOWHERE


Planned = list[tuple[str, TurnSnapshot, list[Wanted]]]
"""Response id, its turn, and the scores to write for it."""


@dataclass
class RetryState:
    """What survives a repetition of a step.

    `outcomes`: (response id, kind, score) -> what Opik said. `forced`: turns whose score Opik may hold wrongly.
    `read`: the turns as the last attempt read them. `lettered`: the places of dead letters that were sent.
    """

    outcomes: dict[tuple[str, str, float | None], Refusal | None] = field(default_factory=dict)
    forced: set[str] = field(default_factory=set)
    read: dict[str, bytes] = field(default_factory=dict)
    lettered: set[tuple[str, int, int, bytes | None]] = field(default_factory=set)

    def overtaken(self, response_ids: set[str]) -> None:
        """Note that others changed these turns: what we wrote for them may have replaced what they wrote."""
        for key in [key for key in self.outcomes if key[0] in response_ids]:
            if self.outcomes.pop(key) is None:
                self.forced.add(key[0])


@dataclass
class StepContext:
    """The turns of one attempt at a step, and the change it will record. `now` in ms.

    `replaying`: the records were settled once before the state was lost, so a later one may overrule what they ask
    for; writes wait until all of them have been read.
    """

    now: int
    policy: Policy
    retry_state: RetryState = field(default_factory=RetryState)
    replaying: bool = False
    turns: dict[str, TurnSnapshot] = field(default_factory=dict)
    change: Change = field(default_factory=Change)
    report: Report = field(default_factory=Report)
    tallies: dict[tuple[str, int, str], int] = field(default_factory=dict)
    planned: Planned = field(default_factory=list)
    outcomes: list[Refusal | None] = field(default_factory=list)
    prepared: PreparedTurns | None = None

    @property
    def plain(self) -> bool:
        """Whether turns can be prepared: on a first attempt that may write, under today's names alone."""
        fresh = not (self.retry_state.outcomes or self.retry_state.read)
        return fresh and self.policy.write and not self.policy.mirror_legacy_names and not self.replaying

    def load(self, response_ids: Sequence[str], stored_turns: Sequence[bytes]) -> None:
        turns, forced, read = self.turns, self.retry_state.forced, self.retry_state.read
        if read:
            pairs = zip(response_ids, stored_turns, strict=True)
            self.retry_state.overtaken({one for one, stored in pairs if read.get(one, stored) != stored})
        for response_id, stored in zip(response_ids, stored_turns, strict=True):
            turns[response_id] = TurnSnapshot(stored, response_id in forced)

    def count(self, kind: str, time: int, name: str, by: int = 1) -> None:
        """Count records of that time into (or out of) a state of conservation."""
        key = (kind, time // HOUR, name)
        self.tallies[key] = self.tallies.get(key, 0) + by


async def write_scores(context: StepContext, ports: Ports) -> list[Refused]:
    """Write what touched turns want, note what Opik took, mark every signal; return the refused ones."""
    policy, now, forced = context.policy, context.now, context.retry_state.forced
    planned: Planned = []
    for response_id, snapshot in context.turns.items():
        if not snapshot.touched:
            continue
        turn = snapshot.turn
        pending = wanted(turn, response_id in forced)
        if pending and policy.write and not context.replaying:
            planned.append((response_id, snapshot, pending))
            continue
        if response_id in forced:
            distrust(turn, pending)
        if rest(turn, now, pending):
            context.change.due[response_id] = now + policy.trace_lookup
        elif pending and policy.write:
            context.change.due[response_id] = now + AFTER_REPLAY_MS
    if not planned and context.prepared is None:
        return []
    outcomes = await send(context, ports, planned)
    context.planned, context.outcomes = planned, outcomes
    return note_outcomes(context, ports, planned, outcomes)


async def send(context: StepContext, ports: Ports, planned: Planned) -> list[Refusal | None]:
    """Return one outcome for each planned score, in order; prepared turns get theirs in `prepared.outcomes`.

    What an earlier attempt at this step wrote is not sent again.
    """
    known, legacy, prepared = context.retry_state.outcomes, context.policy.mirror_legacy_names, context.prepared
    writes: list[Write] = list(prepared.writes) if prepared is not None else []
    if not known and not legacy:
        for _, snapshot, pending in planned:
            turn = snapshot.turn
            trace_id, project = turn.trace_id, turn.project
            for want in pending:
                declared = DECLARED[want.kind]
                writes.append(Write(trace_id, project, declared.score, want.value, declared.label))
        found = await ports.scores.write(writes)
        if prepared is None:
            return found
        prepared.outcomes = found[: len(prepared.writes)]
        return found[len(prepared.writes) :]
    places: list[int] = []
    outcomes: list[Refusal | None] = []
    for response_id, snapshot, pending in planned:
        turn = snapshot.turn
        for want in pending:
            declared, value = DECLARED[want.kind], want.value
            names = [declared.score]
            if legacy and declared.legacy_name:
                names.append(declared.legacy_name)
            if (response_id, want.kind, value) not in known:
                writes += [Write(turn.trace_id, turn.project, name, value, declared.label) for name in names]
                places += [len(outcomes)] * len(names)
            outcomes.append(known.get((response_id, want.kind, value)))
    for place, refusal in zip(places, await ports.scores.write(writes) if writes else (), strict=True):
        outcomes[place] = outcomes[place] or refusal
    return outcomes


def note_outcomes(
    context: StepContext, ports: Ports, planned: Planned, outcomes: list[Refusal | None]
) -> list[Refused]:
    """Note in each turn what Opik took; bury the signals of what it refused, and return them."""
    report, stored_at, now = context.report, ports.clock.now_ms(), context.now
    written, lags = report.written, report.lags_ms
    refused: list[Refused] = []
    at = 0
    for response_id, snapshot, pending in planned:
        turn = snapshot.turn
        dimensions = (turn.vertical, turn.sub_agent, turn.category)
        buried: list[Signal] = []
        for want in pending:
            refusal = outcomes[at]
            at += 1
            if refusal is None:
                note_written(turn, want)
                key = (*dimensions, want.kind)
                written[key] = written.get(key, 0) + 1
                continue
            signal = want.owner
            if not any(signal is other for other in buried):
                buried.append(signal)
                if signal.mark != Mark.DEAD:
                    refused.append((response_id, signal, refusal))
                bury(signal, refusal.cause)
        if not buried:
            lag = max(stored_at - max(pending[0].owner.time, turn.time), 0)
            lags.setdefault(pending[0].kind, []).append(lag)
        rest(turn, now, [])
    if (prepared := context.prepared) is not None:
        lags.setdefault(prepared.kinds[0], []).extend([max(stored_at - since, 0) for since in prepared.since])
        for dimensions, by in prepared.written.items():
            for kind in prepared.kinds:
                written[*dimensions, kind] = written.get((*dimensions, kind), 0) + by
    return refused


async def record(context: StepContext, ports: Ports) -> bool:
    """Apply the atomic change. False if something changed since it was read: decide again, with the same retry state.

    A turn may live as long as its latest event can still be joined: the lookback and an hour.
    """
    change, now, policy = context.change, context.now, context.policy
    lookback = policy.lookback
    prepared = context.prepared
    moves: dict[tuple[str, str, int], int] = {}
    if prepared is not None:
        moves, change.swaps = dict(prepared.moves), prepared.swaps
    checks, sets, forced = change.checks, change.sets, context.retry_state.forced
    for response_id, snapshot in context.turns.items():
        if not snapshot.touched:
            continue
        turn = snapshot.turn
        for kind, was, marked in snapshot.signals:
            account(context, was, marked, turn.signal(kind))
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
        last = max([turn.time, *[signal.time for _, signal in turn.signals()]])
        sets[key] = (stored, max(last + lookback, now) + HOUR)
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


def account(context: StepContext, was: Signal, marked: tuple[int, int], signal: Signal | None) -> None:
    """Move the count of an earlier step's record whose signal was settled or overtaken; `marked` is what it was.

    A step counts its own new records in `agents.join.batches`.
    """
    kind = kind_of_origin(was.origin)
    if kind is None:
        return
    if signal is was:
        if marked == (was.mark, was.cause):
            return
        name = field_of(was.mark, was.cause)
    elif marked[0] in (Mark.PARKED, Mark.WITHHELD):
        name = State.SUPERSEDED
    else:
        return
    context.count(kind, was.time, field_of(*marked), -1)
    context.count(kind, was.time, name, 1)


def exhausted() -> Unavailable:
    return Unavailable(f"state kept changing under {ATTEMPTS} attempts at one step; is the clock or Redis unwell?")
