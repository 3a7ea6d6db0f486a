"""A worker that runs for long takes no more memory and no more files than one that has just warmed up."""

from __future__ import annotations

import random
from collections.abc import Callable

import psutil
import pytest

from streams.app import Tuning
from tests.fault.rig import Rig, now_ms
from tests.fault.turn_events import change, encode
from tests.fault.turns import Message, Thumb

Make = Callable[..., Rig]
LATEST_GROWTH = 24 * 1024 * 1024


def soak(rig: Rig, events: int, seed: int) -> None:
    """Thumbs of ever new turns, in rounds; resident memory and open files after each."""
    print(f"seed {seed}: {events} events")
    dice, now = random.Random(seed), now_ms()
    worker = rig.worker(write="false", missing_trace_seconds=900, batch_records=2_000)
    process = psutil.Process(worker.process.pid)
    rounds = 12
    seen: list[tuple[float, int]] = []
    for number in range(rounds):
        thumbs = (Thumb(10**20 + dice.getrandbits(40), dice.choice((1, -1)), now) for _ in range(events // rounds))
        rig.send(
            Message("thumbs", b"%d" % index, encode(change(f"m{number}-{index % 5_000}", t.sequence, t.at, t.value, 0)))
            for index, t in enumerate(thumbs)
        )
        rig.wait("this round consumed", lambda: rig.finished() >= len(rig.sent), 300)
        seen.append((process.memory_info().rss / 1024 / 1024, process.num_fds()))
    print("MB and open files after each round:", [(round(mb, 1), files) for mb, files in seen])
    warm = max(mb for mb, _ in seen[4:7])
    late = max(mb for mb, _ in seen[-3:])
    assert (late - warm) * 1024 * 1024 < LATEST_GROWTH, f"{warm:.1f} MB grew to {late:.1f} MB"
    # The store's pool holds a connection for as many batches as ever met in it; one left open by each batch of the last
    # rounds alone would be 60.
    assert seen[-1][1] <= max(files for _, files in seen[4:7]) + Tuning().batches_in_flight, "open files grow"


def test_memory_and_files_stay_flat(make_rig: Make) -> None:
    """120,000 events."""
    soak(make_rig(), 120_000, 91)


@pytest.mark.slow
def test_memory_and_files_stay_flat_over_two_million_events(make_rig: Make) -> None:
    """2,000,000 events."""
    soak(make_rig(), 2_000_000, 92)
