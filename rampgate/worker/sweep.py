"""A sweep as a command: its parts, its span, its summary."""

from __future__ import annotations

import asyncio
import time
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from prometheus_client import generate_latest

from agents.ports import Unavailable
from evalcore import reloading
from rampgate.files import replace_file
from rampgate.http.scrape import Scrape
from rampgate.progress import Progress
from rampgate.queries import Queries
from rampgate.registry.serving import ServedRegistry
from rampgate.settings import Settings
from rampgate.wiring import Parts, make_parts
from rampgate.worker.feed import make_dynamo
from streams.dynamodb.ledger import Ledger
from streams.kafka.reading import pages_now
from streams.kafka.topics import wait_for_topics
from streams.maintenance import compare
from streams.rebuild import rebuilding
from streams.redis.fitness import refuse_evicting
from streams.sweep.log import SegmentPlace, SweepLog
from streams.sweep.sweep import Sweep

TOPICS_SECONDS = 20.0
SEGMENTS = 2
"""Parts of the table that are read side by side."""


async def run_sweep(
    settings: Settings,
    since_ms: int,
    sweep_id: str,
    *,
    restart: bool = False,
    dry_run: bool = False,
    rerolls: bool = True,
    metrics_file: Path | None = None,
) -> dict[str, Any]:
    """Sweep once, show its progress, and sum up. `sweep_id` names the sweep whose interrupted run is resumed.

    Raises Unavailable, Unauthorized, Gone, Evicting or Misconfigured; what was done by then stands, and a new run goes
    on there.
    """
    parts = make_parts(settings)
    dynamo = make_dynamo(settings, SEGMENTS + 1)
    began = time.monotonic()
    try:
        await refuse_evicting(parts.store)
        if metrics_file is not None:  # its labels are the registry's names
            await ServedRegistry(settings.configs, parts.metrics, reloading).refresh("sweep")
        await whole_now(parts)  # before the log keeps a span that a wrong clock made
        log = SweepLog(parts.store, sweep_id)
        since, segments, resumed = since_ms, SEGMENTS, False
        if not dry_run:
            topics = [parts.topics[name] for name in ("thumbs", "rerolls", "dead-letters")]
            keep = {topic: time for topic, time in parts.kept.items() if topic in topics}
            await asyncio.wait_for(wait_for_topics(parts.access, topics, keep=keep), TOPICS_SECONDS)
            since, segments, resumed = await log.open(since_ms, SEGMENTS, restart=restart)
        about = await dynamo.items()
        sweep = make_sweep(parts, dynamo, max(since, await agreed_now(parts) - parts.policy.lookback), dry_run)
        aide = asyncio.create_task(_watch(sweep, about, rerolls), name="watch")
        try:
            if rerolls:
                await sweep.rerolls()
            async with asyncio.TaskGroup() as group:
                for segment in range(segments):
                    place = SegmentPlace() if dry_run else log.place(segment)
                    group.create_task(sweep.scan(segment, segments, place))
            await sweep.finish_waiting()
        except ExceptionGroup as group_of:
            raise group_of.exceptions[0] from group_of
        finally:
            aide.cancel()
        if not dry_run:
            await log.clear()
        gaps = await Ledger(parts.store, settings.thumbs_table, "sweep").gaps()
        parts.metrics.sweep_finished.set(time.time())
        for outcome in ("published", "unchanged", "older", "bad"):
            parts.metrics.sweep_items.labels(outcome).inc(getattr(sweep.tally, outcome))
        if metrics_file is not None:
            await Scrape(parts.metrics, Queries(parts)).refresh()
            replace_file(metrics_file, generate_latest(parts.metrics.registry).decode())
    finally:
        dynamo.close()
        await parts.close()
    return {
        "sweep": sweep_id,
        "table": settings.thumbs_table,
        "since_ms": sweep.since,
        "resumed": resumed,
        "dry_run": dry_run,
        "writing": settings.write,
        **asdict(sweep.tally),
        "feed_gaps": sum(gap["at_ms"] >= sweep.since for gap in gaps),
        "seconds": round(time.monotonic() - began, 3),
    }


async def agreed_now(parts: Parts) -> int:
    """The time in ms. Raises Unavailable where this machine's clock and Redis's disagree, or Redis can't be"""
    await compare(parts.clock, parts.store, parts.metrics)
    return parts.clock.trusted_ms()


async def whole_now(parts: Parts) -> int:
    """The time as `agreed_now`. Raises Unavailable also while a lost state is rebuilt: a sweep would take what the
    state lacks for news, and write scores that a record not yet read again overrules."""
    doing = await rebuilding(parts.store)
    if doing:
        raise Unavailable(f"{doing}; a sweep waits for that")
    return await agreed_now(parts)


def make_sweep(parts: Parts, dynamo: Any, since: int, dry: bool) -> Sweep:
    return Sweep(
        dynamo,
        parts.ports,
        parts.opik.traces,
        parts.producer,
        parts.policy,
        parts.topics,
        since,
        partial(whole_now, parts),
        partial(pages_now, parts.access, parts.topics["rerolls"]),
        dry=dry,
        observe=lambda report: parts.metrics.observe_report(report, parts.verticals),
    )


async def _watch(sweep: Sweep, about: int | None, rerolls: bool) -> None:
    """Show how far the sweep is, of about so many items."""
    tally = sweep.tally
    with Progress("reading traces") as shown:
        while True:
            if rerolls and not tally.scanned:
                shown.at(tally.traces)
            else:
                total = max(about or 0, tally.scanned) or None
                shown.at(tally.scanned, total, f"reading the table, {tally.published:,} new")
            await asyncio.sleep(0.2)
