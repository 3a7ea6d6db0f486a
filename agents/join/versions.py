"""Says which agent versions a turn is evidence about, and what became of its record for each (contracts §3, "The sample
is the traffic"). Pure.

A turn may have traces of several versions, as where a shadow answers too. Each version has one standing in the turn:
gates count turns by these standings, and compare the counts with the pools that they draw from.

A turn's own version is stored in eight bytes: its vertical and its end are the turn's. Names are stored as hashes.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final, NamedTuple

from agents.codec import TraceFacts
from agents.join.turn import Turn
from agents.keys import NAMES, UNNAMED


class Came:
    """What became of a version's record of the turn. A later one of these ends what an earlier one says."""

    RUNNING: Final = 0
    """The trace has not ended."""
    NOT_COME: Final = 1
    """The trace is known from Opik; its record has not come."""
    DEAD: Final = 2
    """Its record is a dead letter."""
    POOLED: Final = 3
    """An accepted record of its end came: it is in the pools, or beyond their edge."""


STATUS, PRODUCTION, _OWN = 3, 4, 8
"""Bits of a stored version's first byte: its standing, whether it is of production, whether time and vertical are the
turn's own."""
TIME: Final = 6
"""Bytes of a stored time."""


class Standing(NamedTuple):
    """A turn of a version. `names`: hashes of agent and version; `time`: when it ended, or began where it has not
    ended (ms)."""

    names: bytes
    came: int
    production: bool
    time: int
    vertical: str


def standings(turn: Turn) -> list[Standing]:
    """Return the turn's versions, as stored."""
    stored, out, at = turn.versions, [], 0
    while at < len(stored):
        head, names = stored[at], stored[at + 1 : at + 1 + NAMES]
        at += 1 + NAMES
        time, vertical = turn.time, turn.vertical
        if not head & _OWN:
            time, size = int.from_bytes(stored[at : at + TIME], "big"), stored[at + TIME]
            vertical = stored[at + TIME + 1 : at + TIME + 1 + size].decode(errors="surrogatepass")
            at += TIME + 1 + size
        out.append(Standing(names, head & STATUS, bool(head & PRODUCTION), time, vertical))
    return out


def store(turn: Turn, found: list[Standing]) -> None:
    """Store the turn's versions; the turn's own time and vertical must be set."""
    out = b""
    for one in found:
        head = one.came | (PRODUCTION if one.production else 0)
        if one.time == turn.time and one.vertical == turn.vertical:
            out += _own(head, one.names)
        else:
            vertical = one.vertical.encode(errors="surrogatepass")
            out += bytes([head]) + one.names + one.time.to_bytes(TIME, "big") + bytes([len(vertical)]) + vertical
    turn.versions = out


def seen(facts: TraceFacts, vertical: str) -> Standing:
    """Return what a trace says of its version. `vertical` as turns hold it."""
    time = facts.started if facts.came == Came.RUNNING else facts.ended
    return Standing(facts.names or UNNAMED, facts.came, facts.production, time, vertical)


def noted(found: list[Standing], new: Standing) -> list[Standing]:
    """Return the versions with the new standing merged in.

    An accepted record counts over all that was known, unless what ended later is a dead letter. Of two accepted records
    the one that ended later says time, vertical and environment. A trace without names says nothing beside one with
    names, as where only a trace's end names its agent.
    """
    if new.names == UNNAMED and found and found[0].names != UNNAMED:
        if new.came == Came.RUNNING:
            return found
        # No record of their end names them, and this one may be it.
        ended = [one._replace(came=Came.NOT_COME, time=new.time) for one in found if one.came == Came.RUNNING]
        return [*(one for one in found if one.came != Came.RUNNING), *ended]
    if found and found[0].names == UNNAMED != new.names:
        return [new]
    for place, old in enumerate(found):
        if old.names == new.names:
            new = new if new.vertical else new._replace(vertical=old.vertical)
            return [*found[:place], new, *found[place + 1 :]] if _counts(old, new) else found
    return [*found, new]


def standing_of(turn: Turn, names: bytes) -> Standing | None:
    """Return the turn's standing as evidence about a version; None where it has none."""
    return next((one for one in standings(turn) if one.names == names), None)


def _counts(old: Standing, new: Standing) -> bool:
    """Whether the new standing replaces the old one."""
    if {old.came, new.came} == {Came.DEAD, Came.POOLED}:
        return new.time > old.time or (new.came == Came.POOLED and new.time == old.time)
    return new.came > old.came or (new.came == old.came and new.time >= old.time)


@lru_cache(maxsize=4_096)
def _own(head: int, names: bytes) -> bytes:
    return bytes([head | _OWN]) + names
