"""Does what is due for turns: looks for the trace of a parked signal and in the end gives it up, looks for judges'
scores of a trace, writes signals that were withheld while writing was off, compares scores with Opik once no write
without an answer can change them any more (PF-9 FR-6, FR-11, §10.3)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from agents.codec import TraceFacts
from agents.join.change_turns import Writing, change_turns, never
from agents.join.join import bury, merge_trace
from agents.join.late_writes import clear_left, compare
from agents.join.step import StepContext
from agents.join.step_data import Refused, Report
from agents.join.turn import DISTRUSTED, Mark, Signal, Turn
from agents.keys import turn_key
from agents.policy import Policy
from agents.ports import Ports, Refusal
from schemas.outcomes import Cause
from schemas.signals import DECLARED
from schemas.topics import Topics

FRACTIONS = (30, 4, 1)
SLACK_MS = 3_600_000


async def revisit(
    response_ids: Sequence[str],
    ports: Ports,
    policy: Policy,
    topics: Topics,
    rebuilding: Callable[[], Awaitable[bool]] = never,
) -> Report:
    """Do what is due for these turns and set when to look again. `rebuilding` as in `Writing`: a search may take
    minutes, and the state may be lost meanwhile.

    Looks in Opik once for each turn's trace and once for its judge scores, however often the step repeats; again only
    for a turn whose trace another worker changed meanwhile. Scores in doubt are read at each attempt. Raises
    Unauthorized or Unavailable.
    """
    found: dict[str, TraceFacts] = {}
    judged: set[str] = set()
    asked: set[tuple[str, bytes]] = set()

    async def merge(context: StepContext) -> list[Refused]:
        for response_id, snapshot in context.turns.items():
            context.change.checks[turn_key(response_id)] = snapshot.stored
            context.change.due[response_id] = None
        turns = {
            response_id: snapshot.turn
            for response_id, snapshot in context.turns.items()
            if (response_id, snapshot.turn.trace) not in asked
        }
        late = [one for one, snapshot in context.turns.items() if 0 < snapshot.turn.doubt_until <= context.now]
        left = [one for one, snapshot in context.turns.items() if snapshot.turn.left and snapshot.turn.doubt_until]
        if left:
            await clear_left(context, left, ports)
        late = [one for one in late if context.turns[one].turn.doubt_until <= context.now]
        if late:
            await compare(context, late, ports)
        sought = {response_id: first(turn) - SLACK_MS for response_id, turn in turns.items() if waits(turn)}
        unjudged = {
            response_id: (turn.trace_id, turn.project, turn.time)
            for response_id, turn in turns.items()
            if turn.trace and not turn.judged
        }
        if sought:
            seen = await ports.traces.find(sought)
            await ports.newcomers.place(seen.values(), ports.store, context.now, policy.lookback)
            found.update(seen)
        if unjudged:
            judged.update(await ports.traces.judged(unjudged))
        asked.update((response_id, turns[response_id].trace) for response_id in (*sought, *unjudged))
        for snapshot in (context.turns[response_id] for response_id in context.retry_state.forced):
            if not snapshot.turn.trace:
                # The state was lost after we had written: what Opik is said to hold may have been read before that.
                for kind in DECLARED:
                    snapshot.turn.note(kind, DISTRUSTED)
        given_up = merge_found(context, found, judged)
        for response_id, snapshot in context.turns.items():
            at, until = context.change.due[response_id], snapshot.turn.doubt_until
            context.change.due[response_id] = min(at or until, until) if until > 0 else at
        return given_up

    context = await change_turns(response_ids, ports, policy, merge, Writing(topics, "settle", rebuilding=rebuilding))
    return context.report


def merge_found(context: StepContext, found: dict[str, TraceFacts], judged: set[str]) -> list[Refused]:
    """Merge what was found into the turns; bury signals that waited too long, and return them."""
    policy, now, due = context.policy, context.now, context.change.due
    given_up: list[Refused] = []
    for response_id, snapshot in context.turns.items():
        turn = snapshot.turn
        if response_id in found:
            snapshot.touched |= merge_trace(turn, found[response_id])
        if response_id in judged and not turn.judged:
            turn.judged, snapshot.touched = 1, True
        if turn.trace:
            if any(signal.mark in (Mark.PARKED, Mark.WITHHELD) for _, signal in turn.signals()):
                snapshot.touched = True
            if not turn.judged:
                due[response_id] = next_check(now, turn.time, policy)
            continue
        for signal in waiting(turn):
            if now - signal.parked_at >= policy.missing_trace:
                detail = f"no trace with this response_id after {policy.missing_trace // 1000} s"
                given_up.append((response_id, signal, Refusal(Cause.MISSING_TRACE, detail)))
                bury(signal, Cause.MISSING_TRACE)
                snapshot.touched = True
            else:
                again = next_search(now, signal.parked_at, policy)
                due[response_id] = min(due[response_id] or again, again)
    return given_up


def waiting(turn: Turn) -> list[Signal]:
    return [signal for _, signal in turn.signals() if signal.mark == Mark.PARKED]


def waits(turn: Turn) -> bool:
    return not turn.trace and bool(waiting(turn))


def first(turn: Turn) -> int:
    return min(signal.time for signal in waiting(turn))


def next_search(now: int, parked_at: int, policy: Policy) -> int:
    """Return when to search next (ms): each wait is twice as long, and the last search is when the wait is over."""
    wait = max(now - parked_at, policy.trace_lookup, 250)
    return min(now + wait, max(parked_at + policy.missing_trace, now + 1))


def next_check(now: int, ended: int, policy: Policy, first: bool = False) -> int | None:
    """Return when to ask Opik again for a trace's judge scores (ms); None once `judge_settle` is over, or is 0."""
    if not policy.judge_settle:
        return None
    for fraction in FRACTIONS:
        at = ended + policy.judge_settle // fraction
        if at > now:
            return at
    return now + policy.trace_lookup if first else None
