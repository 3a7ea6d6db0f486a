"""The sign-flip test is scipy's paired permutation test, calls one comparison without a difference in twenty, and is
the same for the same seed."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from evalcore.stats.sign_flip import sign_flip_p


@pytest.mark.parametrize("cases", [2, 5, 9, 13])
def test_of_few_cases_all_flips_are_counted(cases: int) -> None:
    values = np.random.default_rng(cases).integers(-3, 6, cases) / 3
    told = stats.permutation_test(
        (values,), np.sum, permutation_type="samples", n_resamples=np.inf, alternative="two-sided"
    )
    assert sign_flip_p(values[None, :], 1)[0] == pytest.approx(told.pvalue)


def test_of_many_cases_so_many_are_drawn() -> None:
    values = np.random.default_rng(3).normal(0.12, 1, 200)
    told = stats.permutation_test((values,), np.sum, permutation_type="samples", n_resamples=20_000, rng=1).pvalue
    found = sign_flip_p(values[None, :], 1)[0]
    assert found == pytest.approx(told, abs=0.015)
    assert found == sign_flip_p(values[None, :], 1)[0]
    assert found != sign_flip_p(values[None, :], 2)[0]
    assert sign_flip_p(np.ones((1, 200)), 1)[0] == pytest.approx(1 / 10_001)


def test_no_difference_at_all_and_a_single_case_say_nothing() -> None:
    assert sign_flip_p(np.zeros((1, 40)), 1)[0] == 1.0
    assert sign_flip_p(np.array([[0.7]]), 1)[0] == 1.0


def test_a_difference_that_rounding_hides_still_counts_as_equal() -> None:
    """0.3 - 0.1 and 0.2 are the same difference, though not the same number."""
    values = np.array([[0.3 - 0.1, -0.2, 0.2, 0.2]])
    assert sign_flip_p(values, 1)[0] == sign_flip_p(np.array([[1.0, -1.0, 1.0, 1.0]]), 1)[0]


def test_without_a_difference_one_in_twenty_is_called() -> None:
    values = np.random.default_rng(6).normal(size=(4_000, 60))
    assert 0.04 <= (sign_flip_p(values, 9, flips=2_000) < 0.05).mean() <= 0.06
