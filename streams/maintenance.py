"""Does what a worker has to do besides its batches: due turns, withheld signals, lost watermarks, its pulse."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any, cast

import structlog
from faust.types import TP

from agents.join.due_turns import revisit
from agents.join.step_data import Report
from agents.join.turn import decode_turn, has_withheld
from agents.keys import DRAINING, FOREVER, WATERMARK, WITHHELD
from agents.policy import Policy
from agents.ports import Change, Ports, Unauthorized, Unavailable
from evalcore.stopping import heed_cancel
from schemas.dead_letters import clean
from schemas.topics import Topics
from streams.app import Consumption
from streams.kafka.offsets import KafkaOffsets
from streams.metrics import Metrics
from streams.redis.fitness import Evicting
from streams.redis.state import RedisStore
from streams.retry import WallClock

log = structlog.get_logger(__name__)
DUE_AT_ONCE = 500
LEASE_MS = 60_000
DRAIN_LEASE_MS = 15_000
"""After so long another worker goes on with what was withheld, where the one that wrote it has died."""
CLOCK_SECONDS = 5.0
"""From one look at Redis's clock to the next."""
COLLECT_EVERY = 10
"""Seconds between collections of garbage, where the collector is off."""


@dataclass(eq=False, repr=False)
class Maintenance:
    """Runs jobs at intervals and waits for parts that are unavailable. `observe` gets the report of each step.

    `refuse_evicting` raises Evicting where Redis may evict keys; see `streams.redis.fitness`. `waits` holds back what
    goes by the time or writes: while a state is rebuilt, or the clock is doubtful. `announce_seal` tells whether other
    workers seal with another key.
    """

    consumption: Consumption
    ports: Ports
    policy: Policy
    topics: Topics
    metrics: Metrics
    observe: Callable[[Report], None]
    waits: Callable[[], Awaitable[bool]]
    refuse_evicting: Callable[[], Awaitable[None]]
    clock: WallClock
    announce_seal: Callable[[int], Awaitable[bool]]

    def __post_init__(self) -> None:
        self._store, self._seals_differ = cast(RedisStore, self.ports.store), False
        self._growth = TopicGrowth(self.metrics)

    async def run(self) -> None:
        """Run all jobs until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._every(0.25, self.due), name="due")
            group.create_task(self._every(1.0, self.watermarks), name="watermarks")
            group.create_task(self._every(5.0, self.withheld), name="withheld")
            group.create_task(self._every(60.0, self.eviction), name="eviction")
            group.create_task(self._every(60.0, self.seal), name="seal")
            group.create_task(self._every(5.0, self.logs), name="logs")
            group.create_task(self._every(30.0, self.growth), name="growth")
            group.create_task(self._every(1.0, self.resume), name="resume")
            group.create_task(self._every(CLOCK_SECONDS, self.compare_clock), name="clock")
            group.create_task(self.pulse(), name="pulse")

    async def _every(self, seconds: float, job: Callable[[], Awaitable[bool | None]]) -> None:
        """Repeat a job every so many seconds, and at once while it returns True: there is more to do."""
        while True:
            more: bool | None = False
            try:
                more = await job()
            except Unavailable as error:
                log.warning("maintenance_waiting", job=getattr(job, "__name__", ""), reason=clean(str(error)))
                heed_cancel()
                await asyncio.sleep(min(seconds * 4, 5.0))
            except (Unauthorized, Evicting) as error:
                self.consumption.fatal(error)
                return
            except Exception:
                log.exception("maintenance_failed", job=getattr(job, "__name__", ""))
                heed_cancel()
                await asyncio.sleep(5.0)
            heed_cancel()
            if not more:
                await asyncio.sleep(seconds)

    async def due(self) -> bool:
        """Revisit turns whose time has come. Not while this worker or another reads topics again: later records may end
        their wait, or overrule what they ask for."""
        if await self.waits():
            return False
        now = self.ports.clock.now_ms()
        ids = await self._store.claim_due(now, DUE_AT_ONCE, LEASE_MS)
        if ids:
            self.observe(await revisit(ids, self.ports, self.policy, self.topics, self.waits))
        return len(ids) == DUE_AT_ONCE

    async def watermarks(self) -> None:
        """Notice a state that was lost, or replaced by an older copy, even if no record comes on any partition."""
        consumer = self.consumption.consumer
        for partition in await self._behind(sorted(consumer.assignment()) if consumer.flow_active else ()):
            # Look once more, since a batch may have noticed first: a rebuild that has begun must not begin again.
            for tp, (mark, settled) in (await self._behind([partition])).items():
                log.warning("state_behind", topic=tp.topic, partition=tp.partition, watermark=mark, settled=settled)
                await self.consumption.rewind(tp)

    async def _behind(self, partitions: Iterable[TP]) -> dict[TP, tuple[int | None, int]]:
        """The partitions whose state lacks records that this worker has settled, with watermark and settled offset.

        A batch is settled after it is recorded, and the watermark of one state only rises: what was settled before the
        watermark is read lies below it, unless a rewind has come between.
        """
        stand = self.consumption.consumer.unsettled_from
        before = {TP(*tp): at for tp in partitions if (at := stand(tp)) is not None}
        marks = await self._store.read([WATERMARK.key(tp.topic, tp.partition) for tp in before])
        found: dict[TP, tuple[int | None, int]] = {}
        for (tp, settled), mark in zip(before.items(), marks, strict=True):
            if (stand(tp) or 0) >= settled and (not mark or int(mark) < settled):
                found[tp] = (int(mark) if mark else None, settled)
        return found

    async def logs(self) -> None:
        """Notice a topic that was deleted and made again while its partitions are read."""
        consumer, app = self.consumption.consumer, self.consumption.app
        held = sorted(consumer.assignment()) if consumer.flow_active else []
        placed = [TP(*partition) for partition in held if consumer.stands(TP(*partition)) is not None]
        for partition in await app.start_offsets.remade(placed, app.offsets):
            await self.consumption.rewind(partition)

    async def growth(self) -> None:
        """Notice partitions that are added to the topics that this worker reads or publishes verdicts on."""
        names = [*self.consumption.pipelines]
        if self.consumption.gates is not None:
            names += ["ramp-steps", "verdicts"]
        await self._growth.look([self.topics[name] for name in names], self.consumption.app.offsets)

    async def withheld(self) -> None:
        """While writing is on and there is a marker, write what was withheld.

        The marker goes after a round that found nothing more, so whoever dies on the way leaves it to the next worker.
        Each round makes the marker its own: one that a step has left since (`agents.join.step.record`), or that came
        back with an older copy of the state, is not its own and stays.
        """
        if not self.policy.write or await self.waits():
            return
        marker = WITHHELD.key()
        lease = self._store.lease(DRAINING.key(), DRAIN_LEASE_MS)
        if not any(await self._store.read([marker])) or not await lease.acquire():
            return
        try:
            await self._store.apply(Change(sets={marker: (lease.value, FOREVER)}))
            written = 0
            async for page in self._store.turns():
                ids = [response_id for response_id, encoded in page if has_withheld(decode_turn(encoded))]
                for start in range(0, len(ids), DUE_AT_ONCE):
                    part = ids[start : start + DUE_AT_ONCE]
                    self.observe(await revisit(part, self.ports, self.policy, self.topics, self.waits))
                    written += len(part)
                    await lease.acquire()  # if another worker has taken it, both write the same
            if written:
                log.info("withheld_written", turns=written)
            else:
                gone = {marker: (b"", self.ports.clock.now_ms())}
                await self._store.apply(Change(checks={marker: lease.value}, sets=gone))
        finally:
            await lease.release()

    async def eviction(self) -> None:
        """Notice that somebody lets Redis evict keys while the worker runs."""
        await self.refuse_evicting()

    async def seal(self) -> None:
        """Say so when other workers begin to seal with another key, and when they cease to."""
        differ, before = await self.announce_seal(self.ports.clock.now_ms()), self._seals_differ
        self._seals_differ = differ
        self.metrics.seal_keys_differ.set(differ)
        if differ and not before:
            log.warning(
                "seal_keys_differ",
                consequence="what other workers dead-lettered counts here as never having failed, and the other way",
                remedy="give all workers one RAMPGATE_SEAL_KEY, or none",
            )
        elif before and not differ:
            log.info("seal_keys_agree")

    async def compare_clock(self) -> None:
        """Compare this machine's clock with Redis's."""
        await compare(self.clock, self._store, self.metrics)

    async def resume(self) -> None:
        """Read paused partitions again whose bad records an operator lets through."""
        for pipeline in self.consumption.pipelines.values():
            if pipeline.paused:
                for partition in await pipeline.let_through():
                    log.info("partition_resumed", topic=partition.topic, partition=partition.partition)
                    await self.consumption.rewind(partition)

    async def pulse(self) -> None:
        """Measure how late timers run, and collect garbage where the collector is off (`rampgate.worker.process`)."""
        beat = 0
        while True:
            at = time.monotonic()
            await asyncio.sleep(1.0)
            self.metrics.loop_lag.set(max(time.monotonic() - at - 1.0, 0.0))
            beat += 1
            if beat % COLLECT_EVERY == 0 and not gc.isenabled():
                gc.collect()


async def compare(clock: WallClock, store: Any, metrics: Metrics) -> None:
    """Compare a clock with the store's, and say so when it begins or ceases to be doubtful. Raises Unavailable."""
    before, asked = clock.doubt(), time.monotonic()
    told = await store.now_ms()
    clock.compare(told, (asked + time.monotonic()) / 2)
    doubt = clock.doubt()
    metrics.clock_ahead.set(clock.ahead_ms() / 1000)
    if doubt and not before:
        log.error("clock_doubtful", reason=doubt, consequence="records, due turns and gates wait")
    elif before and not doubt:
        log.info("clock_agrees", seconds_ahead=clock.ahead_ms() / 1000)


class TopicGrowth:
    """`look` tells of partitions that are added to a topic while it is in use.

    Nothing of ours depends on which partition a record is on: turns are joined by key in Redis, new partitions are read
    from their first record, and all of the verdicts' are read before one is published. But a key's later records go to
    another partition than its earlier ones: only the topic's owner can want that, and other readers may rely on an
    order.
    """

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._counts: dict[str, int] = {}

    async def look(self, topics: Iterable[str], kafka: KafkaOffsets) -> None:
        """Compare each topic's number of partitions with what it was at the look before. Raises Unavailable."""
        for topic in topics:
            count = await kafka.partitions(topic)
            before = self._counts.get(topic, count)
            self._counts[topic] = count
            self._metrics.topic_partitions.labels(topic).set(count)
            if count > before:
                log.warning(
                    "partitions_added",
                    topic=topic,
                    before=before,
                    now=count,
                    consequence="nothing is lost or doubled, and what comes there at first waits for seconds; a key's "
                    "records are on two partitions, in no common order",
                    remedy="none is needed here; where readers go by the order of a key, move to a new topic",
                )
