"""Reminds operators of triage items that nobody closed within a day: once each, and by a gauge for as long as it lasts
(PC5 §5.7)."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import UTC, datetime

import structlog

from agents.ports import Clock
from evalcore.triage import overdue, reminded, reminder
from schemas.checks.triage import TriageItem, TriageStep
from streams.alerts.looking import look_again_and_again
from streams.alerts.notifiers import Slack
from streams.alerts.triage_log import TriageLog

log = structlog.get_logger(__name__)


@dataclass
class TriageReminders:
    """Each worker has one. What was reminded of is in the item, so that neither a restart nor an emptied Redis repeats
    it; only a death between Slack's answer and the note does. `every`: seconds between looks. `observe` gets all items
    and the overdue ones, at each look."""

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
