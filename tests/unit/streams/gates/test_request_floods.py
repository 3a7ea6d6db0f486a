"""A flood of ramp-step requests waits in Kafka: what a worker holds of it is bounded, and all are answered."""

from __future__ import annotations

import asyncio

import pytest
from faust.types import TP

from agents.ports import Unavailable
from streams.gates import ramp_requests
from tests.unit.streams.gates.gate_world import TOPIC, Worker, quicken, request
from tests.waiting import come

AT_ONCE, HELD = 10, 40


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    quicken(monkeypatch)
    monkeypatch.setattr(ramp_requests, "ANSWERED_AT_ONCE", AT_ONCE)
    monkeypatch.setattr(ramp_requests, "HELD_RECORDS", HELD)


def names(count: int, first: int = 0) -> list[str]:
    return [f"r{number}" for number in range(first, first + count)]


async def test_so_many_requests_are_in_work_at_once_and_no_more_however_many_wait() -> None:
    wanted = names(6 * AT_ONCE)
    gate = asyncio.Event()
    worker = Worker(slow=dict.fromkeys(wanted, gate))
    before = len(asyncio.all_tasks())
    await worker.read(*map(request, wanted))
    await come(lambda: len(worker.begun) == AT_ONCE)
    await asyncio.sleep(0.05)
    assert len(worker.begun) == AT_ONCE
    assert len(asyncio.all_tasks()) - before <= 3 * AT_ONCE + 5
    gate.set()
    await come(lambda: worker.acked == [0])
    assert sorted(worker.verdicts) == sorted(wanted)
    assert worker.state.conservation() == {"consumed": len(wanted), "done": len(wanted)}


async def test_with_much_held_no_more_is_fetched_until_half_of_it_is_done() -> None:
    gate = asyncio.Event()
    wanted = names(3 * HELD)
    worker = Worker(slow=dict.fromkeys(wanted, gate))
    for number in range(3):
        await worker.read(*map(request, wanted[number * HELD // 2 : (number + 1) * HELD // 2]), base=number * HELD // 2)
        assert worker.consumer.halted == ({TP(TOPIC, 0)} if number else set())
    gate.set()
    await come(lambda: len(worker.acked) == 3)
    assert worker.consumer.halted == set()
    assert worker.requests._held == ramp_requests.Held()


async def test_large_requests_are_held_by_their_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ramp_requests, "HELD_BYTES", 10_000)
    worker = Worker(slow={"r": asyncio.Event()})
    await worker.read(request("r"))
    assert not worker.consumer.halted
    await worker.read(b"x" * 10_000, base=1)
    assert worker.consumer.halted
    await come(lambda: worker.acked == [1])
    assert not worker.consumer.halted, "though the first still waits for its gate"
    worker.slow["r"].set()
    await come(lambda: worker.acked == [1, 0])


async def test_what_is_given_up_in_a_rebalance_is_no_longer_held() -> None:
    wanted = names(2 * HELD)
    worker = Worker(slow=dict.fromkeys(wanted, asyncio.Event()))
    await worker.read(*map(request, wanted))
    await come(lambda: len(worker.begun) == AT_ONCE)
    assert worker.consumer.halted
    worker.consumer.flow_active = False
    await come(lambda: worker.consumer.abandoned == [0])
    await come(lambda: worker.requests._held == ramp_requests.Held())
    assert not worker.consumer.halted
    assert worker.fatal == []
    worker.consumer.flow_active = True
    await worker.requests.stop(5.0)


async def test_a_batch_with_a_request_whose_decision_was_cancelled_is_not_acknowledged() -> None:
    worker = Worker(slow={"r": asyncio.Event()})
    await worker.read(request("r"), request("beside"))
    await come(lambda: worker.verdicts == ["beside"])
    task = worker.requests._decisions["r"].task
    assert task is not None
    task.cancel()
    await come(lambda: worker.consumer.abandoned == [0])
    assert (worker.acked, worker.fatal) == ([], [])


async def test_requests_that_are_given_up_before_they_began_leave_their_room() -> None:
    worker = Worker(slow={"r0": asyncio.Event()})
    for number in range(3):
        await worker.read(*map(request, names(2 * AT_ONCE)), base=2 * AT_ONCE * number)
        worker.consumer.generation += 1
        await come(lambda count=number + 1: len(worker.consumer.abandoned) == count)
    assert worker.requests._room._value == AT_ONCE
    await worker.requests.stop(5.0)


async def test_a_request_waits_for_a_clock_that_can_be_trusted() -> None:
    worker, asked = Worker(), 0

    def now() -> int:
        nonlocal asked
        asked += 1
        if asked < 3:
            raise Unavailable("the clock is doubtful")
        return worker.state.clock.now_ms()

    worker.requests._now = now
    await worker.read(request("r"))
    await come(lambda: worker.acked == [0])
    assert (asked, worker.begun, worker.verdicts) == (3, ["r"], ["r"])


async def test_a_defect_in_one_of_many_stops_the_worker_with_its_own_error(monkeypatch: pytest.MonkeyPatch) -> None:
    worker = Worker()

    def broken(report: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(worker.requests.counting, "_observe", broken)
    await worker.read(request("r"))
    await come(lambda: worker.fatal)
    assert [type(error) for error in worker.fatal] == [ZeroDivisionError]
