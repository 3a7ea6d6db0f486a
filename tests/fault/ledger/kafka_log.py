"""Reads what Kafka holds: every record of a topic, the ends of its partitions, and what a group committed."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, KafkaError, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

Place = tuple[str, int]
"""A topic, without the run's prefix, and one of its partitions."""


@dataclass(frozen=True)
class Record:
    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = field(default=())
    timestamp: int = 0
    """When it was sent (ms)."""

    @property
    def at(self) -> tuple[str, int, int]:
        return self.topic, self.partition, self.offset


class KafkaLog:
    """The topics of one run. A topic is read on from where it was read before, so that asking again is cheap.

    `partitions` of each topic; 0: as many as a topic has whenever its records are asked for.
    """

    def __init__(self, bootstrap: str, prefix: str, partitions: int = 0, seconds: float = 60.0) -> None:
        self._bootstrap, self._prefix, self._partitions, self._seconds = bootstrap, prefix, partitions, seconds
        self._read: dict[str, list[Record]] = {}

    def ends(self, topics: Iterable[str]) -> dict[Place, int]:
        """The offset after the last record of each partition."""
        asked = {self._at(topic, n): OffsetSpec.latest() for topic in topics for n in range(self._partitions)}
        admin = self._admin()
        answers = admin.list_offsets(asked, request_timeout=30)
        return {self._place(at): answer.result(30).offset for at, answer in answers.items()}

    def committed(self, group: str) -> dict[Place, int]:
        admin = self._admin()
        asked = [ConsumerGroupTopicPartitions(group)]
        (answer,) = admin.list_consumer_group_offsets(asked, request_timeout=30).values()
        return {self._place(at): at.offset for at in answer.result(30).topic_partitions if at.offset >= 0}

    def records(self, topic: str) -> Sequence[Record]:
        """All that were committed to the log, by partition and offset."""
        known = self._read.setdefault(topic, [])
        following = {record.partition: record.offset + 1 for record in known}
        known += self._following(topic, following)
        known.sort(key=lambda record: record.at)
        return known

    def _following(self, topic: str, start: Mapping[int, int]) -> list[Record]:
        settings: dict[str, Any] = {
            "bootstrap.servers": self._bootstrap,
            "group.id": f"{self._prefix}ledger",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
            "log_level": 0,
        }
        consumer = Consumer(settings)
        found: list[Record] = []
        ended: set[int] = set()
        deadline = time.monotonic() + self._seconds
        try:
            whole = self._prefix + topic
            partitions = self._partitions or len(consumer.list_topics(whole, timeout=30).topics[whole].partitions)
            consumer.assign([self._at(topic, n, start.get(n, 0)) for n in range(partitions)])
            while len(ended) < partitions:
                if time.monotonic() > deadline:
                    raise TimeoutError(f"{topic} can't be read to its end within {self._seconds:g} s")
                for message in consumer.consume(1_000, 0.2):
                    error = message.error()
                    if error is None:
                        headers = tuple(message.headers() or ())
                        place = message.partition(), message.offset()
                        sent = message.timestamp()[1]
                        found.append(Record(topic, *place, message.key(), message.value(), headers, sent))
                    elif error.code() == KafkaError._PARTITION_EOF:
                        ended.add(message.partition())
        finally:
            consumer.close()
        return found

    def _admin(self) -> AdminClient:
        """A new one each time: a client that knows a leader of before asks it for good. It has to be kept until it has
        answered."""
        return AdminClient({"bootstrap.servers": self._bootstrap, "log_level": 0, "reconnect.backoff.max.ms": 500})

    def _at(self, topic: str, partition: int, offset: int = -1001) -> TopicPartition:
        return TopicPartition(self._prefix + topic, partition, offset)

    def _place(self, at: TopicPartition) -> Place:
        return at.topic.removeprefix(self._prefix), at.partition
