"""The bootstrap of paired means: scipy's digits, and intervals that hold the true mean as often as they say."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

from evalcore.stats.bootstrap import mean_intervals, standard_errors
from evalcore.suite.comparison import SKEWED

Draw = Callable[[np.random.Generator, tuple[int, int]], Any]
BLOCK = 250
"""Data sets that share their resamples."""


def three_samples(rng: np.random.Generator, size: tuple[int, int]) -> Any:
    rates = rng.beta(2, 1, size)
    return (rng.binomial(3, rates) - rng.binomial(3, rates)) / 3


DRAWN: dict[str, tuple[Draw, float]] = {
    "normal": (lambda rng, size: rng.normal(size=size), 0.0),
    "a fifth discordant": (lambda rng, size: rng.choice([-1.0, 0.0, 1.0], p=[0.1, 0.8, 0.1], size=size), 0.0),
    "a fifth discordant, one way": (
        lambda rng, size: rng.choice([-1.0, 0.0, 1.0], p=[0.15, 0.8, 0.05], size=size), -0.1
    ),
    "three samples": (three_samples, 0.0),
    "log-normal": (lambda rng, size: rng.lognormal(size=size), float(np.exp(0.5))),
}  # fmt: skip


def covered(name: str, cases: int, sets: int, resamples: int) -> float:
    draw, truth = DRAWN[name]
    rng, held = np.random.default_rng(20_260_801), 0
    for start in range(0, sets, BLOCK):
        for ends in mean_intervals(draw(rng, (min(BLOCK, sets - start), cases)), np.ones(cases), start, resamples):
            assert ends is not None
            held += ends[0] - 1e-9 <= truth <= ends[1] + 1e-9
    return held / sets


@pytest.mark.parametrize("seed", range(4))
def test_it_is_scipys_bca(seed: int) -> None:
    """The same draws are as likely, so the ends agree to what 10,000 resamples leave to chance."""
    values = np.random.default_rng(seed).lognormal(size=60)
    found = mean_intervals(values[None, :], np.ones(60), seed)[0]
    ends = stats.bootstrap((values,), np.mean, method="BCa", n_resamples=10_000, rng=seed + 100).confidence_interval
    width = ends.high - ends.low
    assert found == pytest.approx((ends.low, ends.high), abs=0.05 * width)


def test_the_same_seed_gives_the_same_digits_and_another_does_not() -> None:
    values = np.random.default_rng(1).normal(size=(1, 80))
    assert mean_intervals(values, np.ones(80), 7) == mean_intervals(values, np.ones(80), 7)
    assert mean_intervals(values, np.ones(80), 7) != mean_intervals(values, np.ones(80), 8)


def test_values_that_are_all_the_same_have_no_spread_and_one_value_has_no_interval() -> None:
    same = np.array([[0.3 - 0.1, 0.2, 0.5 - 0.3, 0.9 - 0.7]])
    ends = mean_intervals(same, np.ones(4), 1)[0]
    assert ends is not None
    assert ends[0] == ends[1] == pytest.approx(0.2)
    assert standard_errors(same, np.ones(4)) == [0.0]
    assert mean_intervals(same[:, :1], np.ones(1), 1) == [None]


def test_the_standard_error_is_that_of_the_resamples() -> None:
    """In closed form, also for clusters of unlike sizes."""
    rng = np.random.default_rng(5)
    sizes = rng.integers(1, 6, 60).astype(float)
    sums = np.array([rng.normal(rng.normal(), 1, int(size)).sum() for size in sizes])
    places = rng.integers(0, 60, (20_000, 60))
    drawn = sums[places].sum(axis=1) / sizes[places].sum(axis=1)
    assert float(standard_errors(sums[None, :], sizes)[0]) == pytest.approx(drawn.std(), rel=0.03)


def test_cases_of_one_cluster_count_as_one_draw() -> None:
    """Ten copies of a case know no more than the case: taken for ten, they give an interval a third as wide."""
    values = np.random.default_rng(2).normal(size=30)
    alone = mean_intervals(values[None, :], np.ones(30), 3)[0]
    together = mean_intervals(10 * values[None, :], np.full(30, 10.0), 3)[0]
    copies = mean_intervals(np.repeat(values, 10)[None, :], np.ones(300), 3)[0]
    assert alone is not None
    assert copies is not None
    assert together == pytest.approx(alone)
    assert copies[1] - copies[0] < 0.4 * (alone[1] - alone[0])


@pytest.mark.parametrize("name", DRAWN)
def test_intervals_of_fifty_cases_hold_the_truth_as_often_as_they_say(name: str) -> None:
    low, high = (0.88, 0.97) if name == "log-normal" else (0.92, 0.97)
    assert low <= covered(name, 50, 1_000, 1_500) <= high


@pytest.mark.slow
@pytest.mark.parametrize(("cases", "low", "high"), [(50, 0.92, 0.97), (500, 0.93, 0.97)])
@pytest.mark.parametrize("name", DRAWN)
def test_over_two_thousand_data_sets_too(name: str, cases: int, low: float, high: float) -> None:
    if name == "log-normal" and cases == 50:
        low = 0.88
    assert low <= covered(name, cases, 2_000, 10_000) <= high


def test_skew_is_warned_of_where_intervals_are_too_narrow_and_not_elsewhere() -> None:
    def warned(name: str) -> float:
        values = DRAWN[name][0](np.random.default_rng(4), (1_000, 50))
        return float((np.abs(stats.skew(values, axis=1)) > SKEWED * np.sqrt(50)).mean())

    assert warned("log-normal") > 0.95
    assert warned("normal") < 0.01
    assert warned("three samples") < 0.01
