"""From settings to what operators are told beside the worker's gates: failed verdicts, regressions that evaluations
found, triage that is overdue (PC5 AC-4, §5.7, §9.5), and judges that score against users (PF-9 FR-10)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection
from datetime import timedelta
from functools import partial

import structlog

from evalcore import reloading
from evalcore.inversion.users import UserSignal, UserTurn, Week
from evalcore.scoring.http_client import HttpClient
from rampgate.registry.metrics import observed
from rampgate.user_turns import read_turns
from rampgate.wiring import Parts
from rampgate.worker.live_judging import ALERTS, channels_of, make_notifier, make_watch, triage_log
from schemas.checks.triage import TriageItem
from streams.alerts.evaluations import EvaluationResponses
from streams.alerts.notifiers import Slack
from streams.alerts.operator_news import OperatorNews
from streams.alerts.regression_watch import RegressionWatch
from streams.alerts.triage_log import TriageReminders
from streams.alerts.user_weeks import Seen, UserWeekLog, UserWeeks
from streams.kafka.delayed_consumer import DelayedConsumer
from streams.metrics import verdict_published
from streams.opik.traces import limit_of

log = structlog.get_logger(__name__)
NAME = "operators"
USERS_SHARE = 0.2
"""Of the lookups a minute that the setting allows: 5 beside the join's 25, and Opik allows 30."""


class Operators:
    """Started and closed with the worker; of several workers one tells of a verdict, or of an item."""

    def __init__(self, parts: Parts, waiting: Callable[[], bool]) -> None:
        """While `waiting`, no judge is compared with users: the clock is not trusted, or records are read again."""
        self._parts, self._waiting = parts, waiting
        self.consumer: DelayedConsumer | None = None
        self._watch: RegressionWatch | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._client = HttpClient(*ALERTS)

    def start(self) -> None:
        parts, settings = self._parts, self._parts.settings
        slack = Slack(make_notifier(parts, self._client), channels_of(settings).slack)
        published = partial(verdict_published, parts.metrics)
        news = OperatorNews(parts.store, parts.clock, slack, parts.policy.lookback, published)
        self._watch = make_watch(parts, self._client, lambda: False)
        responses = EvaluationResponses(self._watch, observed(parts.metrics), parts.clock)
        self.consumer = DelayedConsumer(
            NAME,
            parts.access,
            f"{settings.group}-{NAME}",
            {parts.topics["verdicts"]: news, parts.topics["evaluations"]: responses},
            parts.clock,
            0.0,
            session_seconds=settings.session_timeout_seconds,
        )
        reminders = TriageReminders(triage_log(parts), parts.clock, slack, settings.regression_seconds, self._observe)
        self._tasks = [
            asyncio.create_task(self.consumer.run(), name=NAME),
            asyncio.create_task(reminders.run(), name="triage"),
        ]
        if settings.write and parts.verticals:
            users = user_weeks(parts, slack, self._waiting)
            self._tasks.append(asyncio.create_task(users.run(), name="user-weeks"))
        else:
            log.info("user_weeks", state="off: writing is off, or no vertical is registered")

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._watch is not None:
            await self._watch.close()
        await self._client.aclose()

    def _observe(self, items: Collection[TriageItem], late: Collection[TriageItem]) -> None:
        self._parts.metrics.observe_triage([item.state for item in items], len(late))


def user_weeks(parts: Parts, slack: Slack, waiting: Callable[[], bool]) -> UserWeeks:
    """Holds judges against users. It shares a fifth of what Opik's searches are allowed, beside the join's own."""
    settings, limiter = parts.settings, limit_of(parts.settings.opik_lookups_per_minute * USERS_SHARE)

    def read(vertical: str, week: Week) -> AsyncIterator[list[UserTurn]]:
        owner = parts.verticals[vertical]
        return read_turns(settings, owner, UserSignal.THUMBS, week.since_ms, week.until_ms, limiter)

    def observe(seen: Seen) -> None:
        """Labels are the registry's, whatever the topic says."""
        registry = reloading.loaded()
        judges = {judge.id for judge in registry.all()} if registry is not None else set()
        ours = {one: weeks for one, weeks in seen.against.items() if one[0] in judges and one[1] in parts.verticals}
        parts.metrics.observe_user_weeks(ours, seen.behind)

    return UserWeeks(
        UserWeekLog(parts.access, parts.producer, parts.topics["user-weeks"]),
        parts.store,
        parts.clock,
        sorted(parts.verticals),
        read,
        slack,
        late=timedelta(seconds=settings.lookback_seconds),
        every=settings.regression_seconds,
        ready=lambda: not waiting(),
        observe=observe,
    )
