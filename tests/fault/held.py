"""What Kafka and Redis hold of one run: offsets, watermarks, counters, dead letters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import redis
from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from agents.join.counting import CLASSES, NO_CLASS
from agents.join.turn import Turn, decode_turn
from agents.keys import turn_key
from rampgate.local.services.kafka import KafkaCluster
from tests.fault.ledger.kafka_log import KafkaLog, Record

TOPICS = ("thumbs", "rerolls", "traces")
PARTITIONS = 4


class Held:
    """What Kafka and Redis hold of one test's topics, group and Redis prefix."""

    def __init__(self, kafka: KafkaCluster, state: redis.Redis, prefix: str) -> None:
        self.kafka, self.state, self.prefix = kafka, state, prefix
        # One client for all questions: opening one costs tens of milliseconds of a core, and rigs ask often.
        self._admin = AdminClient(
            {"bootstrap.servers": kafka.bootstrap, "log_level": 0, "reconnect.backoff.max.ms": 500}
        )
        self.group = prefix + "group"

    def committed(self) -> dict[tuple[str, int], int]:
        asked = [ConsumerGroupTopicPartitions(self.group)]
        (answer,) = self._admin.list_consumer_group_offsets(asked, request_timeout=30).values()
        found = answer.result(30).topic_partitions
        return {(tp.topic.removeprefix(self.prefix), tp.partition): tp.offset for tp in found if tp.offset >= 0}

    def watermarks(self) -> dict[tuple[str, int], int]:
        places = [(topic, partition) for topic in TOPICS for partition in range(PARTITIONS)]
        marks: Any = self.state.mget([f"{self.prefix}w2:{self.prefix}{t}:{p}" for t, p in places])
        return {place: int(mark) for place, mark in zip(places, marks, strict=True) if mark}

    def ends(self, *topics: str) -> dict[tuple[str, int], int]:
        """The offset after the last record of each partition; of the signals' topics unless others are named."""
        asked = {
            TopicPartition(self.prefix + topic, p): OffsetSpec.latest()
            for topic in topics or TOPICS
            for p in range(PARTITIONS)
        }
        answers = self._admin.list_offsets(asked, request_timeout=10)
        return {(tp.topic.removeprefix(self.prefix), tp.partition): e.result(10).offset for tp, e in answers.items()}

    def drained(self) -> bool:
        """Every record is settled and committed."""
        ends = {place: end for place, end in self.ends().items() if end}
        marks, committed = self.watermarks(), self.committed()
        return all(marks.get(place) == end and committed.get(place) == end for place, end in ends.items())

    def finished(self) -> int:
        return sum(self.watermarks().values())

    def hashes(self, pattern: str) -> Counter[tuple[str, str]]:
        """Counters of all hours, summed: (what the key says after its hour, field)."""
        found: Counter[tuple[str, str]] = Counter()
        for key in self.state.scan_iter(f"{self.prefix}{pattern}", count=1000):
            _, _, *kind = key.decode().removeprefix(self.prefix).split(":")
            fields: Any = self.state.hgetall(key)
            for name, n in fields.items():
                assert int(n) > 0, f"{key!r} {name!r} is {n!r}: a counter below one should not be there"
                found[":".join(kind), name.decode()] += int(n)
        return found

    def coverage(self) -> Counter[tuple[str, str]]:
        found: Counter[tuple[str, str]] = Counter()
        for (_, name), n in self.hashes("c2:*").items():
            vertical, token = name.split("|")
            if token[0] != NO_CLASS:
                found[vertical, CLASSES[int(token[0])]] += n
        return found

    def conservation(self) -> dict[str, Counter[str]]:
        found: dict[str, Counter[str]] = {}
        for (kind, name), n in self.hashes("k2:*").items():
            found.setdefault(kind, Counter())[name] += n
        return found

    def turn(self, response_id: str) -> Turn | None:
        """The turn as stored, for a message that says what went wrong."""
        stored: Any = self.state.get(self.prefix + turn_key(response_id))
        return decode_turn(stored) if stored else None

    def dead_letters(self) -> list[dict[str, Any]]:
        """All of the dead-letter topic, one for each `rampgate.replay-id`."""
        letters: dict[str, dict[str, Any]] = {}
        for record in self.records("dead-letters"):
            headers = {name: (content or b"").decode() for name, content in record.headers}
            letters[headers["rampgate.replay-id"]] = {
                "key": record.key,
                "value": record.value,
                "topic": headers["rampgate.topic"].removeprefix(self.prefix),
                "cause": headers["rampgate.cause"],
                "detail": headers["rampgate.detail"],
            }
        return list(letters.values())

    def records(self, topic: str) -> Sequence[Record]:
        """Every record of a topic now, by partition and offset, as a plain consumer reads it."""
        return KafkaLog(self.kafka.bootstrap, self.prefix, PARTITIONS, 30.0).records(topic)

    def sharing(self, topic: str) -> int:
        """Members of the group that hold partitions of a topic; 0 while these are being shared out."""
        group = self._admin.describe_consumer_groups([self.group], request_timeout=30)[self.group].result(30)
        if group.state.name != "STABLE":
            return 0
        held = [{tp.topic for tp in one.assignment.topic_partitions} for one in group.members if one.assignment]
        return sum(self.prefix + topic in topics for topics in held)
