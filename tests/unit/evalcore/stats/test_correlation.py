"""Correlations are scipy's, their intervals Fisher's, and what a sample could have shown is told from what it shows."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from evalcore.stats.correlation import Correlation, correlation, kish


@pytest.mark.parametrize("seed", range(6))
def test_they_are_scipys(seed: int) -> None:
    draw = np.random.default_rng(seed)
    one = draw.integers(1, 6, 120).astype(float) if seed % 2 else draw.normal(size=120) * 10.0 ** (40 * seed)
    other = one * (-1) ** seed + draw.normal(size=120) * np.abs(one).max()
    found, pearson = correlation(one, other), stats.pearsonr(one, other)
    ends = pearson.confidence_interval(0.95)
    assert found.pearson == pytest.approx(pearson.statistic, abs=1e-9)
    assert found.ci95 == pytest.approx((ends.low, ends.high), abs=1e-9)
    assert found.spearman == pytest.approx(stats.spearmanr(one, other).statistic, abs=1e-9)


def test_what_is_not_defined_is_none() -> None:
    rising = np.arange(12.0)
    assert correlation(rising, np.full(12, 4.0)) == Correlation(12)
    assert correlation(rising[:1], rising[:1]) == Correlation(1)
    assert correlation(rising[:3], rising[:3]) == Correlation(3, pytest.approx(1.0))
    whole = correlation(rising, -rising)
    assert whole.pearson == pytest.approx(-1.0)
    assert whole.below_zero
    assert whole.ci95 is not None
    assert all(math.isfinite(end) for end in whole.ci95)


def test_a_judge_that_says_nearly_always_the_same_could_not_have_been_called() -> None:
    judge = np.array([0.0] * 4 + [1.0] * 196)
    human = np.array([0.0] * 8 + [1.0] * 192)
    found = correlation(judge, human)
    assert found.could_be_below_zero is False
    lowest = min(correlation(judge, np.roll(human, by)).pearson or 0.0 for by in range(200))
    assert found.lowest == pytest.approx(lowest)
    assert correlation(judge, np.tile([1.0, 2.0, 3.0, 4.0, 5.0], 40)).could_be_below_zero is True


def test_the_detectable_correlation_is_found_with_80_percent_power() -> None:
    draw = np.random.default_rng(11)
    told = correlation(*draw.normal(size=(2, 200))).detectable
    assert told is not None
    one, noise = draw.normal(size=(2, 4_000, 200))
    other = told * one + math.sqrt(1 - told**2) * noise
    found = sum(correlation(a, b).below_zero for a, b in zip(one, other, strict=True)) / 4_000
    assert found == pytest.approx(0.8, abs=0.025)


def test_weighted_pairs_count_as_kishs_number_of_equal_ones() -> None:
    draw = np.random.default_rng(5)
    one, other = draw.normal(size=(2, 400))
    weights = np.where(np.arange(400) < 40, 1.0, 10.0)
    assert kish(np.ones(7)) == pytest.approx(7)
    found = correlation(one, other, weights)
    assert found.n == pytest.approx(kish(weights))
    assert found.n < 400
    repeated = np.repeat(np.arange(400), weights.astype(int))
    assert found.pearson == pytest.approx(stats.pearsonr(one[repeated], other[repeated]).statistic)
    assert found.spearman is None
