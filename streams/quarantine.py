"""Finds the record that ends the process, and takes it out of the way (promise 6).

A record that kills its worker kills the next one too, and no one is left to dead-letter it. So each takeover of a
partition notes how far it is settled: one that finds it where the last ones did has died there. From then on the
partition's batches are handled one by one, then records, with nothing else in flight, and each is noted before it is
handled. A record that was handled alone and died each time, `DEATHS` times, is dead-lettered without being handled. So
it stays where it is read once more, by a worker that comes before its offset is committed.

What ends a worker for other reasons names no record: the note of a record is taken back as soon as the worker does
anything else than handling it, such as waiting for Opik, and at every end of the handling but a death.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from itertools import groupby
from typing import Final

import msgspec
import structlog
from faust.types import TP

from agents.join.batches import Batch
from agents.keys import FOREVER, TAKEOVER, WATERMARK
from agents.ports import Change, Store, Unavailable
from schemas.dead_letters import Record

log = structlog.get_logger(__name__)
TAKEOVERS: Final = 3
"""So many takeovers that find a partition settled up to the same record make what comes from there on suspect."""
DEATHS: Final = 3
KEPT: Final = 64
"""So many records of a partition are remembered that are not to be handled again, the last ones."""
ALONE_SECONDS: Final = 2.0
"""A record is handled in milliseconds. Where the loop still runs after so long, the worker waits for something else."""
BEFORE, BEHIND = -1, -2
"""Parts of a batch that are handled whole: what was settled before, and what no one suspects."""
DETAIL: Final = f"a worker died {DEATHS} times while it handled this record alone"


class Takeover(msgspec.Struct, frozen=True):
    """Up to where a partition was settled when the last worker took it over (`start`), and how many found it there
    (`times`). `base`, `end`: what is or was handled alone, -1 for nothing; `deaths`: how often a worker died of it,
    this time included. `deadly`: the offsets of those that were dead-lettered for it."""

    start: int
    times: int = 1
    base: int = -1
    end: int = -1
    deaths: int = 0
    deadly: tuple[int, ...] = ()


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Takeover).decode


class Quarantine:
    """What one worker suspects. `in_flight`: the most records of a partition that it handles at once.

    `suspects`: the offset of each partition up to which its records are handled alone, empty where none is suspected.
    `_since`: the offset from which on; `_singly`: the one up to which that is record by record. `deadly`: the offsets
    of records that no one may handle again.
    `flying`: batches that are handled beside others. Pipelines look at these two themselves, since they do so for every
    batch.
    """

    def __init__(self, store: Store, in_flight: int) -> None:
        self._store, self._in_flight = store, in_flight
        self.suspects: dict[TP, int] = {}
        self.flying = 0
        self._since: dict[TP, int] = {}
        self._singly: dict[TP, int] = {}
        self.deadly: dict[TP, tuple[int, ...]] = {}
        self._alone = asyncio.Lock()

    async def taken_over(self, partition: TP, start: int, end: int) -> None:
        """Note that this worker takes a partition over and reads it from `start`, and suspect what other workers died
        on. `end`: of the partition's records now; where there are none, no one dies on them.

        What counts is how far it is settled. Where the group has committed less, all up to there is read again first:
        that start may be the same for ever, and no worker has died of what lies in between.
        """
        self.release(partition)
        if start >= end:
            return
        note, mark = await self._store.read([TAKEOVER.key(*partition), WATERMARK.key(*partition)])
        held, settled = _decode(note) if note else None, max(start, int(mark or 0))
        self.deadly[partition] = held.deadly if held is not None else ()
        after = max((offset + 1 for offset in self.deadly[partition] if offset >= start), default=0)
        if after:
            self.suspects[partition] = self._since[partition] = after
        if held is not None and held.deaths and held.base <= settled < held.end:
            # It was handled alone, and did not come to its end.
            self.suspects[partition], self._singly[partition] = max(held.end, after), held.end
            self._since[partition] = settled
            log.warning(
                "suspected", topic=partition.topic, partition=partition.partition, since=settled, until=held.end
            )
            return
        times = held.times + 1 if held is not None and held.start == settled else 1
        if times >= TAKEOVERS:
            self.suspects[partition] = max(min(settled + self._in_flight, end), after)
            self._since[partition] = settled
            log.warning(
                "suspected", topic=partition.topic, partition=partition.partition, since=settled, takeovers=times
            )
        await self._put(partition, Takeover(settled, times, deadly=self.deadly[partition]))

    def release(self, partition: TP) -> None:
        """Suspect nothing of a partition that is no longer ours."""
        for offsets in (self.suspects, self._since, self._singly):
            offsets.pop(partition, None)
        self.deadly.pop(partition, None)

    def parts(self, batch: Batch) -> Iterator[Batch]:
        """A batch as it is handled: whole, but what was settled before in a part of its own, and record by record where
        one of them is suspected or known to end the process."""
        partition = TP(batch.topic, batch.partition)
        since, singly = self._since.get(partition, 0), self._singly.get(partition, 0)
        deadly = self.deadly.get(partition, ())

        def part_of(record: Record) -> int:
            if since <= record.offset < singly or record.offset in deadly:
                return record.offset
            return BEFORE if record.offset < since else BEHIND

        base = batch.base
        for _, group in groupby(batch.records, part_of):
            records = list(group)
            yield Batch(batch.topic, batch.partition, base, records)
            base = records[-1].offset + 1

    @asynccontextmanager
    async def admitted(self, part: Batch) -> AsyncIterator[bool]:
        """Inside, handle a part of a batch: a suspect with nothing else in flight, others beside one another. True
        where it is the record to be dead-lettered instead."""
        partition = TP(part.topic, part.partition)
        known = self.deadly.get(partition, ())
        if len(part.records) == 1 and part.end - 1 in known:
            yield True
            return
        passed = self.suspects.get(partition, 0) <= part.base
        if passed:
            self.release(partition)
        if passed or part.end <= self._since.get(partition, 0):
            async with self._alone:
                self.flying += 1
            try:
                yield False
            finally:
                self.flying -= 1
            return
        async with self._alone:
            busy = self.flying
            while busy:  # what is in flight ends by itself, or is abandoned
                await asyncio.sleep(0.01)
                busy = self.flying
            noted = await self._note(partition, part)
            if len(part.records) == 1 and noted.deaths > DEATHS:
                log.error("quarantined", topic=part.topic, partition=part.partition, offset=part.end - 1)
                self.deadly[partition] = (*known, part.end - 1)[-KEPT:]
                with suppress(Unavailable):
                    await self._put(partition, msgspec.structs.replace(noted, deadly=self.deadly[partition]))
                yield True
                return
            waits = asyncio.create_task(self._waits(partition, noted))
            try:
                yield False
            finally:
                waits.cancel()
                await asyncio.gather(waits, return_exceptions=True)
                await self._take_back(partition, noted)

    async def _note(self, partition: TP, part: Batch) -> Takeover:
        """Note that a part is about to be handled alone; how often it has been, without an end, counts this time."""
        noted = Takeover(part.base, 1, part.base, part.end, 1, self.deadly.get(partition, ()))
        with suppress(Unavailable):
            held = await self._held(partition)
            if held is not None and (held.base, held.end) == (part.base, part.end):
                noted = msgspec.structs.replace(noted, deaths=held.deaths + 1)
            await self._put(partition, noted)
        return noted

    async def _waits(self, partition: TP, noted: Takeover) -> None:
        await asyncio.sleep(ALONE_SECONDS)
        await self._take_back(partition, noted)

    async def _take_back(self, partition: TP, noted: Takeover) -> None:
        """This time was no death."""
        with suppress(Unavailable):
            await self._put(partition, msgspec.structs.replace(noted, deaths=noted.deaths - 1))

    async def _held(self, partition: TP) -> Takeover | None:
        (held,) = await self._store.read([TAKEOVER.key(*partition)])
        return _decode(held) if held else None

    async def _put(self, partition: TP, takeover: Takeover) -> None:
        await self._store.apply(Change(sets={TAKEOVER.key(*partition): (_encode(takeover), FOREVER)}))
