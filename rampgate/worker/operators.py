"""From settings to what operators are told beside the worker's gates: failed verdicts, regressions that evaluations
found, triage that is overdue (PC5 AC-4, §5.7, §9.5)."""

from __future__ import annotations

import asyncio
from collections.abc import Collection

from evalcore import reloading
from rampgate.wiring import Parts
from rampgate.worker.live_judging import AlertClient, channels_of, make_notifier, make_watch, triage_log
from schemas.checks.triage import TriageItem
from streams.alerts.evaluations import EvaluationResponses
from streams.alerts.operator_news import OperatorNews
from streams.alerts.triage_reminders import TriageReminders
from streams.kafka.delayed_consumer import DelayedConsumer

NAME = "operators"


class Operators:
    """Started and closed with the worker; of several workers one tells of a verdict, or of an item."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self.consumer: DelayedConsumer | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._client = AlertClient()

    def start(self) -> None:
        parts, settings = self._parts, self._parts.settings
        notifier = make_notifier(parts, self._client)
        slack = channels_of(settings).slack
        news = OperatorNews(parts.store, parts.clock, notifier, slack, parts.policy.lookback)
        watch = make_watch(parts, self._client, lambda: False)
        responses = EvaluationResponses(watch, reloading.loaded, parts.clock)
        self.consumer = DelayedConsumer(
            NAME,
            parts.access,
            f"{settings.group}-{NAME}",
            {parts.topics["verdicts"]: news, parts.topics["evaluations"]: responses},
            parts.clock,
            0.0,
            session_seconds=settings.session_timeout_seconds,
        )
        reminders = TriageReminders(
            triage_log(parts), parts.clock, notifier, slack, settings.regression_seconds, self._observe
        )
        self._tasks = [
            asyncio.create_task(self.consumer.run(), name=NAME),
            asyncio.create_task(reminders.run(), name="triage"),
        ]

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._client.close()

    def _observe(self, items: Collection[TriageItem], late: Collection[TriageItem]) -> None:
        self._parts.metrics.observe_triage([item.state for item in items], len(late))
