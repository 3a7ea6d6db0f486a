"""Follows the topic of judges' standing, which is compacted: what checks last said of each judge.

An emptied Redis lifts no suspension. Nobody is told that a judge is sound before the topic has been read to its end, or
while it can't be.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime

import structlog
from pydantic import ValidationError

from agents.ports import Clock, Unavailable
from evalcore.canaries.suspensions import Suspensions
from schemas.checks.standing import StandingRecord
from schemas.settings import KafkaAccess
from schemas.zoned_time import is_ahead
from streams.gates.followed_topic import FollowedTopic
from streams.kafka.client import Producer

log = structlog.get_logger(__name__)


class JudgeStandings(FollowedTopic):
    """`versions` gives the version of each judge that serves; `noticed` is told of the records after each reading.

    `suspended` says why judges that serve are suspended, by id; None while nobody knows. `serving` has the same of each
    version that serves, empty where it is not suspended; what is not in it, `why` says.
    """

    what = "the topic of judges' standing"

    def __init__(
        self,
        access: KafkaAccess,
        topic: str,
        clock: Clock,
        versions: Callable[[], Mapping[str, str]],
        noticed: Callable[[Suspensions], None] = lambda known: None,
    ) -> None:
        super().__init__(access, topic, clock)
        self._versions, self._noticed = versions, noticed
        self._known = Suspensions()
        self.suspended: Mapping[str, str] | None = None
        self.serving: Mapping[tuple[str, str], str] = {}

    def why(self, judge: str, version: str) -> str:
        """Return why this version of the judge is suspended, whichever serves by now; empty where it is not. Raises
        Unavailable while nobody knows."""
        if self.suspended is None:
            raise Unavailable("Kafka: nobody knows yet which judges are suspended")
        return self._known.why(judge, version, self._today())

    def take_in(self, value: bytes, appended_ms: int) -> None:
        try:
            record = StandingRecord.model_validate_json(value)
        except ValidationError:
            log.warning("no_judge_standing", topic=self._topic)
            return
        if is_ahead(record.at, appended_ms):
            log.warning("judge_standing_dated_ahead", topic=self._topic, at=record.at.isoformat())
        else:
            self._known.add(record)

    def caught_up(self) -> None:
        today = self._today()
        self.serving = {one: self._known.why(*one, today) for one in self._versions().items()}
        self.suspended = {judge: why for (judge, _), why in self.serving.items() if why}
        self._noticed(self._known)

    def _today(self) -> date:
        return datetime.fromtimestamp(self._clock.now_ms() / 1_000, UTC).date()

    def made_anew(self) -> None:
        """Nothing: who deletes the topic lifts no suspension that is known."""

    def lost(self) -> None:
        self.suspended, self.serving = None, {}


async def suspended_now(
    access: KafkaAccess, topic: str, clock: Clock, versions: Mapping[str, str]
) -> Mapping[str, str]:
    """Return why judges are suspended, by id; `versions` has the version of each. Raises Unavailable, also where there
    is no such topic."""
    standings = JudgeStandings(access, topic, clock, lambda: versions)
    try:
        await standings.read_on()
    finally:
        await standings.close()
    return standings.suspended or {}


async def known_now(access: KafkaAccess, topic: str, clock: Clock) -> Suspensions:
    """Return all that the topic has. Raises Unavailable, also where there is no such topic."""
    seen: list[Suspensions] = []
    standings = JudgeStandings(access, topic, clock, dict, seen.append)
    try:
        await standings.read_on()
    finally:
        await standings.close()
    return seen[-1]


async def publish_standings(access: KafkaAccess, topic: str, records: Sequence[StandingRecord]) -> None:
    """Return once all records are durable. Raises Unavailable."""
    producer = Producer(access)
    try:
        await producer.send([(topic, one.key.encode(), one.model_dump_json().encode(), ()) for one in records])
    finally:
        await producer.close()
