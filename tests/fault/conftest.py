"""A local Opik with fault controls, and a rig on the session's Kafka and Valkey."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rampgate.local.services.kafka import KafkaCluster
from rampgate.local.services.redis import RedisServer
from tests.fault.faulty_gates import Model
from tests.fault.faulty_opik import FaultyOpik
from tests.fault.rig import Rig


@pytest.fixture
def faulty_opik() -> Iterator[FaultyOpik]:
    """Each test has its own: a rebuild adopts whatever scores Opik holds."""
    with FaultyOpik() as server:
        yield server


@pytest.fixture
def model() -> Iterator[Model]:
    with Model() as server:
        yield server


@pytest.fixture
def make_rig(
    kafka: KafkaCluster,
    redis_server: RedisServer,
    faulty_opik: FaultyOpik,
    topic_prefix: str,
    tmp_path: Path,
    registry_of_today: Path,
) -> Iterator[Callable[..., Rig]]:
    """Makes the test's rig; `redis_server=` and `opik=` replace the session's."""
    made: list[Rig] = []

    def make(**options: Any) -> Rig:
        server = options.pop("redis_server", redis_server)
        opik = options.pop("opik", faulty_opik)
        rig = Rig(
            options.pop("kafka", kafka),
            server,
            opik,
            topic_prefix,
            tmp_path,
            **{"configs": registry_of_today, **options},
        )
        made.append(rig)
        return rig

    yield make
    for rig in made:
        rig.close()


@pytest.fixture
def own_redis() -> Iterator[RedisServer]:
    """A Valkey that this test may empty, kill and fill."""
    with RedisServer() as server:
        yield server
