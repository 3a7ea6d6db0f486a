"""Tells of partitions that are added to a topic while it is in use.

Nothing of ours depends on which partition a record is on: turns are joined by key in Redis, new partitions are read
from their first record, and all of the verdicts' are read before one is published. But a key's later records go to
another partition than its earlier ones: only the topic's owner can want that, and other readers may rely on an order.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

import structlog

from streams.metrics import Metrics

log = structlog.get_logger(__name__)


class Partitions(Protocol):
    """See `streams.kafka.offsets.KafkaOffsets`."""

    async def partitions(self, topic: str) -> int: ...


class TopicGrowth:
    """`look` compares each topic's number of partitions with what it was at the look before."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._counts: dict[str, int] = {}

    async def look(self, topics: Iterable[str], kafka: Partitions) -> None:
        """Tell of topics that have grown. Raises Unavailable."""
        for topic in topics:
            count = await kafka.partitions(topic)
            before = self._counts.get(topic, count)
            self._counts[topic] = count
            self._metrics.topic_partitions.labels(topic).set(count)
            if count > before:
                log.warning(
                    "partitions_added",
                    topic=topic,
                    before=before,
                    now=count,
                    consequence="nothing is lost or doubled, and what comes there at first waits for seconds; a key's "
                    "records are on two partitions, in no common order",
                    remedy="none is needed here; where readers go by the order of a key, move to a new topic",
                )
