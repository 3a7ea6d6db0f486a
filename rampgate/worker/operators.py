"""From settings to an operator's news of failed verdicts, told beside the worker's gates (PC5 AC-4, §9.5)."""

from __future__ import annotations

import asyncio

from rampgate.wiring import Parts
from rampgate.worker.live_judging import AlertClient, channels_of, make_notifier
from streams.alerts.operator_news import OperatorNews
from streams.kafka.delayed_consumer import DelayedConsumer

NAME = "operators"


class Operators:
    """Started and closed with the worker; of several workers one tells of a verdict."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self.consumer: DelayedConsumer | None = None
        self._task: asyncio.Task[None] | None = None
        self._client = AlertClient()

    def start(self) -> None:
        parts, settings = self._parts, self._parts.settings
        notifier = make_notifier(parts, self._client)
        news = OperatorNews(parts.store, parts.clock, notifier, channels_of(settings).slack, parts.policy.lookback)
        self.consumer = DelayedConsumer(
            NAME,
            parts.access,
            f"{settings.group}-{NAME}",
            {parts.topics["verdicts"]: news},
            parts.clock,
            0.0,
            session_seconds=settings.session_timeout_seconds,
        )
        self._task = asyncio.create_task(self.consumer.run(), name=NAME)

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self._client.close()
