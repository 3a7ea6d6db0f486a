"""Whether the join state holds all that was settled once: a gate must not look at half of it (promise 1, promise 4).

A Redis that was emptied shows by the watermarks, whoever holds the partitions: they are gone, or below what the group
has committed, until their records were read again. So each worker can tell, also before anybody has noticed.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import cast

from aiokafka import TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError
from faust.types import TP

from agents.keys import WATERMARK
from agents.ports import Store, Unavailable
from schemas.settings import KafkaAccess
from streams.kafka.client import client_options
from streams.kafka.offsets import KafkaOffsets

SECONDS = 10.0
FRESH = 1.0
"""As long as workers take to commit what they have settled: a later answer could not tell of more."""
AGAIN = "the join state is being made anew from the topics"


class GroupOffsets:
    """What a consumer group has committed, asked over a connection of its own. Raises Unavailable."""

    def __init__(self, access: KafkaAccess, group: str, topics: Sequence[str], fresh: float = FRESH) -> None:
        """An answer serves for `fresh` seconds."""
        self._fresh = fresh
        self._options, self._group, self._topics = client_options(access), group, list(topics)
        self._client: AIOKafkaAdminClient | None = None
        self._lock = asyncio.Lock()
        self._known: dict[tuple[str, int], int] = {}
        self._until = 0.0

    async def committed(self) -> dict[tuple[str, int], int]:
        async with self._lock:
            if time.monotonic() < self._until:
                return self._known
            until = time.monotonic() + self._fresh
            try:
                async with asyncio.timeout(SECONDS):
                    client = await self._connected()
                    # By name: librdkafka's built-in broker knows no question after all of them.
                    places = [(name, number) for name in self._topics for number in await partitions(client, name)]
                    wanted = [TopicPartition(*place) for place in places]
                    found = await client.list_consumer_group_offsets(self._group, partitions=wanted)
            except (KafkaError, OSError, TimeoutError) as error:
                await self._drop()
                raise Unavailable(f"Kafka: committed offsets: {type(error).__name__}: {error}") from error
            self._known = {
                (partition.topic, partition.partition): at.offset for partition, at in found.items() if at.offset > 0
            }
            self._until = until
            return self._known

    async def close(self) -> None:
        async with self._lock:
            await self._drop()

    async def _connected(self) -> AIOKafkaAdminClient:
        if self._client is None:
            self._client = AIOKafkaAdminClient(**self._options, metadata_max_age_ms=30_000)
            await self._client.start()
        return self._client

    async def _drop(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            with suppress(KafkaError, OSError, TimeoutError):
                await asyncio.wait_for(client.close(), 2.0)


async def partitions(client: AIOKafkaAdminClient, topic: str) -> Iterable[int]:
    return cast("Iterable[int]", await client._client._wait_on_metadata(topic))


class StateCompleteness:
    """Of the state that a group makes of some topics."""

    def __init__(self, store: Store, access: KafkaAccess, group: str, topics: Sequence[str]) -> None:
        self._store = store
        self._committed, self._offsets = GroupOffsets(access, group, topics), KafkaOffsets(access, tries=2)

    async def close(self) -> None:
        await self._committed.close()
        await self._offsets.close()

    @asynccontextmanager
    async def guard(self) -> AsyncIterator[None]:
        """What is read of the state in here is of a whole one. Raises Unavailable, at the end where it was lost
        meanwhile."""
        committed = await self._committed.committed()
        before = await self._marks(list(committed))
        short = {TP(*place): committed[place] for place, mark in before.items() if mark < committed[place]}
        if short:
            # Of a topic that was made anew, more was committed than it holds.
            ends = await self._offsets.ends(short)
            if any(before[partition] < min(offset, ends[partition]) for partition, offset in short.items()):
                raise Unavailable(AGAIN)
        yield
        after = await self._marks(list(committed))
        if any(after[place] < mark for place, mark in before.items()):
            raise Unavailable(AGAIN)

    async def _marks(self, places: Sequence[tuple[str, int]]) -> dict[tuple[str, int], int]:
        """Below which records the state has all; -1 where it does not say."""
        held = (
            await self._store.read([WATERMARK.key(topic, partition) for topic, partition in places]) if places else []
        )
        return {place: int(mark) if mark else -1 for place, mark in zip(places, held, strict=True)}
