"""Questions about offsets: the first one about a topic is answered at once."""

from __future__ import annotations

from typing import Any

import pytest
from aiokafka.consumer.fetcher import Fetcher
from aiokafka.errors import StaleMetadata
from faust.types import TP

from rampgate.local.services.kafka import KafkaCluster
from schemas.settings import KafkaAccess
from streams.kafka.offsets import KafkaOffsets


async def test_the_first_question_about_a_topic_is_not_asked_in_vain(
    kafka: KafkaCluster, topic_prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A question in vain costs a pause of 100 ms, for each topic, at each start of a worker."""
    unknown: list[StaleMetadata] = []
    ask = Fetcher._proc_offset_requests

    async def noted(self: Fetcher, timestamps: Any) -> Any:
        try:
            return await ask(self, timestamps)
        except StaleMetadata as error:
            unknown.append(error)
            raise

    monkeypatch.setattr(Fetcher, "_proc_offset_requests", noted)
    topics = [topic_prefix + "one", topic_prefix + "two"]
    kafka.create_topics(topics)
    offsets = KafkaOffsets(KafkaAccess((kafka.bootstrap,)))
    try:
        for topic in topics:
            assert await offsets.bounds([TP(topic, 0)]) == {TP(topic, 0): (0, 0)}
    finally:
        await offsets.close()
    assert unknown == []
