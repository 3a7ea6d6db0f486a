"""An overdue triage item is reported once, and counted for as long as no one closes it (PC5 §5.7)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import pytest

from evalcore.scoring.http_client import HttpClient
from evalcore.triage import closed, opened, overdue, taken
from schemas.checks.triage import TriageDecision, TriageItem, TriageStep
from streams.alerts.notifiers import Address, Slack
from streams.alerts.triage_log import TriageReminders
from tests.memory_ports import ManualClock
from tests.unit.evalcore.gates.regression_cases import NOW, bad, only, seen
from tests.unit.streams.alerts.notifier_rig import Server, notifier

LATE = NOW + timedelta(hours=24)


@dataclass
class Items:
    """Stands for the topic of triage items. `now`: as they stand once no one else changes them."""

    held: dict[str, TriageItem] = field(default_factory=dict)
    now: dict[str, TriageItem] | None = None

    async def items(self) -> dict[str, TriageItem]:
        return dict(self.held)

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[dict[str, TriageItem]]:
        yield dict(self.held if self.now is None else self.now)

    async def write(self, item: TriageItem) -> None:
        self.held[item.item_id] = item


@dataclass
class Rig:
    server: Server
    items: Items
    clock: ManualClock
    made: Any
    seen: list[tuple[int, int]] = field(default_factory=list)

    async def look(self, at: datetime, *, slack: bool = True) -> None:
        """As another worker would, or this one after a restart: nothing is remembered but what the topic holds."""
        self.clock.ms = round(at.timestamp() * 1000)
        address = Address(self.server.url + "/slack") if slack else None
        items: Any = self.items
        await TriageReminders(items, self.clock, Slack(self.made, address), 1.0, self.observe).once()

    def observe(self, items: Collection[TriageItem], late: Collection[TriageItem]) -> None:
        self.seen.append((len(items), len(late)))

    @property
    def told(self) -> list[str]:
        return [body["text"] for _, _, body in self.server.taken]


@pytest.fixture
async def rig(server: Server, client: HttpClient) -> Rig:
    item = opened({}, only(seen(bad("helpfulness"))), 0)
    assert item is not None
    return Rig(server, Items({item.item_id: item}), ManualClock(), notifier(client))


async def test_pc5_5_7_an_item_is_reminded_of_after_24_hours_and_once_whoever_looks(rig: Rig) -> None:
    await rig.look(LATE - timedelta(minutes=1))
    assert rig.told == []
    for minutes in (0, 1, 3_000):
        await rig.look(LATE + timedelta(minutes=minutes))
    (text,) = rig.told
    assert "no one has taken it" in text
    assert rig.seen == [(1, 0), (1, 1), (1, 1), (1, 1)], "it stays overdue"


async def test_an_item_with_an_owner_is_reminded_of_and_a_closed_one_is_not(rig: Rig) -> None:
    ((name, item),) = rig.items.held.items()
    rig.items.held[name] = taken(item, "dana", "dana", "", NOW)
    await rig.look(LATE)
    assert len(rig.told) == 1
    assert "dana has it" in rig.told[0]
    rig.items.held[name] = closed(taken(item, "dana", "dana", "", NOW), TriageDecision.JUDGE, "dana", "seen", NOW)
    await rig.look(LATE)
    assert len(rig.told) == 1
    assert rig.seen[-1] == (1, 0)


async def test_a_reminder_that_slack_did_not_take_is_sent_at_the_next_look(rig: Rig) -> None:
    rig.server.statuses = [500] * 3
    await rig.look(LATE)
    assert not next(iter(rig.items.held.values())).done(TriageStep.REMINDED)
    rig.server.taken.clear()
    await rig.look(LATE)
    assert len(rig.told) == 1


async def test_where_slack_is_not_configured_the_item_says_that_nobody_was_told(rig: Rig) -> None:
    await rig.look(LATE, slack=False)
    (item,) = rig.items.held.values()
    assert item.history[-1].note == "told no one: slack_webhook is not set"
    assert overdue([item], LATE) == [item]


async def test_an_item_that_is_closed_between_two_looks_at_the_topic_is_not_reminded_of(rig: Rig) -> None:
    """What is reported follows from what stands in the topic while no one else changes it."""
    ((name, item),) = rig.items.held.items()
    done = closed(taken(item, "dana", "dana", "", NOW), TriageDecision.ACCEPTED, "dana", "seen", NOW)

    rig.items.now = {name: done}
    await rig.look(LATE)
    assert rig.told == []


async def test_a_defect_at_one_look_does_not_end_the_looks(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise no one is reminded any more, and the gauge stays as it was."""
    looks, looked_again = 0, asyncio.Event()

    async def items() -> dict[str, TriageItem]:
        nonlocal looks
        looks += 1
        if looks == 1:
            raise RuntimeError("of no kind that is expected")
        looked_again.set()
        return {}

    monkeypatch.setattr(rig.items, "items", items)
    held: Any = rig.items
    task = asyncio.create_task(TriageReminders(held, rig.clock, Slack(rig.made, None), 0.0).run())
    again = asyncio.create_task(looked_again.wait())
    try:
        await asyncio.wait([task, again], timeout=5, return_when=asyncio.FIRST_COMPLETED)
        assert looked_again.is_set()
    finally:
        for one in (task, again):
            one.cancel()
        await asyncio.gather(task, again, return_exceptions=True)
