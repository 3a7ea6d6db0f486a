"""Joins: merges events into a turn, says what Opik should hold, notes what it holds. Pure (PF-9 FR-6, §5.4)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from agents.codec import SignalEvent, TraceFacts
from agents.join.counting import short_name
from agents.join.turn import CAUSES, DISTRUSTED, MAYBE, NOW, Mark, Signal, Turn, score_of
from agents.join.versions import Came, noted, seen, standings, store
from agents.keys import UNNAMED
from schemas.outcomes import Cause
from schemas.signals import DECLARED, MergeRule, UserSignal

SNAPSHOT_GUARD_MS: Final = 5_000
MISSING_TRACE: Final = CAUSES.index(Cause.MISSING_TRACE)


class Wanted(msgspec.Struct, gc=False):
    """A difference between what Opik should hold and what it holds. `owner` asks for the score; `code` is noted in the
    turn once it is written."""

    owner: Signal
    kind: str
    value: float | None
    code: int


def merge_signal(
    turn: Turn, declared: UserSignal, event: SignalEvent, partition: int, offset: int, origin: int | None = None
) -> bool:
    """Merge an event into the turn as its signal's rule says; return False where the turn stays as it was. `origin`:
    the signal's own, unless the event came another way."""
    merge = merge_latest if declared.rule is MergeRule.LATEST else merge_once
    won = merge(turn, declared, event, partition, offset, declared.origin if origin is None else origin)
    signal = turn.signal(declared.kind) if won and event.vertical and not turn.trace else None
    if signal is not None:
        signal.vertical = event.vertical
    return won


def merge_latest(
    turn: Turn, declared: UserSignal, event: SignalEvent, partition: int, offset: int, origin: int
) -> bool:
    """Merge by versions: the latest one counts, whatever the order of arrival."""
    signal = Signal(
        event.value,
        event.time,
        event.seq,
        origin=origin,
        partition=partition,
        offset=offset,
        tie=event.tie,
        asof=max(event.observed - SNAPSHOT_GUARD_MS - event.time, 0) if event.observed else 0,
    )
    now = turn.signal(declared.kind)
    if now is not None:
        if event.observed:
            if now.origin == declared.swept_origin and origin == declared.origin and signal.same_version(now):
                # A sweep joined this very reading before; this is its record, which is counted now.
                signal.seq = now.seq
                turn.put(declared.kind, signal)
                return True
            again = now.mark == Mark.DEAD and now.value == event.value
            if not again and (now.value == event.value or not signal.newer_than(now)):
                return False
            signal.seq = now.seq
        elif signal.same_version(now):
            if now.mark != Mark.DEAD:
                return False
        elif not signal.newer_than(now):
            return False
    turn.put(declared.kind, signal)
    if not signal.value:
        doubt(turn, declared.kind)
    return True


def doubt(turn: Turn, kind: str) -> None:
    """Note after a withdrawal that Opik may hold a score we do not know of: from a step that was never recorded, or
    from before the state was lost. It is deleted then, whether it exists or not."""
    for declared in DECLARED.values():
        if kind in (declared.kind, declared.implied_by):
            turn.note(declared.kind, turn.wrote(declared.kind) or MAYBE)


def merge_once(turn: Turn, declared: UserSignal, event: SignalEvent, partition: int, offset: int, origin: int) -> bool:
    """Merge once: a known signal stays. An event replaces a derived one, a dead one, and a later one that is parked."""
    now = turn.signal(declared.kind)
    if now is not None:
        earlier = (event.time, event.tie) < (now.time, now.tie)
        takes_over = (
            (now.origin != declared.origin and origin == declared.origin)
            or (now.mark == Mark.DEAD and origin in (declared.origin, now.origin))
            or (now.mark in (Mark.PARKED, Mark.WITHHELD, Mark.NEW) and origin == now.origin and earlier)
        )
        if not takes_over:
            return False
    turn.put(declared.kind, Signal(1, event.time, origin=origin, partition=partition, offset=offset, tie=event.tie))
    return True


MOST_LEFT: Final = 16
"""So many other traces of one response are remembered."""


def leave(turn: Turn, trace: bytes) -> None:
    """Note that scores of ours may stand on another trace of this response, whence they are to be deleted."""
    others = [one for one in turn.left_traces if one != trace]
    turn.left = b"".join([*others, trace][-MOST_LEFT:])
    if turn.signals():
        turn.doubt_until = NOW


def latest_first(found: Iterable[TraceFacts]) -> dict[str, list[TraceFacts]]:
    """Return the traces of each response, the one that counts first."""
    traces: dict[str, list[TraceFacts]] = {}
    for facts in sorted(found, key=lambda one: (one.ended, one.trace), reverse=True):
        traces.setdefault(facts.response_id, []).append(facts)
    return traces


def merge_trace(turn: Turn, facts: TraceFacts) -> bool:
    """Merge a trace; return whether it changed the turn. Of two traces for one response the later one counts: it alone
    carries the signals' scores, whatever the order of arrival. Each agent version has its own standing in the turn."""
    before = _known(turn)
    versions = standings(turn)
    if turn.trace == facts.trace and facts.came == Came.POOLED and facts.names not in (b"", UNNAMED):
        # Its start record named another version.
        versions = [one for one in versions if one.came != Came.RUNNING or one.names == facts.names]
    if turn.trace == facts.trace or not turn.trace or (facts.ended, facts.trace) > (turn.time, turn.trace):
        same = turn.trace == facts.trace
        for _, signal in turn.signals() if not turn.trace else ():
            signal.vertical = ""
        if turn.trace and not same:
            leave(turn, turn.trace)
            turn.left = b"".join([one for one in turn.left_traces if one != facts.trace])
            turn.judged = 0
            for declared in DECLARED.values():
                turn.note(declared.kind, 0)
            turn.vertical = turn.sub_agent = turn.category = ""
            for kind, signal in turn.signals():
                if not signal.value:
                    doubt(turn, kind)
        turn.trace, turn.project = facts.trace, facts.project
        turn.time = max(facts.ended, turn.time) if same else facts.ended
        turn.vertical = short_name(facts.vertical) or turn.vertical
        turn.sub_agent = short_name(facts.sub_agent) or turn.sub_agent
        turn.category = short_name(facts.category) or turn.category
        if facts.judged:
            turn.judged = 1
        # The trace was read from Opik, and these scores with it.
        for kind, code in facts.wrote.items():
            if not turn.wrote(kind):
                turn.note(kind, code)
    elif facts.wrote:
        leave(turn, facts.trace)
    store(turn, noted(versions, seen(facts, short_name(facts.vertical))))
    return before != _known(turn)


def merge_lost(turn: Turn, facts: TraceFacts) -> bool:
    """Note that a trace's record became a dead letter; return whether that changed the turn."""
    before = turn.versions
    store(turn, noted(standings(turn), seen(facts, short_name(facts.vertical))))
    return before != turn.versions


def _known(turn: Turn) -> tuple[object, ...]:
    """Return what a trace may change of a turn."""
    return (
        turn.trace, turn.project, turn.vertical, turn.sub_agent, turn.category, turn.time, turn.judged, turn.left,
        turn.versions,
    )  # fmt: skip


def wanted(turn: Turn, force: bool = False) -> list[Wanted]:
    """Return the scores to write so that Opik holds what the turn says (contracts §2); none while the trace is unknown.

    A dead signal asks for none, unless its trace was missing and is known now. `force` repeats also what Opik should
    hold already, and deletes what it should not.
    """
    if not turn.trace:
        return []
    out = []
    for declared in DECLARED.values():
        owner = turn.signal(declared.kind)
        code = owner.value if owner is not None else 0
        if declared.implied_by:
            beside = turn.signal(declared.implied_by)
            code = 2 if owner is not None else 1 if beside is not None and beside.value else 0
            owner = owner if owner is not None else beside
        if owner is not None and (force or code != turn.wrote(declared.kind)) and not buried(owner):
            out.append(Wanted(owner, declared.kind, score_of(declared, code), code))
    return out


def buried(signal: Signal) -> bool:
    return signal.mark == Mark.DEAD and signal.cause != MISSING_TRACE


def distrust(turn: Turn, pending: list[Wanted]) -> None:
    """Note that Opik may lack these scores, so that a later step writes them although they were written before."""
    for want in pending:
        turn.note(want.kind, DISTRUSTED)


def note_written(turn: Turn, want: Wanted) -> None:
    turn.note(want.kind, want.code)


def bury(signal: Signal, cause: Cause) -> None:
    signal.mark, signal.cause, signal.parked_at = Mark.DEAD, CAUSES.index(cause), 0


def rest(turn: Turn, now: int, pending: list[Wanted]) -> bool:
    """Mark signals that are not dead: parked without a trace, withheld where writes are pending, else done.

    Returns whether it parked a signal, whose trace must be looked for.
    """
    parked = False
    for _, signal in turn.signals():
        if signal.mark == Mark.DONE and not pending:
            continue
        if signal.mark == Mark.DEAD and (not turn.trace or buried(signal)):
            continue
        if not turn.trace and signal.value:
            if signal.mark != Mark.PARKED:
                signal.mark, signal.parked_at, parked = Mark.PARKED, now, True
        elif pending and any(want.owner is signal for want in pending):
            signal.mark = Mark.WITHHELD
        else:
            signal.mark, signal.parked_at, signal.cause = Mark.DONE, 0, 0
    return parked
