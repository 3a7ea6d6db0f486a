"""A rig for ramp steps: real Kafka and Redis, and scores as a test wants them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from rampgate.local.services.http_services import LocalModel
from rampgate.local.services.kafka import KafkaCluster
from tests.stream.gates.ramp_rig import Rig, ramp_rig


@pytest.fixture(scope="module")
def judges_model() -> Iterator[LocalModel]:
    with LocalModel() as model:
        yield model


@pytest.fixture
async def rig(
    kafka: KafkaCluster, redis_url: str, local_opik: Any, topic_prefix: str, registry_of_today: Path
) -> AsyncIterator[Rig]:
    async with ramp_rig(kafka, redis_url, local_opik.url, topic_prefix, registry_of_today) as made:
        yield made
