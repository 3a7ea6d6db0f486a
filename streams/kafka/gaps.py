"""Tells of what Kafka lost before it was read: in conservation's counters, as metrics and in the log."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import structlog
from faust.types import TP

from agents.join.counting import count_gap
from agents.ports import Change
from schemas.signals import kinds
from schemas.topics import Topics
from streams.metrics import Metrics

log = structlog.get_logger(__name__)


class GapReason(StrEnum):
    RETENTION = "retention"
    NEW_LOG = "new_log"


@dataclass(frozen=True)
class Gap:
    """Offsets [since, until) of a partition that Kafka no longer had when they were to be read. `until` is None where
    the log they were in is gone, so that nobody can know where it ended."""

    partition: TP
    since: int
    until: int | None
    reason: GapReason

    @property
    def offsets(self) -> int:
        """How many offsets were lost, 0 where that is unknown. With compaction or transactions fewer were records."""
        return max(self.until - self.since, 0) if self.until is not None else 0


class Gaps:
    """Counts and tells of gaps. The caller puts the count into the change that moves the watermark over the gap, so
    that it counts once, whichever worker finds it and however often."""

    def __init__(self, topics: Topics, metrics: Metrics, lookback_ms: int) -> None:
        self._kinds = {topics.of(kind): kind for kind in kinds()}
        self._metrics, self._lookback = metrics, lookback_ms

    def count(self, change: Change, gap: Gap, now: int) -> None:
        """Count the gap in `change`, in the hour in which it was found."""
        count_gap(change, self._kinds[gap.partition.topic], gap.offsets, now, self._lookback)

    def tell(self, gap: Gap) -> None:
        """Tell of a gap that is counted."""
        topic = gap.partition.topic
        log.error(
            "kafka_gap",
            topic=topic,
            partition=gap.partition.partition,
            since=gap.since,
            until=gap.until,
            reason=gap.reason.value,
            lost=f"at most {gap.offsets} records" if gap.until is not None else "nobody can know how many records",
            remedy="rampgate sweep",
        )
        self._metrics.gaps.labels(topic, gap.reason.value).inc()
        self._metrics.gap_records.labels(topic).inc(gap.offsets)
