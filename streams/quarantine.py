"""Finds the record that ends the process, and takes it out of the way (promise 6).

A record that kills its worker kills the next one too, and nobody is left to dead-letter it. So each takeover of a
partition notes where it begins: one that begins where the last ones did has died there. From then on the partition's
batches are handled one by one, then records, with nothing else in flight, and each is noted before it is handled. A
record that was handled alone and died each time, `DEATHS` times, is dead-lettered without being handled.

What ends a worker for other reasons names no record: the note of a record is taken back as soon as the worker does
anything else than handling it, such as waiting for Opik, and at every end of the handling but a death.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from typing import Final

import msgspec
import structlog
from faust.types import TP

from agents.join.step import Batch
from agents.keys import FOREVER, TAKEOVER
from agents.ports import Change, Store, Unavailable

log = structlog.get_logger(__name__)
TAKEOVERS: Final = 3
"""So many takeovers that begin at the same record make what comes behind it suspect."""
DEATHS: Final = 3
ALONE_SECONDS: Final = 2.0
"""A record is handled in milliseconds. Where the loop still runs after so long, the worker waits for something else."""
DETAIL: Final = f"a worker died {DEATHS} times while it handled this record alone"


class Takeover(msgspec.Struct, frozen=True):
    """Where the last worker took a partition over (`start`), and how many have begun there (`times`). `base`, `end`:
    what is or was handled alone, -1 for nothing; `deaths`: how often a worker died of it, this time included."""

    start: int
    times: int = 1
    base: int = -1
    end: int = -1
    deaths: int = 0


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Takeover).decode


class Quarantine:
    """What one worker suspects. `in_flight`: the most records of a partition that it handles at once.

    `suspects`: the offset of each partition up to which its records are handled alone, empty where none is suspected.
    `flying`: batches that are handled beside others. Pipelines look at these two themselves, since they do so for every
    batch.
    """

    def __init__(self, store: Store, in_flight: int) -> None:
        self._store, self._in_flight = store, in_flight
        self.suspects: dict[TP, int] = {}
        self.flying = 0
        self._singly: dict[TP, int] = {}
        self._alone = asyncio.Lock()

    async def taken_over(self, partition: TP, start: int, end: int) -> None:
        """Note that this worker takes a partition over at an offset, and suspect what other workers died on. `end`: of
        the partition's records now; where there are none, nobody dies on them."""
        self.release(partition)
        if start >= end:
            return
        held = await self._held(partition)
        if held is not None and held.deaths and held.base <= start < held.end:
            # It was handled alone, and did not come to its end.
            self.suspects[partition] = self._singly[partition] = held.end
            log.warning("suspected", topic=partition.topic, partition=partition.partition, since=start, until=held.end)
            return
        times = held.times + 1 if held is not None and held.start == start else 1
        if times >= TAKEOVERS:
            self.suspects[partition] = min(start + self._in_flight, end)
            log.warning("suspected", topic=partition.topic, partition=partition.partition, since=start, takeovers=times)
        await self._put(partition, Takeover(start, times))

    def release(self, partition: TP) -> None:
        """Suspect nothing of a partition that is no longer ours."""
        self.suspects.pop(partition, None)
        self._singly.pop(partition, None)

    def parts(self, batch: Batch) -> Iterator[Batch]:
        """A batch as it is handled: whole, or record by record where one of them is suspected."""
        singly = self._singly.get(TP(batch.topic, batch.partition), 0)
        alone = [record for record in batch.records if record.offset < singly]
        base = batch.base
        for record in alone:
            yield Batch(batch.topic, batch.partition, base, [record])
            base = record.offset + 1
        if len(alone) < len(batch.records):
            yield Batch(batch.topic, batch.partition, base, batch.records[len(alone) :])

    @asynccontextmanager
    async def admitted(self, part: Batch) -> AsyncIterator[bool]:
        """Inside, handle a part of a batch: a suspect with nothing else in flight, others beside one another. True
        where it is the record to be dead-lettered instead."""
        partition = TP(part.topic, part.partition)
        if self.suspects.get(partition, 0) <= part.base:
            self.release(partition)
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
        noted = Takeover(part.base, 1, part.base, part.end, 1)
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
