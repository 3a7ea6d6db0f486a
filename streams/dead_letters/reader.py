"""Reads the dead-letter topic: which span of it, which dead letters, and each of them once (contracts §5)."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass

import orjson
from aiokafka import TopicPartition

from agents.ports import Unavailable
from schemas.dead_letter_answers import StoredDeadLetter, parse_dead_letter
from schemas.dead_letters import Record
from schemas.outcomes import Cause
from schemas.seals import Seal
from schemas.settings import KafkaAccess
from streams.kafka.client import make_consumer, started
from streams.kafka.reading import partitions_of, records_of, spans_of
from streams.kafka.transport import KAFKA_ERRORS
from streams.retry import reason_of

REMEMBERED = 100_000
"""Dead letters whose repetitions are noticed: a redelivery repeats what is near in time."""

Progress = Callable[[int, int], None]
"""Told (records read, records to read) after each chunk."""


@dataclass(frozen=True)
class DeadLetterFilter:
    """Selects dead letters that meet all of these; what is empty or None selects all. Times in ms, of the failure.

    `key` is a response id: the record's key, or a JSON text anywhere in its value. `came_from` is a place,
    "topic/partition/offset".
    """

    causes: frozenset[Cause] = frozenset()
    topics: frozenset[str] = frozenset()
    key: str | None = None
    stage: str | None = None
    replay_id: str | None = None
    came_from: str | None = None
    since: int | None = None
    until: int | None = None

    def matches(self, letter: StoredDeadLetter) -> bool:
        return (
            (not self.causes or letter.cause in self.causes)
            and (not self.topics or letter.topic in self.topics)
            and (self.stage is None or letter.stage == self.stage)
            and (self.replay_id is None or letter.replay_id == self.replay_id)
            and (self.came_from is None or letter.came_from == self.came_from)
            and (self.since is None or letter.failed_at >= self.since)
            and (self.until is None or letter.failed_at <= self.until)
            and (self.key is None or has_key(letter.record, self.key))
        )


def has_key(record: Record, key: str) -> bool:
    """True where the record is about this response id."""
    return record.key == key.encode() or (record.value is not None and orjson.dumps(key) in record.value)


class Duplicates:
    """Notices a dead letter that was seen before, as long as it is one of the last `remembered`."""

    def __init__(self, remembered: int = REMEMBERED) -> None:
        self._seen: OrderedDict[str, None] = OrderedDict()
        self._most = remembered

    def seen(self, letter: StoredDeadLetter) -> bool:
        """True where an equal dead letter was seen before; remembers this one."""
        known = letter.identity in self._seen
        self._seen[letter.identity] = None
        self._seen.move_to_end(letter.identity)
        if len(self._seen) > self._most:
            self._seen.popitem(last=False)
        return known


async def read_dead_letters(
    access: KafkaAccess,
    topic: str,
    wanted: DeadLetterFilter,
    progress: Progress = lambda done, total: None,
    seal: Seal | None = None,
) -> AsyncGenerator[list[StoredDeadLetter], None]:
    """Matching dead letters up to the topic's end at the time of the call, in chunks, in order within a partition.

    `seal` as for `parse_dead_letter`. Joins no group and commits nothing. Holds one chunk and what the client has
    fetched ahead. Raises Unavailable.
    """
    count = (await partitions_of(access, [topic])).get(topic, 0)
    if not count:
        raise Unavailable(f"Kafka at {', '.join(access.brokers)} has no topic {topic}")
    try:
        async with started(make_consumer(access)) as consumer:
            spans = await spans_of(consumer, [TopicPartition(topic, number) for number in range(count)], wanted.since)
            total = sum(end - start for start, end in spans.values())
            done = 0
            progress(done, total)
            async for partition, records in records_of(consumer, spans):
                done += records[-1].offset + 1 - spans[partition][0]
                spans[partition] = (records[-1].offset + 1, spans[partition][1])
                letters = [parse_dead_letter(record, seal) for record in records]
                found = [letter for letter in letters if wanted.matches(letter)]
                if found:
                    yield found
                progress(min(done, total), total)
    except KAFKA_ERRORS as error:
        raise Unavailable(f"Kafka, reading {topic}: {reason_of(error)}") from error
