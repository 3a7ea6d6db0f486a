"""Holds judges against users' thumbs by itself, once for each closed week, and tells operators of two weeks in a row
(PF-9 FR-10, §5.4).

Results are on a topic of their own, which is compacted, and nothing of them is in Redis but the right to look: neither
an emptied Redis nor a restart repeats news, and whoever takes over goes on where the topic ends. A run that is killed
looks at its week again and finds the same. Only a death between Slack's answer and the note tells a week twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from datetime import UTC, datetime, timedelta

import structlog

from agents.keys import USER_WEEKS_LEASE
from agents.ports import Clock, Unauthorized, Unavailable
from evalcore.inversion.user_weeks import against_now, due, is_behind, looked_at, merged, news, news_in, untold
from evalcore.inversion.users import Picks, UserSignal, UserTurn, Week, latest_closed
from schemas.checks.user_week import UserWeek
from schemas.dead_letters import clean
from schemas.settings import KafkaAccess
from streams.alerts.looking import look_again_and_again
from streams.alerts.notifiers import Slack
from streams.kafka.client import Producer
from streams.kafka.reading import parsed_now
from streams.kafka.topics import wait_for_topics
from streams.redis.lease import renewed
from streams.redis.state import RedisStore

log = structlog.get_logger(__name__)
LEASE_MS = 120_000
"""Renewed while it is held, so it is only how long the others wait after the holder died."""
AGAIN_SECONDS = 600.0
"""After a failure the holder keeps the lease for so long: each try reads pages of Opik, which has limits."""
GIVEN_UP_AFTER = timedelta(days=1)
"""News that could not be delivered for so long are given up; the alert stands on its own."""
REFUSED_FOR = timedelta(days=7)
"""A vertical whose Opik has refused our key until so long after its week closed is left out of that week's result."""
BEHIND_SECONDS = 2 * 86_400.0
"""A week that closed so long ago and was not looked at is told of by a gauge."""


class UserWeekLog:
    """The topic of weeks that were looked at."""

    def __init__(self, access: KafkaAccess, producer: Producer, topic: str) -> None:
        self._access, self._producer, self._topic = access, producer, topic

    async def ready(self) -> None:
        """Return once there is such a topic; makes it where the brokers permit. Waits as long as that takes."""
        await wait_for_topics(self._access, [self._topic], partitions=1, compacted=[self._topic])

    async def weeks(self) -> dict[Week, UserWeek]:
        """Return every week that was looked at. Raises Unavailable, also where there is no such topic."""
        return merged(await parsed_now(self._access, self._topic, _user_week))

    async def write(self, record: UserWeek) -> None:
        """Return once the record is durable. Raises Unavailable."""
        await self._producer.send([(self._topic, record.key.encode(), record.model_dump_json().encode(), ())])


def _user_week(value: bytes) -> UserWeek:
    """Raises ValueError."""
    record = UserWeek.model_validate_json(value)
    Week.parse(record.week)
    return record


Read = Callable[[str, Week], AsyncIterator[list[UserTurn]]]
"""Reads a vertical's turns of a week that have a thumb, in pages. Raises Unavailable and Unauthorized."""


@dataclass(frozen=True)
class Seen:
    """What a look knows: weeks in a row by judge and vertical, and whether the latest closed week is late."""

    against: Mapping[tuple[str, str], int]
    behind: bool


@dataclass(eq=False, repr=False)
class UserWeeks:
    """Each worker has one, and one of them looks at a time. `late`: how long after its turns a signal may come;
    `every`: seconds between looks."""

    weeks: UserWeekLog
    leasing: RedisStore
    clock: Clock
    verticals: Sequence[str]
    read: Read
    slack: Slack
    _: KW_ONLY
    late: timedelta
    every: float
    ready: Callable[[], bool] = lambda: True
    observe: Callable[[Seen], None] = lambda seen: None

    def __post_init__(self) -> None:
        self._lease = self.leasing.lease(USER_WEEKS_LEASE.key(), LEASE_MS)
        self._known: dict[Week, UserWeek] | None = None

    async def run(self) -> None:
        """Look until cancelled."""
        await self.weeks.ready()
        await asyncio.sleep(self.every)
        await look_again_and_again(self.once, self.every, "user_weeks_wait", "user_weeks_failed")

    async def once(self) -> None:
        """Look once, if it is `ready`: read the topic only where something may be left to do. Raises Unavailable."""
        if not self.ready():
            return
        try:
            if self._left():
                self._known = await self.weeks.weeks()
        finally:
            self._show()
        if not self._left() or not await self._lease.acquire():
            return
        try:
            async with renewed(self._lease, LEASE_MS / 3_000):
                try:
                    await self._catch_up()
                except (Unavailable, Unauthorized) as error:
                    log.warning("user_weeks_wait", reason=clean(str(error)), seconds=AGAIN_SECONDS)
                    await asyncio.sleep(AGAIN_SECONDS)
        finally:
            await self._lease.release()

    async def _catch_up(self) -> None:
        """Tell what is untold, and look at each week that is due, the oldest first. Ends where this worker no longer
        holds the lease, which an emptied Redis takes away."""
        known = self._known = await self.weeks.weeks()
        for record in untold(known):
            await self._tell(record)
        for week in due(known, self._latest()):
            record = await self._look(week, known.get(week.before))
            if not await self._lease.renew():
                return
            await self.weeks.write(record)
            known[week] = record
            log.info("user_week", week=record.week, judges=len(record.judges), news=len(news_in(record)))
            self._show()
            if news_in(record):
                await self._tell(record)

    async def _look(self, week: Week, before: UserWeek | None) -> UserWeek:
        """Raises Unavailable, and Unauthorized where the refusal may still end in time."""
        chosen: dict[str, list[UserTurn]] = {}
        unread: list[str] = []
        for vertical in self.verticals:
            picks = Picks(week, UserSignal.THUMBS)
            try:
                async for turns in self.read(vertical, week):
                    picks.add(turns)
            except Unauthorized as error:
                if self._now() < week.closes(self.late) + REFUSED_FOR:
                    raise
                log.error("user_week_without", week=str(week), vertical=vertical, reason=clean(str(error)))
                unread.append(vertical)
                continue
            chosen |= picks.by_vertical()
        # In a thread: the first import of numpy takes longer than the event loop may stand.
        return await asyncio.to_thread(looked_at, chosen, week, before, self._now(), unread)

    async def _tell(self, record: UserWeek) -> None:
        """Tell of the week's news and note it; where Slack does not take them, a later look tries again."""
        if not await self._lease.renew():
            return
        told = await self.slack.tell(news(record), "user_week_not_told", week=record.week)
        if not told and self._now() - record.at < GIVEN_UP_AFTER:
            return
        told = told or "no one: Slack took it from none of a day's tries"
        for one in news_in(record):
            figures = {"n": one.n, "pearson": one.pearson, "interval": one.pearson_ci95, "adjusted_p": one.adjusted_p}
            log.error("judge_against_users", judge=one.judge_id, vertical=one.vertical, week=record.week, **figures)
        noted = record.model_copy(update={"told": told})
        await self.weeks.write(noted)
        if self._known is not None:
            self._known[Week.parse(record.week)] = noted

    def _left(self) -> bool:
        """Whether something may be left to do, as far as this worker knows."""
        known = self._known
        return known is None or bool(untold(known) or due(known, self._latest()))

    def _show(self) -> None:
        known, latest, now = self._known or {}, self._latest(), self._now()
        behind = is_behind(known, latest, latest.closes(self.late), now, BEHIND_SECONDS)
        self.observe(Seen(against_now(known), behind))

    def _latest(self) -> Week:
        return latest_closed(self._now(), self.late)

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self.clock.now_ms() / 1000, UTC)
