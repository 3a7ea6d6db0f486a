"""A gate that runs for ten minutes (PC5 NFR-3) is no stall: no probe may have the worker killed for it."""

from __future__ import annotations

import asyncio
import time
from types import SimpleNamespace
from typing import Any

import pytest
from faust.types import TP

from rampgate.worker.health import WorkerHealth
from schemas.answers import Check
from schemas.settings import KafkaAccess
from schemas.topics import Topics
from streams.metrics import Metrics
from streams.retry import WallClock

STALLED_AFTER = 300.0
STEPS, THUMBS = TP("rampgate.ramp-steps", 0), TP("rampgate.thumbs", 0)


class Consumer:
    """Everything is settled up to 10."""

    def __init__(self, held: set[TP]) -> None:
        self.held = held
        self._thread = SimpleNamespace(_consumer=self)

    def assignment(self) -> set[TP]:
        return self.held

    def unsettled_from(self, tp: TP) -> int:
        return 10

    read_to = unsettled_from


def measured(running: int, ends: dict[TP, int]) -> WorkerHealth:
    """Of a worker whose parts are all there, so many gates of which run."""
    parts = SimpleNamespace(metrics=Metrics(), topics=Topics(), access=KafkaAccess(("nowhere:1",)), clock=WallClock())
    consumer = Consumer({*ends})
    consumption = SimpleNamespace(
        gates=SimpleNamespace(running=running), app=SimpleNamespace(consumer=consumer), pipelines={}
    )
    worker: Any = SimpleNamespace(parts=parts, consumption=consumption, replaying=lambda: False)
    health = WorkerHealth(worker, STALLED_AFTER)
    health._checks = dict.fromkeys(health._checks, Check(ok=True))
    health._measure(consumer, ends)
    return health


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
    assert measured(running, ends)._lag == waiting


@pytest.mark.parametrize("running", [1, 0], ids=["a gate runs", "no gate runs, and requests wait"])
def test_a_worker_that_settles_nothing_for_long_is_alive_while_a_gate_runs_and_else_is_not(running: int) -> None:
    health = measured(running, {STEPS: 12, THUMBS: 10})
    health._progress()
    assert health.live().ok, "it has only just looked"
    health._moved = time.monotonic() - 2 * STALLED_AFTER
    health._progress()
    assert health.live().ok is bool(running)


def test_what_waits_beside_the_join_has_a_gauge_by_reader_and_none_for_a_partition_that_went_elsewhere() -> None:
    metrics = Metrics()
    parts = SimpleNamespace(metrics=metrics, topics=Topics(), access=KafkaAccess(("nowhere:1",)))
    feed = SimpleNamespace(name="live", done={THUMBS: 7, STEPS: 3})
    worker: Any = SimpleNamespace(parts=parts, consumption=None, delayed_consumers=[feed])
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


def test_a_paused_partition_makes_the_worker_not_ready_and_keeps_it_alive() -> None:
    health = measured(0, {STEPS: 10, THUMBS: 900})
    consumption: Any = health._worker.consumption
    consumption.pipelines = {"thumbs": SimpleNamespace(bad_in_a_row=0, paused={THUMBS: "1000 records in a row"})}
    health._progress()
    health._measure(consumption.app.consumer, {STEPS: 10, THUMBS: 900})
    assert health._lag == 0, "what waits there is no stall: a restart would not help"
    series = {"topic": THUMBS.topic, "partition": "0"}
    metrics = health._parts.metrics.registry
    assert metrics.get_sample_value("rampgate_partition_paused", series) == 1.0
    assert not health._partitions().ok
    assert "1000 records in a row" in health._partitions().detail
    consumption.pipelines["thumbs"].paused = {}
    health._progress()
    assert metrics.get_sample_value("rampgate_partition_paused", series) is None
    assert health._partitions().ok


def test_a_doubtful_clock_makes_the_worker_not_ready_and_keeps_it_alive() -> None:
    health = measured(0, {STEPS: 10, THUMBS: 900})
    health._progress()
    clock: WallClock = health._parts.clock
    clock.compare(clock.now_ms() - 8 * 86_400_000, time.monotonic())
    assert health._clock().detail == "this machine's clock is 691200 s ahead of Redis's; one of the two is wrong"
    health._moved = time.monotonic() - 2 * STALLED_AFTER
    health._progress()
    assert health.live().ok
    clock.compare(clock.now_ms(), time.monotonic())
    assert health._clock().ok
