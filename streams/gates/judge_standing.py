"""Follows the topic of judges' standing, which is compacted: what checks last said of each judge.

An emptied Redis lifts no suspension. No judge is called sound before the topic has been read to its end, or
while it can't be.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime

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
    """`noticed` gets what is known of judges, after each reading. `versions` gives the version of each judge that
    serves; `serving` is what `why` says of these, as of the last reading."""

    what = "the topic of judges' standing"

    def __init__(
        self,
        access: KafkaAccess,
        topic: str,
        clock: Clock,
        noticed: Callable[[Suspensions], None] = lambda known: None,
        versions: Callable[[], Mapping[str, str]] = dict,
    ) -> None:
        super().__init__(access, topic, clock)
        self._noticed, self._versions, self.known = noticed, versions, Suspensions()
        self.serving: Mapping[tuple[str, str], str] = {}

    def why(self, judge: str, version: str) -> str:
        """Return why this version of the judge is suspended, whichever serves by now; empty where it is not. Raises
        Unavailable while no one knows."""
        if not self.readable:
            raise Unavailable("Kafka: no one knows yet which judges are suspended")
        today = datetime.fromtimestamp(self._clock.now_ms() / 1_000, UTC).date()
        return self.known.why(judge, version, today)

    def take_in(self, value: bytes, appended_ms: int) -> None:
        try:
            record = StandingRecord.model_validate_json(value)
        except ValidationError:
            log.warning("no_judge_standing", topic=self._topic)
            return
        if is_ahead(record.at, appended_ms):
            log.warning("judge_standing_dated_ahead", topic=self._topic, at=record.at.isoformat())
        else:
            self.known.add(record)

    async def read_on(self) -> None:
        await super().read_on()
        self.serving = {one: self.why(*one) for one in self._versions().items()}
        self._noticed(self.known)

    def made_anew(self) -> None:
        """Nothing: who deletes the topic lifts no suspension that is known."""


async def publish_standings(access: KafkaAccess, topic: str, records: Sequence[StandingRecord]) -> None:
    """Return once all records are durable. Raises Unavailable."""
    producer = Producer(access)
    try:
        await producer.send([(topic, one.key.encode(), one.model_dump_json().encode(), ()) for one in records])
    finally:
        await producer.close()
