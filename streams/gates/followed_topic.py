"""Follows a small topic from its start, for as long as a worker runs: what it says is in memory, and nothing in Redis.

Who needs it knows nothing before the topic has been read to its end, nor while it can't be.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from typing import Self

import structlog
from aiokafka import AIOKafkaConsumer, TopicPartition

from agents.ports import Clock, Unavailable
from evalcore.stopping import heed_cancel
from schemas.settings import KafkaAccess
from streams.kafka.client import Reconnecting, make_consumer
from streams.kafka.offsets import ask_topic_ids
from streams.kafka.reading import appended_ms, partitions_of
from streams.kafka.transport import KAFKA_ERRORS
from streams.retry import Retry, reason_of

log = structlog.get_logger(__name__)
LOOK_SECONDS = 1.0
"""Time from one look at the topic's end to the next: what is written holds so much later."""
READ_SECONDS = 20.0
TOLD_EVERY = 60
"""Failures in a row, some five seconds apart, of which one is logged."""


class FollowedTopic(ABC):
    """Follows the topic from `start` to `close`. `what` names it in errors."""

    what = "a topic"

    def __init__(self, access: KafkaAccess, topic: str, clock: Clock) -> None:
        self._access, self._topic, self._clock = access, topic, clock
        self._consumer = Reconnecting(lambda: make_consumer(access))
        self._places = dict[TopicPartition, int]()
        self._topic_id = ""
        self._follower: asyncio.Task[None] | None = None
        self.readable = False
        """Whether it is known what the topic says: it has been read to its end, and can be read."""
        self.tried = asyncio.Event()
        """Set once the topic has been read to its end for the first time, or could not be."""

    @abstractmethod
    def take_in(self, value: bytes, appended_ms: int) -> None:
        """Take a record's value, and when it was appended. Never raises: what is none of its records is passed over."""

    @abstractmethod
    def made_anew(self) -> None:
        """The topic was deleted and made again, and is read from its start: it has another id, or, where brokers know
        no ids, it ends before the place to which it was read."""

    def start(self) -> None:
        self._follower = asyncio.create_task(self._follow(), name=f"follow {self._topic}")

    async def read_once(self) -> Self:
        """Read the topic to its end, and no further; return self. Raises Unavailable, also where there is no such
        topic."""
        try:
            await self.read_on()
        finally:
            await self.close()
        return self

    async def close(self) -> None:
        if self._follower is not None:
            self._follower.cancel()
            await asyncio.gather(self._follower, return_exceptions=True)
        await self._consumer.drop()

    async def read_on(self) -> None:
        """Read what has come since the last time. Raises Unavailable, also where there is no such topic."""
        try:
            async with asyncio.timeout(READ_SECONDS):
                consumer = await self._consumer.get()
                while not await self._read_through(consumer):
                    heed_cancel()
        except (Unavailable, TimeoutError, *KAFKA_ERRORS) as error:
            self.readable = False
            await self._consumer.drop()
            why = str(error) if isinstance(error, Unavailable) else reason_of(error)
            raise Unavailable(f"Kafka: {self.what} can't be read: {why}") from error
        finally:
            self.tried.set()
        self.readable = True

    async def _read_through(self, consumer: AIOKafkaConsumer) -> bool:
        """Read to the end; return whether it was one and the same topic that was read, from its start to there."""
        partitions = await self._assigned(consumer)
        ends, topic_id = await asyncio.gather(consumer.end_offsets(partitions), self._asked_id(consumer))
        if self._is_another(topic_id) or any(self._places[one] > ends[one] for one in partitions):
            self.made_anew()
            self._topic_id, self._places = topic_id, dict.fromkeys(partitions, 0)
            for one in partitions:
                consumer.seek(one, 0)
            return False
        self._topic_id = topic_id or self._topic_id
        if all(self._places[one] >= ends[one] for one in partitions):
            return True
        while behind := [one for one in partitions if self._places[one] < ends[one]]:
            heed_cancel()
            for records in (await consumer.getmany(*behind, timeout_ms=250)).values():
                for record in records:
                    if record.value is not None:
                        self.take_in(record.value, appended_ms(record, self._clock.now_ms()))
            for one in behind:
                self._places[one] = await consumer.position(one)
        # What was read may be of a topic that was made since the ends were asked for.
        return not self._is_another(await self._asked_id(consumer))

    async def _asked_id(self, consumer: AIOKafkaConsumer) -> str:
        return (await ask_topic_ids(consumer._client, [self._topic])).get(self._topic, "")

    def _is_another(self, topic_id: str) -> bool:
        return bool(topic_id and self._topic_id) and topic_id != self._topic_id

    async def _follow(self) -> None:
        """Read until cancelled."""

        def noticed(error: BaseException, failures: int, pause: float) -> None:
            if failures % TOLD_EVERY == 1:
                log.warning("waiting_for_a_topic", topic=self._topic, reason=str(error))

        while True:
            heed_cancel()
            try:
                await Retry(first=1.0, longest=5.0).call(self.read_on, Unavailable, noticed=noticed)
            except Exception:
                # A follower that ended would leave what was known last standing for good.
                self.readable = False
                log.exception("following_a_topic_failed", topic=self._topic)
            await asyncio.sleep(LOOK_SECONDS)

    async def _assigned(self, consumer: AIOKafkaConsumer) -> list[TopicPartition]:
        """The topic's partitions, assigned from where the last reading ended."""
        if not consumer.assignment() and not await partitions_of(self._access, [self._topic]):
            raise Unavailable(f"there is no topic {self._topic}")
        numbers = await consumer._client._wait_on_metadata(self._topic)
        partitions = [TopicPartition(self._topic, number) for number in sorted(numbers)]
        if consumer.assignment() != set(partitions):
            consumer.assign(partitions)
            for one in partitions:
                consumer.seek(one, self._places.setdefault(one, 0))
        return partitions
