"""Reads one shard in order and publishes it to its end. A place moves only once Kafka has the records (promise 1)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any

import structlog

from agents.policy import Attributes
from agents.ports import Clock, Unavailable
from evalcore.stopping import heed_cancel
from schemas.dead_letters import Headers, clean
from streams.dynamodb.client import Busy, Dynamo, Expired, Trimmed
from streams.dynamodb.ledger import ShardLease
from streams.dynamodb.records import created_ms, message_of
from streams.dynamodb.shards import Place
from streams.kafka.client import Producer
from streams.metrics import Metrics
from streams.retry import Retry
from streams.stopping import pause

log = structlog.get_logger(__name__)
RETRY = Retry(first=0.1)
EMPTY_AT_TIP = 3
"""Empty pages in a row after which there is nothing more to read for now; a single one may come before the end."""
STALE_MS = 10_000
"""A shard whose last poll is older than this may hold unpublished records."""


@dataclass(eq=False, repr=False)
class ShardReader:
    """Publishes one shard. `gap` is told of places that are lost: (stream, shard, reason, from ms, sequence). `idle`:
    seconds between polls. `polled_at`: when the last page that was published was asked for (ms).

    Readers share `polls`, each of which covers a page from its request until it is published: that bounds connections
    and memory, however many shards there are. `since_ms`: from when on an unread shard may hold unpublished records.
    """

    lease: ShardLease
    pages: Dynamo
    sender: Producer
    topic: str
    names: Attributes
    clock: Clock
    metrics: Metrics
    gap: Callable[[str, str, str, int, str | None], Awaitable[None]]
    _: KW_ONLY
    stopping: asyncio.Event
    max_bytes: int
    polls: asyncio.Semaphore
    since_ms: int = 0
    idle: float = 0.15
    published: int = 0
    at_tip: bool = False
    polled_at: int = 0
    trouble: str = ""

    def __post_init__(self) -> None:
        self._iterator: str | None = None
        self._empty = self._failures = 0
        self._writing = asyncio.Lock()

    @property
    def behind_ms(self) -> int:
        """Age of the oldest record that may be unpublished."""
        now = self.clock.now_ms()
        if self.at_tip and not self.trouble:
            unpolled = now - self.polled_at
            return unpolled if unpolled > STALE_MS else 0
        since = self.lease.place.time or self.since_ms
        return max(now - since, 0) if since else 0

    async def run(self) -> None:
        """Return at the shard's end or once `stopping` is set. Raises LeaseLost, Gone or Misconfigured."""
        while not self.stopping.is_set():
            heed_cancel()
            try:
                if not self.lease.valid:
                    await self._keep()
                async with self.polls:
                    if self.stopping.is_set():
                        return
                    asked_at = self.clock.now_ms()
                    more = await self._step()
                if self.lease.place.end:
                    return
            except (Busy, Unavailable) as error:
                self._failures += 1
                seconds = RETRY.pause(self._failures)
                self.trouble = clean(str(error))
                log.warning("feed_waiting", shard=self.lease.shard_id, reason=self.trouble, seconds=round(seconds, 2))
                await pause(seconds, self.stopping)
            else:
                self._failures, self.trouble, self.polled_at = 0, "", asked_at
                if not more:
                    await pause(self.idle, self.stopping)

    async def beat(self) -> None:
        """Renew the lease and, at the tip, note that all until now is published. Raises as ShardLease.keep does."""
        async with self._writing:
            place = self.lease.place
            caught_up = self.at_tip and not self.trouble and not place.end
            await self.lease.keep(Place(place.seq, self.polled_at, tip=True) if caught_up else None)

    async def _step(self) -> bool:
        """Read and publish a page; returns True where the next should follow at once."""
        if self._iterator is None:
            self._iterator = await self._open()
        try:
            records, following = await self.pages.records(self._iterator)
        except Expired:
            log.info("feed_iterator_expired", shard=self.lease.shard_id, after=self.lease.place.seq)
            self._iterator = None
            return True
        except Trimmed:
            await self._lost("trimmed")
            return True
        if records:
            self._empty, self.at_tip = 0, False
            await self._publish(records)
        else:
            self._empty += 1
            self.at_tip = self._empty >= EMPTY_AT_TIP
        self._iterator = following
        if following is None:
            place = self.lease.place
            await self._keep(Place(place.seq, place.time, end=True))
        return bool(records)

    async def _open(self) -> str:
        """An iterator after the last published record, or after a reported gap."""
        place, shard_id = self.lease.place, self.lease.shard_id
        if place.outlived(self.clock.now_ms()):
            await self._lost("older than 24 hours")
        elif place.seq is not None:
            try:
                return await self.pages.iterator(self.lease.arn, shard_id, place.seq)
            except Trimmed:
                # Nothing is lost if all was published at a time that the stream still covers.
                if place.tip:
                    log.info("feed_place_trimmed", shard=shard_id, lost=False)
                else:
                    await self._lost("trimmed")
        return await self.pages.iterator(self.lease.arn, shard_id, None)

    async def _lost(self, reason: str) -> None:
        """Report a gap, then go to the oldest record there is."""
        place = self.lease.place
        await self.gap(self.lease.arn, self.lease.shard_id, reason, place.time, place.seq)
        await self._keep(Place())
        self._iterator = None

    async def _publish(self, records: list[Any]) -> None:
        """Send a page, then move the place. A crash in between publishes the page again, and loses nothing."""
        messages: list[tuple[str, bytes, bytes, Headers]] = []
        for record in records:
            key, value = message_of(record, self.lease.arn, self.names, self.max_bytes)
            if value is None:
                sequence = record["dynamodb"]["SequenceNumber"]
                log.error("feed_record_too_large", shard=self.lease.shard_id, sequence=sequence, limit=self.max_bytes)
                self.metrics.feed_records.labels("skipped").inc()
                reason = "a record is too large for Kafka"
                await self.gap(self.lease.arn, self.lease.shard_id, reason, created_ms(record) or 0, sequence)
            else:
                messages.append((self.topic, key, value, ()))
        if not self.lease.valid:
            await self._keep()  # so that a feed that was away does not publish beside the one that took over
        try:
            await self.sender.send(messages)
        except Unavailable:
            self.metrics.feed_records.labels("failed").inc(len(messages))
            raise
        last = records[-1]
        await self._keep(Place(last["dynamodb"]["SequenceNumber"], created_ms(last) or self.clock.now_ms()))
        self.published += len(messages)
        self.metrics.feed_records.labels("published").inc(len(messages))

    async def _keep(self, place: Place | None = None) -> None:
        """Renew the lease, and move the place where one is given."""
        async with self._writing:
            await self.lease.keep(place)
