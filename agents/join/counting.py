"""Counts coverage and conservation: increments that follow state transitions, not messages (PF-9 FR-11, contracts
§2)."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from agents.join.turn import CAUSES, Mark, Signal, Turn, kind_of_origin
from agents.join.versions import PRODUCTION, STATUS, standings
from agents.keys import CONSERVATION, COVERAGE, COVERAGE_EDGE, NAMES, Key, spelled
from agents.ports import Change
from schemas.dead_letters import Record
from schemas.outcomes import State
from schemas.verticals import UNKNOWN

HOUR: Final = 3_600_000
DAY: Final = 86_400_000
BOTH, MISSING_TRACE, MISSING_SIGNAL = "both_present", "missing_trace", "missing_signal"
CLASSES: Final = (BOTH, MISSING_TRACE, MISSING_SIGNAL)
CONSUMED: Final = "consumed"
DONE: Final = "done"
GAP, GAPS = "gap", "gaps"
EDGE_SECONDS: Final = 300
_DEAD: Final = Mark.DEAD
_FIELDS: Final = ("", "parked:no_trace", "parked:withheld", DONE)
NAME_BYTES: Final = 64
"""What a turn keeps of a name, and is counted under. A registered vertical's fits (`schemas.verticals`); what else is
registered under a longer one is shown cut."""
_HASH_DIGITS: Final = 8


NO_CLASS: Final = "-"
UNJUDGED: Final = NO_CLASS
"""As a whole token: a turn with a signal and a trace that no judge scored, counted beside its class and standing."""
LETTERS: Final = "rndp"
"""The standings' letters in counters, by number."""
RATED, REROLLED, OF_PRODUCTION = 1, 2, 4
"""Bits of the digit that follows."""

Counted = tuple[str, str, int]
"""(vertical, token, second) under which a turn is counted; `token` spells them, whose first
character is the number of the coverage class, or NO_CLASS."""
NOWHERE: Final[Sequence[Counted]] = ()
UNREADABLE: Final = "unreadable"
"""Beside conservation's states: records of traces whose agent version no one can read."""


def short_name(name: str) -> str:
    """Return a name of at most NAME_BYTES: a longer one cut, with a part of its hash, so that two stay two."""
    if len(name) * 4 <= NAME_BYTES:
        return name
    spelt = name.encode(errors="surrogatepass")
    if len(spelt) <= NAME_BYTES:
        return name
    cut = spelt[: NAME_BYTES - 1 - _HASH_DIGITS].decode(errors="ignore")
    return f"{cut}~{hashlib.sha256(spelt).hexdigest()[:_HASH_DIGITS]}"


def standing(turn: Turn) -> Sequence[Counted]:
    """Return what the turn counts as: its coverage class, and its standing as evidence about each agent version."""
    signals = turn.signals()
    times = [signal.time for _, signal in signals if signal.value]
    covered = ("0" if times else "2" if turn.judged else NO_CLASS) if turn.trace else NO_CLASS
    if turn.versions:
        rated = turn.thumbs is not None and turn.thumbs.value != 0
        rerolled = turn.reroll is not None and turn.reroll.value != 0
        out = tokens(turn, covered, rated, rerolled)
    else:
        out = [(turn.vertical, covered, turn.time // 1000)] if covered != NO_CLASS else []
    if covered == "0" and not turn.judged:
        out.append((turn.vertical, UNJUDGED, turn.time // 1000))
    if times and not turn.trace:
        named = [(signal.time, signal.vertical) for _, signal in signals if signal.value and signal.vertical]
        out.append((min(named)[1] if named else UNKNOWN, "1", min(times) // 1000))
    return out


def tokens(turn: Turn, covered: str, rated: bool, rerolled: bool) -> list[tuple[str, str, int]]:
    """Return what the turn counts as: (vertical, token, second) for each version, the turn's own first.

    `covered` is the digit of its coverage class, which stands in the token of the turn's own vertical and second.
    """
    signals = (RATED if rated else 0) | (REROLLED if rerolled else 0)
    own = (turn.vertical, turn.time // 1000)
    if len(turn.versions) == 1 + NAMES:  # nearly all turns
        return [(own[0], token(covered, turn.versions[0], turn.versions[1:], signals), own[1])]
    out = []
    for one in standings(turn):
        head = one.came | (PRODUCTION if one.production else 0)
        mine = (one.vertical, one.time // 1000) == own and covered != NO_CLASS
        out.append((one.vertical, token(covered if mine else NO_CLASS, head, one.names, signals), one.time // 1000))
        if mine:
            covered = NO_CLASS
    if covered != NO_CLASS:
        out.append((own[0], covered, own[1]))
    return out


@lru_cache(maxsize=65_536)
def token(covered: str, head: int, names: bytes, signals: int) -> str:
    """Return a counter's token: coverage class, standing, digit of signals and environment, names."""
    digit = signals | (OF_PRODUCTION if head & PRODUCTION else 0)
    return f"{covered}{LETTERS[head & STATUS]}{digit}{spelled(names)}"


def field_of(mark: int, cause: int) -> str:
    """Return conservation's name for the state of a signal's record."""
    if mark == _DEAD:
        return f"dead_lettered:{CAUSES[cause]}"
    return _FIELDS[mark]


def expiry(hour: int, lookback: int) -> int:
    """Return when an hour's counters expire (ms since 1970): a day after the lookback window has passed them."""
    return (hour + 1) * HOUR + lookback + DAY


def move(moves: dict[Counted, int], before: Sequence[Counted], after: Sequence[Counted]) -> None:
    """Note that a turn leaves what it counted as for what it counts as now."""
    if before == after:
        return
    for key in before:
        moves[key] = moves.get(key, 0) - 1
    for key in after:
        moves[key] = moves.get(key, 0) + 1


def add(change: Change, key: Key, expires: int, name: str, by: int) -> None:
    """Add to one field of a key's counters."""
    if by:
        fields = change.counts.setdefault(key, (expires, {}))[1]
        fields[name] = fields.get(name, 0) + by


def count_moves(change: Change, moves: dict[Counted, int], now: int, lookback: int) -> None:
    """Count noted moves: per hour, and per second for exact window edges."""
    for (vertical, name, second), by in moves.items():
        hour = second // 3600
        block, rest = divmod(second, EDGE_SECONDS)
        expires = expiry(hour, lookback)
        if by and expires > now:
            add(change, COVERAGE.key(hour), expires, f"{vertical}|{name}", by)
            add(change, COVERAGE_EDGE.key(block), expires, f"{vertical}|{name}|{rest}", by)


def tally(tallies: dict[tuple[str, int, str], int], kind: str, time: int, name: str, by: int = 1) -> None:
    """Count records of that time into (or out of) a state of conservation."""
    key = (kind, time // HOUR, name)
    tallies[key] = tallies.get(key, 0) + by


def account(
    tallies: dict[tuple[str, int, str], int], was: Signal, marked: tuple[int, int], signal: Signal | None
) -> None:
    """Move the count of an earlier step's record whose signal ended or was overtaken; `marked`: its mark and cause
    before.

    A step counts its own new records by `agents.join.batches.count`.
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
    tally(tallies, kind, was.time, field_of(*marked), -1)
    tally(tallies, kind, was.time, name, 1)


def count_tallies(change: Change, tallies: dict[tuple[str, int, str], int], now: int, lookback: int) -> None:
    """Count (kind, hour, field) increments of conservation."""
    for (kind, hour, field), by in tallies.items():
        expires = expiry(hour, lookback)
        if expires > now:
            add(change, CONSERVATION.key(hour, kind), expires, field, by)


def count_gap(change: Change, kind: str, offsets: int, now: int, lookback: int) -> None:
    """Count a gap: offsets that Kafka no longer had when they were to be read, 0 where no one can know how many.

    They count as consumed and end in no state, so the balance shows the loss.
    """
    key, expires = CONSERVATION.key(now // HOUR, kind), expiry(now // HOUR, lookback)
    for name, by in ((CONSUMED, offsets), (GAP, offsets), (GAPS, 1)):
        add(change, key, expires, name, by)


def arrival(record: Record, now: int, lookback: int) -> int:
    """Return when to count a record without a usable time of its own: its Kafka timestamp if that is in the window,
    else now."""
    return record.timestamp if now - lookback <= record.timestamp <= now else now
