"""Guards reads of the join's state by gates: they must not see half of it (promises 1 and 4).

The watermarks show a Redis that was emptied, whoever holds the partitions: they are gone, or below what the group has
committed, until the records are read again. So each worker can tell, even before another has noticed.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import cast

from aiokafka import TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from faust.types import TP

from agents.keys import WATERMARK
from agents.ports import Store, Unavailable
from schemas.settings import KafkaAccess
from streams.kafka.client import KAFKA_ERRORS, Reconnecting, client_options
from streams.kafka.offsets import KafkaOffsets
from streams.retry import reason_of

SECONDS = 10.0
FRESH = 1.0
"""Seconds for which committed offsets are remembered: as long as workers take to commit what they have settled."""
REBUILDING = "the join state is being rebuilt from the topics"


class GroupOffsets:
    """Asks what a consumer group has committed, over a connection of its own; an answer serves for `fresh` seconds.
    Raises Unavailable."""

    def __init__(self, access: KafkaAccess, group: str, topics: Sequence[str], fresh: float = FRESH) -> None:
        self._fresh = fresh
        options, self._group, self._topics = client_options(access), group, list(topics)
        self._client = Reconnecting(lambda: AIOKafkaAdminClient(**options, metadata_max_age_ms=30_000))
        self._lock = asyncio.Lock()
        self._known: dict[tuple[str, int], int] = {}
        self._until = 0.0

    async def committed(self) -> dict[tuple[str, int], int]:
        """The committed offset of each partition, (topic, partition), that has one."""
        async with self._lock:
            if time.monotonic() < self._until:
                return self._known
            until = time.monotonic() + self._fresh
            try:
                async with asyncio.timeout(SECONDS):
                    client = await self._client.get()
                    # By name: librdkafka's built-in broker can't be asked for all of them.
                    places = [(name, number) for name in self._topics for number in await partitions(client, name)]
                    wanted = [TopicPartition(*place) for place in places]
                    found = await client.list_consumer_group_offsets(self._group, partitions=wanted)
            except KAFKA_ERRORS as error:
                await self._client.drop()
                raise Unavailable(f"Kafka: committed offsets: {reason_of(error)}") from error
            self._known = {
                (partition.topic, partition.partition): at.offset for partition, at in found.items() if at.offset > 0
            }
            self._until = until
            return self._known

    async def close(self) -> None:
        async with self._lock:
            await self._client.drop()


async def partitions(client: AIOKafkaAdminClient, topic: str) -> Iterable[int]:
    """Numbers of the topic's partitions."""
    return cast("Iterable[int]", await client._client._wait_on_metadata(topic))


class StateCompleteness:
    """Tells whether the state holds all that a group has settled of some topics."""

    def __init__(self, store: Store, access: KafkaAccess, group: str, topics: Sequence[str]) -> None:
        self._store = store
        self._committed, self._offsets = GroupOffsets(access, group, topics), KafkaOffsets(access, tries=2)

    async def close(self) -> None:
        await self._committed.close()
        await self._offsets.close()

    @asynccontextmanager
    async def guard(self) -> AsyncIterator[None]:
        """Guard a read: inside, the state is complete. Raises Unavailable at the start where it is not, and at the end
        where it was lost meanwhile."""
        committed = await self._committed.committed()
        before = await self._marks(list(committed))
        short = {TP(*place): committed[place] for place, mark in before.items() if mark < committed[place]}
        if short:
            # More was committed of a topic than it holds now, where the topic was deleted and made anew.
            ends = await self._offsets.ends(short)
            if any(before[partition] < min(offset, ends[partition]) for partition, offset in short.items()):
                raise Unavailable(REBUILDING)
        yield
        after = await self._marks(list(committed))
        if any(after[place] < mark for place, mark in before.items()):
            raise Unavailable(REBUILDING)

    async def _marks(self, places: Sequence[tuple[str, int]]) -> dict[tuple[str, int], int]:
        """The watermark of each partition: the state holds every record below it; -1 where there is none."""
        held = (
            await self._store.read([WATERMARK.key(topic, partition) for topic, partition in places]) if places else []
        )
        return {place: int(mark) if mark else -1 for place, mark in zip(places, held, strict=True)}
