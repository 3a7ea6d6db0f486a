"""A gate that runs for ten minutes (PC5 NFR-3) is no stall: no probe may have the worker killed for it."""

from __future__ import annotations

import asyncio
import time
from types import SimpleNamespace
from typing import Any

import pytest
from faust.types import TP
from structlog.testing import capture_logs

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

    read_to = stands = unsettled_from
    fetches = 0


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

    health._offsets = Ends()
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


@pytest.fixture
def still(monkeypatch: pytest.MonkeyPatch) -> WorkerHealth:
    """Records of the thumbs wait at offset 10, and a minute goes by."""
    now = [1_000.0]
    monkeypatch.setattr("rampgate.worker.health.time.monotonic", lambda: now[0])
    health = measured(0, {STEPS: 10, THUMBS: 12})
    now[0] += 60.0
    return health


def looked_again(health: WorkerHealth, fetches: int, ends: dict[TP, int]) -> dict[str, Any]:
    """After so many fetches: the log's line, or none."""
    consumption: Any = health._worker.consumption
    consumer = consumption.app.consumer
    consumer.fetches += fetches
    with capture_logs() as lines:
        health._measure(consumer, ends)
    return next((dict(line) for line in lines if line["event"] == "partition_stands_still"), {})


def test_a_partition_whose_records_do_not_come_is_told_by_log_metric_and_readiness(still: WorkerHealth) -> None:
    """As where a broker answers each fetch with CORRUPT_MESSAGE, which aiokafka repeats for ever."""
    told = looked_again(still, 100, {STEPS: 10, THUMBS: 12})
    assert (told["topic"], told["partition"], told["offset"], told["waiting"]) == (THUMBS.topic, 0, 10, 2)
    assert "thumbs/0 stands still at offset 10" in still._partitions().detail
    assert still._parts.metrics.registry.get_sample_value("rampgate_partitions_standing") == 1.0
    assert looked_again(still, 100, {STEPS: 10, THUMBS: 13}) == {}, "once is enough"
    assert not still._partitions().ok
    looked_again(still, 1, {STEPS: 10, THUMBS: 10})
    assert still._partitions().ok
    assert still._parts.metrics.registry.get_sample_value("rampgate_partitions_standing") == 0.0


@pytest.mark.parametrize("why", ["it fetches nothing while others are in work", "it is paused", "its batch is in work"])
def test_a_partition_that_only_waits_its_turn_does_not_stand_still(still: WorkerHealth, why: str) -> None:
    consumption: Any = still._worker.consumption
    if why == "it is paused":
        still._paused = {THUMBS: "bad records"}
    if why == "its batch is in work":
        consumption.app.consumer.stands = lambda tp: 12
    assert looked_again(still, 0 if why.startswith("it fetches") else 100, {STEPS: 10, THUMBS: 12}) == {}
    assert not still._standing
