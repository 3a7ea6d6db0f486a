"""Answers ramp-step requests: many at once, each with exactly one verdict, none holding up another (promise 2).

A request's record is acknowledged once its verdict is on the verdicts' topic and the record is counted. Until then a
restart or a rebalance reads it again, and deciding resumes where the cached scores end. A decision outlives a rebalance
that gives its partition back; one whose partition went to another worker publishes nothing.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import KW_ONLY, dataclass, field, replace
from datetime import UTC, datetime
from importlib import import_module
from typing import Any, TypeVar

import structlog
from faust.types import TP

from agents.join.batches import FetchedBatch
from agents.ports import Clock, DeadLetters, Unavailable
from agents.ramp_steps import Ended, RampAnswers, RampCounting
from evalcore.gates.history import Asked
from evalcore.gates.requests import InvalidRequest, RampRequest, UnreadableRequest, read
from evalcore.gates.verdict import Moment
from schemas.dead_letters import DeadLetter, Record, UnreadableRecord, clean
from schemas.outcomes import Cause, State
from schemas.verdicts import Verdict
from streams.gates.verdict_log import VerdictLog
from streams.kafka.transport import BatchConsumer
from streams.retry import Retry, logged

log = structlog.get_logger(__name__)
COMPUTES_WITH = "scipy.special"
UNCLAIMED_SECONDS = 30.0
"""A decision that no record of ours waits for any more is given up after this time."""
OWNERSHIP_CHECK_SECONDS = 0.1
STAGE = "ramp-steps.decode"
ANSWERED_AT_ONCE = 1_000
"""Requests in work at once: each takes some 18 kB. The others of a batch wait as bytes."""
HELD_RECORDS = 4_000
HELD_BYTES = 64 << 20
"""With so much held, no more is fetched until half of it is done: a flood waits in Kafka."""
SENT_AT_ONCE = 32
"""Dead letters that are sent at once, however many wait: each takes a connection to Redis."""
BROKE = "deciding broke off; the worker's log has the error"
T = TypeVar("T")
Request = RampRequest | InvalidRequest


@dataclass
class Held:
    """What is held: records that are not answered, and bytes of batches that are not done."""

    records: int = 0
    bytes: int = 0

    def share(self) -> float:
        """Of what may be held; 1 is full."""
        return max(self.records / HELD_RECORDS, self.bytes / HELD_BYTES)


@dataclass
class Decision:
    """A verdict in the making, shared by all records that ask for it. `request` is what was asked, `place` that of the
    first record that asked, `began` the monotonic time when it was decoded. `claims` counts the records of
    ours that wait for the verdict; `claimed` is set while there is one."""

    request: Request
    place: str
    began: float
    task: asyncio.Task[None] | None = None
    claims: int = 0
    claimed: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass(eq=False, repr=False)
class RampRequests:
    """`submit` takes a batch and returns at once; `fatal` is told what must stop the worker, `decided` each verdict
    that this worker published. `now` tells the time (ms) when deciding begins, and raises Unavailable while it can't be
    trusted: deadlines and windows go by it."""

    answers: RampAnswers
    verdicts: VerdictLog
    dead_letters: DeadLetters
    counting: RampCounting
    clock: Clock
    _: KW_ONLY
    consumer: Callable[[], BatchConsumer]
    fatal: Callable[[BaseException], None]
    decided: Callable[[Verdict], None]
    now: Callable[[], int] | None = None

    def __post_init__(self) -> None:
        self._now = self.now or self.clock.now_ms
        self._sending = asyncio.Semaphore(SENT_AT_ONCE)
        self._decisions: dict[str, Decision] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._imported: asyncio.Task[object] | None = None
        self._room = asyncio.Semaphore(ANSWERED_AT_ONCE)
        self._held = Held()
        self._since: list[float] = []
        self._halted: set[TP] = set()

    async def submit(self, batch: FetchedBatch, ack: Callable[[], Any]) -> None:
        """Take a batch. Never waits, since Faust would fetch nothing for any topic meanwhile; a partition of which too
        much is held is fetched no further."""
        ours = Held(len(batch.records), sum(len(record.value or b"") for record in batch.records))
        self._held.records += ours.records
        self._held.bytes += ours.bytes
        if self._held.share() >= 1.0:
            tp = TP(batch.topic, batch.partition)
            self._halted.add(tp)
            self.consumer().halt(tp)
        name = f"gates {batch.topic}/{batch.partition}@{batch.base}"
        self._keep(asyncio.create_task(self._answer(batch, ack, ours), name=name))

    def _let_go(self, records: int = 0, size: int = 0) -> None:
        """Hold so much less; fetch again where there is room."""
        self._held.records -= records
        self._held.bytes -= size
        if self._halted and self._held.share() < 0.5:
            halted, self._halted = self._halted, set()
            for tp in halted:
                self.consumer().release(tp)

    async def stop(self, grace: float) -> None:
        """Cancel what is being decided and wait up to `grace` seconds for it to end. Its records are read again after
        the restart: a gate takes longer than a stop may."""
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(set(self._tasks), timeout=grace)

    @property
    def running(self) -> int:
        """Requests that are being decided."""
        return len(self._decisions)

    @property
    def oldest_seconds(self) -> float:
        """How long the longest has waited of what is held."""
        return time.monotonic() - min(self._since) if self._since else 0.0

    def _keep(self, task: asyncio.Task[None]) -> None:
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _answer(self, batch: FetchedBatch, ack: Callable[[], Any], ours: Held) -> None:
        since = time.monotonic()
        self._since.append(since)
        lost = asyncio.create_task(self._until_lost(batch))
        work = asyncio.create_task(self._records(batch, ours))
        both: set[asyncio.Task[None]] = {lost, work}
        try:
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            done = work.done() and not work.cancelled()
            if done:
                await work
            else:
                # A rebalance waits until no batch of the partition is unacknowledged. Gates take minutes, so the batch
                # is given up at once; its decisions go on for UNCLAIMED_SECONDS, in case the partition comes back.
                work.cancel()
                await asyncio.gather(work, return_exceptions=True)
            # Only here, after verdicts, dead letters and counts are durable: an ack before them would lose a request
            # with the worker. The ack of a batch that another worker reads now would commit past what that one does.
            if done and self.consumer().current(batch):
                ack()
            else:
                self.consumer().abandon(batch)
        except asyncio.CancelledError:
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)
            self.consumer().abandon(batch)
            raise
        except Exception as error:
            self.fatal(error)
        finally:
            lost.cancel()
            self._since.remove(since)
            self._let_go(ours.records, ours.bytes)

    async def _until_lost(self, batch: FetchedBatch) -> None:
        """Returns when the batch is no longer ours, or a rebalance waits for it."""
        consumer = self.consumer()
        while consumer.flow_active and consumer.current(batch):  # noqa: ASYNC110 - Faust has no event for it
            await asyncio.sleep(OWNERSHIP_CHECK_SECONDS)

    async def _records(self, batch: FetchedBatch, ours: Held) -> None:
        """Bring each record to its end, ANSWERED_AT_ONCE of all batches at once, in order of arrival."""
        since = batch.base
        try:
            async with asyncio.TaskGroup() as group:
                for record in batch.records:
                    await self._room.acquire()
                    task = group.create_task(self._record(since, record, batch, ours))
                    task.add_done_callback(lambda _: self._room.release())  # also of a task that never began
                    since = record.offset + 1
        except ExceptionGroup as errors:
            raise errors.exceptions[0] from errors
        if ours.records:
            # A group passes over tasks that were cancelled alone, as with a decision that a stop ends: their records
            # have no verdict, and an ack would lose them.
            raise asyncio.CancelledError

    async def _record(self, since: int, record: Record, batch: FetchedBatch, ours: Held) -> None:
        name = await self._outcome(record, batch)
        await self._when_available(lambda: self.counting.end(batch, Ended(since, record, name)))
        ours.records -= 1
        self._let_go(1)

    async def _outcome(self, record: Record, batch: FetchedBatch) -> str:
        """Bring the record to its end; returns conservation's name for that end, once verdict or dead letter is
        durable."""
        began = time.monotonic()
        if isinstance(record, UnreadableRecord):
            return await self._dead_letter(record, batch, record.cause, record.reason)
        request = read(record.value)
        if isinstance(request, UnreadableRequest):
            return await self._dead_letter(record, batch, Cause.MALFORMED, request.why)
        # The topic is the memory of what was decided. Read to its end, it tells of a verdict that was published just
        # before a crash, and of one that another worker published while the partition was its own.
        await self._when_available(self.verdicts.caught_up)
        place = f"{record.topic}/{record.partition}/{record.offset}"
        asked = Asked.of(request.body, place)
        while True:
            answered = self.verdicts.answered(request.request_id)
            if answered is not None:
                if answered.body != asked.body:
                    break
                return State.DONE if answered.place == asked.place else State.SUPERSEDED
            decision = self._decisions.get(request.request_id)
            if decision is None:
                if record.offset < batch.settled:
                    return State.DONE  # read again since the counters were lost: answered too long ago to be known
                decision = self._begin(_sent_by(request, record.timestamp), place, began)
            if decision.request.body != request.body:
                break
            await self._claim(decision)
        shown = clean(request.request_id, 100)
        why = f"request_id {shown!r} was seen with another body; its first verdict stands"
        return await self._dead_letter(record, batch, Cause.CONFLICTING_DUPLICATE, why)

    def _begin(self, request: Request, place: str, began: float) -> Decision:
        decision = self._decisions[request.request_id] = Decision(request, place, began)
        decision.task = asyncio.create_task(self._run(decision), name=f"gate {request.request_id}")
        self._keep(decision.task)
        return decision

    async def _claim(self, decision: Decision) -> None:
        """Wait for the decision's end, with a claim to it. Who stops waiting takes the claim back, not the decision."""
        decision.claims += 1
        decision.claimed.set()
        try:
            if decision.task is not None:
                await asyncio.shield(decision.task)
        finally:
            decision.claims -= 1
            if not decision.claims:
                decision.claimed.clear()

    async def _run(self, decision: Decision) -> None:
        """Decide, and publish while a record of ours claims the verdict. Unclaimed for too long it is given up: the
        worker that has the partition now decides by itself."""
        try:
            verdict = await self._when_available(lambda: self._decided_or_failed(decision))
            await asyncio.wait_for(decision.claimed.wait(), UNCLAIMED_SECONDS)
            await self._when_available(lambda: self._publish(verdict, decision))
        except TimeoutError:
            log.info("gate_went_elsewhere", request_id=decision.request.request_id)
        finally:
            self._decisions.pop(decision.request.request_id, None)

    async def _decided_or_failed(self, decision: Decision) -> Verdict:
        """The verdict; a defect of ours fails this request, closed, and no other."""
        began = self._now()
        request = decision.request = _sent_by(decision.request, began)  # of several tries the first one counts
        try:
            await asyncio.shield(self._import())
            return await self.answers.decided(request)
        except Unavailable:
            raise
        except Exception:
            log.exception("gate_broke", request_id=request.request_id)
            now = self.clock.now_ms()
            moment = Moment(_utc(now).isoformat(), (now - began) / 1000)
            return await self.answers.broken(request, BROKE, moment)

    def _import(self) -> asyncio.Task[object]:
        """Import what decisions compute with, in a thread and at the first one: a start, and a worker that decides
        nothing, do without it."""
        if self._imported is None:
            self._imported = asyncio.create_task(asyncio.to_thread(import_module, COMPUTES_WITH), name="gate imports")
        return self._imported

    async def _publish(self, verdict: Verdict, decision: Decision) -> None:
        async def last(verdict: Verdict) -> Verdict:
            return await self.answers.last(decision.request, verdict, _utc(self.clock.now_ms()))

        published = await self.verdicts.publish(
            verdict, decision.request.body, decision.place, key=verdict.experiment_id, last=last
        )
        if published is None:
            return
        verdict = published
        self.decided(verdict)
        log.info(
            "verdict",
            request_id=verdict.request_id,
            verdict=verdict.verdict,
            milestone=verdict.milestone,
            failing_judges=verdict.failing_judges,
            verdict_id=verdict.verdict_id,
            seconds=round(time.monotonic() - decision.began, 4),
        )

    async def _dead_letter(self, record: Record, batch: FetchedBatch, cause: Cause, why: str) -> str:
        """Send the record to the dead letters, unless it was settled or counted before, since then it is there
        already."""

        async def send() -> None:
            async with self._sending:
                if record.offset >= batch.settled and not await self.counting.counted(batch, record):
                    await self.dead_letters.put([DeadLetter(record, cause, clean(why), STAGE, self.clock.now_ms())])

        await self._when_available(send)
        return f"{State.DEAD_LETTERED}:{cause}"

    async def _when_available(self, call: Callable[[], Awaitable[T]]) -> T:
        """The call's result, repeated while a part is unavailable. A caller that no longer wants it cancels."""
        return await Retry().call(call, Unavailable, noticed=logged("gate_waits"))


def _utc(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, UTC)


def _sent_by(request: Request, milliseconds: int) -> Request:
    """The request, known to have been sent by that time; a record without a timestamp says nothing."""
    if isinstance(request, InvalidRequest) or milliseconds <= 0:
        return request
    sent = _utc(milliseconds)
    return replace(request, sent_by=min(request.sent_by or sent, sent))
