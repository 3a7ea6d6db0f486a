"""Workers that are killed lose and double nothing (promises 1 to 3; "Done when" 3)."""

from __future__ import annotations

import random
import signal
import threading
import time
from collections.abc import Callable

import pytest

from tests.fault.checking import check
from tests.fault.held import Held
from tests.fault.rig import SOON_COMPARED, Rig, now_ms
from tests.fault.traffic import Mix, Traffic
from tests.fault.worker_process import WorkerProcess


class Watcher(threading.Thread):
    """Samples, ten times a second, that no committed offset is above what the state holds as finished (L4)."""

    def __init__(self, rig: Held) -> None:
        super().__init__(daemon=True, name="watcher")
        self._rig = rig
        self._ended = threading.Event()
        self.samples = 0
        self.violations: list[str] = []

    def run(self) -> None:
        while not self._ended.wait(0.1):
            try:
                committed = self._rig.committed()  # before the state is read: the state only moves on
                marks = self._rig.watermarks()
            except Exception:  # noqa: S112 - a part that is down is sampled again
                continue
            self.samples += 1
            for place, offset in committed.items():
                if offset > marks.get(place, 0):
                    self.violations.append(f"{place}: committed {offset}, the state has {marks.get(place)}")

    def end(self) -> None:
        self._ended.set()
        self.join(10)


Make = Callable[..., Rig]
PROMPT = Mix(no_trace=0.0, opik_only=0.0, judged_opik=0.0)
"""Nothing that maintenance has to look up: what a killed worker had claimed is claimed again only after a minute."""


@pytest.mark.slow
def test_a_calm_run_ends_as_the_oracle_says(make_rig: Make) -> None:
    """The measure of all other tests: without any fault, scores, coverage, counts and dead letters are the oracle's."""
    traffic = Traffic(1, 1_000, now_ms())
    rig = make_rig()
    rig.opik.load(traffic)
    rig.worker()
    rig.send(traffic.messages)
    check(rig, traffic)


def storm(rig: Rig, traffic: Traffic, number: signal.Signals, times: int, seed: int) -> Watcher:
    """Two workers under load; one of them ends by `number` and is replaced, `times` times, at seeded moments."""
    print(f"seed {seed}: {len(traffic.messages)} records, {times} times {number.name}")
    dice, began = random.Random(seed), time.monotonic()
    rig.opik.load(traffic)
    rig.opik.fault(match={"path": "feedback-scores"}, delay_seconds=0.03)
    watcher = Watcher(rig)
    workers: list[WorkerProcess] = [rig.worker(), rig.worker()]
    rig.send(traffic.messages[:200])
    rig.wait("the first batch settled", lambda: rig.finished() > 0)
    watcher.start()
    # So slow that it lasts longer than all ends, also where workers are slow to start.
    load = rig.sending(traffic.messages[200:], per_second=160)
    for _ in range(times):
        for worker in workers:
            rig.wait("both work", lambda worker=worker: worker.logged("first_batch_settled") or not load.is_alive(), 60)
        before = rig.finished()
        rig.wait("records are moving", lambda before=before: rig.finished() > before or not load.is_alive(), 30, 0.01)
        time.sleep(dice.uniform(0.0, 0.6))  # not a wait for anything: the seeded moment
        victim = dice.randrange(2)
        print(f"{time.monotonic() - began:.1f} s: {number.name} at {rig.finished()} of {len(rig.sent)} records")
        assert workers[victim].running, workers[victim].log()[-3000:]
        if number is signal.SIGKILL:
            workers[victim].kill()
        else:
            assert workers[victim].terminate() == 0
        workers[victim] = rig.worker()
    assert load.is_alive(), "the load was over before the last of them: the moments were not under load"
    rig.opik.heal()
    rig.hurry()
    load.join(60)
    print(f"{time.monotonic() - began:.1f} s: all is sent")
    return watcher


@pytest.mark.parametrize(
    ("number", "times"),
    [
        (signal.SIGKILL, 4),
        pytest.param(signal.SIGKILL, 10, marks=pytest.mark.slow),
        pytest.param(signal.SIGTERM, 10, marks=pytest.mark.slow),
    ],
)
def test_ends_in_the_middle_of_batches_change_nothing(make_rig: Make, number: signal.Signals, times: int) -> None:
    """SIGKILLs (SIGTERMs) under load, two workers in the group: every signal exactly once, no offset committed
    that was not finished, nothing left over."""
    seed = 20 + number
    traffic = Traffic(seed, 2_200 * times, now_ms(), PROMPT if times < 10 else None)
    rig = make_rig(batch_records=100, session_timeout_seconds=1.5, **SOON_COMPARED)
    watcher = storm(rig, traffic, number, times, seed)
    check(rig, traffic, 150)
    watcher.end()
    assert watcher.samples > 20
    assert not watcher.violations, watcher.violations[:5]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 105))
def test_fifty_kills(make_rig: Make, seed: int) -> None:
    """The same, five times ten kills with ever new moments and batches of any size."""
    traffic = Traffic(seed, 16_000, now_ms())
    rig = make_rig(batch_records=random.Random(seed).choice((20, 100, 500, 2000)), **SOON_COMPARED)
    watcher = storm(rig, traffic, signal.SIGKILL, 10, seed)
    check(rig, traffic, 150)
    watcher.end()
    assert not watcher.violations, watcher.violations[:5]


@pytest.mark.slow
def test_workers_that_join_and_leave_under_load_change_nothing(make_rig: Make) -> None:
    """A second and a third worker join and leave while batches are in flight: partitions move, nothing else does."""
    traffic = Traffic(31, 8_000, now_ms())
    print(f"seed {traffic.seed}: {len(traffic.messages)} records")
    rig = make_rig(batch_records=50)
    rig.opik.load(traffic)
    rig.opik.fault(match={"path": "feedback-scores"}, delay_seconds=0.05)
    first = rig.worker()
    load = rig.sending(traffic.messages, per_second=400)
    rig.wait("the first batch settled", lambda: rig.finished() > 0)
    watcher = Watcher(rig)
    watcher.start()
    for _ in range(2):
        others = [rig.worker(), rig.worker()]
        for other in others:
            rig.wait("the newcomer works", lambda other=other: other.logged("first_batch_settled"), 30)
        assert [other.terminate() for other in others] == [0, 0]
    rig.hurry()
    load.join(60)
    rig.opik.heal()
    check(rig, traffic)
    watcher.end()
    assert not watcher.violations, watcher.violations[:5]
    assert first.running
