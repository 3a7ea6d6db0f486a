"""Means compared, with scipy's digits: the bootstrap of pairs, the chance of a fall, the sign-flip test, and the
permutation of samples within cases."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from scipy import stats

from evalcore.stats.bootstrap import mean_intervals, standard_errors
from evalcore.stats.mean_fall import Sample, fall_p, items_to_tell, pooled
from evalcore.stats.sign_flip import sign_flip_p
from evalcore.stats.within_case import least_p, within_case_p
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


def rate(true: float, items: float) -> Sample:
    share = true / items
    return Sample(items, share, share * (1 - share))


@pytest.mark.parametrize(
    ("now", "before", "p"),
    [
        ((7, 10), (29, 30), 0.041689), ((8, 10), (30, 30), 0.057692), ((5, 10), (29, 30), 0.002024),
        ((1, 3), (28, 30), 0.032625), ((90, 100), (290, 300), 0.011799), ((0, 1), (3, 3), 0.25),
    ],
)  # fmt: skip
def test_of_true_and_false_it_is_fishers_exact_test(now: tuple[int, int], before: tuple[int, int], p: float) -> None:
    """By scipy.stats.fisher_exact."""
    assert fall_p(rate(*now), rate(*before)) == pytest.approx(p, rel=0.05)


def test_what_is_not_lower_has_not_fallen() -> None:
    assert fall_p(rate(9, 10), rate(27, 30)) == fall_p(rate(10, 10), rate(27, 30)) == 1.0


def test_a_lower_mean_and_a_smaller_spread_are_less_by_chance() -> None:
    before = Sample(30, 0.85, 0.04)
    told = [fall_p(Sample(10, mean, 0.04), before) for mean in (0.8, 0.75, 0.7, 0.5, 0.1)]
    assert told == sorted(told, reverse=True)
    assert fall_p(Sample(10, 0.75, 0.01), Sample(30, 0.85, 0.01)) < told[1]


def test_no_chance_is_below_that_of_one_way_to_share_the_items_out() -> None:
    """Three equal scores after three others: one way of twenty, whatever the means say."""
    assert fall_p(Sample(3, 0.5, 0.0), Sample(3, 0.75, 0.0)) >= 1 / 20 - 1e-9


def test_runs_together_are_as_certain_as_the_mean_of_their_means() -> None:
    both = pooled([Sample(10, 0.8, 0.04), Sample(30, 0.9, 0.04)])
    assert (both.items, both.mean) == (pytest.approx(4 / (1 / 10 + 1 / 30)), pytest.approx(0.85))


def test_a_smaller_fall_takes_more_items() -> None:
    assert items_to_tell(0.1, 0.04, 3, 0.05) == pytest.approx(2.7055 * (4 / 3) * 4, abs=1)
    assert items_to_tell(0.05, 0.04, 3, 0.05) > 3 * items_to_tell(0.1, 0.04, 3, 0.05)


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
