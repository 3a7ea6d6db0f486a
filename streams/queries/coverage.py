"""Sums coverage per vertical from the counters of the state (PF-9 FR-11, AC-11)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from typing import NamedTuple

from agents.join.counting import (
    BOTH,
    CLASSES,
    EDGE_SECONDS,
    HOUR,
    MISSING_SIGNAL,
    MISSING_TRACE,
    NO_CLASS,
    UNJUDGED,
    short_name,
)
from agents.keys import COVERAGE, COVERAGE_EDGE, Key
from agents.ports import Clock, Store
from schemas.answers import Coverage, CoverageAnswer
from schemas.verticals import UNKNOWN, UNREGISTERED

HOUR_SECONDS = HOUR // 1000
Counts = dict[tuple[str, str], int]
"""(vertical as the trace names it, class or UNJUDGED) -> number of turns."""


class Piece(NamedTuple):
    """A part of a window: a whole hour, or the seconds `first` to `last`, both included, of a block of EDGE_SECONDS."""

    key: Key
    whole: bool
    first: int
    last: int


def pieces(first: int, last: int) -> list[Piece]:
    """The parts of the seconds `first` to `last`, both included: whole hours, and the blocks at the edges."""
    out: list[Piece] = []
    second = first
    while second <= last:
        hour, into = divmod(second, HOUR_SECONDS)
        if into == 0 and second + HOUR_SECONDS - 1 <= last:
            out.append(Piece(COVERAGE.key(hour), True, 0, HOUR_SECONDS - 1))
            second += HOUR_SECONDS
        else:
            block, into = divmod(second, EDGE_SECONDS)
            until = min(last, (block + 1) * EDGE_SECONDS - 1)
            out.append(Piece(COVERAGE_EDGE.key(block), False, into, until - block * EDGE_SECONDS))
            second = until + 1
    return out


async def read_counts(store: Store, now_ms: int, window_seconds: int) -> Counts:
    """The turns of the window (now - window, now] by vertical and class. Raises Unavailable."""
    last = now_ms // 1000
    parts = pieces(last - window_seconds + 1, last)
    return add_up(zip(parts, await store.counts([part.key for part in parts]), strict=True))


def add_up(found: Iterable[tuple[Piece, dict[str, int]]]) -> Counts:
    """The sum of parts by coverage class. Pure."""
    out: Counts = {}
    for vertical, token, turns in counted(found):
        if token[0] != NO_CLASS or token == UNJUDGED:
            key = vertical, token if token == UNJUDGED else CLASSES[int(token[0])]
            out[key] = out.get(key, 0) + turns
    return out


def counted(found: Iterable[tuple[Piece, dict[str, int]]]) -> Iterator[tuple[str, str, int]]:
    """Yield (vertical, token, turns) of each field that lies in its part. A vertical's name may hold a `|`, tokens and
    seconds never do: fields are read from the end."""
    for part, fields in found:
        for name, turns in fields.items():
            if not part.whole:
                name, _, second = name.rpartition("|")
                if not part.first <= int(second) <= part.last:
                    continue
            vertical, _, token = name.rpartition("|")
            yield vertical, token, turns


def label_of(vertical: str, registered: Collection[str]) -> str:
    """The vertical where it is registered, `unknown` for signals without trace and name, else `unregistered`."""
    return vertical if vertical in registered or vertical == UNKNOWN else UNREGISTERED


def by_label(counts: Counts, registered: Collection[str], window_seconds: int) -> list[Coverage]:
    """One row for each registered vertical, also without turns, and for each other label that has turns."""
    sums: Counts = {}
    for (vertical, kind), turns in counts.items():
        key = label_of(vertical, registered), kind
        sums[key] = sums.get(key, 0) + turns
    names = sorted(registered) + [
        label
        for label in (UNREGISTERED, UNKNOWN)
        if label not in registered and any(sums.get((label, k)) for k in CLASSES)
    ]
    return [entry(name, sums, window_seconds) for name in names]


def of_one(counts: Counts, vertical: str, registered: Collection[str], window_seconds: int) -> Coverage:
    """The row of one vertical by its own name, registered or not; `unregistered` sums all that are not."""
    if vertical == UNREGISTERED and vertical not in registered:
        found = [row for row in by_label(counts, registered, window_seconds) if row.vertical == UNREGISTERED]
        return found[0] if found else entry(vertical, {}, window_seconds)
    row = entry(short_name(vertical), counts, window_seconds)
    return row.model_copy(update={"vertical": vertical})


def entry(vertical: str, counts: Counts, window_seconds: int) -> Coverage:
    both, no_trace, no_signal = (counts.get((vertical, kind), 0) for kind in (BOTH, MISSING_TRACE, MISSING_SIGNAL))
    total, unjudged = both + no_trace + no_signal, counts.get((vertical, UNJUDGED), 0)
    return Coverage(
        vertical=vertical,
        window_seconds=window_seconds,
        both_present=both,
        missing_trace=no_trace,
        missing_signal=no_signal,
        unjudged=max(unjudged, 0),  # turns joined by a release before leave what they were never counted as
        rate=both / total if total else None,
    )


async def coverage(
    store: Store, now_ms: int, window_seconds: int, registered: Collection[str], vertical: str | None = None
) -> CoverageAnswer:
    """Coverage in (now - window, now], exact to a second, of one vertical or of all. Raises Unavailable."""
    counts = await read_counts(store, now_ms, window_seconds)
    rows = (
        by_label(counts, registered, window_seconds)
        if vertical is None
        else [of_one(counts, vertical, registered, window_seconds)]
    )
    return CoverageAnswer(window_seconds=window_seconds, until_ms=now_ms, verticals=rows)


@dataclass
class WindowCoverage:
    """The gates' `JoinCoverage`. Of the turns with a user signal or a judged trace, the share with a signal and a
    trace. `state_is_complete` guards the read: half a state shows a rate that no window had."""

    store: Store
    clock: Clock
    registered: Collection[str]
    state_is_complete: Callable[[], AbstractAsyncContextManager[None]] = nullcontext

    async def rate(self, vertical: str | None, window_seconds: int) -> float | None:
        """The rate of one vertical, or of all together; None where the window has no turn. Raises Unavailable."""
        async with self.state_is_complete():
            counts = await read_counts(self.store, self.clock.now_ms(), window_seconds)
        if vertical is not None:
            return of_one(counts, vertical, self.registered, window_seconds).rate
        total = sum(turns for (_, kind), turns in counts.items() if kind in CLASSES)
        both = sum(turns for (_, kind), turns in counts.items() if kind == BOTH)
        return both / total if total else None
