"""A local Opik whose failures are scripted, rigs for letters and for workers, and a feed's rig."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from agents.keys import family_of
from rampgate.local.services.dynamodb import DynamoDBLocal
from rampgate.local.services.kafka import KafkaCluster
from rampgate.local.services.redis import RedisServer
from tests.fault.faulty_opik import FaultyOpik
from tests.fault.rig import Rig
from tests.stream.dead_letters.letter_rig import LetterRig
from tests.stream.dead_letters.replay_rig import impatient
from tests.stream.feed.feed_rig import FeedRig

PREFIX = re.compile(r"^(rg:|\S*?[0-9a-f]{8}\.)")
"""In front of a key: the setting's default, or a test's own, or that of one try in it."""


@pytest.fixture(scope="session", autouse=True)
def no_live_judging() -> Iterator[None]:
    """Judges that score live traces beside a test would change what it counts; one that is about them asks for it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAMPGATE_LIVE_JUDGING", "false")
        yield


@pytest.fixture(autouse=True)
def declared_keys(request: pytest.FixtureRequest) -> Iterator[None]:
    """Whatever a run leaves in Redis belongs to a family of `agents.keys`."""
    yield
    if "redis_server" in request.fixturenames:
        with redis.Redis.from_url(request.getfixturevalue("redis_server").url) as client:
            keys = [PREFIX.sub("", key.decode()) for key in client.scan_iter(count=1_000)]
        assert [key for key in keys if family_of(key) is None] == []


@pytest.fixture(scope="module")
def served_today(registry_of_today: Path) -> Iterator[Path]:
    """What workers of this module serve."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAMPGATE_CONFIGS", str(registry_of_today))
        yield registry_of_today


@pytest.fixture(scope="module")
def scripted_opik() -> Iterator[FaultyOpik]:
    with FaultyOpik() as server:
        yield server


@pytest.fixture
def rig(
    kafka: KafkaCluster, redis_server: RedisServer, scripted_opik: FaultyOpik, topic_prefix: str, tmp_path: Path
) -> Iterator[Rig]:
    """Workers, what they read and what they write; Opik answers well."""
    scripted_opik.heal()
    with Rig(kafka, redis_server, scripted_opik, topic_prefix, tmp_path) as made:
        yield made


@pytest.fixture
def feed_rig(
    kafka: KafkaCluster,
    redis_server: RedisServer,
    dynamodb: DynamoDBLocal,
    scripted_opik: FaultyOpik,
    topic_prefix: str,
    tmp_path: Path,
) -> Iterator[FeedRig]:
    """Topics, a thumbs table and a Redis prefix of the test's own."""
    scripted_opik.heal()
    scripted_opik.call("DELETE", "/_writes")
    with FeedRig(kafka, redis_server, scripted_opik, topic_prefix, tmp_path) as rig:
        rig.attach(dynamodb)
        yield rig


@pytest.fixture(scope="module")
def letter_rig(
    kafka: KafkaCluster,
    redis_server: RedisServer,
    scripted_opik: FaultyOpik,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[LetterRig]:
    """The module's own, with a worker that soon runs out of patience."""
    with impatient(kafka, redis_server, scripted_opik, tmp_path_factory.mktemp("replay")) as made:
        yield made
