"""Verdicts come within seconds of a crash: the worker whose turn it is to publish is killed, or put to sleep, while
another one lives and requests with 20 s flow."""

from __future__ import annotations

import json
import random
import statistics
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import Producer

from agents.keys import PUBLISH_LEASE
from tests.fault.faulty_gates import GateRig, Model, step
from tests.fault.held import PARTITIONS
from tests.fault.rig import Rig, now_ms
from tests.fault.worker_process import WorkerProcess

Make = Callable[..., Rig]
SLOW = pytest.mark.slow
DEADLINE = 20
LATER = 10.0
"""Seconds more than without a kill that the first verdict after it may take."""
PER_SECOND = 12.0


class Load(threading.Thread):
    """Asks for steps between gates, in turn on each partition. `asked`: when, in ms, and on which partition."""

    def __init__(self, gates: GateRig) -> None:
        super().__init__(daemon=True)
        self._gates, self._ended = gates, threading.Event()
        self.asked: dict[str, tuple[int, int]] = {}

    def run(self) -> None:
        rig = self._gates.rig
        producer = Producer({"bootstrap.servers": rig.kafka.bootstrap, "log_level": 0, "linger.ms": 0})
        number = 0
        while not self._ended.wait(1 / PER_SECOND):
            request = step(
                f"r-{number}", experiment_id=f"e-{number}", from_percent=5, to_percent=25, deadline_seconds=DEADLINE
            )
            partition = number % PARTITIONS
            self.asked[request["request_id"]] = now_ms(), partition
            producer.produce(f"{rig.prefix}ramp-steps", json.dumps(request), b"e", partition)
            producer.poll(0)
            number += 1
        assert producer.flush(30) == 0

    def end(self) -> list[str]:
        self._ended.set()
        self.join(40)
        assert not self.is_alive()
        return list(self.asked)


class Publishers:
    """The workers of a rig, and whose turn to publish it is."""

    def __init__(self, gates: GateRig) -> None:
        self._gates = gates
        self._owners: dict[bytes, WorkerProcess] = {}

    def _holder(self) -> bytes | None:
        held: Any = self._gates.rig.state.get(self._gates.rig.prefix + PUBLISH_LEASE.key())
        return held

    def start(self, count: int) -> WorkerProcess:
        """A worker more, whose name on the lease is known once it has published."""
        worker = self._gates.rig.worker()
        self._gates.together(count)
        self._gates.rig.wait("it has published", lambda: self._new(worker), 60, 0.0)
        return worker

    def _new(self, worker: WorkerProcess) -> bool:
        holder = self._holder()
        if holder is not None and holder not in self._owners:
            self._owners[holder] = worker
        return worker in self._owners.values()

    def stopped(self, victim: WorkerProcess | None = None) -> WorkerProcess:
        """A worker, this one or any, that is stopped while it holds the lease."""
        deadline = time.monotonic() + 60.0
        while time.monotonic() < deadline:
            holder = self._holder()
            worker = self._owners.get(holder) if holder is not None else None
            if worker is None or not worker.running or (victim is not None and worker is not victim):
                continue
            worker.pause()
            if self._holder() == holder:
                return worker
            worker.resume()
        raise AssertionError("no worker was caught in its turn")


def answered_at(gates: GateRig) -> dict[str, int]:
    """When each request's verdict was written, in ms."""
    found = {}
    for record in gates.rig.records("verdicts"):
        found[json.loads(record.value or b"")["request_id"]] = record.timestamp
    return found


def p95(values: list[float]) -> float:
    return sorted(values)[-(-len(values) * 95 // 100) - 1]


@pytest.mark.timeout(1_200)
@pytest.mark.parametrize("kills", [2, pytest.param(20, marks=SLOW)])
def test_pc5_ac4_verdicts_come_within_ten_seconds_of_the_publishers_death_and_no_deadline_passes(
    make_rig: Make, model: Model, kills: int, record_property: Callable[[str, object], None]
) -> None:
    """With the session timeout as shipped. Of the partitions the slowest counts, which is one of the dead worker's."""
    gates = GateRig(make_rig, model, session_timeout_seconds=6)
    load, publishers, chance = Load(gates), Publishers(gates), random.Random(31)
    load.start()
    for count in (1, 2):
        publishers.start(count)
    began, killed = now_ms(), list[int]()
    time.sleep(3.0)
    for number in range(kills):
        time.sleep(chance.uniform(0.0, 2.0))
        dead = publishers.stopped()
        killed.append(now_ms())
        dead.kill()
        time.sleep(LATER + 2.0)
        if number < kills - 1:
            publishers.start(2)
    names = load.end()
    verdicts = gates.one_each(names, 120.0)
    late = Counter(reason["code"] for one in verdicts.values() for reason in one["reasons"])
    written = answered_at(gates)
    waits = []
    for at in killed:
        first: dict[int, int] = {}
        for name, (asked, partition) in load.asked.items():
            if written[name] > at and asked <= at + 1000 * LATER:
                first[partition] = min(first.get(partition, written[name]), written[name])
        waits.append((max(first.values()) - at) / 1000)
    calm = [
        (written[name] - asked) / 1000
        for name, (asked, _) in load.asked.items()
        if began < asked and not any(at - 1_000 < asked < at + 1_000 * 30 for at in killed)
    ]
    figures = {
        "kills": kills, "requests": len(names), "first verdict, median": statistics.median(waits),
        "first verdict, p95": p95(waits), "longest": max((written[n] - at) / 1000 for n, (at, _) in load.asked.items()),
        "without a kill, p95": p95(calm),
    }  # fmt: skip
    record_property("figures", figures)
    print(figures)
    assert late["deadline_exceeded"] == 0, late
    assert {one["action"] for one in verdicts.values()} == {"proceed"}
    if kills > 2:  # the short form shares its machine: there the deadlines are the measure
        assert p95(waits) <= LATER + p95(calm), waits


@pytest.mark.parametrize("seconds", [12.0, pytest.param(60.0, marks=SLOW)])
def test_a_publisher_that_sleeps_in_its_turn_and_wakes_up_much_later_doubles_nothing(
    make_rig: Make, model: Model, seconds: float
) -> None:
    """Redis keeps what it holds: the lease ends by itself, and another worker has its turns meanwhile."""
    gates = GateRig(make_rig, model, session_timeout_seconds=6)
    load, publishers = Load(gates), Publishers(gates)
    load.start()
    for count in (1, 2):
        publishers.start(count)
    sleeper = publishers.stopped()
    asleep = now_ms()
    time.sleep(seconds)
    before = sum(at > asleep for at in answered_at(gates).values())
    sleeper.resume()
    time.sleep(5.0)
    verdicts = gates.one_each(load.end(), 120.0)
    assert before > PER_SECOND, "the other one answers meanwhile"
    assert {one["action"] for one in verdicts.values()} == {"proceed"}
