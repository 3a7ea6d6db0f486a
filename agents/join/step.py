"""Writes what a step's turns want, and records it: the scores that are due, what Opik took of them, one atomic change.

A step reads the state before it decides and writes it afterwards. If another worker changed a turn meanwhile, the
record fails its checks: then the step reads and decides again, and writes only what Opik may hold wrongly by now.
"""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from agents.codec import TraceFacts
from agents.join.counting import (
    HOUR,
    NOWHERE,
    Counted,
    account,
    count_moves,
    count_tallies,
    move,
    standing,
)
from agents.join.join import Wanted, bury, distrust, note_written, rest, wanted
from agents.join.step_data import PreparedTurns, Refused, Report, RetryState
from agents.join.turn import MAYBE, NOW, Mark, Signal, Turn, decode_turn, encode_turn, has_withheld
from agents.join.versions import standings
from agents.keys import FOREVER, NAMES, WITHHELD, turn_ids, turn_key
from agents.policy import Policy
from agents.ports import Change, Outcome, Ports, Refusal, Unavailable, Write
from schemas.signals import DECLARED

ATTEMPTS = 50
AFTER_REPLAY_MS = 3_000
"""How long a write that a replay holds back waits before it is looked at again."""
T = TypeVar("T")


@dataclass(eq=False)
class Hold:
    """Which turns must not be written yet, while a lost state is rebuilt: those whose trace began before `before` (ms;
    0 where none is rebuilt), except those of projects whose name comes before `project`. No one knows yet what Opik
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
        records that no one has handled before."""
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


def stood_still(context: StepContext, ports: Ports) -> bool:
    """Whether so much time has passed since the turns were read that the step must begin again, as in a process that
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
    something else is written meanwhile, or where no one knows what was sent.
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
