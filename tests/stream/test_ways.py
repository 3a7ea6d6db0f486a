"""What runs for one thumb, from Kafka's fetch to Opik, Redis and the commit, is what docs/ways.md says."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import orjson
import pytest
from confluent_kafka import Message, Producer
from faust.types import TP

from rampgate.local.services.kafka import KafkaCluster
from rampgate.local.services.redis import RedisServer
from rampgate.settings import Settings
from rampgate.wiring import AGENTS, make_parts
from schemas.dead_letter_answers import StoredDeadLetter
from schemas.outcomes import Cause
from streams.app import consume
from streams.dead_letters.reader import DeadLetterFilter, read_dead_letters
from streams.kafka.start_offsets import Gaps, StartOffsets
from streams.kafka.topics import wait_for_topics
from streams.queries.conservation import conservation
from streams.rebuild import Rebuild
from tests.fault.faulty_opik import FaultyOpik
from tests.root import ROOT
from tests.stream.plain_events import thumb, trace_event
from tests.third_signal import favourite
from tests.ways import files_of

ROOMS = tuple(str(ROOT / room) + "/" for room in ("schemas", "evalcore", "agents", "streams", "rampgate"))


class Executed:
    """The product's files in which a function is called while `on`."""

    def __init__(self) -> None:
        self.on = False
        self.files: set[str] = set()
        self.names: dict[str, set[str]] = {}

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        if self.on and event == "call":
            name = frame.f_code.co_filename
            if name.startswith(ROOMS) and "/rampgate/local/" not in name:
                self.files.add(str(Path(name).relative_to(ROOT)))
                self.names.setdefault(str(Path(name).relative_to(ROOT)), set()).add(frame.f_code.co_qualname)


@contextmanager
def traced() -> Iterator[Executed]:
    """Threads that begin inside are traced too: Faust's consumer has one of its own."""
    executed = Executed()
    threading.setprofile(executed)
    sys.setprofile(executed)
    try:
        yield executed
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


class Running:
    """The consumption of a worker in this process, without its maintenance."""

    def __init__(self, settings: Settings) -> None:
        self.parts = parts = make_parts(settings)
        self.topics, self._rebuild = parts.topics, Rebuild(parts.ports, parts.policy, self._failed)
        self._producer = Producer({"bootstrap.servers": settings.kafka, "log_level": 0})

    async def __aenter__(self) -> Running:
        parts = self.parts
        await wait_for_topics(parts.access, [self.topics[name] for name in (*AGENTS, "dead-letters")])
        in_flight = parts.tuning.records_in_flight
        gaps = Gaps(self.topics, parts.metrics, parts.policy.lookback)
        self._consumption = consume(
            parts.access,
            parts.tuning,
            self.topics,
            AGENTS,
            parts.ports,
            parts.policy,
            StartOffsets(parts.store, parts.clock, parts.policy.lookback, in_flight, self._rebuild, gaps),
            observe=partial(parts.metrics.observe_report, registered=parts.verticals),
            hold=self._rebuild.hold,
        )
        await self._consumption.app.start()
        return self

    def _failed(self, error: BaseException) -> None:
        self._consumption.fatal(error)

    async def __aexit__(self, *_: object) -> None:
        await self._consumption.stop()
        await self.parts.close()

    async def handled(self, topic: str, event: dict[str, Any]) -> None:
        """Send an event and wait until its offset is committed."""
        places: list[Message] = []
        value = orjson.dumps(event)
        self._producer.produce(
            topic, value, event["response_id"], on_delivery=lambda _, message: places.append(message)
        )
        assert self._producer.flush(20) == 0
        partition, offset = places[0].partition(), places[0].offset() or 0
        async with asyncio.timeout(60.0):
            committed = self._consumption.app.consumer._committed_offset
            while (committed[TP(topic, partition or 0)] or 0) <= offset:  # noqa: ASYNC110 - a commit has no event
                await asyncio.sleep(0.05)


@pytest.fixture
def settings(kafka: KafkaCluster, redis_server: RedisServer, scripted_opik: FaultyOpik, topic_prefix: str) -> Settings:
    scripted_opik.heal()
    return Settings(
        kafka=kafka.bootstrap,
        redis=redis_server.url,
        opik=scripted_opik.url,
        topic_prefix=topic_prefix,
        redis_prefix=topic_prefix,
        group=topic_prefix + "group",
        write=True,
        commit_interval_seconds=0.2,
    )


async def test_a_thumb_passes_the_files_of_its_page_and_no_other(
    settings: Settings, scripted_opik: FaultyOpik, topic_prefix: str
) -> None:
    """The first thumb of a turn takes the fast path, its withdrawal the general way; both are traced."""
    now = datetime.now(UTC)
    warm, turn = topic_prefix + "warm", topic_prefix + "turn"
    traces, thumbs = topic_prefix + "traces", topic_prefix + "thumbs"
    event = trace_event(turn, "receipts", now)
    with traced() as executed:
        async with Running(settings) as running:
            await running.handled(traces, trace_event(warm, "receipts", now))
            await running.handled(traces, event)
            await running.handled(thumbs, thumb(warm, now))
            executed.on = True
            await running.handled(thumbs, thumb(turn, now))
            assert (event["trace_id"], "user_signal_thumbs") in scripted_opik.writes()
            await running.handled(thumbs, thumb(turn, now + timedelta(seconds=1), None))
            executed.on = False
    assert sorted(executed.files) == sorted(files_of("A thumb's way"))


async def test_a_third_signal_goes_from_kafka_to_opik_redis_and_the_dead_letters(
    settings: Settings, scripted_opik: FaultyOpik, topic_prefix: str
) -> None:
    """On a real Kafka and Redis; tests/third_signal is all that knows of it."""
    now = datetime.now(UTC)
    turn = topic_prefix + "turn"
    marked = {"event_id": "1", "response_id": turn, "marked": True, "occurred_at": now.isoformat()}
    trace = trace_event(turn, "receipts", now)
    with favourite.registered():
        async with Running(settings) as running:
            await running.handled(topic_prefix + "favourites", marked)
            await running.handled(topic_prefix + "favourites", marked | {"marked": "perhaps"})
            await running.handled(topic_prefix + "traces", trace)
            assert (trace["trace_id"], "user_signal_favourite") in scripted_opik.writes()
            parts = running.parts
            found = (await conservation(parts.store, parts.clock.now_ms(), 3_600, parts.policy.future)).signals
            one = found["favourite"]
            assert (one.consumed, one.done, one.dead_lettered, one.difference) == (2, 1, 1, 0)
            (letter,) = [one for page in [await letters(running)] for one in page]
            assert (letter.topic, letter.cause) == (topic_prefix + "favourites", Cause.MALFORMED)


async def letters(running: Running) -> list[StoredDeadLetter]:
    read = read_dead_letters(running.parts.access, running.topics["dead-letters"], DeadLetterFilter())
    return [letter async for page in read for letter in page]
