"""Answers a worker's probes from checks made in the background, so that a probe costs nothing and never waits.

Live: a restart would not help, because the loop runs and records that can be settled are being settled. A part out of
reach makes a worker not ready, never dead.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

import structlog
from faust.types import TP

from agents.ports import Unauthorized
from evalcore.stopping import heed_cancel
from rampgate.worker.worker import Worker
from schemas.answers import Check, Health
from schemas.dead_letters import clean
from streams.kafka.offsets import KafkaOffsets
from streams.redis.fitness import probe

log = structlog.get_logger(__name__)
BEAT_SECONDS = 1.0
KAFKA_SECONDS = 2.0
OPIK_SECONDS = 30.0
CHECK_SECONDS = 5.0
MISSED_BEATS = 15.0
STANDS_SECONDS = 30.0
STANDS_FETCHES = 30
"""A partition stands still when its records wait for so long and so many fetches have brought none of it."""
UNCHECKED = Check(ok=False, detail="not checked yet")


def fine() -> Check:
    return Check(ok=True)


class WorkerHealth:
    """`run` checks until cancelled; `live` and `ready` answer from the last checks. It also sets the gauges of lag."""

    def __init__(self, worker: Worker, stalled_after: float, registry: Callable[[], Check] = fine) -> None:
        self._worker, self._stalled_after, self._registry = worker, stalled_after, registry
        self._parts = worker.parts
        self._checks = dict.fromkeys(("redis", "kafka", "opik"), UNCHECKED)
        self._beat = self._moved = time.monotonic()
        self._settled = -1
        self._lag: int | None = None
        self._series: set[TP] = set()
        self._beside: set[tuple[str, TP]] = set()
        self._paused: dict[TP, str] = {}
        self._waits: dict[TP, tuple[int, float, int]] = {}
        self._standing: dict[TP, int] = {}
        # What waits for a producer to end its transaction is no record yet, and no stall of ours.
        self._offsets = KafkaOffsets(worker.parts.access, tries=1, committed=True)

    async def run(self) -> None:
        self._parts.metrics.last_progress.set(time.time())
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._checking("redis", self._redis, BEAT_SECONDS, BEAT_SECONDS))
                group.create_task(self._checking("kafka", self._kafka, KAFKA_SECONDS, BEAT_SECONDS))
                group.create_task(self._checking("opik", self._opik, OPIK_SECONDS, KAFKA_SECONDS))
                group.create_task(self._beating())
        finally:
            await self._offsets.close()

    async def _beating(self) -> None:
        while True:
            self._beat = time.monotonic()
            self._progress()
            await asyncio.sleep(BEAT_SECONDS)

    async def _checking(self, name: str, check: Callable[[], Awaitable[str]], pause: float, retry: float) -> None:
        while True:
            try:
                self._checks[name] = Check(ok=True, detail=await asyncio.wait_for(check(), CHECK_SECONDS))
            except Exception as error:
                why = str(error) or type(error).__name__
                if isinstance(error, TimeoutError):
                    why = f"no answer within {CHECK_SECONDS:g} s"
                self._checks[name] = Check(ok=False, detail=clean(why, 200))
            heed_cancel()
            await asyncio.sleep(pause if self._checks[name].ok else retry)

    async def _redis(self) -> str:
        await probe(self._parts.store)
        return ""

    async def _opik(self) -> str:
        try:
            await self._parts.opik.traces.authorized()
        except Unauthorized as error:
            raise RuntimeError(f"not authorized: {error}") from error
        return ""

    async def _kafka(self) -> str:
        """Ask a broker for the ends of our partitions over another connection, because the consumer's may be stuck."""
        consumer = self._consumer()
        held = sorted(consumer.assignment()) if consumer is not None else []
        beside = {
            (each.name, TP(*tp)): done for each in self._worker.delayed_consumers for tp, done in each.done.items()
        }
        try:
            ends = await self._offsets.ends({*held, *(tp for _, tp in beside)})
        except BaseException:
            self._waits = {}
            raise
        self._measure(consumer, {tp: ends[tp] for tp in held})
        self._measure_beside({key: max(ends[key[1]] - done, 0) for key, done in beside.items()})
        return ""

    def _measure_beside(self, lags: dict[tuple[str, TP], int]) -> None:
        gauge = self._parts.metrics.side_lag
        for (name, tp), lag in lags.items():
            gauge.labels(name, tp.topic, str(tp.partition)).set(lag)
        for name, tp in self._beside - lags.keys():
            gauge.remove(name, tp.topic, str(tp.partition))
        self._beside = set(lags)

    def _consumer(self) -> Any:
        """The worker's consumer once it has started, else None."""
        consumption = self._worker.consumption
        consumer: Any = consumption.app.consumer if consumption is not None else None
        return consumer if consumer is not None and consumer._thread._consumer is not None else None

    def _measure(self, consumer: Any, ends: dict[TP, int]) -> None:
        gauge, lags = self._parts.metrics.consumer_lag, {}
        for tp, end in ends.items():
            settled = consumer.read_to(tp)
            if settled is not None:
                lags[tp] = max(end - settled, 0)
                gauge.labels(tp.topic, str(tp.partition)).set(lags[tp])
        for tp in self._series - lags.keys():
            gauge.remove(tp.topic, str(tp.partition))
        self._series = set(lags)
        self._notice_standing(consumer, lags)
        self._lag = sum(lag for tp, lag in lags.items() if not self._deciding(tp) and tp not in self._paused)
        if not self._lag:
            self._parts.metrics.last_progress.set(time.time())

    def _notice_standing(self, consumer: Any, lags: dict[TP, int]) -> None:
        """Tell of partitions whose records wait and don't come though the consumer fetches: a broker that answers
        CORRUPT_MESSAGE makes aiokafka ask again for ever."""
        now, before = time.monotonic(), self._waits
        self._waits = {}
        for tp, lag in lags.items():
            at = consumer.unsettled_from(tp)
            if not lag or tp in self._paused or at is None or at != consumer.stands(tp):
                continue  # none waits, or batches of it are in work
            known = before.get(tp)
            self._waits[tp] = known if known is not None and known[0] == at else (at, now, consumer.fetches)
        standing = {
            tp: at
            for tp, (at, since, fetches) in self._waits.items()
            if now - since >= STANDS_SECONDS and consumer.fetches - fetches >= STANDS_FETCHES
        }
        for tp in standing.keys() - self._standing.keys():
            log.error(
                "partition_stands_still",
                topic=tp.topic,
                partition=tp.partition,
                offset=standing[tp],
                waiting=lags[tp],
                reason="the brokers have records and give none; aiokafka's warnings name their answer",
                remedy="mend the broker's log, or leave its records unread: stop the workers, then rampgate skip",
            )
        self._standing = standing
        self._parts.metrics.partitions_standing.set(len(standing))

    def _deciding(self, tp: TP) -> bool:
        """Tells whether records of a partition wait for running gates, which take minutes and which no restart
        helps."""
        consumption = self._worker.consumption
        gates = consumption.gates if consumption is not None else None
        return gates is not None and bool(gates.running) and tp.topic == self._parts.topics["ramp-steps"]

    def _progress(self) -> None:
        """Note when the worker last made progress or could make none; the clock of a stall begins again then."""
        consumption, consumer, settled = self._worker.consumption, self._consumer(), 0
        if consumption is not None and consumer is not None:
            settled = sum(consumer.unsettled_from(tp) or 0 for tp in consumer.assignment())
            pipelines = consumption.pipelines.values()
            self._parts.metrics.bad_records_in_a_row.set(max((p.bad_in_a_row for p in pipelines), default=0))
            self._show_paused({tp: why for pipeline in pipelines for tp, why in pipeline.paused.items()})
        parts_ok = all(check.ok for check in self._checks.values()) and self._clock().ok
        excused = not self._lag or not parts_ok or self._worker.replaying()
        if excused or settled != self._settled:
            self._moved, self._settled = time.monotonic(), settled

    def _show_paused(self, paused: dict[TP, str]) -> None:
        gauge = self._parts.metrics.partition_paused
        for tp in self._paused.keys() - paused.keys():
            gauge.remove(tp.topic, str(tp.partition))
        for tp in paused:
            gauge.labels(tp.topic, str(tp.partition)).set(1)
        self._paused = paused

    def live(self) -> Health:
        now = time.monotonic()
        beat, still = now - self._beat, now - self._moved
        stalled = still > self._stalled_after
        return Health.of(
            loop=Check(ok=beat < MISSED_BEATS, detail=f"last beat {beat:.0f} s ago"),
            progress=Check(
                ok=not stalled,
                detail=f"{self._lag or 0} records wait and none was settled for {still:.0f} s" if stalled else "",
            ),
        )

    def ready(self) -> Health:
        return Health.of(
            assigned=self._assigned(),
            **self._checks,
            state=self._state(),
            registry=self._registry(),
            partitions=self._partitions(),
            clock=self._clock(),
        )

    def _assigned(self) -> Check:
        consumption, consumer = self._worker.consumption, self._consumer()
        if consumption is None or consumer is None:
            return Check(ok=False, detail="waiting for Kafka and its topics")
        held = consumer.assignment()
        if not consumption.app.consumer_generation_id or not consumer.flow_active:
            return Check(ok=False, detail="joining the group")
        unplaced = [tp for tp in held if consumer.stands(tp) is None]
        if unplaced:
            return Check(ok=False, detail=f"finding the start of {len(unplaced)} partitions")
        return Check(ok=True, detail=f"{len(held)} partitions" if held else "standing by: others have all partitions")

    def _clock(self) -> Check:
        doubt = self._parts.clock.doubt()
        return Check(ok=not doubt, detail=doubt)

    def _partitions(self) -> Check:
        told = [*self._paused.values()]
        for tp, at in self._standing.items():
            told.append(f"{tp.topic}/{tp.partition} stands still at offset {at}: the brokers give none of its records")
        return Check(ok=not told, detail=clean("; ".join(told)))

    def _state(self) -> Check:
        if self._worker.rebuild.running or self._worker.replaying():
            return Check(ok=False, detail=self._worker.rebuild.told())
        return Check(ok=True)
