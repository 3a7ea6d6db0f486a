"""The feed: publishes a table's DynamoDB stream on the thumbs topic, in order per item (contracts §1).

All open shards are read, parents before children. Feeds share the shards of a stream by leases in Redis; a feed
that holds no lease stands by. Each record is published at least once: consumers take a repeated sequence number as a
duplicate. Where records may be lost on their way from the table, the feed reports a gap: in the log, as a metric, and
in Redis, where people and `/readyz` see it.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from dataclasses import dataclass, field

import structlog

from agents.policy import Attributes
from agents.ports import Clock, Unavailable
from evalcore.stopping import heed_cancel
from schemas.dead_letters import clean
from streams.dynamodb.client import Busy, Described, Dynamo, Gone, Misconfigured
from streams.dynamodb.ledger import LeaseLost, Ledger, ShardLease, label
from streams.dynamodb.shard_reader import STALE_MS, ShardReader
from streams.dynamodb.shards import Place, Shard, readable, unlisted
from streams.kafka.client import Producer
from streams.metrics import Metrics
from streams.retry import Retry
from streams.stopping import pause

log = structlog.get_logger(__name__)
NOWHERE = Place()
STOP_SECONDS = 10.0
"""Readers have this long to end their page when the feed stops."""


@dataclass(frozen=True)
class Pace:
    """How often the feed looks, in seconds: `idle` between polls of a shard, `look` between looks at leases, `describe`
    between listings of shards. `polls`: how many shards are polled at the same moment; all are read. `once`: end when
    all there is has been published.
    """

    idle: float = 0.15
    look: float = 0.5
    describe: float = 5.0
    polls: int = 16
    once: bool = False


class Gaps:
    """Reports the gaps of one feed; `count` is how many it reported."""

    def __init__(self, ledger: Ledger, clock: Clock, metrics: Metrics) -> None:
        self._ledger, self._clock, self._metrics = ledger, clock, metrics
        self._missing: set[str] = set()
        self.count = 0

    async def report(self, arn: str, shard: str, reason: str, since_ms: int = 0, sequence: str | None = None) -> None:
        """Report that records after `since_ms` and `sequence` may be lost; all before them were published."""
        log.error("feed_gap", shard=shard, reason=reason, since_ms=since_ms, after=sequence, remedy="rampgate sweep")
        now = self._clock.now_ms()
        gap = {"at_ms": now, "stream": label(arn), "shard": shard, "reason": reason}
        await self._ledger.add_gap(gap | {"since_ms": since_ms, "sequence": sequence})
        self.count += 1
        self._metrics.feed_gaps.inc()

    async def account_for(self, arn: str, listed: list[Shard], reading: set[str], *, sure: bool) -> None:
        """Report unread shards that are missing from this listing and the one before, and forget read ones that are
        gone. Call it with each listing: a single one may be torn by a reshard. `sure`: there will be no second."""
        places: dict[str, Place] = await self._ledger.places(arn)
        names = [shard.shard_id for shard in listed]
        gone = set(unlisted(names, places, read=False)) - reading
        lost = sorted(gone if sure else gone & self._missing)
        self._missing = gone
        for shard in lost:
            await self.report(arn, shard, "the shard is gone", places[shard].time, places[shard].seq)
        await self._ledger.forget(arn, lost + unlisted(names, places, read=True))


@dataclass
class Feed:
    """Reads the table's streams one after another. `trouble` says what it waits for, empty while all is well.

    `waiting`: shards that may be read and that no feed reads yet, each with the time (ms) from which on it may hold
    unpublished records.
    """

    source: Dynamo
    ledger: Ledger
    sender: Producer
    topic: str
    names: Attributes
    clock: Clock
    metrics: Metrics
    pace: Pace = Pace()
    max_bytes: int = 1_000_000
    published: int = 0
    gaps: Gaps = field(init=False)
    arn: str = ""
    trouble: str = "looking for the table"
    readers: dict[str, ShardReader] = field(default_factory=dict)
    held_elsewhere: set[str] = field(default_factory=set)
    waiting: dict[str, int] = field(default_factory=dict)
    _tasks: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    _held_since: dict[str, float] = field(default_factory=dict)
    _stopping: asyncio.Event = field(default_factory=asyncio.Event)
    _wake: asyncio.Event = field(default_factory=asyncio.Event)
    _polls: asyncio.Semaphore = field(init=False)

    def __post_init__(self) -> None:
        self.gaps = Gaps(self.ledger, self.clock, self.metrics)
        self._polls = asyncio.Semaphore(self.pace.polls)

    def stop(self) -> None:
        self._stopping.set()
        self._wake.set()

    async def run(self) -> None:
        """Publish until `stop` is called, or, with `once`, until there is nothing left. Raises Misconfigured."""
        beats = asyncio.create_task(self._beat(), name="feed-beat")
        try:
            while not self._stopping.is_set():
                self.arn = await self._locate()
                if not self.arn or not await self._follow(self.arn):
                    return
        finally:
            beats.cancel()
            await asyncio.gather(beats, return_exceptions=True)
            await self._let_go()

    @property
    def total(self) -> int:
        """Records published since the start."""
        return self.published + sum(reader.published for reader in self.readers.values())

    @property
    def behind_seconds(self) -> float:
        """Age of the oldest record that may be unpublished, in a shard that is read or that waits to be."""
        now = self.clock.now_ms()
        behind = [reader.behind_ms for reader in self.readers.values()]
        return max([*behind, *(now - since for since in self.waiting.values()), 0]) / 1000

    async def _locate(self) -> str:
        """The ARN of the stream to read next, as soon as there is one; "" when the feed is stopped first."""
        failures = 0
        while not self._stopping.is_set():
            heed_cancel()
            try:
                return await self._next_stream()
            except (Busy, Gone, Unavailable) as error:
                self.trouble = clean(str(error))
            log.warning("feed_waiting", reason=self.trouble)
            failures += 1
            await pause(Retry().pause(failures), self._wake)
        return ""

    async def _next_stream(self) -> str:
        """The ARN of the table's latest stream, or first of one that was replaced and still has records.

        Raises Gone while there is no table, or Misconfigured where `once` forbids to wait for it. What changed between
        two streams is in neither, so a replaced stream is a gap.
        """
        try:
            latest = await self.source.latest_stream()
        except Gone as error:
            if self.pace.once:
                raise Misconfigured(f"no such table: {error}") from error
            raise Gone(f"waiting for the table: {error}") from error
        known = await self.ledger.stream()
        if known is not None and known not in (latest, self.arn):
            with suppress(Gone):
                await self.source.describe(known)
                log.warning("feed_older_stream", stream=label(known), latest=label(latest))
                return known
        if known is not None and known != latest:
            await self.gaps.report(known, "", f"the stream was replaced by {label(latest)}")
        await self.ledger.set_stream(latest)
        log.info("feed_found_stream", stream=latest)
        return latest

    async def _follow(self, arn: str) -> bool:
        """Read a stream to its end, or until stopped. Returns True where another stream is to be looked for."""
        described: Described | None = None
        read_at, self.waiting = 0.0, {}
        while not self._stopping.is_set():
            heed_cancel()
            self._wake.clear()
            try:
                if described is None or self._ended() or time.monotonic() - read_at > self.pace.describe:
                    described, read_at = await self.source.describe(arn), time.monotonic()
                    await self.gaps.account_for(arn, described.shards, set(self._tasks), sure=self.pace.once)
                done = await self._look(arn, described)
                self.trouble = ""
            except Gone:
                await self.gaps.report(arn, "", "the stream is gone")
                return not self.pace.once
            except (Busy, Unavailable) as error:
                done, self.trouble = False, clean(str(error))
                log.warning("feed_waiting", reason=self.trouble, shards_unread=len(self.waiting))
            self._measure()
            if done and described is not None and (described.ended or self.pace.once):
                return not self.pace.once
            await pause(self.pace.look, self._wake)
        return False

    async def _look(self, arn: str, described: Described) -> bool:
        """Start readers of shards that may be read and are free, and take ended ones away. Returns True where nothing
        is left to publish."""
        ended = await self._reap()
        places = await self.ledger.places(arn)
        done = {shard for shard, place in places.items() if place.end}
        free = [shard.shard_id for shard in readable(described.shards, done) if shard.shard_id not in self._tasks]
        self.held_elsewhere = set()
        now = self.clock.now_ms()
        self.waiting = {
            shard_id: self.waiting.get(shard_id, 0) or places.get(shard_id, NOWHERE).time or now for shard_id in free
        }
        for shard_id in free:
            lease = await self.ledger.claim(arn, shard_id)
            since = self.waiting.pop(shard_id)
            if lease is None:
                self.held_elsewhere.add(shard_id)
            elif lease.place.end:
                await lease.release()
            else:
                self._start(lease, since)
        self._held_since = {shard: self._held_since.get(shard, time.monotonic()) for shard in self.held_elsewhere}
        if ended or (described.ended and self.readers):
            return False
        ours = [shard_id for shard_id in free if not (self.pace.once and self._left_to_others(shard_id))]
        return not ours and all(reader.at_tip and not reader.trouble for reader in self.readers.values())

    def _left_to_others(self, shard_id: str) -> bool:
        """True where another feed has held the shard for longer than the lease of a dead feed lasts."""
        since = self._held_since.get(shard_id)
        return since is not None and time.monotonic() - since > self.ledger.lease_ms / 1000 * 1.5

    def _start(self, lease: ShardLease, since_ms: int) -> None:
        reader = ShardReader(
            lease, self.source, self.sender, self.topic, self.names, self.clock, self.metrics, self.gaps.report,
            stopping=self._stopping, max_bytes=self.max_bytes, polls=self._polls, since_ms=since_ms,
            idle=self.pace.idle,
        )  # fmt: skip
        log.info("feed_reads_shard", shard=lease.shard_id, after=lease.place.seq)
        self.readers[lease.shard_id] = reader
        task = asyncio.create_task(reader.run(), name=lease.shard_id)
        self._tasks[lease.shard_id] = task
        task.add_done_callback(lambda _: self._wake.set())

    def _ended(self) -> bool:
        return any(task.done() for task in self._tasks.values())

    async def _reap(self) -> bool:
        """Take ended readers away; returns True if there were any. Raises an error that only a person can mend."""
        ended = [shard for shard, task in self._tasks.items() if task.done()]
        for shard in ended:
            task, reader = self._tasks.pop(shard), self.readers.pop(shard)
            self.published += reader.published
            error = None if task.cancelled() else task.exception()
            if task.cancelled() or isinstance(error, LeaseLost):
                log.info("feed_shard_taken_over", shard=shard)
                continue
            if error is not None and not isinstance(error, Gone):
                raise error
            log.info("feed_shard_ended", shard=shard, published=reader.published, gone=error is not None)
            await reader.lease.release()
        return bool(ended)

    def _measure(self) -> None:
        self.metrics.feed_behind.set(self.behind_seconds)
        self.metrics.feed_shards_waiting.set(len(self.waiting))
        oldest = self.clock.now_ms() - STALE_MS
        if not self.trouble and not self.waiting and all(reader.polled_at > oldest for reader in self.readers.values()):
            self.metrics.feed_heartbeat.set(self.clock.now_ms() / 1000)

    async def _beat(self) -> None:
        """Renew the leases three times in their duration. A reader that lost its lease ends."""
        while True:
            heed_cancel()
            await asyncio.sleep(self.ledger.lease_ms / 3000)
            for shard, reader in list(self.readers.items()):
                try:
                    await reader.beat()
                except LeaseLost:
                    if shard in self._tasks:
                        self._tasks[shard].cancel()
                except Unavailable as error:
                    log.warning("feed_waiting", shard=shard, reason=clean(str(error)))

    async def _let_go(self) -> None:
        """Let the readers end their page, then release the leases, so that another feed need not wait for them."""
        self._stopping.set()
        tasks = list(self._tasks.values())
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=STOP_SECONDS)
            for task in late:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        for reader in self.readers.values():
            with suppress(Unavailable):
                await reader.lease.release()
            self.published += reader.published
        self.readers.clear()
        self._tasks.clear()
