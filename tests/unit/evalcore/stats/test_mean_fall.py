"""The chance of a mean that is so much lower than before: of rates as Fisher's exact test has it."""

from __future__ import annotations

import pytest

from evalcore.stats.mean_fall import Sample, fall_p, items_to_tell, pooled


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
