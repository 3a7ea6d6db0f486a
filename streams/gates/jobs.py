"""Ramp-step requests as jobs: many at once, each with exactly one verdict, none holding up another (promise 2).

A request's record is acknowledged once its verdict stands on the verdicts' topic and it is counted. Until then a
restart or a rebalance reads it again, and the job is taken up where its cached scores end. A job outlives a rebalance
that gives its partition back; one whose partition went elsewhere publishes nothing.
"""

from __future__ import annotations

import asyncio
import itertools
import time
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Protocol, TypeVar

import structlog
from redis.exceptions import RedisError

from agents.gates.counting import Ended
from agents.join.batches import FetchedBatch
from agents.keys import PUBLISH_LEASE
from agents.ports import Clock, DeadLetters, Unavailable
from agents.ramp_steps import in_time
from evalcore.gates.requests import InvalidRequest, RampRequest, UnreadableRequest, read
from evalcore.gates.verdict import Moment, refused
from schemas.dead_letters import DeadLetter, Record, clean
from schemas.outcomes import Cause, State
from schemas.verdicts import Code, Reason, Verdict
from streams.gates.verdict_log import Known, VerdictLog
from streams.retry import Retry

log = structlog.get_logger(__name__)
GRACE = 30.0
LOOK = 0.1
STAGE = "ramp-steps.decode"
DOORS = 32
"""So many verdicts and letters leave at once, however many wait: each takes a connection to Redis."""
BROKE = "deciding broke off; the worker's log has the error"

LEASE_MS = 60_000
"""Twice as long as a producer may take to publish."""
TAKE = """
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
"""

T = TypeVar("T")
Decide = Callable[[RampRequest | InvalidRequest], Awaitable[Verdict]]


class Consumer(Protocol):
    flow_active: bool

    def current(self, batch: FetchedBatch) -> bool: ...
    def abandon(self, batch: FetchedBatch) -> None: ...


class Leases(Protocol):
    """The right to publish a request's verdict, for longer than publishing may take."""

    async def take(self, request_id: str, owner: str) -> bool:
        """Whether it is ours now, also if it already was. Raises Unavailable."""
        ...


class PublishLeases:
    """The leases in Redis. A dead worker's lease expires; the next holder finds on the topic whether that worker had
    published."""

    def __init__(self, redis: Any, prefix: str) -> None:
        self._prefix = prefix
        self._take = redis.register_script(TAKE)

    async def take(self, request_id: str, owner: str) -> bool:
        try:
            return bool(await self._take(keys=[self._prefix + PUBLISH_LEASE.key(request_id)], args=[owner, LEASE_MS]))
        except (RedisError, OSError, TimeoutError) as error:
            raise Unavailable(f"Redis: {error}") from error


class Counting(Protocol):
    """Conservation of the records."""

    async def end(self, batch: FetchedBatch, ended: Ended) -> None:
        """Return once the record is counted. Raises Unavailable."""
        ...

    async def counted(self, batch: FetchedBatch, record: Record) -> bool:
        """Whether that was done, by anybody. Raises Unavailable."""
        ...


@dataclass
class Job:
    """`holders` are those whose record is ours and waits for the verdict; `place` is of the one that began it, `began`
    when that was decoded."""

    body: str
    place: str
    began: float
    task: asyncio.Task[None] | None = None
    holders: int = 0
    held: asyncio.Event = field(default_factory=asyncio.Event)


class GateJobs:
    """`submit` returns at once; `fatal` is told what stops the worker."""

    def __init__(
        self,
        decide: Decide,
        verdicts: VerdictLog,
        leases: Leases,
        letters: DeadLetters,
        counting: Counting,
        clock: Clock,
        *,
        consumer: Callable[[], Consumer],
        fatal: Callable[[BaseException], None],
        decided: Callable[[Verdict], None],
    ) -> None:
        self._decide, self._verdicts, self._leases = decide, verdicts, leases
        self._letters, self._counting, self._clock = letters, counting, clock
        self._consumer, self._fatal, self._decided = consumer, fatal, decided
        self._owner = uuid.uuid4().hex
        self._doors = asyncio.Semaphore(DOORS)
        self._jobs: dict[str, Job] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._stopping = False

    async def submit(self, batch: FetchedBatch, ack: Callable[[], Any]) -> None:
        self._keep(asyncio.create_task(self._settle(batch, ack), name=f"gates {batch.watermark_key}@{batch.base}"))

    async def stop(self, grace: float) -> None:
        """What has not ended by now is read again by whoever comes next: gates take longer than a stop may."""
        self._stopping = True
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(set(self._tasks), timeout=grace)

    @property
    def running(self) -> int:
        return len(self._jobs)

    def _keep(self, task: asyncio.Task[None]) -> None:
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _settle(self, batch: FetchedBatch, ack: Callable[[], Any]) -> None:
        ours = asyncio.create_task(self._ours(batch))
        work = asyncio.create_task(self._records(batch))
        both: set[asyncio.Task[None]] = {ours, work}
        try:
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            settled = work.done() and not work.cancelled()
            if settled:
                await work
            else:
                work.cancel()
                await asyncio.gather(work, return_exceptions=True)
            if settled and self._consumer().current(batch):
                ack()
            else:
                self._consumer().abandon(batch)
        except asyncio.CancelledError:
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)
            self._consumer().abandon(batch)
            raise
        except Exception as error:
            self._fatal(error)
        finally:
            ours.cancel()

    async def _ours(self, batch: FetchedBatch) -> None:
        """Returns when the batch is no longer ours, or a rebalance waits for it."""
        consumer = self._consumer()
        while consumer.flow_active and consumer.current(batch):  # noqa: ASYNC110 - Faust tells nobody
            await asyncio.sleep(LOOK)

    async def _records(self, batch: FetchedBatch) -> None:
        since = [batch.base, *(record.offset + 1 for record in batch.records)]
        await asyncio.gather(*map(self._record, since, batch.records, itertools.repeat(batch)))

    async def _record(self, since: int, record: Record, batch: FetchedBatch) -> None:
        name = await self._end(record, batch)
        await self._through(lambda: self._counting.end(batch, Ended(since, record, name)))

    async def _end(self, record: Record, batch: FetchedBatch) -> str:
        """What the record ends as, once that stands on its topic: conservation's name for it."""
        began = time.monotonic()
        request = read(record.value)
        if isinstance(request, UnreadableRequest):
            return await self._letter(record, batch, Cause.MALFORMED, request.why)
        await self._through(self._verdicts.caught_up)
        place = f"{record.topic}/{record.partition}/{record.offset}"
        while True:
            first = self._verdicts.known(request.request_id) or self._jobs.get(request.request_id)
            if first is None and record.offset < batch.settled:
                return State.DONE  # read again since the counters were lost: answered too long ago to be known
            if first is None:
                first = self._begin(request, place, began)
            if first.body != request.body:
                told = clean(request.request_id, 100)
                why = f"request_id {told!r} was seen with another body; its first verdict stands"
                return await self._letter(record, batch, Cause.CONFLICTING_DUPLICATE, why)
            if isinstance(first, Known):
                return State.DONE if first.place == place else State.SUPERSEDED
            await self._hold(first)

    def _begin(self, request: RampRequest | InvalidRequest, place: str, began: float) -> Job:
        job = self._jobs[request.request_id] = Job(request.body, place, began)
        job.task = asyncio.create_task(self._run(request, job), name=f"gate {request.request_id}")
        self._keep(job.task)
        return job

    async def _hold(self, job: Job) -> None:
        job.holders += 1
        job.held.set()
        try:
            if job.task is not None:
                await asyncio.shield(job.task)
        finally:
            job.holders -= 1
            if not job.holders:
                job.held.clear()

    async def _run(self, request: RampRequest | InvalidRequest, job: Job) -> None:
        """Decide, and publish while somebody holds the request. Unheld for too long it is given up."""
        try:
            verdict: list[Verdict] = []

            async def decide() -> None:
                verdict.append(await self._decided_or_failed(request))

            await self._through(decide)
            await asyncio.wait_for(job.held.wait(), GRACE)
            await self._through(lambda: self._publish(request, verdict[0], job))
        except TimeoutError:
            log.info("gate_went_elsewhere", request_id=request.request_id)
        finally:
            self._jobs.pop(request.request_id, None)

    async def _decided_or_failed(self, request: RampRequest | InvalidRequest) -> Verdict:
        """A fault of ours fails this request, closed, and no other."""
        began = self._clock.now_ms()
        try:
            return await self._decide(request)
        except Unavailable:
            raise
        except Exception:
            log.exception("gate_broke", request_id=request.request_id)
            now = self._clock.now_ms()
            moment = Moment(datetime.fromtimestamp(now / 1000, UTC).isoformat(), (now - began) / 1000)
            return refused(request, [Reason(Code.JUDGE_UNAVAILABLE, BROKE)], moment)

    async def _publish(self, request: RampRequest | InvalidRequest, verdict: Verdict, job: Job) -> None:
        async with self._doors:
            ours = await self._leases.take(verdict.request_id, self._owner)
            await self._verdicts.caught_up()
            if self._verdicts.known(verdict.request_id) is not None:
                return
            if not ours:
                raise Unavailable("another worker is about to publish this verdict")
            verdict = in_time(request, verdict, datetime.fromtimestamp(self._clock.now_ms() / 1000, UTC))
            await self._verdicts.publish(verdict, job.body, job.place, verdict.experiment_id)
        self._decided(verdict)
        log.info(
            "verdict",
            request_id=verdict.request_id,
            verdict=verdict.verdict,
            milestone=verdict.milestone,
            failing_judges=verdict.failing_judges,
            verdict_id=verdict.verdict_id,
            seconds=round(time.monotonic() - job.began, 4),
        )

    async def _letter(self, record: Record, batch: FetchedBatch, cause: Cause, why: str) -> str:
        """Sent once: not where the record was settled before, or counted."""

        async def send() -> None:
            async with self._doors:
                if record.offset >= batch.settled and not await self._counting.counted(batch, record):
                    await self._letters.put([DeadLetter(record, cause, clean(why), STAGE, self._clock.now_ms())])

        await self._through(send)
        return f"{State.DEAD_LETTERED}:{cause}"

    async def _through(self, call: Callable[[], Awaitable[T]]) -> T:
        """Wait out a part that is unavailable; whoever no longer wants the result cancels."""

        def noticed(error: BaseException, failures: int, pause: float) -> None:
            log.warning("gate_waits", reason=clean(str(error)), seconds=pause)

        return await Retry().call(call, Unavailable, noticed=noticed)
