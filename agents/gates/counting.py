"""Conservation of ramp-step requests, whose records end in any order (promises 2 and 3, contracts §2).

What a record ends as follows from the verdicts' topic alone, so a record that is read again ends as it did. That it is
counted once is held here, beside the counters and moved with them in one step: below the partition's watermark all
records are counted, and of those above it, which ones. A request that is being decided is not counted yet.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from agents.join.batches import FOREVER, Batch, arrival
from agents.join.counting import CONSUMED, HOUR, count_tallies
from agents.join.step import ATTEMPTS, Report, exhausted
from agents.keys import COUNTED, WATERMARK
from agents.ports import Change, Clock, Store, Unavailable
from schemas.dead_letters import Record
from schemas.outcomes import Kind

Place = tuple[str, int]
"""Topic and partition."""
Span = tuple[int, int]
"""Offsets from the first up to the second, which is outside."""


@dataclass(frozen=True, eq=False, slots=True)
class Ended:
    """A record's end, `name` a field of conservation. `since`: there is no other record between it and this one."""

    since: int
    record: Record
    name: str


class RampCounting:
    """`end` returns once the record is counted, by this call or an earlier one. `observe` is told what was."""

    def __init__(self, store: Store, clock: Clock, lookback_ms: int, observe: Callable[[Report], None]) -> None:
        self._store, self._clock, self._lookback, self._observe = store, clock, lookback_ms, observe
        self._waiting: defaultdict[Place, dict[Ended, None]] = defaultdict(dict)
        self._steps: defaultdict[Place, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def end(self, batch: Batch, ended: Ended) -> None:
        """Those who come while a step is under way share the next. Raises Unavailable, also where the watermark is
        gone: then the state was lost, and the partition is about to be read again."""
        place = batch.topic, batch.partition
        waiting = self._waiting[place]
        waiting[ended] = None
        try:
            async with self._steps[place]:
                if ended in waiting:
                    many = list(waiting)
                    await self._count(place, many)
                    for one in many:
                        waiting.pop(one, None)
        finally:
            waiting.pop(ended, None)

    async def counted(self, batch: Batch, record: Record) -> bool:
        """Whether somebody counted it. Raises Unavailable."""
        mark, held = await self._store.read([batch.watermark_key, COUNTED.key(batch.topic, batch.partition)])
        return bool(mark) and inside(record.offset, counted(int(mark), held))

    async def _count(self, place: Place, many: Sequence[Ended]) -> None:
        mark_key, above_key = WATERMARK.key(*place), COUNTED.key(*place)
        for _ in range(ATTEMPTS):
            now = self._clock.now_ms()
            mark, held = await self._store.read([mark_key, above_key])
            if not mark:
                raise Unavailable(f"the watermark {mark_key} is gone: its partition is read again")
            spans = counted(int(mark), held)
            # A record that was read again may wait beside itself.
            fresh = {one.record.offset: one for one in many if not inside(one.record.offset, spans)}.values()
            tallies: dict[tuple[Kind, int, str], int] = {}
            report = Report()
            for one in fresh:
                hour = arrival(one.record, now, self._lookback) // HOUR
                for name in (CONSUMED, one.name):
                    key = (Kind.RAMP_STEP, hour, name)
                    tallies[key] = tallies.get(key, 0) + 1
                    report.counts[Kind.RAMP_STEP, name] = report.counts.get((Kind.RAMP_STEP, name), 0) + 1
            change = Change(checks={mark_key: mark, above_key: held})
            (_, end), *rest = joined([*spans, *((one.since, one.record.offset + 1) for one in fresh)])
            change.sets = {mark_key: (str(end).encode(), FOREVER), above_key: (written(end, rest), FOREVER)}
            count_tallies(change, tallies, now, self._lookback)
            if not await self._store.apply(change):
                self._observe(report)
                return
        raise exhausted()


def counted(mark: int, held: bytes) -> list[Span]:
    """The offsets that are counted, in order; the first span is all below the watermark. What was noted above a higher
    watermark is of a topic that was made anew. A watermark rises alone where Kafka forgets what nobody has read."""
    noted, *spans = held.decode().split() or ["0"]
    above = [(int(start), int(end)) for start, _, end in (span.partition("-") for span in spans)]
    return joined([(0, mark), *above]) if int(noted) <= mark else [(0, mark)]


def written(mark: int, above: Iterable[Span]) -> bytes:
    return " ".join([str(mark), *(f"{start}-{end}" for start, end in above)]).encode()


def inside(offset: int, spans: Sequence[Span]) -> bool:
    """Of spans in order."""
    return offset < spans[bisect_right(spans, offset, key=lambda span: span[0]) - 1][1]


def joined(spans: Iterable[Span]) -> list[Span]:
    """The same offsets, in order, in as few spans as can be."""
    out: list[Span] = []
    for start, end in sorted(spans):
        if out and start <= out[-1][1]:
            out[-1] = (out[-1][0], max(end, out[-1][1]))
        else:
            out.append((start, end))
    return out
