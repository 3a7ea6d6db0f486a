"""The write flag off and on, and coverage against a recount from the raw events ("Done when" 3 and 4)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.fault.checking import check
from tests.fault.oracle import foretell
from tests.fault.rig import SOON_COMPARED, Rig, now_ms
from tests.fault.traffic import Mix, Traffic

Make = Callable[..., Rig]


def withheld(rig: Rig) -> int:
    return sum(fields["parked:withheld"] for fields in rig.conservation().values())


def test_off_counts_everything_and_writes_nothing_then_on_writes_it_all(make_rig: Make) -> None:
    """Off: joined and counted, nothing written. On: all of the lookback window is written, coverage is the same.
    Off and on again under load: the same."""
    traffic = Traffic(51, 1_200, now_ms(), Mix(no_trace=0.0, opik_only=0.0, judged_opik=0.0))
    print(f"seed {traffic.seed}: {len(traffic.messages)} records")
    rig = make_rig(**SOON_COMPARED)
    rig.opik.load(traffic)
    third = len(traffic.messages) // 3
    worker = rig.worker(write="false")
    rig.send(traffic.messages[:third])
    rig.wait("the first third joined", rig.drained)
    assert rig.opik.writes() == {}, "written although writing is off"
    assert withheld(rig) > 0
    assert worker.terminate() == 0
    worker = rig.worker(write="true")
    rig.wait("what was withheld is written", lambda: withheld(rig) == 0 and bool(rig.opik.writes()), 60)
    load = rig.sending(traffic.messages[third:], per_second=600)
    for write in ("false", "true"):
        rig.wait("under load", lambda worker=worker: worker.logged("first_batch_settled"))
        worker.kill()
        worker = rig.worker(write=write)
    rig.hurry()
    load.join(60)
    check(rig, traffic)


def test_a_worker_killed_while_it_writes_what_was_withheld_leaves_the_rest_to_the_next(make_rig: Make) -> None:
    """SIGKILL in the middle of it: the next worker finishes it, and nothing stays withheld."""
    traffic = Traffic(52, 1_500, now_ms(), Mix(no_trace=0.0, opik_only=0.0, judged_opik=0.0))
    print(f"seed {traffic.seed}: {len(traffic.messages)} records")
    rig = make_rig(**SOON_COMPARED)
    rig.opik.load(traffic)
    worker = rig.worker(write="false")
    rig.send(traffic.messages)
    rig.wait("all joined", rig.drained)
    assert worker.terminate() == 0
    everything = withheld(rig)
    rig.opik.fault(match={"path": "feedback-scores"}, delay_seconds=0.2, times=10_000)
    worker = rig.worker(write="true")
    rig.wait("it is in the middle of it", lambda: 0 < withheld(rig) < everything, 150, 0.05)
    worker.kill()
    left = withheld(rig)
    print(f"{left} of {everything} signals are withheld after the kill")
    assert left > 0
    rig.opik.heal()
    rig.worker(write="true")
    rig.wait("the next worker writes the rest", lambda: withheld(rig) == 0, 60)
    check(rig, traffic)


def recount(rig: Rig, traffic: Traffic) -> None:
    print(f"seed {traffic.seed}: {len(traffic.messages)} records of {len(traffic.turns)} turns")
    rig.send(traffic.messages)
    rig.worker(write="false", judge_settle_seconds=0)
    expected = foretell(traffic, rig.sent)
    rig.wait("every record consumed", lambda: rig.finished() >= len(rig.sent), 200)
    assert rig.coverage() == expected.coverage
    for kind, fields in rig.conservation().items():
        consumed = fields.pop("consumed")
        fields.pop("unreadable", None)  # beside the states
        assert consumed == expected.consumed[kind] == sum(fields.values())


@pytest.mark.parametrize("turns", [10_000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_coverage_agrees_with_a_recount(make_rig: Make, turns: int) -> None:
    """Late, duplicate, missing and withdrawn signals, traces before and after them, garbage between: per vertical,
    coverage is what a recount of the raw events gives."""
    mix = Mix(judged_opik=0.0, opik_only=0.0, late=0.3, duplicates=0.1)
    recount(make_rig(batch_records=2_000, missing_trace_seconds=900), Traffic(61, turns, now_ms(), mix))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(70, 74))
def test_coverage_in_any_order_of_arrival(make_rig: Make, seed: int) -> None:
    """The same with everything late: no order left in the stream at all."""
    mix = Mix(judged_opik=0.0, opik_only=0.0, late=1.0, duplicates=0.3)
    recount(make_rig(batch_records=2_000, missing_trace_seconds=900), Traffic(seed, 100_000, now_ms(), mix))
