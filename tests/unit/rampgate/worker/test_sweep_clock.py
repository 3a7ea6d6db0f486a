"""A sweep publishes what it reads with the time at which it read it, so its clock must be right."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import pytest

from agents.ports import Unavailable
from rampgate.worker.sweep import agreed_now
from streams.metrics import Metrics
from streams.retry import WallClock

DAY_MS = 86_400_000


class Redis:
    def __init__(self, off_by: int) -> None:
        self.off_by = off_by

    async def now_ms(self) -> int:
        return time.time_ns() // 1_000_000 + self.off_by


def parts(off_by: int) -> Any:
    return SimpleNamespace(clock=WallClock(), store=Redis(off_by), metrics=Metrics())


@pytest.mark.parametrize("off_by", [-8 * DAY_MS, 8 * DAY_MS])
async def test_a_sweep_with_a_wrong_clock_ends_and_says_by_how_much(off_by: int) -> None:
    with pytest.raises(Unavailable, match=r"691\d\d\d s (ahead|behind)"):
        await agreed_now(parts(off_by))


async def test_a_sweep_whose_clock_agrees_goes_by_it() -> None:
    before = time.time_ns() // 1_000_000
    assert before <= await agreed_now(parts(10_000)) <= time.time_ns() // 1_000_000
