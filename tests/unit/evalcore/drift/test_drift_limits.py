"""The limit for drift: an unchanged judge seldom passes it, a changed one nearly always does."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from evalcore.drift import limits
from evalcore.drift.divergence import Sample, compare
from evalcore.drift.limits import between_runs, between_weeks
from evalcore.drift.scale import Scale, declared
from schemas.judges import ScoreType

FIVE = declared(ScoreType.INTEGER, (1, 5))
FRACTION = declared(ScoreType.FLOAT, (0, 1))
N = 301
Scores = NDArray[np.float64]
Judge = Callable[[np.random.Generator, Scores, float], Scores]


def whole(draw: np.random.Generator, true: Scores, shift: float) -> Scores:
    return np.clip(np.round(true + shift + draw.normal(0, 0.5, true.size)), 1, 5)


def fraction(draw: np.random.Generator, true: Scores, shift: float) -> Scores:
    """Such a judge on another scale: half a point of four is an eighth."""
    return np.clip((whole(draw, true, shift) - 1) / 4 + draw.normal(0, 0.02, true.size), 0, 1)


@pytest.mark.parametrize(("judge", "scale", "seeds"), [(whole, FIVE, 200), (fraction, FRACTION, 40)])
def test_an_unchanged_noisy_judge_passes_and_one_shifted_by_half_a_point_does_not(
    judge: Judge, scale: Scale, seeds: int
) -> None:
    """Issue 13: of 200 seeds the unchanged one passes in 95 %, the shifted one in 5 %."""
    passed = {0.0: 0, 0.5: 0, -0.5: 0}
    for seed in range(seeds):
        draw = np.random.default_rng(seed)
        true = draw.normal(3.6, 1.0, N)
        runs = [judge(draw, true, 0.0) for _ in range(3)]
        limit = between_runs(runs, scale, seed)
        for shift in passed:
            now = Sample(judge(draw, true, shift))
            passed[shift] += compare(Sample(runs[-1]), now, scale, limit).passed is True
    assert passed[0.0] >= 0.95 * seeds, passed
    assert max(passed[0.5], passed[-0.5]) <= 0.05 * seeds, passed


def test_between_weeks_the_items_are_others_each_week() -> None:
    passed = {0.0: 0, 0.5: 0}
    for seed in range(200):
        draw = np.random.default_rng(seed)
        weeks = [whole(draw, draw.normal(3.6, 1.0, 1000), 0.0) for _ in range(4)]
        limit = between_weeks(weeks, FIVE, seed)
        for shift in passed:
            now = Sample(whole(draw, draw.normal(3.6, 1.0, 1000), shift))
            passed[shift] += compare(Sample(weeks[-1]), now, FIVE, limit).passed is True
    assert passed[0.0] >= 0.95 * 200, passed
    assert passed[0.5] <= 0.05 * 200, passed


def test_runs_that_differ_as_wholes_widen_the_limit() -> None:
    """A judge that is a different one from day to day is not unchanged to begin with, and its limit says so."""
    true = np.random.default_rng(1).normal(3.6, 1.0, N)
    runs = [whole(np.random.default_rng(k), true, 0.0) for k in range(2)]
    limit = between_runs(runs, FIVE, 0)
    wide = between_runs([*runs, whole(np.random.default_rng(9), true, 0.4)], FIVE, 0)
    assert limit is not None
    assert wide is not None
    assert wide > 2 * limit


@pytest.mark.parametrize("bins", [5, 400])
def test_draws_in_parts_are_the_draws_at_once(bins: int, monkeypatch: pytest.MonkeyPatch) -> None:
    draw, scale = np.random.default_rng(3), Scale(1, bins, whole=True)
    runs = [draw.integers(1, bins + 1, N).astype(np.float64) for _ in range(2)]
    limit = between_runs(runs, scale, 7)
    monkeypatch.setattr(limits, "HELD", 10**9)
    assert limit == between_runs(runs, scale, 7)


def test_a_scale_of_many_values_takes_little_memory_and_one_of_too_many_has_no_limit() -> None:
    runs = [np.array([1.0, 9_000, 17, 4]), np.array([1.0, 9_000, 18, 4])]
    tracemalloc.start()
    try:
        assert between_runs(runs, Scale(1, 9_000, whole=True), 0) is not None
        assert tracemalloc.get_traced_memory()[1] < 200 << 20
    finally:
        tracemalloc.stop()
    assert between_runs(runs, Scale(1, 10**12, whole=True), 0) is None


def test_what_a_run_left_unscored_is_left_out_and_one_run_gives_no_limit() -> None:
    runs = [np.array([1.0, np.nan, 3, 4]), np.array([1.0, 2, np.nan, 4])]
    assert between_runs(runs, FIVE, 0) == pytest.approx(0.0, abs=1e-12)
    assert between_runs(runs[:1], FIVE, 0) is None
    assert between_runs([np.array([np.nan]), np.array([1.0])], FIVE, 0) is None
    assert between_weeks([np.array([1.0]), np.array([])], FIVE, 0) is None
