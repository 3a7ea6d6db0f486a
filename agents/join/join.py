"""The join itself: merge events into a turn, say what Opik should hold, note what it holds. Pure (PF-9 FR-6, §5.4)."""

from __future__ import annotations

from typing import Final

import msgspec

from agents.codec import Reroll, Thumb, TraceFacts
from agents.join.turn import CAUSES, MAYBE, Mark, Origin, Signal, Turn
from schemas.outcomes import Cause

THUMBS: Final = "user_signal_thumbs"
REROLL: Final = "user_signal_reroll"
LEGACY_NAMES: Final = {THUMBS: "thumbs", REROLL: "reroll"}
LABELS: Final = {THUMBS: "user_mobile", REROLL: "history_middleware"}
REROLL_VALUES: Final = (None, 0.0, 1.0)
SNAPSHOT_GUARD_MS: Final = 5_000
MISSING_TRACE: Final = CAUSES.index(Cause.MISSING_TRACE)


class Wanted(msgspec.Struct, gc=False):
    """A difference between what Opik should hold and what it holds. `code` is noted once it is written."""

    owner: Signal
    name: str
    value: float | None
    code: int


def merge_thumb(turn: Turn, thumb: Thumb, partition: int, offset: int, origin: Origin = Origin.THUMBS) -> bool:
    """Whether this thumb is the turn's winning version now; False leaves the turn as it was."""
    signal = Signal(
        thumb.value,
        thumb.time,
        thumb.seq,
        origin=origin,
        partition=partition,
        offset=offset,
        tie=thumb.tie,
        asof=max(thumb.observed - SNAPSHOT_GUARD_MS - thumb.time, 0) if thumb.observed else 0,
    )
    now = turn.thumbs
    if now is not None:
        if thumb.observed:
            if now.origin == Origin.SWEPT_THUMBS and origin == Origin.THUMBS and signal.same_version(now):
                # A sweep brought this very reading through; here comes its record, to be counted.
                signal.seq, turn.thumbs = now.seq, signal
                return True
            again = now.mark == Mark.DEAD and now.value == thumb.value
            if not again and (now.value == thumb.value or not signal.newer_than(now)):
                return False
            signal.seq = now.seq
        elif signal.same_version(now):
            if now.mark != Mark.DEAD:
                return False
        elif not signal.newer_than(now):
            return False
    turn.thumbs = signal
    if not signal.value:
        doubt(turn)
    return True


def doubt(turn: Turn) -> None:
    """After a withdrawal, what isn't known to be in Opik may still be: from a step that was never recorded, or from
    before the state was lost. Then it is deleted, there or not."""
    turn.wrote_thumbs = turn.wrote_thumbs or MAYBE
    turn.wrote_reroll = turn.wrote_reroll or MAYBE


def merge_reroll(turn: Turn, reroll: Reroll, partition: int, offset: int, origin: Origin = Origin.REROLLS) -> bool:
    """A reroll, once known, stands. An event takes over from a derived one, a dead one, and a later parked one."""
    now = turn.reroll
    if now is not None:
        earlier = (reroll.time, reroll.tie) < (now.time, now.tie)
        takes_over = (
            (now.origin != Origin.REROLLS and origin == Origin.REROLLS)
            or (now.mark == Mark.DEAD and origin in (Origin.REROLLS, now.origin))
            or (now.mark in (Mark.PARKED, Mark.WITHHELD, Mark.NEW) and origin == now.origin and earlier)
        )
        if not takes_over:
            return False
    turn.reroll = Signal(1, reroll.time, origin=origin, partition=partition, offset=offset, tie=reroll.tie)
    return True


def merge_trace(turn: Turn, facts: TraceFacts) -> bool:
    """Whether the trace told something new. Of two traces for one response, the later one stands."""
    before = (turn.trace, turn.project, turn.vertical, turn.sub_agent, turn.category, turn.time, turn.judged)
    if turn.trace == facts.trace or not turn.trace or (facts.ended, facts.trace) > (turn.time, turn.trace):
        same = turn.trace == facts.trace
        if turn.trace and not same:
            turn.wrote_thumbs = turn.wrote_reroll = turn.judged = 0
            turn.vertical = turn.sub_agent = turn.category = ""
            if turn.thumbs is not None and not turn.thumbs.value:
                doubt(turn)
        turn.trace, turn.project = facts.trace, facts.project
        turn.time = max(facts.ended, turn.time) if same else facts.ended
        turn.vertical = facts.vertical or turn.vertical
        turn.sub_agent = facts.sub_agent or turn.sub_agent
        turn.category = facts.category or turn.category
        if facts.judged:
            turn.judged = 1
        # What Opik is known to hold, from a read of the trace itself.
        if facts.thumbs and not turn.wrote_thumbs:
            turn.wrote_thumbs = facts.thumbs
        if facts.reroll and not turn.wrote_reroll:
            turn.wrote_reroll = facts.reroll
    after = (turn.trace, turn.project, turn.vertical, turn.sub_agent, turn.category, turn.time, turn.judged)
    return before != after


def wanted(turn: Turn, force: bool = False) -> list[Wanted]:
    """What to write so that Opik holds what the turn says (contracts §2). Nothing while the trace is unknown.

    A dead signal is left alone, but for one whose trace was missing and is known now. `force` repeats what Opik is
    believed to hold already, or to hold no more.
    """
    if not turn.trace:
        return []
    thumbs, reroll = turn.thumbs, turn.reroll
    out = []
    value = thumbs.value if thumbs is not None else 0
    if thumbs is not None and (force or value != turn.wrote_thumbs) and not buried(thumbs):
        out.append(Wanted(thumbs, THUMBS, float(value) if value else None, value))
    code = 2 if reroll is not None else 1 if value else 0
    owner = reroll if reroll is not None else thumbs
    if owner is not None and (force or code != turn.wrote_reroll) and not buried(owner):
        out.append(Wanted(owner, REROLL, REROLL_VALUES[code], code))
    return out


def buried(signal: Signal) -> bool:
    return signal.mark == Mark.DEAD and signal.cause != MISSING_TRACE


def distrust(turn: Turn, pending: list[Wanted]) -> None:
    """What is wanted by force and written later must not be passed over then, because the state says it is there."""
    for want in pending:
        if want.name == THUMBS:
            turn.wrote_thumbs = MAYBE
        else:
            turn.wrote_reroll = MAYBE


def note_written(turn: Turn, want: Wanted) -> None:
    if want.name == THUMBS:
        turn.wrote_thumbs = want.code
    else:
        turn.wrote_reroll = want.code


def bury(signal: Signal, cause: Cause) -> None:
    signal.mark, signal.cause, signal.parked_at = Mark.DEAD, CAUSES.index(cause), 0


def rest(turn: Turn, now: int, pending: list[Wanted]) -> bool:
    """Mark signals that are not dead: parked without a trace, withheld where writes are pending, else done.

    Returns whether a signal was parked just now, so that its trace has to be sought.
    """
    parked = False
    for signal in (turn.thumbs, turn.reroll):
        if signal is None or (signal.mark == Mark.DONE and not pending):
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
