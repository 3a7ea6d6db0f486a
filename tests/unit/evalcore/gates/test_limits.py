"""A judge's number and its limits, at their edges: what is equal, how wide an interval is, what counts (PC5 §5.2)."""

from __future__ import annotations

import math
from datetime import date

import pytest

from evalcore.gates.limits import Aggregate, Limits, aggregate, stands
from evalcore.gates.overrides import SHIFT, read_block
from evalcore.registry.thresholds import resolve
from evalcore.scoring.answers import Answer, Scored, Unscored, collect
from schemas.judges import Enforcement, Milestone, ScoreType
from schemas.verdicts import VerdictLevel

ONE_TO_FIVE = (1.0, 5.0)
TODAY = date(2026, 11, 21)


def figures(*answers: Answer, scale: tuple[float, float] = ONE_TO_FIVE, boolean: bool = False) -> Aggregate:
    return aggregate(collect(answers, scale), scale, boolean)


def level(score: float, threshold: float, floor: float = 0.0, history: tuple[float, ...] = ()) -> VerdictLevel:
    limits = Limits.of(threshold, floor, 0.25, Enforcement.BLOCK, history)
    return stands("helpfulness", score, limits, Milestone.PRE_RAMP).level


# Limits.


def test_a_mean_of_equal_values_meets_the_limit_that_it_equals_whatever_rounding_makes_of_it() -> None:
    score = 0.1 + 0.7
    assert score < 0.8
    assert level(score, threshold=0.8) is VerdictLevel.PASS
    assert level(score, threshold=0.0, floor=0.8) is VerdictLevel.PASS
    assert level(score, threshold=0.0, history=(1.05,)) is VerdictLevel.PASS


def test_what_misses_a_limit_by_a_millionth_fails() -> None:
    assert level(0.8 - 1e-6, threshold=0.8) is VerdictLevel.FAIL
    assert level(0.8 - 1e-6, threshold=0.0, floor=0.8) is VerdictLevel.FAIL
    assert level(0.8 - 1e-6, threshold=0.0, history=(1.05,)) is VerdictLevel.FAIL


def test_the_last_three_runs_make_the_baseline() -> None:
    limits = Limits.of(4.0, 1.0, 0.25, Enforcement.BLOCK, (5.0, 4.5, math.nan, 4.0, 3.5))
    assert (limits.baseline, len(limits.runs)) == (4.0, 3)


@pytest.mark.parametrize("floor", [1, 1.0, True])
def test_a_boolean_judges_floor_of_one_is_true(floor: float) -> None:
    found = resolve([], floor, ScoreType.BOOLEAN)
    assert found.default is True
    assert set(found.at.values()) == {True}
    assert all(value is True for value in found.at.values())


def test_a_rate_below_one_is_no_boolean() -> None:
    assert resolve([], 0.95, ScoreType.BOOLEAN).default == 0.95


# Aggregates.


def test_what_is_unscored_counts_at_both_ends_of_the_scale() -> None:
    found = figures(Scored(4.0), Scored(5.0), Unscored("no answer"), Unscored("no answer", weight=2.0))
    assert (found.worst, found.best) == ((4 + 5 + 3 * 1) / 5, (4 + 5 + 3 * 5) / 5)


@pytest.mark.parametrize("weight", [math.nan, math.inf, 0.0, -1.0])
def test_a_score_whose_weight_says_nothing_is_unscored_and_weighs_as_one_item(weight: float) -> None:
    found = collect([Scored(5.0), Scored(5.0, weight), Unscored("no answer", weight)], ONE_TO_FIVE)
    assert (found.values, found.weights, found.missing) == ((5.0,), (1.0,), (1.0, 1.0))


# Intervals: figures from a table of Student's t, and from Wilson's paper, to six digits.


def test_the_interval_of_a_mean_is_students() -> None:
    """2.776 standard errors with four degrees of freedom; a normal's 1.96 would say far more than five items know."""
    found = figures(*map(Scored, (2.0, 2.0, 3.0, 4.0, 4.0)))
    half = 2.776445 * math.sqrt(0.8 / 4)
    assert found.ci95 == pytest.approx((3.0 - half, 3.0 + half))


def test_heavy_items_make_an_interval_wider() -> None:
    """Weights 1, 1, 1 and 3 are as much as three items (Kish): two degrees of freedom."""
    found = figures(Scored(0.2), Scored(0.4), Scored(0.6), Scored(0.8, 3.0), scale=(-10.0, 10.0))
    half = 4.302653 * math.sqrt(0.32 / 6 / 2)
    assert found.ci95 == pytest.approx((0.6 - half, 0.6 + half))


def test_the_interval_of_a_rate_is_wilsons() -> None:
    found = figures(*[Scored(1.0)] * 8, *[Scored(0.0)] * 2, scale=(0.0, 1.0), boolean=True)
    assert found.ci95 == pytest.approx((0.490162, 0.943318), abs=1e-5)


def test_weights_widen_the_interval_of_a_rate() -> None:
    plain = figures(*[Scored(1.0)] * 8, *[Scored(0.0)] * 2, scale=(0.0, 1.0), boolean=True)
    heavy = figures(
        *[Scored(1.0)] * 7, Scored(1.0, 8.0), *[Scored(0.0)] * 2, Scored(0.0, 1.75), scale=(0.0, 1.0), boolean=True
    )
    assert heavy.ci95 is not None
    assert plain.ci95 is not None
    assert heavy.ci95[1] - heavy.ci95[0] > plain.ci95[1] - plain.ci95[0]


@pytest.mark.parametrize("value", [0.0, 0.5, 1.0])
def test_items_of_which_one_outweighs_all_leave_the_whole_scale_open(value: float) -> None:
    """They are as much as 1.008 items: Student's t has no finite quantile there, and nothing is known."""
    found = figures(Scored(value, 23.703125), Scored(value, 0.1), scale=(0.0, 1.0))
    assert found.ci95 == (0.0, 1.0)


def test_one_item_has_no_interval() -> None:
    assert figures(Scored(3.0)).ci95 is None
    assert figures(Scored(1.0), scale=(0.0, 1.0), boolean=True).ci95 is None
    assert figures(Scored(3.0), Unscored("no answer")).ci95 is None


# Overrides.


@pytest.mark.parametrize(("expires", "holds"), [("2026-11-20", False), ("2026-11-21", True), ("2026-11-22", True)])
def test_an_override_holds_on_the_day_on_which_it_expires(expires: str, holds: bool) -> None:
    block = f"judges: [helpfulness]\njustification: known\nexpires: {expires}\n"
    _, why = read_block(SHIFT, f"```{SHIFT}\n{block}```\n", TODAY, "judges")
    assert (not why) is holds, why
