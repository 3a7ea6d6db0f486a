"""The DynamoDB feed as a process: its parts, its probes, its end."""

from __future__ import annotations

import asyncio
import signal
import time
import uuid
from contextlib import suppress
from typing import Any

import structlog

from agents.ports import Unavailable
from evalcore.stopping import heed_cancel
from rampgate.http.routes import Side
from rampgate.http.server import listen
from rampgate.progress import Progress
from rampgate.settings import Settings, revealed
from rampgate.wiring import Parts, make_parts
from schemas.answers import Check, Health
from streams.dynamodb.client import Dynamo
from streams.dynamodb.feed import Feed, Pace
from streams.dynamodb.ledger import Ledger
from streams.kafka.topics import wait_for_topics
from streams.redis.fitness import refuse_evicting

log = structlog.get_logger(__name__)
DAY_MS = 86_400_000
FITNESS_SECONDS = 60.0
"""How often a feed asks whether Redis may evict its places and leases."""


def make_dynamo(settings: Settings, threads: int) -> Dynamo:
    return Dynamo(settings.thumbs_table, settings.dynamodb_region, settings.dynamodb_endpoint, threads)


def make_feed(parts: Parts, dynamo: Dynamo, pace: Pace) -> Feed:
    """A feed whose name among others is its own: after a crash its leases end by time, not by name."""
    settings = parts.settings
    owner = f"{settings.group_instance_id or 'feed'}-{uuid.uuid4().hex[:12]}"
    return Feed(
        dynamo,
        Ledger(parts.store, settings.thumbs_table, owner),
        parts.producer,
        parts.topics["thumbs"],
        parts.policy.attributes,
        parts.clock,
        parts.metrics,
        pace,
        max_bytes=settings.max_record_bytes,
    )


async def run_feed(settings: Settings, *, once: bool) -> dict[str, Any]:
    """Feed until a signal, or, with `once`, until everything there is has been published; returns a summary.

    Raises Misconfigured, Evicting or SettingsError for what only a person can mend.
    """
    parts = make_parts(settings, registry=False)
    pace = Pace(once=once)
    dynamo = make_dynamo(settings, pace.polls + 2)
    feed = make_feed(parts, dynamo, pace)
    loop = asyncio.get_running_loop()
    job = asyncio.create_task(_feed(parts, feed), name="feed")

    def stop() -> None:
        feed.stop()
        if not feed.arn:
            job.cancel()  # still waiting for topics or the table: nothing is in flight

    for number in (signal.SIGTERM, signal.SIGINT):
        with suppress(NotImplementedError):
            loop.add_signal_handler(number, stop)
    began = time.monotonic()
    health = FeedHealth(feed, parts)
    token = revealed(settings.token)
    side = Side(parts.metrics, health.live, health.ready, token)
    server = None if once else await listen(settings, side)
    fitness = asyncio.create_task(_until_evicting(parts), name="fitness")
    fitness.add_done_callback(lambda _: stop())
    aides = [asyncio.create_task(health.run(), name="health"), fitness]
    if once:
        aides.append(asyncio.create_task(_watch(feed), name="watch"))
    try:
        with suppress(asyncio.CancelledError):
            await job
        if fitness.done():
            fitness.result()
    finally:
        for aide in aides:
            aide.cancel()
        await asyncio.gather(*aides, return_exceptions=True)
        if server is not None:
            await server.close()
        dynamo.close()
        await parts.close()
        log.info("feed_stopped", published=feed.total)
    return {
        "table": settings.thumbs_table,
        "stream": feed.arn or None,
        "published": feed.total,
        "gaps": feed.gaps.count,
        "shards_of_other_feeds": sorted(feed.held_elsewhere),
        "seconds": round(time.monotonic() - began, 3),
    }


async def _feed(parts: Parts, feed: Feed) -> None:
    settings = parts.settings
    log.info("feed_starting", table=settings.thumbs_table, kafka=settings.kafka, topic=feed.topic)
    with suppress(Unavailable):
        await refuse_evicting(parts.store)
    await wait_for_topics(parts.access, [feed.topic], keep={feed.topic: parts.kept[feed.topic]})
    await feed.run()


async def _until_evicting(parts: Parts) -> None:
    """Raise Evicting once Redis may evict keys; a feed without its places would publish from elsewhere."""
    while True:
        heed_cancel()
        await asyncio.sleep(FITNESS_SECONDS)
        with suppress(Unavailable):
            await refuse_evicting(parts.store)


async def _watch(feed: Feed) -> None:
    """Show how far a feed is that ends."""
    with Progress("reading the stream", unit="records") as shown:
        while True:
            shown.at(feed.total)
            await asyncio.sleep(0.2)


class FeedHealth:
    """Probes from what is known: alive while the loop beats, ready while we or another feed read the stream."""

    def __init__(self, feed: Feed, parts: Parts) -> None:
        self._feed, self._parts = feed, parts
        self._beat = time.monotonic()
        self._gaps: list[dict[str, Any]] = []

    async def run(self) -> None:
        while True:
            heed_cancel()
            self._beat = time.monotonic()
            with suppress(Exception):  # the feed says itself when Redis is out of reach
                self._gaps = await self._feed.ledger.gaps()
            await asyncio.sleep(1.0)

    def live(self) -> Health:
        late = time.monotonic() - self._beat
        return Health.of(loop=Check(ok=late < 15.0, detail=f"last beat {late:.0f} s ago"))

    def ready(self) -> Health:
        """A gap is shown for a day. It doesn't make the feed unready: that would stop what still works."""
        feed = self._feed
        troubled = {name: reader.trouble for name, reader in feed.readers.items() if reader.trouble}
        shards = f"{len(feed.readers)} shards read, {len(feed.waiting)} waiting, {feed.behind_seconds:.0f} s behind"
        if not feed.readers and feed.held_elsewhere:
            shards = "standing by: another feed reads the stream"
        recent = [gap for gap in self._gaps if gap["at_ms"] > self._parts.clock.now_ms() - DAY_MS]
        gaps = f"the latest of {len(recent)} today: {recent[0]['reason']}; run rampgate sweep" if recent else "none"
        return Health.of(
            stream=Check(ok=bool(feed.arn) and not feed.trouble, detail=feed.trouble or feed.arn or "looking for it"),
            shards=Check(ok=not troubled and not feed.waiting, detail=next(iter(troubled.values()), shards)),
            gaps=Check(ok=True, detail=gaps),
        )
