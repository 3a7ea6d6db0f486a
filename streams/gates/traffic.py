"""Reads a window's eligible turns and the pools of their last records in one step (contracts §3), and guards such
reads."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from faust.types import TP

from agents.join.counting import (
    CONSUMED,
    GAP,
    LETTERS,
    OF_PRODUCTION,
    RATED,
    REROLLED,
    UNREADABLE,
    short_name,
)
from agents.join.versions import Came
from agents.keys import (
    AGENT_TEXT,
    CONSERVATION,
    COVERAGE,
    KNOWN_NAME,
    POOL_EDGE,
    REFUSED,
    TURN_POOL,
    UNNAMED,
    WATERMARK,
    Key,
    names_of,
    pool_place,
    spelled,
)
from agents.ports import Store, Unavailable
from evalcore.gates.composition import BEYOND, Traffic
from evalcore.scoring.sampling import PooledTurn, in_window
from schemas.outcomes import Kind
from schemas.settings import KafkaAccess
from streams.kafka.offsets import GroupOffsets, KafkaOffsets
from streams.queries.coverage import HOUR_SECONDS, Piece, counted, pieces

REBUILDING: Final = "the join state is being rebuilt from the topics"
RUNNING_SECONDS: Final = 3_600
"""A trace that has not ended for so long is left out; a younger one is no one's evidence yet."""
RECORD_NOT_COME, DEAD_LETTERED, NOT_ENDED = "record_not_come", "dead_lettered", "not_ended"
SIGNALS: Final = {"rated": RATED, "rerolled": REROLLED}
_ELIGIBLE: Final = {Came.NOT_COME: RECORD_NOT_COME, Came.DEAD: DEAD_LETTERED}
_WAITING: Final = -1
"""The standing, here alone, of a running turn whose trace may wait for its workflow."""
_REFUSED, _UNNAMED = spelled(REFUSED), spelled(UNNAMED)


@dataclass(frozen=True)
class Scope:
    """Whose turns: of a version of the agent from any environment, or from production of any version (None); of one
    vertical, or of all (None)."""

    agent: str
    version: str | None
    vertical: str | None

    @property
    def names(self) -> str:
        """The hashed names as text; of the agent alone for any version."""
        whole = spelled(names_of(self.agent, self.version or self.agent))
        return whole if self.version is not None else whole[:AGENT_TEXT]

    def has(self, vertical: str, token: str) -> bool:
        """Whether a counter's turns are of this scope."""
        if self.vertical is not None and vertical != short_name(self.vertical):
            return False
        if self.version is not None:
            return token[3:] == self.names
        return token[3 : 3 + AGENT_TEXT] == self.names and bool(int(token[2]) & OF_PRODUCTION)


@dataclass
class Window:
    """The account of the `seconds` up to `until_ms`, and their turns that may be drawn. Of each signal `carry` of the
    `population` of turns whose record came carry it. `turns`: the stored turns that were asked for beside it."""

    until_ms: int
    seconds: int
    traffic: Traffic
    drawable: list[PooledTurn]
    population: int
    carry: dict[str, int]
    turns: list[bytes] = field(default_factory=list)


@dataclass
class _Counts:
    """Turns of a span of time by standing, and by standing and signal. `waits`: cut names of verticals."""

    waits: frozenset[str] = frozenset()
    came: Counter[int] = field(default_factory=Counter)
    signals: dict[str, Counter[int]] = field(default_factory=lambda: {name: Counter() for name in SIGNALS})
    unnamed: int = 0
    refused: int = 0

    def add(self, scope: Scope, found: Iterable[tuple[str, str, int]]) -> None:
        for vertical, token, turns in found:
            if len(token) == 1:
                continue
            self.unnamed += turns if token[3:] == _UNNAMED else 0
            self.refused += turns if token[3:] == _REFUSED else 0
            if scope.has(vertical, token):
                came, bits = LETTERS.index(token[1]), int(token[2])
                if came == Came.RUNNING and vertical in self.waits:
                    came = _WAITING
                self.came[came] += turns
                for name, bit in SIGNALS.items():
                    if bits & bit:
                        self.signals[name][came] += turns


async def read_window(
    store: Store,
    scope: Scope,
    now_ms: int,
    window_seconds: int,
    turns: Sequence[Key] = (),
    waits: Iterable[str] = (),
) -> Window:
    """Return the account of the turns that ended in (now - window, now], to the second; one that runs for
    RUNNING_SECONDS is left out of it, and at once in the verticals `waits`, whose traces wait for their workflows.
    Raises Unavailable."""
    until = now_ms // 1000
    since = until - window_seconds
    hours = range((since + 1) // HOUR_SECONDS, until // HOUR_SECONDS + 1)
    parts = {hour: _blocks(hour, since, until) for hour in hours}
    # Younger running turns are no one's evidence: of the hour in which that begins only a part counts.
    running, waiting = max(since, until - RUNNING_SECONDS), frozenset(map(short_name, waits))
    young = {hour: _blocks(hour, since, running) for hour in hours}
    places = [pool_place(scope.vertical and short_name(scope.vertical), scope.names, hour) for hour in hours]
    blocks = list(dict.fromkeys(part.key for some in (parts, young) for of in some.values() for part in of or ()))
    lists = (
        [COVERAGE.key(hour) for hour in hours],
        [POOL_EDGE.key(*place) for place in places],
        [CONSERVATION.key(hour, Kind.TRACE) for hour in hours],
        blocks,
    )
    known = KNOWN_NAME.key(scope.names)
    seen = await store.at_once(
        [known, *turns], [key for keys in lists for key in keys], [TURN_POOL.key(*place) for place in places]
    )
    counts = iter(seen.counts)
    first, rims, records, edges = (list(islice(counts, len(keys))) for keys in lists)
    by_block = dict(zip(blocks, edges, strict=True))
    total, left_out, signals = 0, Counter[str](), dict.fromkeys(SIGNALS, 0)
    difference = population = unnamed = refused = cut = 0
    carry, pools, limit = dict.fromkeys(SIGNALS, 0), [], None
    for number, hour in enumerate(hours):
        whole = _Counts(waiting)
        whole.add(scope, counted([(Piece("", True, 0, 0), first[number])]))
        within = _within(scope, whole, parts[hour], by_block)
        ended = _within(scope, whole, young[hour], by_block)
        pool, rim = seen.pools[number], rims[number]
        members = in_window(pool, since, until)
        wrong = abs(whole.came[Came.POOLED] - len(pool) - rim.get("beyond", 0))
        beyond = within.came[Came.POOLED] - len(members)
        if beyond < 0 or (beyond and "edge" not in rim):
            wrong = max(wrong, abs(beyond))
        elif beyond:
            limit = min(limit or rim["edge"], rim["edge"])
            cut += rim["beyond"] if parts[hour] is None else beyond
        difference += wrong
        pools.append(members)
        population += within.came[Came.POOLED]
        for came, reason in _ELIGIBLE.items():
            left_out[reason] += within.came[came]
        left_out[NOT_ENDED] += ended.came[Came.RUNNING] + within.came[_WAITING]
        total += sum(within.came.values()) - within.came[Came.RUNNING] + ended.came[Came.RUNNING]
        for name in SIGNALS:
            of = within.signals[name]
            carry[name] += of[Came.POOLED]
            signals[name] += sum(of.values()) - of[Came.RUNNING] + ended.signals[name][Came.RUNNING]
        unnamed += within.unnamed
        if seen.values[0] and hour <= int(seen.values[0]):
            refused += whole.refused
    drawable = _drawable(pools, limit)
    left_out[BEYOND] = cut + sum(map(len, pools)) - len(drawable)
    gaps = sum(fields.get(GAP, 0) for fields in records)
    traffic = Traffic(
        eligible=total,
        pooled=len(drawable),
        left_out={reason: many for reason, many in left_out.items() if many},
        difference=difference,
        signals=signals,
        records=sum(fields.get(CONSUMED, 0) for fields in records),
        unreadable=sum(fields.get(UNREADABLE, 0) for fields in records) + gaps,
        unnamed=unnamed,
        refused=refused,
    )
    return Window(now_ms, window_seconds, traffic, drawable, population, carry, seen.values[1:])


def _drawable(pools: Iterable[dict[bytes, PooledTurn]], limit: int | None) -> list[PooledTurn]:
    """Return the turns below the lowest edge that cut any of the window's turns, each by its last place."""
    found: dict[bytes, PooledTurn] = {}
    for members in pools:
        for turn, one in members.items():
            if (limit is None or one.number < limit) and (turn not in found or one.later(found[turn])):
                found[turn] = one
    return list(found.values())


def _within(scope: Scope, whole: _Counts, part: list[Piece] | None, blocks: dict[Key, dict[str, int]]) -> _Counts:
    """Return the counts of a part of an hour; None is the whole one."""
    if part is None:
        return whole
    out = _Counts(whole.waits)
    out.add(scope, counted((piece, blocks[piece.key]) for piece in part))
    return out


def _blocks(hour: int, since: int, until: int) -> list[Piece] | None:
    """Return the pieces of an hour's seconds in (since, until]; None where that is the whole hour."""
    found = pieces(max(hour * HOUR_SECONDS, since + 1), min((hour + 1) * HOUR_SECONDS - 1, until))
    return None if found and found[0].whole else found


class StateCompleteness:
    """Tells whether the state holds all that a group has settled of some topics: gates must not see half of it
    (promises 1 and 4).

    The watermarks show a Redis that was emptied, no matter which worker holds the partitions: they are gone, or below
    what the group has committed, until the records are read again. So each worker can tell, even before another has
    noticed.
    """

    def __init__(self, store: Store, access: KafkaAccess, group: str, topics: Sequence[str]) -> None:
        self._store = store
        self._committed, self._offsets = GroupOffsets(access, group, topics), KafkaOffsets(access, tries=2)

    async def close(self) -> None:
        await self._committed.close()
        await self._offsets.close()

    @asynccontextmanager
    async def guard(self) -> AsyncIterator[None]:
        """Guard a read: inside, the state is complete. Raises Unavailable at the start where it is not, and at the end
        where it was lost meanwhile."""
        committed = await self._committed.committed()
        before = await self._marks(list(committed))
        short = {TP(*place): committed[place] for place, mark in before.items() if mark < committed[place]}
        if short:
            # More was committed of a topic than it holds now, where the topic was deleted and made again.
            ends = await self._offsets.ends(short)
            if any(before[partition] < min(offset, ends[partition]) for partition, offset in short.items()):
                raise Unavailable(REBUILDING)
        yield
        after = await self._marks(list(committed))
        if any(after[place] < mark for place, mark in before.items()):
            raise Unavailable(REBUILDING)

    async def _marks(self, places: Sequence[tuple[str, int]]) -> dict[tuple[str, int], int]:
        """The watermark of each partition: the state holds every record below it; -1 where there is none."""
        held = (
            await self._store.read([WATERMARK.key(topic, partition) for topic, partition in places]) if places else []
        )
        return {place: int(mark) if mark else -1 for place, mark in zip(places, held, strict=True)}
