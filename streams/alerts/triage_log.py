"""Keeps triage items on their topic, which is compacted: an item has an owner and an end whatever becomes of Redis.

One process changes items at a time, by a lease, and reads the topic to its end before it does. What is in the topic is
whole: each record has all that ever happened to its item.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

import structlog

from agents.keys import TRIAGE_LEASE
from agents.ports import Clock, Unavailable
from evalcore.gates.regression import Response
from evalcore.triage import newer, opened, overdue, reminded, reminder
from schemas.checks.triage import TriageItem, TriageStep
from schemas.settings import KafkaAccess
from streams.alerts.looking import look_again_and_again
from streams.alerts.notifiers import Slack
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
        """Give the items as they stand; while inside, no one else changes any. Raises Unavailable, also where somebody
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


@dataclass(eq=False, repr=False)
class TriageReminders:
    """Reminds operators of items that no one closed within a day: once each, and by a gauge for as long as it lasts
    (PC5 §5.7). Each worker has one. What was reminded of is in the item, so that neither a restart nor an emptied Redis
    repeats it; only a death between Slack's answer and the note does. `every`: seconds between looks. `observe` gets
    all items and the overdue ones, at each look."""

    items: TriageLog
    clock: Clock
    slack: Slack
    every: float
    observe: Callable[[Collection[TriageItem], Collection[TriageItem]], None] = lambda items, late: None

    async def run(self) -> None:
        """Look at the items until cancelled."""
        await look_again_and_again(self.once, self.every, "triage_reminders_wait", "triage_reminders_failed")

    async def once(self) -> None:
        """Look once. Raises Unavailable."""
        items = (await self.items.items()).values()
        late = overdue(items, self._now())
        self.observe(items, late)
        for item in late:
            if not item.done(TriageStep.REMINDED):
                async with self.items.alone() as found:  # as it stands now: another worker may have been quicker
                    now = [one for one in overdue(found.values(), self._now()) if one.item_id == item.item_id]
                    if now and not now[0].done(TriageStep.REMINDED):
                        await self._remind(now[0])

    async def _remind(self, item: TriageItem) -> None:
        told = await self.slack.tell(reminder(item), "triage_not_reminded", item=item.item_id)
        if not told:
            return
        log.error("triage_overdue", item=item.item_id, judge=item.judge_id, owner=item.owner, told=told)
        await self.items.write(reminded(item, told, self._now()))

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self.clock.now_ms() / 1000, UTC)
