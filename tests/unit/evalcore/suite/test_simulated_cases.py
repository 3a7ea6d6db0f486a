"""Simulated answers differ as a candidate's own do: no case is taken for what three samples of it happened to be."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from evalcore.drift.scale import Scale
from evalcore.suite.results import Case, Gone, Sample
from evalcore.suite.simulation.cases import SuiteCases, Told, TooFew, shared, suite_cases, told_of

if TYPE_CHECKING:
    from evalcore.suite.comparison import Numbers

UNIT = Scale(0.0, 1.0, whole=False)


def made(values: Numbers, slices: frozenset[str] = frozenset({"chat"}), scale: Scale = UNIT) -> SuiteCases:
    """A row of samples for each case."""
    told = [Told(f"c{place:04}", slices, f"c{place:04}", tuple(map(float, row))) for place, row in enumerate(values)]
    return suite_cases(told, scale, {"safety"}, 0.5)


def passing(rng: np.random.Generator, cases: int, samples: int = 3) -> tuple[Numbers, Numbers]:
    """The cases' rates, and 0 or 1 for each sample."""
    rates = rng.beta(6.4, 1.6, cases)
    return rates, (rng.random((cases, samples)) < rates[:, None]).astype(float)


def test_samples_differ_as_much_as_those_of_the_true_candidate() -> None:
    rng = np.random.default_rng(4)
    rates, seen = passing(rng, 1_500)
    truth = float((rates * (1 - rates)).mean())
    cases = made(seen)
    found = float(cases.within(cases.truths(rng, 20)).mean())
    assert found == pytest.approx(truth, rel=0.08)
    plugged = float(seen.var(axis=1).mean())
    assert plugged == pytest.approx(truth * 2 / 3, rel=0.08), "drawn from the samples themselves it is a third less"


def test_a_case_that_never_failed_may_fail_and_less_often_than_the_others() -> None:
    rng = np.random.default_rng(4)
    _, seen = passing(rng, 1_500)
    cases = made(seen)
    failing = 1 - (cases.truths(rng, 50) @ cases.values).mean(axis=0)
    spotless = seen.all(axis=1)
    assert 0.05 < failing[spotless].mean() < 0.8 * failing.mean()
    assert failing.mean() == pytest.approx(1 - seen.mean(), abs=0.01), "all together are as they were"


def test_how_much_is_of_cases_is_found_again() -> None:
    rng = np.random.default_rng(5)
    _, seen = passing(rng, 4_000)
    assert shared(list(seen)) == pytest.approx(1 / 9, abs=0.02), "that of a beta distribution of 6.4 and 1.6"
    level = rng.normal(0, 1, (3_000, 1))
    assert shared(list(level + rng.normal(0, 1, (3_000, 3)))) == pytest.approx(0.5, abs=0.03)


def test_what_was_never_seen_is_not_impossible() -> None:
    cases = made(np.ones((100, 3)), frozenset({"safety"}))
    failing = 1 - float((cases.truths(np.random.default_rng(1), 200) @ cases.values).mean())
    assert 0 < failing < 1 / 300


def test_cases_of_safety_are_a_pool_of_their_own() -> None:
    told = [
        Told(f"c{place:03}", frozenset({name}), f"c{place:03}", values)
        for place in range(200)
        for name, values in [("safety", (1.0, 1.0, 1.0)) if place % 2 else ("chat", (0.0, 1.0, float(place % 4 == 0)))]
    ]
    cases = suite_cases(told, UNIT, {"safety"}, 0.5)
    failing = 1 - (cases.truths(np.random.default_rng(1), 100) @ cases.values).mean(axis=0)
    assert failing[cases.guarded()].max() < 0.02


def test_a_drop_lowers_each_case_by_as_much_as_the_scale_leaves_room_for() -> None:
    cases = made(np.array([[1.0, 1, 1], [0, 1, 1], [0, 0, 0]] * 20))
    truths = cases.truths(np.random.default_rng(1), 30)
    lower, by = cases.fallen(truths, 0.2)
    before, after = truths @ cases.values, lower @ cases.values
    assert np.allclose(before - after, by)
    assert np.allclose(by, np.minimum(before, 0.2))
    assert np.allclose(lower.sum(axis=-1), 1)


def test_scores_of_many_values_keep_their_mean_and_never_hide_a_failure() -> None:
    rng = np.random.default_rng(6)
    seen = rng.beta(4, 2, (300, 3))
    cases = made(seen)
    assert len(cases.values) < 40
    assert {0.0, 1.0} <= set(cases.values)
    answers = cases.answers(rng, cases.truths(rng, 40), 3)
    assert answers.means.mean() == pytest.approx(seen.mean(), abs=0.01)
    assert answers.failing.mean() / 3 == pytest.approx((seen < 0.5).mean(), abs=0.02)


def test_a_crash_is_the_worst_value_and_what_nobody_could_score_is_left_out() -> None:
    def case(question: str, *values: float | Gone) -> dict[str, Case]:
        samples = [
            Sample(number, {} if value is Gone.FAILED else {"ok": value}, error="x" if value is Gone.FAILED else "")
            for number, value in enumerate(values)
        ]
        return {"c": Case("c", {"chat"}, question=question, samples=samples)}

    first = case("q", 1.0, Gone.FAILED, Gone.UNSCORED)
    told, left = told_of([first, case("q", 0.5), case("another", 0.25)], "ok", UNIT)
    assert [one.values for one in told] == [(1.0, 0.0, 0.5)], "a case that asks something else is another one"
    assert left == 1


def test_single_samples_say_nothing_of_chance() -> None:
    with pytest.raises(TooFew, match="two samples"):
        made(np.ones((20, 1)))
