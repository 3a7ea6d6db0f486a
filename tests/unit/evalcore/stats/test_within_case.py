"""The within-case permutation test against all ways to deal samples to two sides, listed one by one."""

from __future__ import annotations

import math
from itertools import combinations, product

import numpy as np
import pytest
from scipy import stats

from evalcore.stats.within_case import least_p, within_case_p

Both = tuple[list[float], list[float]]


def listed(cases: list[Both]) -> float:
    """All deals of all cases together."""
    apart = []
    for one, other in cases:
        both, places = [*one, *other], range(len(one) + len(other))
        deals = []
        for chosen in combinations(places, len(other)):
            second = [both[place] for place in chosen]
            first = [both[place] for place in places if place not in chosen]
            deals.append(sum(first) / len(first) - sum(second) / len(second))
        apart.append(deals)
    seen = sum(sum(one) / len(one) - sum(other) / len(other) for one, other in cases)
    sums = [sum(deal) for deal in product(*apart)]
    return sum(one >= seen - 1e-9 for one in sums) / len(sums)


def test_it_is_exact_for_scores_of_two_values_whatever_numbers_of_samples_cases_have() -> None:
    rng = np.random.default_rng(1)
    for _ in range(30):
        cases: list[Both] = []
        for _ in range(int(rng.integers(1, 4))):
            one, other = (rng.integers(0, 2, int(rng.integers(1, 5))).astype(float).tolist() for _ in range(2))
            cases.append((one, other))
        assert within_case_p(cases, 1) == pytest.approx(listed(cases)), cases


def test_one_case_is_fishers_exact_test() -> None:
    both = ([1.0] * 5 + [0.0], [1.0] * 2 + [0.0] * 4)
    fisher = stats.fisher_exact([[5, 1], [2, 4]], alternative="greater").pvalue
    assert within_case_p([both], 1) == pytest.approx(fisher)


def test_scores_of_more_values_are_listed_where_they_are_few_and_drawn_where_they_are_many() -> None:
    rng = np.random.default_rng(2)
    few: list[Both] = [(rng.random(3).tolist(), rng.random(3).tolist()) for _ in range(3)]
    assert within_case_p(few, 1) == pytest.approx(listed(few))
    many: list[Both] = [(rng.random(6).tolist(), (rng.random(6) - 0.1).tolist()) for _ in range(3)]
    drawn = within_case_p(many, 1)
    assert drawn == within_case_p(many, 1), "the same seed, the same digits"
    assert drawn == pytest.approx(within_case_p(many, 2, 0.05 / 200), abs=0.03)


def test_the_least_p_of_six_samples_is_of_all_right_before_and_all_wrong_now() -> None:
    both = ([1.0] * 6, [0.0] * 6)
    assert within_case_p([both], 1) == pytest.approx(1 / 924) == pytest.approx(least_p([both]))
    assert within_case_p([both] * 4, 1) == pytest.approx(924.0**-4)
    graded = [([4.0, 5.0, 3.0, 5.0, 4.0, 5.0], [1.0, 2.0, 1.0, 1.0, 2.0, 2.0])]
    assert within_case_p(graded, 1) == pytest.approx(1 / 924)


def test_draws_can_tell_a_tenth_of_the_p_that_is_asked_for() -> None:
    """4,000 draws confirm nothing of more than 200 slices."""
    rng = np.random.default_rng(3)
    cases: list[Both] = [((rng.random(6) + 3).tolist(), rng.random(6).tolist()) for _ in range(5)]
    assert within_case_p(cases, 1, 0.05 / 400) <= 0.05 / 400 / 10


def test_nothing_that_varies_says_nothing() -> None:
    assert within_case_p([], 1) == 1.0
    assert within_case_p([([1.0] * 6, [1.0] * 6)], 1) == 1.0
    assert math.isclose(least_p([([1.0], [0.0])] * 4), 1 / 16)
