"""Follows the topic of judges' standing, which is compacted: what checks last said of each judge.

What it says is in memory, and nothing of it in Redis: an emptied Redis lifts no suspension. Nobody is told that a judge
is sound before the topic has been read to its end, or while it can't be.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime

import structlog
from aiokafka import AIOKafkaConsumer, TopicPartition
from pydantic import ValidationError

from agents.ports import Clock, Unavailable
from evalcore.canaries.suspensions import Suspensions
from schemas.checks.standing import StandingRecord
from schemas.settings import KafkaAccess
from streams.kafka.client import Producer, Reconnecting, make_consumer
from streams.kafka.reading import partitions_of
from streams.kafka.transport import KAFKA_ERRORS
from streams.retry import Retry, reason_of
from streams.stopping import heed_cancel

log = structlog.get_logger(__name__)
LOOK_SECONDS = 1.0
"""Time from one look at the topic's end to the next: a suspension holds so much later."""
READ_SECONDS = 20.0


class JudgeStandings:
    """Follows the topic from `start` to `close`. `versions` gives the version of each judge that serves; `noticed` is
    told of the records after each reading.

    `suspended` says why judges are suspended, by id; None while nobody knows.
    """

    def __init__(
        self,
        access: KafkaAccess,
        topic: str,
        clock: Clock,
        versions: Callable[[], Mapping[str, str]],
        noticed: Callable[[Suspensions], None] = lambda known: None,
    ) -> None:
        self._topic, self._clock, self._versions, self._noticed = topic, clock, versions, noticed
        self._consumer = Reconnecting(lambda: make_consumer(access))
        self._known, self._places = Suspensions(), dict[TopicPartition, int]()
        self._follower: asyncio.Task[None] | None = None
        self.suspended: Mapping[str, str] | None = None

    def start(self) -> None:
        self._follower = asyncio.create_task(self._follow(), name="judge-standing")

    async def close(self) -> None:
        if self._follower is not None:
            self._follower.cancel()
            await asyncio.gather(self._follower, return_exceptions=True)
        await self._consumer.drop()

    async def read(self) -> Mapping[str, str]:
        """Read what has come since the last time, and return why judges are suspended. Raises Unavailable."""
        try:
            async with asyncio.timeout(READ_SECONDS):
                consumer = await self._consumer.get()
                partitions = await self._assigned(consumer)
                ends = await consumer.end_offsets(partitions)
                while behind := [one for one in partitions if self._places[one] < ends[one]]:
                    heed_cancel()
                    for records in (await consumer.getmany(*behind, timeout_ms=250)).values():
                        for record in records:
                            self._take_in(record.value)
                    for one in behind:
                        self._places[one] = await consumer.position(one)
        except (TimeoutError, *KAFKA_ERRORS) as error:
            self.suspended = None
            await self._consumer.drop()
            raise Unavailable(f"Kafka: the topic of judges' standing can't be read: {reason_of(error)}") from error
        today = datetime.fromtimestamp(self._clock.now_ms() / 1_000, UTC).date()
        whys = {judge: self._known.why(judge, version, today) for judge, version in self._versions().items()}
        self.suspended = {judge: why for judge, why in whys.items() if why}
        self._noticed(self._known)
        return self.suspended

    async def _follow(self) -> None:
        """Read until cancelled."""

        def noticed(error: BaseException, failures: int, pause: float) -> None:
            log.warning("waiting_for_judge_standing", reason=str(error))

        while True:
            heed_cancel()
            await Retry(first=1.0, longest=5.0).call(self.read, Unavailable, noticed=noticed)
            await asyncio.sleep(LOOK_SECONDS)

    async def _assigned(self, consumer: AIOKafkaConsumer) -> list[TopicPartition]:
        """The topic's partitions, assigned from where the last reading ended."""
        numbers = await consumer._client._wait_on_metadata(self._topic)
        partitions = [TopicPartition(self._topic, number) for number in sorted(numbers)]
        if consumer.assignment() != set(partitions):
            consumer.assign(partitions)
            for one in partitions:
                consumer.seek(one, self._places.setdefault(one, 0))
        return partitions

    def _take_in(self, value: bytes | None) -> None:
        if value is None:
            return
        try:
            self._known.add(StandingRecord.model_validate_json(value))
        except ValidationError:
            log.warning("no_judge_standing", topic=self._topic)


async def suspended_now(
    access: KafkaAccess, topic: str, clock: Clock, versions: Mapping[str, str]
) -> Mapping[str, str]:
    """Return why judges are suspended, by id; `versions` has the version of each. Raises Unavailable, also where there
    is no such topic."""
    if not await partitions_of(access, [topic]):
        raise Unavailable(f"Kafka has no topic {topic}")
    standings = JudgeStandings(access, topic, clock, lambda: versions)
    try:
        return await standings.read()
    finally:
        await standings.close()


async def publish_standings(access: KafkaAccess, topic: str, records: Sequence[StandingRecord]) -> None:
    """Return once all records are durable. Raises Unavailable."""
    producer = Producer(access)
    try:
        await producer.send([(topic, one.key.encode(), one.model_dump_json().encode(), ()) for one in records])
    finally:
        await producer.close()
