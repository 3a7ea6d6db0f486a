"""Keeps triage items on their topic, which is compacted: an item has an owner and an end whatever becomes of Redis.

One process changes items at a time, by a lease, and reads the topic to its end before it does. What is in the topic is
whole: each record has all that ever happened to its item.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import structlog

from agents.keys import TRIAGE_LEASE
from agents.ports import Unavailable
from evalcore.gates.regression import Response
from evalcore.triage import newer, opened
from schemas.checks.triage import TriageItem
from schemas.settings import KafkaAccess
from streams.kafka.client import Producer
from streams.kafka.reading import parsed_now
from streams.redis.lease import acquired
from streams.redis.state import RedisStore

log = structlog.get_logger(__name__)
LEASE_MS = 120_000
"""Longer than a message may take, so that no two workers send the same reminder."""
WAIT_SECONDS = 10.0


class TriageLog:
    """The topic of triage items."""

    def __init__(self, access: KafkaAccess, producer: Producer, topic: str, leasing: RedisStore) -> None:
        self._access, self._producer, self._topic, self._leasing = access, producer, topic, leasing

    async def items(self) -> dict[str, TriageItem]:
        """Return every item as it stands, by its id. Raises Unavailable, also where there is no such topic."""
        found: dict[str, TriageItem] = {}
        for item in await parsed_now(self._access, self._topic, TriageItem.model_validate_json):
            if newer(item, found.get(item.item_id)):
                found[item.item_id] = item
        return found

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[dict[str, TriageItem]]:
        """Give the items as they stand; while inside, nobody else changes any. Raises Unavailable, also where somebody
        else does for long."""
        lease = self._leasing.lease(TRIAGE_LEASE.key(), LEASE_MS)
        if not await acquired(lease, WAIT_SECONDS):
            raise Unavailable("somebody else changes triage items; try again")
        try:
            yield await self.items()
        finally:
            await lease.release()

    async def write(self, item: TriageItem) -> None:
        """Return once the item is durable. Called within `alone`. Raises Unavailable."""
        await self._producer.send([(self._topic, item.item_id.encode(), item.model_dump_json().encode(), ())])

    async def open(self, response: Response, since: int) -> None:
        """Return once an item answers the breach: a new one, or one that is there. Raises Unavailable."""
        async with self.alone() as items:
            item = opened(items, response, since)
            if item is not None:
                await self.write(item)
                log.warning("triage_opened", item=item.item_id, judge=item.judge_id, due=item.due.isoformat())
