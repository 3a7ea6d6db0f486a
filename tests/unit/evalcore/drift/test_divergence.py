"""Drift of judges (PF-9 FR-13): bins, the divergence between them, and who passes. The limit for drift: an unchanged
judge seldom passes it, a changed one nearly always does."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from evalcore.drift.divergence import Sample, between_runs, compare, divergence
from evalcore.drift.scale import Scale, declared, fitting
from schemas.judges import ScoreType

FIVE = declared(ScoreType.INTEGER, (1, 5))
FRACTION = declared(ScoreType.FLOAT, (0, 1))
TRUTH = declared(ScoreType.BOOLEAN, (0, 1))


def sample(*scores: float, times: int = 1) -> Sample:
    return Sample(np.repeat(np.array(scores, dtype=float), times))


def test_each_score_type_has_its_bins() -> None:
    assert (FIVE.bins, FRACTION.bins, TRUTH.bins) == (5, 20, 2)
    assert FIVE.counts(np.array([1.0, 1, 5])).tolist() == [2, 0, 0, 0, 1]
    assert TRUTH.counts(np.array([1.0, 0, 1])).tolist() == [1, 2]
    assert declared(ScoreType.FLOAT, (0, 10)).places(np.array([0.49, 0.5, 10])).tolist() == [0, 1, 19]


def test_a_fraction_on_the_edge_between_two_bins_is_in_the_upper_one() -> None:
    """0.15 / 0.05 is 2.9999999999999996 to a computer; 0.15 begins the fourth bin all the same."""
    edges = np.array([round(0.05 * k, 2) for k in range(21)])
    assert FRACTION.places(edges).tolist() == [*range(20), 19]


def test_the_divergence_is_of_now_from_then_with_half_a_count_in_each_bin() -> None:
    now, then = np.array([0, 10, 30]), np.array([5, 20, 15])
    p, q = (now + 0.5) / 41.5, (then + 0.5) / 41.5
    assert divergence(now, then) == pytest.approx(stats.entropy(p, q), abs=1e-12)
    assert divergence(now, then) != pytest.approx(divergence(then, now), abs=1e-3)


@pytest.mark.parametrize(
    ("scores", "scale"),
    [
        ([0, 1, 1], Scale(0, 1, True)),
        ([1, 1, 1], Scale(0, 1, True)),
        ([2, 4], Scale(1, 5, True)),
        ([0, 7], Scale(0, 7, True)),
        ([-3, 12], Scale(-3, 12, True)),
        ([0.2, 1.0], Scale(0, 1, False)),
        ([2.5, 3], None),
        ([-0.1], None),
        ([], None),
        ([float("nan"), 1], None),
    ],
)
def test_an_unregistered_judge_is_on_the_scale_that_its_scores_fit(scores: list[float], scale: Scale | None) -> None:
    assert fitting(np.array(scores, dtype=float)) == scale


def test_scores_that_are_none_on_the_scale_are_found() -> None:
    assert FIVE.first_off(np.array([1.0, 5, 3])) is None
    assert FIVE.first_off(np.array([1.0, 2.5, 9])) == 1
    assert FRACTION.first_off(np.array([0.5, 1.01])) == 1


def test_a_judge_passes_at_or_below_its_limit_and_fails_above_it() -> None:
    then, now = sample(1, 2, 3, 4, 5, times=20), sample(2, 3, 4, 5, 5, times=20)
    kl = compare(then, now, FIVE, 1.0).kl
    assert kl is not None
    assert compare(then, now, FIVE, kl).passed is True
    failed = compare(then, now, FIVE, kl * 0.995)
    assert failed.passed is False
    assert "mean 3, now 3.8" in failed.reason


def test_fewer_than_five_items_a_bin_on_either_side_tell_nothing() -> None:
    enough, few = sample(3, times=25), sample(3, times=24)
    for then, now in ((few, enough), (enough, few)):
        found = compare(then, now, FIVE, 1.0)
        assert (found.passed, "24 scores in 5 bins" in found.reason) == (None, True)
        assert found.kl is not None
    assert compare(enough, enough, FIVE, 1.0).passed is True


def test_without_a_limit_without_scores_or_without_a_scale_nobody_can_tell() -> None:
    many, none = sample(3, times=50), Sample(np.array([]), unscored=50)
    for then, now, scale, limit in ((many, many, FIVE, None), (many, none, FIVE, 0.1), (none, many, FIVE, 0.1)):
        found = compare(then, now, scale, limit)
        assert (found.passed, bool(found.reason)) == (None, True)
    assert compare(sample(2.5, times=50), many, None, 0.1).passed is None
    assert compare(many, sample(0, 10**9, times=50), Scale(0, 10**9, True), 0.1).passed is None


def test_scores_at_the_ends_and_answers_that_are_no_scores_warn_and_decide_nothing() -> None:
    then = sample(1, 2, 3, 4, 5, times=20)
    piled = compare(then, sample(5, times=100), FIVE, 100.0)
    assert (piled.passed, piled.ceiling, piled.floor) == (True, 1.0, 0.0)
    assert piled.warnings == (
        "100% of the scores are the highest, at the baseline 20%",
        "0% of the scores are the lowest, at the baseline 20%",
    )
    silent = compare(then, Sample(then.scores, not_applicable=100, unscored=50), FIVE, 0.1)
    assert silent.passed is True
    assert silent.warnings == (
        "40% of the answers are N/A, at the baseline 0%", "20% of the answers are no scores, at the baseline 0%"
    )  # fmt: skip
    assert compare(sample(1, times=50), sample(1, times=50), TRUTH, 0.1).warnings == (), "true is no ceiling"


def test_fifty_judges_with_100_000_scores_each_take_under_a_second_of_processor_time() -> None:
    draw = np.random.default_rng(5)
    judges = [(Sample(draw.random(100_000)), Sample(draw.random(100_000)), FRACTION) for _ in range(25)]
    whole = [(Sample(draw.integers(1, 6, 100_000).astype(float)),) * 2 for _ in range(25)]
    began = time.process_time()
    found = [compare(*one, 0.1) for one in judges] + [compare(*one, FIVE, 0.1) for one in whole]
    assert time.process_time() - began < 1
    assert all(one.passed for one in found)


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
    monkeypatch.setattr("evalcore.drift.divergence.HELD", 10**9)
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
