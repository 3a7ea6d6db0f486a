"""A gate that runs for ten minutes is no stall: no probe may have the worker killed for it (PC5 NFR-3)."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from faust.types import TP

from rampgate.health import WorkerHealth
from schemas.settings import KafkaAccess
from schemas.topics import Topics
from streams.metrics import Metrics

STEPS, THUMBS = TP("rampgate.ramp-steps", 0), TP("rampgate.thumbs", 0)


def lag(running: int, ends: dict[TP, int]) -> int | None:
    """What counts as waiting, with everything settled up to 10."""
    parts = SimpleNamespace(metrics=Metrics(), topics=Topics(), access=KafkaAccess(("nowhere:1",)))
    consumption = SimpleNamespace(gates=SimpleNamespace(running=running))
    worker: Any = SimpleNamespace(parts=parts, consumption=consumption)
    health = WorkerHealth(worker, 300.0)
    health._measure(SimpleNamespace(unsettled_from=lambda tp: 10), ends)
    return health._lag


@pytest.mark.parametrize(
    ("running", "ends", "waiting"),
    [
        (1, {STEPS: 12, THUMBS: 10}, 0),
        (0, {STEPS: 12, THUMBS: 10}, 2),
        (1, {STEPS: 12, THUMBS: 13}, 3),
    ],
    ids=["a gate runs", "no gate runs, and requests wait", "a gate hides no stall of another topic"],
)
def test_what_waits_for_a_running_gate_is_no_stall(running: int, ends: dict[TP, int], waiting: int) -> None:
    assert lag(running, ends) == waiting


def test_what_waits_beside_the_join_has_a_gauge_by_reader_and_none_for_a_partition_that_went_elsewhere() -> None:
    metrics = Metrics()
    parts = SimpleNamespace(metrics=metrics, topics=Topics(), access=KafkaAccess(("nowhere:1",)))
    feed = SimpleNamespace(name="live", done={THUMBS: 7, STEPS: 3})
    worker: Any = SimpleNamespace(parts=parts, consumption=None, side_feeds=[feed])
    health = WorkerHealth(worker, 300.0)

    class Ends:
        async def ends(self, tps: set[TP]) -> dict[TP, int]:
            return dict.fromkeys(tps, 10)

    def gauge(tp: TP) -> float | None:
        labels = {"reader": "live", "topic": tp.topic, "partition": str(tp.partition)}
        return metrics.registry.get_sample_value("rampgate_side_lag_records", labels)

    health._offsets = Ends()  # type: ignore[assignment]
    asyncio.run(health._kafka())
    assert (gauge(THUMBS), gauge(STEPS)) == (3.0, 7.0)
    feed.done = {THUMBS: 10}
    asyncio.run(health._kafka())
    assert (gauge(THUMBS), gauge(STEPS)) == (0.0, None)
