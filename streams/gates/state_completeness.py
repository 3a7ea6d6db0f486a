"""Guards reads of the join's state by gates: they must not see half of it (promises 1 and 4).

The watermarks show a Redis that was emptied, whoever holds the partitions: they are gone, or below what the group has
committed, until the records are read again. So each worker can tell, even before another has noticed.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from faust.types import TP

from agents.keys import WATERMARK
from agents.ports import Store, Unavailable
from schemas.settings import KafkaAccess
from streams.kafka.offsets import GroupOffsets, KafkaOffsets

REBUILDING = "the join state is being rebuilt from the topics"


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
