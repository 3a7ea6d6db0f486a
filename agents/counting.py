"""Coverage and conservation as increments: moved by state transitions, not messages (PF-9 FR-11, contracts §2)."""

from __future__ import annotations

from typing import Final, NamedTuple

from agents.ports import Change
from agents.turn import CAUSES, Mark, Origin, Signal, Turn
from schemas.outcomes import Kind
from schemas.verticals import UNKNOWN

HOUR: Final = 3_600_000
DAY: Final = 86_400_000
BOTH, MISSING_TRACE, MISSING_SIGNAL = "both_present", "missing_trace", "missing_signal"
CLASSES: Final = (BOTH, MISSING_TRACE, MISSING_SIGNAL)
CONSUMED: Final = "consumed"
_CARRIED_BY: Final[dict[int, Kind]] = {Origin.THUMBS: Kind.THUMBS, Origin.REROLLS: Kind.REROLL}


class Standing(NamedTuple):
    """A turn as coverage sees it. `name` is one of CLASSES, or "" where it counts nowhere."""

    name: str
    vertical: str
    time: int


class Held(NamedTuple):
    """A signal's record as conservation sees it."""

    kind: Kind
    time: int
    field: str


def standing(turn: Turn) -> Standing:
    """Which of the three coverage classes a turn is in, for which vertical, and when."""
    if turn.trace:
        name = BOTH if turn.active else MISSING_SIGNAL if turn.judged else ""
        return Standing(name, turn.vertical, turn.time)
    times = [s.time for s in (turn.thumbs, turn.reroll) if s is not None and s.value]
    return Standing(MISSING_TRACE, UNKNOWN, min(times)) if times else Standing("", "", 0)


def held(signal: Signal | None) -> Held | None:
    """None for no signal and for a derived one, which no record carried."""
    kind = _CARRIED_BY.get(signal.origin) if signal is not None else None
    return Held(kind, signal.time, field_of(signal)) if signal is not None and kind is not None else None


def field_of(signal: Signal) -> str:
    if signal.mark == Mark.DEAD:
        return f"dead_lettered:{CAUSES[signal.cause]}"
    return ("", "parked:no_trace", "parked:withheld", "done")[signal.mark]


def coverage_cell(hour: int) -> str:
    """Fields `<vertical>|<class>`: turns of the whole hour."""
    return f"c:{hour}"


def edge_cell(hour: int) -> str:
    """Fields `<vertical>|<class>|<second of the hour>`: for windows that begin or end inside the hour."""
    return f"e:{hour}"


def conservation_cell(hour: int, kind: Kind) -> str:
    return f"k:{hour}:{kind}"


def expiry(hour: int, lookback: int) -> int:
    """When an hour's counters may go: a day after the window has passed over them."""
    return (hour + 1) * HOUR + lookback + DAY


def move(change: Change, before: Standing, after: Standing, now: int, lookback: int) -> None:
    """Count a turn out of its old class and into its new one; per hour, and per second for exact window edges."""
    if before == after:
        return
    for place, by in ((before, -1), (after, 1)):
        if place.name:
            hour, rest = divmod(place.time, HOUR)
            expires = expiry(hour, lookback)
            if expires > now:
                name = f"{place.vertical}|{place.name}"
                change.count(coverage_cell(hour), expires, name, by)
                change.count(edge_cell(hour), expires, f"{name}|{rest // 1000}", by)


def tally(change: Change, kind: Kind, time: int, field: str, by: int, now: int, lookback: int) -> None:
    hour = time // HOUR
    expires = expiry(hour, lookback)
    if expires > now:
        change.count(conservation_cell(hour, kind), expires, field, by)
