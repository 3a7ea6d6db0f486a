"""Writes the verdicts' topic once for each request, and reads it as the memory of what was decided (promise 2).

Each process follows the whole topic: so it knows which requests any worker has answered, and a crash between a verdict
and its commit does no harm. Verdicts are few; they need no Redis.

Who writes takes the topic over, so that no other worker can write to it any more, then reads it to its end, then
publishes what is not there. So a worker that was paused between reading and writing is refused, whatever became of
Redis. A short lease in Redis has workers take turns, which spares them taking the topic from one another; nothing else
depends on it. Where brokers say that they do not fence, the lease is the only guard, and long. librdkafka's broker in
memory claims to fence and does not: it serves one worker.

A topic that was deleted and made again has another id. It is read from its start and taken over again; what this
process knows of the old one it goes on knowing, so no request of these days gets a second verdict.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Coroutine, Hashable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, TypeVar
from weakref import WeakValueDictionary

import orjson
import structlog
from aiokafka import AIOKafkaConsumer, TopicPartition
from faust.types import TP

from agents.keys import PUBLISH_LEASE
from agents.ports import Unavailable
from evalcore.gates.history import NO_VERDICT, STEP, Asked, FairMemory, History, Line, Stand, digest
from evalcore.gates.limits import PastRun
from evalcore.gates.requests import InvalidRequest, RampRequest
from evalcore.gates.verdict import as_json
from evalcore.stopping import heed_cancel
from schemas.judges import Milestone
from schemas.settings import KafkaAccess
from schemas.verdicts import Verdict, VerdictLevel
from streams.gates.judge_standing import JudgeStandings
from streams.kafka.client import FencedProducer, Producer, make_consumer, started
from streams.kafka.offsets import KafkaOffsets
from streams.kafka.transport import KAFKA_ERRORS
from streams.redis.lease import SHORT_LEASE_MS, acquired, renewed
from streams.redis.state import RedisStore
from streams.retry import Retry, logged, reason_of

log = structlog.get_logger(__name__)
T = TypeVar("T")
BODY = "rampgate.request-body"
"""Header: the hash of the request that a verdict answers."""
PLACE = "rampgate.request-place"
"""Header: topic/partition/offset of the record that asked; it supersedes other records with the same request."""
KEPT = 20_000
"""Verdicts of gates held in memory, and apart from them as many that no judge took part in."""
ANSWERED = 200_000
"""Requests known to be answered. A repeated one of before is decided again, and its verdict id shows that."""
ID_BYTES = 12
CATCH_UP_SECONDS = 10.0
"""How long reading to the end of the topic may take."""
AT_ONCE = 256
"""Verdicts that are published in one turn."""
TURN_SECONDS = 20.0
"""How long a turn may take, from the first try to get it."""
UNFENCED_LEASE_MS = 45_000
"""Longer than a turn, and than a record that failed may be on its way: without a fence a worker that sleeps in its turn
must wake up before another one's begins. Others wait as long for one that died."""
POLL_MS = 250


@dataclass(eq=False)
class _Waiting:
    """A verdict that waits to be published; see `VerdictLog.publish`."""

    verdict: Verdict
    asked: tuple[str, str]
    key: str | None
    last: Callable[[Verdict], Awaitable[Verdict]]
    published: asyncio.Future[Verdict | None]


async def _as_it_is(verdict: Verdict) -> Verdict:
    return verdict


@dataclass(eq=False, repr=False)
class VerdictLog:
    """Follows the topic from `start` to `close`, and publishes verdicts. `producer` writes where brokers do not
    fence: before Kafka 2.8."""

    access: KafkaAccess
    producer: Producer
    topic: str
    leases: RedisStore
    standings: JudgeStandings | None = None

    def __post_init__(self) -> None:
        self._owner = uuid.uuid4().hex
        self._fenced: FencedProducer | None = FencedProducer(
            self.access, self.topic, self.topic, self.producer.max_bytes
        )
        self._partitions, self._topic_id = 0, ""
        self._waiting: list[_Waiting] = []
        self._writer: asyncio.Task[None] | None = None
        self._judged, self._free = FairMemory[bytes](KEPT), FairMemory[bytes](KEPT)
        self._answered = FairMemory[bytes](ANSWERED)
        self.history = History()
        self._offsets = KafkaOffsets(self.access, tries=2)
        self._next: dict[TopicPartition, int] = {}
        self._moved = asyncio.Event()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._next_question: asyncio.Task[dict[TP, int]] | None = None
        self._asking = asyncio.Lock()
        self._turns: WeakValueDictionary[Hashable, asyncio.Lock] = WeakValueDictionary()
        self.catch_up_seconds = CATCH_UP_SECONDS

    async def start(self) -> None:
        """Begin to read the topic."""
        self._begin(self._follow())

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._fenced is not None:
            await self._fenced.drop()
        await self._offsets.close()

    def known(self, request_id: str) -> dict[str, Any] | None:
        """The verdict that was published for a request, unless it is too old to be remembered whole."""
        raw = self._judged.get(request_id) or self._free.get(request_id)
        return orjson.loads(raw) if raw is not None else None

    def answered(self, request_id: str) -> Asked | None:
        """What a verdict was published for under this id, as far as the topic has been read."""
        kept = self._answered.get(digest(request_id, ID_BYTES))
        return Asked(kept[:8], kept[8:]) if kept is not None else None

    async def baseline(self, request: RampRequest, line: Line) -> Sequence[PastRun]:
        """What a judge came to at the last gates of this line, without those of the request itself."""
        return self.history.baseline(line, request.request_id)

    async def stand(self, request: RampRequest | InvalidRequest, milestone: Milestone) -> Stand:
        """How the request's agent definition stands with a gate; as never judged where it can't be read."""
        known = request.known
        return self.history.stand(known.get("agent_id", ""), known.get("agent_version", ""), milestone)

    async def suspended(self, judge: str, version: str) -> str:
        """Why this version of the judge is suspended; empty where it is not. Raises Unavailable."""
        if self.standings is None:
            return ""
        known = self.standings.serving.get((judge, version)) if self.standings.readable else None
        return known if known is not None else self.standings.why(judge, version)

    async def caught_up(self) -> None:
        """Return once all that was on the topic at the time of the call has been read. Raises Unavailable."""
        try:
            async with asyncio.timeout(self.catch_up_seconds):
                await self._begun()
                ends = await self._ends()
                while any(self._next.get(TopicPartition(*partition), 0) < end for partition, end in ends.items()):
                    await self._moved.wait()
        except TimeoutError as error:
            raise Unavailable("Kafka: the verdicts' topic can't be read to its end") from error

    async def _begun(self) -> None:
        """Return once the topic is being read."""
        while not self._next:
            await self._moved.wait()

    async def publish(
        self,
        verdict: Verdict,
        body: str,
        place: str,
        key: str | None,
        last: Callable[[Verdict], Awaitable[Verdict]] = _as_it_is,
    ) -> Verdict | None:
        """Return the verdict once it is durable, None where the topic has one for this request already.

        `last` has the last word about it, when nothing but the record's way to Kafka lies ahead. Raises Unavailable.
        """
        published: asyncio.Future[Verdict | None] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Waiting(verdict, (body, place), key, last, published))
        if self._writer is None or self._writer.done():
            self._writer = self._begin(self._write())
        return await published

    async def _write(self) -> None:
        """Publish all that waits, in turns."""
        while self._waiting:
            turn, self._waiting = self._waiting[:AT_ONCE], self._waiting[AT_ONCE:]
            error: BaseException = Unavailable("the turn to publish was broken off")
            try:
                async with asyncio.timeout(TURN_SECONDS):
                    await self._take_turn(turn)
            except TimeoutError:
                error = Unavailable("Kafka or another worker that is publishing holds up the verdict")
            except KAFKA_ERRORS as failed:
                error = Unavailable(f"Kafka: taking the verdicts' topic over: {reason_of(failed)}")
            except Exception as failed:
                error = failed
            finally:
                for one in turn:
                    if not one.published.done():
                        one.published.set_exception(error)

    async def _take_turn(self, turn: Sequence[_Waiting]) -> None:
        await self._begun()  # by then it is known whether the brokers fence
        fenced = self._fenced
        milliseconds = UNFENCED_LEASE_MS if fenced is None else SHORT_LEASE_MS
        lease = self.leases.lease(PUBLISH_LEASE.key(), milliseconds, self._owner)
        if not await acquired(lease, TURN_SECONDS):
            raise Unavailable("another worker is publishing")
        whole = False
        try:
            async with renewed(lease, milliseconds / 3_000):
                if fenced is not None and not fenced.taken:
                    await fenced.take(await self._offsets.partitions(self.topic))
                # What others published before they were shut out stands there now, and nothing can be added to it.
                # Where we did not have to take the topic over, no one else has written since we did, or we shall be
                # refused.
                await self.caught_up()
                for failed in (True, False):  # so that the last word about a verdict knows which gates have failed
                    level = [one for one in turn if (one.verdict.verdict is VerdictLevel.FAIL) is failed]
                    await asyncio.gather(*map(self._publish, level))
            whole = all(one.published.cancelled() or one.published.exception() is None for one in turn)
        finally:
            # Without a fence a record that failed may still be on its way; the lease outlasts it.
            if whole or fenced is not None:
                with suppress(Unavailable):
                    await lease.release()

    async def _publish(self, one: _Waiting) -> None:
        try:
            done = await self._published(one)
        except Exception as error:
            if not one.published.done():
                one.published.set_exception(error)
        else:
            if not one.published.done():
                one.published.set_result(done)

    async def _published(self, one: _Waiting) -> Verdict | None:
        """Says what the verdict supersedes, which is known only now: other requests about the step may have been
        answered while this one was decided."""
        verdict = one.verdict
        step = {name: getattr(verdict, name) for name in STEP}
        headers = [(name, text.encode()) for name, text in zip((BODY, PLACE), one.asked, strict=True)]
        async with self._turns.setdefault(tuple(step.values()), asyncio.Lock()):
            if one.published.done() or self.answered(verdict.request_id) is not None:
                return None
            verdict = await one.last(verdict)
            if None not in step.values():
                verdict = replace(verdict, supersedes=self.history.previous(step, verdict.request_id))
            key, raw = one.key.encode() if one.key else None, orjson.dumps(as_json(verdict))
            if self._fenced is not None:
                await self._fenced.send(key, raw, headers)
            else:
                await self.producer.send([(self.topic, key, raw, headers)])
            self._remember(Asked.of(*one.asked), raw)
            return verdict

    def _remember(self, asked: Asked, raw: bytes) -> None:
        """Keep a verdict, unless its request has one. Raises one of NO_VERDICT for a value that is no verdict. Its JSON
        takes a quarter of the memory of what it says."""
        value: dict[str, Any] = orjson.loads(raw)
        request_id = value["request_id"]
        if self.answered(request_id) is not None:
            return
        self.history.add(value)
        self._answered.put(digest(request_id, ID_BYTES), asked.body + asked.place, value)
        # A verdict of a gate costs judges' answers, one without a gate nothing: the many must not displace the few.
        for forgotten in (self._judged if value.get("gates") else self._free).put(request_id, raw, value):
            self.history.drop(orjson.loads(forgotten))

    async def _ends(self) -> dict[TP, int]:
        """The topic's ends, asked for after the call. Callers that come while a question is under way share the
        next."""
        if self._next_question is None:
            self._next_question = self._begin(self._ask())
        return await asyncio.shield(self._next_question)

    async def _ask(self) -> dict[TP, int]:
        """Of all partitions that there are by now: the follower may not know of an added one yet."""
        async with self._asking:
            self._next_question = None
            topic_id, ends = await self._offsets.topic_ends(self.topic)
            if topic_id != self._topic_id and topic_id and self._topic_id:
                await self._begin_anew(topic_id)
            self._partitions = max(len(ends), self._partitions)
            return ends

    async def _begin_anew(self, topic_id: str) -> None:
        """Follow another topic of this name, whose offsets are of other records. Raises Unavailable: what was asked for
        was of the old one."""
        log.error(
            "verdicts_topic_made_again",
            topic=self.topic,
            before=self._topic_id,
            now=topic_id,
            consequence="baselines and earlier verdicts are known to workers that run now, and lost with them",
            remedy="publish the old topic's records on the new one, where somebody has kept them",
        )
        self._topic_id, self._next, self._partitions = topic_id, {}, 0
        if self._fenced is not None:
            await self._fenced.drop()  # who could write to the old one is not shut out of the new one yet
        raise Unavailable("Kafka: the verdicts' topic was made again, and is read from its start")

    def _begin(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = asyncio.create_task(work, name="verdict-log")
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # asyncio logs the error of a question whose callers have gone, unless it is read

    def _move(self) -> None:
        """Wake those who wait for the topic to be read."""
        self._moved.set()
        self._moved = asyncio.Event()

    async def _follow(self) -> None:
        """Read the topic until cancelled."""
        await Retry(first=1.0, longest=1.0).call(
            self._read, (Unavailable, *KAFKA_ERRORS), noticed=logged("waiting_for_verdicts")
        )

    async def _read(self) -> None:
        ids = await self._offsets.topic_ids([self.topic]) if self._fenced is not None else {}
        if self._fenced is not None and not ids:
            log.warning("verdicts_not_fenced", reason="the brokers are older than Kafka 2.8 or a stand-in in memory")
            self._fenced = None
        self._topic_id = self._topic_id or ids.get(self.topic, "")
        following = self._next  # another one as soon as the topic is another one
        async with started(make_consumer(self.access)) as consumer:
            assigned: list[TopicPartition] = []
            while following is self._next:
                heed_cancel()
                numbers = {*await consumer._client._wait_on_metadata(self.topic), *range(self._partitions)}
                if len(numbers) > len(assigned):
                    assigned = [TopicPartition(self.topic, number) for number in sorted(numbers)]
                    await self._assign(consumer, assigned, following)
                for records in (await consumer.getmany(timeout_ms=POLL_MS)).values():
                    for record in records:
                        self._take_in(record)
                for partition in assigned:  # markers of transactions lie behind the last record
                    following[partition] = await consumer.position(partition)
                self._move()
        raise Unavailable("the verdicts' topic was made again")

    async def _assign(
        self, consumer: AIOKafkaConsumer, assigned: Sequence[TopicPartition], following: dict[TopicPartition, int]
    ) -> None:
        new = [partition for partition in assigned if partition not in following]
        if len(assigned) > len(await consumer._client._wait_on_metadata(self.topic)):
            await consumer._client.force_metadata_update()
        consumer.assign(list(assigned))
        # From the start, however old: a gate that failed stands until it passes again.
        first = await consumer.beginning_offsets(new)
        for partition in assigned:
            following.setdefault(partition, first.get(partition, 0))
            consumer.seek(partition, following[partition])
        self._move()

    def _take_in(self, record: Any) -> None:
        headers = dict(record.headers)
        try:
            body, place = (bytes(headers.get(name, b"")).decode("utf-8", "replace") for name in (BODY, PLACE))
            self._remember(Asked.of(body, place), record.value)
        except NO_VERDICT:
            log.warning("no_verdict", topic=record.topic, partition=record.partition, offset=record.offset)
