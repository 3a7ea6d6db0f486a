"""The worker: consumes its share of the topics until told to stop, and says at start what it will do."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Coroutine
from contextlib import suppress
from functools import partial
from typing import Any

import structlog

from agents.ports import Unauthorized, Unavailable
from rampgate.wiring import AGENTS, Parts
from rampgate.worker.completing import Completer
from rampgate.worker.gates import Gates
from rampgate.worker.live_judging import LiveJudges
from rampgate.worker.operators import Operators
from streams.alerts.regression_response import TrendLog
from streams.app import Consumption, consume
from streams.kafka.delayed_consumer import DelayedConsumer
from streams.kafka.start_offsets import Gaps, StartOffsets
from streams.kafka.topics import wait_for_topics
from streams.maintenance import Maintenance, compare
from streams.rebuild import Adoption, Rebuild
from streams.redis.fitness import Evicting, refuse_evicting
from streams.retry import Retry

log = structlog.get_logger(__name__)
COMPACTED = ("judge-standing", "triage")
GATE_TOPICS = ("ramp-steps", "verdicts", "judge-scores", "evaluations", *COMPACTED)


class Worker:
    """One worker process. `run` returns the exit code: 0 after a stop asked for, 2 where something must be mended."""

    def __init__(self, parts: Parts, gates: Gates | None = None) -> None:
        """Without `gates` ramp-step requests are left to other workers of the group. Raises SettingsError where the
        verticals need a seal key."""
        self.parts, self.gates = parts, gates
        self.live_judges = LiveJudges(parts, gates.scorer if gates is not None else None)
        self.completer = Completer(parts)
        self.operators = Operators(parts, self.waiting)
        self.started_at = time.time()
        self._stop = asyncio.Event()
        self._rebuilding_now = False
        self.rebuild = Rebuild(parts.ports, parts.policy, self._rebuild_failed, self._rebuilding)
        self.consumption: Consumption | None = None

    def stop(self) -> None:
        self._stop.set()

    async def run(self) -> int:
        parts, settings = self.parts, self.parts.settings
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            with suppress(NotImplementedError):
                loop.add_signal_handler(number, self.stop)
        parts.metrics.write_enabled.set(settings.write)
        log.info(
            "worker_starting",
            group=settings.group,
            writing="on" if settings.write else "off: signals are joined and counted, scores are withheld",
            kafka=settings.kafka,
            opik=settings.opik,
            verticals=sorted(parts.verticals),
            seal_key="of the settings" if settings.seal_key else "kept in Redis",
        )
        if refused := TrendLog(settings.regressions_log).refusal():
            remedy = "name a file that this user may write: RAMPGATE_REGRESSIONS_LOG"
            log.error("regressions_log_unwritable", reason=refused, remedy=remedy)
        wanted = [parts.topics[name] for name in (*AGENTS, "dead-letters", *(GATE_TOPICS if self.gates else ()))]
        try:
            if not await self._unless_stopped(self._wait_for_parts(wanted)):
                return 0
        except Evicting as error:
            log.error("worker_must_stop", reason=str(error))
            return 2
        observe = partial(parts.metrics.observe_report, registered=parts.verticals)
        in_flight = parts.tuning.records_in_flight
        gaps = Gaps(parts.topics, parts.metrics, parts.policy.lookback)
        start_offsets = StartOffsets(parts.store, parts.clock, parts.policy.lookback, in_flight, self.rebuild, gaps)
        self.consumption = consumption = consume(
            parts.access,
            parts.tuning,
            parts.topics,
            AGENTS,
            parts.ports,
            parts.policy,
            start_offsets,
            observe=observe,
            hold=self.rebuild.hold,
            now=parts.clock.trusted_ms,
            gates=self.gates.requests if self.gates is not None else None,
        )
        maintenance = Maintenance(
            consumption,
            parts.ports,
            parts.policy,
            parts.topics,
            parts.metrics,
            observe,
            self.settling_waits,
            partial(refuse_evicting, parts.store),
            parts.clock,
            parts.sealing.announce,
        )
        task: asyncio.Task[None] | None = None
        if self.gates is not None:
            await self.gates.start()
        try:
            if not await self._unless_stopped(self._clock_compared()):
                return 0
            # The start lasts until the state says where to read from; a stop must not wait for a Redis that is away.
            if not await self._unless_stopped(consumption.app.start()):
                return 0
            task = asyncio.create_task(maintenance.run(), name="maintenance")
            self.live_judges.start(self.waiting)
            self.completer.start(self.waiting)
            if self.gates is not None:
                self.operators.start()
            return await self._until_ended(consumption)
        finally:
            await asyncio.gather(self.operators.close(), self.live_judges.close(), self.completer.close())
            if task is not None:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
            await consumption.stop()
            if self.gates is not None:
                await self.gates.close()
            log.info("worker_stopped")

    async def _until_ended(self, consumption: Consumption) -> int:
        stop = asyncio.create_task(self._stop.wait())
        crashed = asyncio.create_task(consumption.app.wait_until_stopped())
        try:
            awaited: set[asyncio.Future[Any]] = {stop, crashed, consumption.failure}
            await asyncio.wait(awaited, return_when=asyncio.FIRST_COMPLETED)
        finally:
            stop.cancel()
            crashed.cancel()
        if consumption.failure.done():
            error = consumption.failure.result()
            expected = isinstance(error, Unauthorized | Unavailable | Evicting)
            log.error("worker_must_stop", reason=str(error), exc_info=None if expected else error)
            return 2
        if not self._stop.is_set():
            log.error("worker_must_stop", reason="the Kafka consumer stopped by itself; its log says why")
            return 2
        return 0

    async def _wait_for_parts(self, topics: list[str]) -> None:
        """Return once the topics are there. Raises Evicting; a Redis that is away now is asked again by maintenance."""
        with suppress(Unavailable):
            await refuse_evicting(self.parts.store)
        keep = {topic: time for topic, time in self.parts.kept.items() if topic in topics}
        compacted = [self.parts.topics[name] for name in COMPACTED]
        await wait_for_topics(self.parts.access, topics, keep=keep, compacted=compacted)

    async def _unless_stopped(self, job: Coroutine[Any, Any, Any]) -> bool:
        """Tells whether the job ended before a stop was requested."""
        work = asyncio.create_task(job)
        stop = asyncio.create_task(self._stop.wait())
        both: set[asyncio.Task[Any]] = {work, stop}
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        stop.cancel()
        if work.done():
            work.result()
            return True
        work.cancel()
        await asyncio.wait({work}, timeout=5.0)
        return False

    @property
    def delayed_consumers(self) -> list[DelayedConsumer]:
        """Those that run in this process."""
        found = self.live_judges.consumer, self.completer.consumer, self.operators.consumer
        return [each for each in found if each is not None]

    def replaying(self) -> bool:
        """Tells whether the worker reads records again that were settled before the state was lost."""
        return self.consumption is not None and self.consumption.consumer.replaying()

    def waiting(self) -> bool:
        """Tells whether what goes by the time has to wait: for records that this worker reads again, or for a trusted
        clock."""
        return self.replaying() or bool(self.parts.clock.doubt())

    async def settling_waits(self) -> bool:
        """Tells whether turns that wait are not settled now: for the same, or since this worker or another rebuilds the
        state. Raises Unavailable."""
        return self.waiting() or await self.rebuild.join()

    async def _clock_compared(self) -> None:
        """Return once the clock was compared: the first record must not be filtered by a wrong one."""
        parts = self.parts

        def noticed(error: BaseException, failures: int, pause: float) -> None:
            log.warning("waiting_for_state", reason=str(error))

        await Retry(first=1.0, longest=5.0).call(
            lambda: compare(parts.clock, parts.store, parts.metrics), Unavailable, noticed=noticed
        )

    def _rebuild_failed(self, error: BaseException) -> None:
        if self.consumption is None:  # A partition's state is found lost only while the consumption starts or runs.
            raise error
        self.consumption.fatal(error)

    def _rebuilding(self, adoption: Adoption | None) -> None:
        """Show how far a rebuild is; None once it is over."""
        metrics = self.parts.metrics
        if adoption is None:
            self._rebuilding_now = False
            metrics.state_rebuilding.set(0)
            metrics.state_rebuild_progress.set(1)
            metrics.state_rebuild_remaining.set(0)
            return
        if not self._rebuilding_now:
            self._rebuilding_now = True
            metrics.state_rebuilds.inc()
        metrics.state_rebuilding.set(1)
        metrics.state_rebuild_progress.set(adoption.place.share)
        metrics.state_rebuild_remaining.set(adoption.seconds(self.parts.clock.now_ms())[1] or 0)
