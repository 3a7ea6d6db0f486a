"""Writes the verdicts' topic once for each request, and reads it as the memory of what was decided (promise 2).

Each process follows the whole topic: so it knows which requests any worker has answered, and a crash between a verdict
and its commit does no harm. Verdicts are few; they need no Redis.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar, cast
from weakref import WeakValueDictionary

import orjson
import structlog
from aiokafka import TopicPartition
from faust.types import TP

from agents.ports import Clock, Unavailable
from evalcore.gates.history import NO_VERDICT, STEP, Asked, FairMemory, History, Line, digest
from evalcore.gates.requests import RampRequest
from evalcore.gates.verdict import as_json
from schemas.settings import KafkaAccess
from schemas.verdicts import Verdict
from streams.kafka.client import KAFKA_ERRORS, Producer, make_consumer, started
from streams.kafka.offsets import KafkaOffsets
from streams.kafka.reading import spans_of
from streams.retry import Retry, reason_of

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


@dataclass(frozen=True)
class PublishedVerdict:
    """A verdict on the topic: what it answers, and its JSON, which takes a quarter of the memory of what it says."""

    asked: Asked
    raw: bytes

    @property
    def value(self) -> dict[str, Any]:
        """The verdict."""
        return cast("dict[str, Any]", orjson.loads(self.raw))


class VerdictLog:
    """Follows the topic from `start` to `close`, and publishes verdicts."""

    def __init__(self, access: KafkaAccess, producer: Producer, topic: str, clock: Clock, lookback_ms: int) -> None:
        self._access, self._producer, self._topic = access, producer, topic
        self._clock, self._lookback = clock, lookback_ms
        self._judged, self._free = FairMemory[PublishedVerdict](KEPT), FairMemory[PublishedVerdict](KEPT)
        self._answered = FairMemory[bytes](ANSWERED)
        self.history = History()
        self._offsets = KafkaOffsets(access, tries=2)
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
        await self._offsets.close()

    def known(self, request_id: str) -> PublishedVerdict | None:
        """The verdict that was published for a request, unless it is too old to be remembered whole."""
        return self._judged.get(request_id) or self._free.get(request_id)

    def answered(self, request_id: str) -> Asked | None:
        """What a verdict was published for under this id, as far as the topic has been read."""
        kept = self._answered.get(digest(request_id, ID_BYTES))
        return Asked(kept[:8], kept[8:]) if kept is not None else None

    async def baseline(self, request: RampRequest, line: Line) -> Sequence[float]:
        """What a judge came to at the last gates of this line, without those of the request itself."""
        return self.history.baseline(line, request.request_id)

    async def suspended(self, judge: str) -> str:
        """Why the judge is suspended: never, since nothing on the topic suspends one."""
        return ""

    async def caught_up(self) -> None:
        """Return once all that was on the topic at the time of the call has been read. Raises Unavailable."""
        try:
            async with asyncio.timeout(self.catch_up_seconds):
                while not self._next:
                    await self._moved.wait()
                ends = await self._ends()
                while any(self._next[TopicPartition(*partition)] < end for partition, end in ends.items()):
                    await self._moved.wait()
        except TimeoutError as error:
            raise Unavailable("Kafka: the verdicts' topic can't be read to its end") from error

    async def publish(self, verdict: Verdict, body: str, place: str, key: str | None) -> None:
        """Return once the verdict is durable. The caller makes sure that no other worker publishes for this request.

        Says what the verdict supersedes, which is known only now: other requests about the step may have been answered
        while this one was decided. Raises Unavailable.
        """
        step = {name: getattr(verdict, name) for name in STEP}
        headers = [(BODY, body.encode()), (PLACE, place.encode())]
        async with self._turn(tuple(step.values())):
            if None not in step.values():
                verdict = replace(verdict, supersedes=self.history.previous(step, verdict.request_id))
            raw = orjson.dumps(as_json(verdict))
            await self._producer.send([(self._topic, key.encode() if key else None, raw, headers)])
            self._remember(PublishedVerdict(Asked.of(body, place), raw))

    def _turn(self, step: Hashable) -> asyncio.Lock:
        """The lock under which verdicts about one step are sent one after another."""
        return self._turns.setdefault(step, asyncio.Lock())

    def _remember(self, known: PublishedVerdict) -> None:
        """Keep a verdict, unless its request has one. Raises one of NO_VERDICT for a value that is no verdict."""
        value = known.value
        request_id = value["request_id"]
        if self.answered(request_id) is not None:
            return
        self.history.add(value)
        self._answered.put(digest(request_id, ID_BYTES), known.asked.body + known.asked.place, value)
        # A verdict of a gate costs judges' answers, one without a gate nothing: the many must not displace the few.
        for forgotten in (self._judged if value.get("gates") else self._free).put(request_id, known, value):
            self.history.drop(forgotten.value)

    async def _ends(self) -> dict[TP, int]:
        """The topic's ends, asked for after the call. Callers that come while a question is under way share the
        next."""
        if self._next_question is None:
            self._next_question = self._begin(self._ask())
        return await asyncio.shield(self._next_question)

    async def _ask(self) -> dict[TP, int]:
        async with self._asking:
            self._next_question = None
            return await self._offsets.ends(TP(*partition) for partition in self._next)

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

        def noticed(error: BaseException, failures: int, pause: float) -> None:
            log.warning("waiting_for_verdicts", reason=reason_of(error))

        await Retry(first=1.0, longest=1.0).call(self._read, KAFKA_ERRORS, noticed=noticed)

    async def _read(self) -> None:
        async with started(make_consumer(self._access, fetch_max_wait_ms=100)) as consumer:
            partitions = await consumer._client._wait_on_metadata(self._topic)
            assigned = [TopicPartition(self._topic, number) for number in partitions]
            consumer.assign(assigned)
            spans = await spans_of(consumer, assigned, self._clock.now_ms() - self._lookback)
            for partition, (start, _) in spans.items():
                self._next[partition] = max(self._next.get(partition, 0), start)
                consumer.seek(partition, self._next[partition])
            self._move()
            while True:
                for partition, records in (await consumer.getmany(timeout_ms=1_000)).items():
                    for record in records:
                        self._take(record)
                    self._next[partition] = records[-1].offset + 1
                self._move()

    def _take(self, record: Any) -> None:
        headers = dict(record.headers)
        try:
            body, place = (bytes(headers.get(name, b"")).decode("utf-8", "replace") for name in (BODY, PLACE))
            self._remember(PublishedVerdict(Asked.of(body, place), record.value))
        except NO_VERDICT:
            log.warning("no_verdict", topic=record.topic, partition=record.partition, offset=record.offset)
