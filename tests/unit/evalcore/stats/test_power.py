"""What verdicts say of a judge's noise happens: simulated gates pass, and find planted drops, as often as they are told
to, before and after a failing answer is confirmed, k of n."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from evalcore.judges.evaluator import Evaluation
from evalcore.scoring.answers import settled
from evalcore.stats.power import POWER, Confirmed, failing_chance, of_mean, of_rate
from evalcore.stats.retest import rate_interval, retest
from tests.unit.evalcore.registry.registry_disk import built

ONCE, TWO_OF_THREE = Confirmed(), Confirmed(3, 2)
GATES = 4_000
SURE = 4.0
"""Standard errors that a simulated share may be off: the seeds are fixed, so nothing here is up to chance."""
JUDGES = {
    TWO_OF_THREE: built({"rules/honesty.yaml": "confirmation: {asks: 3, failing: 2}"}).judge("honesty"),
    Confirmed(5, 3): built({"rules/honesty.yaml": "confirmation: {asks: 5, failing: 3}"}).judge("honesty"),
    ONCE: built().judge("honesty"),
}


def failing(rng: np.random.Generator, chance: np.ndarray[Any, Any], rule: Confirmed) -> np.ndarray[Any, Any]:
    """Which items count as failing where one answer fails with `chance`, by the judge's own rule for its answers."""
    answers = rng.random((rule.asks, *chance.shape)) >= chance
    found = ~answers[0]
    for place in zip(*np.nonzero(found), strict=True):
        said = [Evaluation(float(answers[(ask, *place)]), "") for ask in range(rule.asks)]
        ends = next(made for n in range(1, rule.asks + 1) if (made := settled(JUDGES[rule], said[:n])) is not None)
        found[place] = ends.value == 0.0
    return found


def happens(share: float, told: float, times: int) -> bool:
    return abs(share - told) <= SURE * np.sqrt(max(told * (1 - told), 1 / times) / times)


@pytest.mark.parametrize(
    ("items", "rule", "told"),
    [(345, ONCE, 0.3547), (345, TWO_OF_THREE, 0.9938), (600, ONCE, 0.1649), (600, TWO_OF_THREE, 0.9893)],
)
def test_a_clean_candidate_passes_as_often_as_the_verdict_says(items: int, rule: Confirmed, told: float) -> None:
    """With 0.3 % false alarms a call at `threshold: true`. Three safety judges that are asked once let one clean
    candidate in 22 through at pre_merge; two of three, 98 of 100."""
    clean = of_rate(0.003, 0.003, 0.0, rule, items, 1.0).clean_pass
    assert clean == pytest.approx(told, abs=1e-4)
    passed = ~failing(np.random.default_rng(items), np.full((GATES, items), 0.003), rule).any(axis=1)
    assert happens(passed.mean(), clean, GATES)


@pytest.mark.parametrize("limit", [1.0, 0.98])
@pytest.mark.parametrize("rule", [ONCE, TWO_OF_THREE, Confirmed(5, 3)])
def test_a_planted_drop_of_the_told_size_is_found_four_times_of_five(rule: Confirmed, limit: float) -> None:
    """Each item truly fails with the chance of the drop; the judge raises false alarms and misses some."""
    items, alarms, misses = 300, 0.003, 0.1
    figures = of_rate(alarms, misses, 0.0, rule, items, limit)
    assert figures.detectable_drop is not None
    rng = np.random.default_rng(7)
    planted = rng.random((GATES, items)) < figures.detectable_drop
    found = failing(rng, np.where(planted, 1 - misses, alarms), rule).mean(axis=1) > 1 - limit + 1e-9
    assert happens(found.mean(), POWER, GATES)


@pytest.mark.parametrize("correlation", [0.05, 0.3])
def test_false_alarms_that_gather_at_some_items_are_counted_as_such(correlation: float) -> None:
    """Asking again helps less where the same items raise them: the figure says so."""
    rate, items = 0.01, 200
    told = of_rate(rate, rate, correlation, TWO_OF_THREE, items, 1.0).clean_pass
    assert told < of_rate(rate, rate, 0.0, TWO_OF_THREE, items, 1.0).clean_pass
    rng, spread = np.random.default_rng(3), 1 / correlation - 1
    chances = rng.beta(rate * spread, (1 - rate) * spread, (GATES, items))
    passed = ~failing(rng, chances, TWO_OF_THREE).any(axis=1)
    assert happens(passed.mean(), told, GATES)


@pytest.mark.parametrize("runs", [0, 1, 3])
def test_a_mean_passes_and_falls_as_often_as_told(runs: int) -> None:
    """A graded judge, its limit set by somebody or the mean of earlier runs, which err as the present one does."""
    items, deviation, mean, tolerance = 120, 0.6, 4.2, 0.05
    figures = of_mean(deviation, items, mean, mean - tolerance, 4.0, runs)
    assert figures.detectable_drop is not None
    rng, times = np.random.default_rng(runs), 20_000
    run = rng.normal(0.0, deviation, (times, items)).mean(axis=1)
    limit = -tolerance + (rng.normal(0.0, deviation / np.sqrt(items), (times, runs)).mean(axis=1) if runs else 0.0)
    assert happens((run >= limit).mean(), figures.clean_pass, times)
    assert happens((run - figures.detectable_drop < limit).mean(), POWER, times)


def test_what_is_measured_is_what_was_planted() -> None:
    """The 95 % intervals of false alarms hold the true rate in 95 % of measurements or more, and so do deviations'."""
    rng, held, wide = np.random.default_rng(11), 0, 0
    for _ in range(400):
        found = retest((rng.random((60, 5)) >= 0.02).astype(float).tolist(), boolean=True)
        assert found is not None
        assert found.false_alarms_ci95 is not None
        held += found.false_alarms_ci95[0] <= 0.02 <= found.false_alarms_ci95[1]
        graded = retest((rng.normal(0, 0.5, (60, 5)) + rng.normal(3, 1, (60, 1))).tolist(), boolean=False)
        assert graded is not None
        wide += graded.deviation_ci95[0] <= 0.5 <= graded.deviation_ci95[1]
    assert held >= 0.95 * 400
    assert 0.92 * 400 <= wide <= 0.98 * 400


def test_a_measurement_tells_false_alarms_from_misses_and_where_they_gather() -> None:
    steady, alarmed, missed = [1.0] * 4, [1.0, 0.0, 1.0, 1.0], [0.0, 0.0, 0.0, 1.0]
    found = retest([steady] * 8 + [alarmed] * 2 + [missed], boolean=True)
    assert found is not None
    assert (found.items, found.answers, found.false_alarms, found.misses) == (11, 44, 2 / 40, 1 / 4)
    assert found.flips == pytest.approx(3 * 0.5 / 11)
    assert found.correlation == 0.0
    split = retest([steady] * 8 + [[1.0, 0.0, 0.0, 1.0]] * 2, boolean=True)
    assert split is not None
    assert split.false_alarms == 4 / 40
    assert split.correlation > 0.2
    assert retest([[1.0], []], boolean=True) is None, "one answer says nothing of a second"


@pytest.mark.parametrize(
    ("rate", "correlation", "rule", "chance"),
    [
        (0.2, 0.0, ONCE, 0.2), (0.2, 0.0, TWO_OF_THREE, 0.2 * (1 - 0.8**2)), (0.2, 1.0, TWO_OF_THREE, 0.2),
        (0.0, 0.3, TWO_OF_THREE, 0.0), (1.0, 0.3, TWO_OF_THREE, 1.0), (0.2, 0.4, ONCE, 0.2),
    ],
)  # fmt: skip
def test_the_chance_that_an_item_fails(rate: float, correlation: float, rule: Confirmed, chance: float) -> None:
    assert failing_chance(rate, correlation, rule) == pytest.approx(chance, rel=2e-3)


def test_what_no_sample_can_see_is_not_told_as_a_number() -> None:
    """A limit that nothing can miss, a judge that sees nothing, and a sample of one."""
    assert of_rate(0.003, 0.003, 0.0, ONCE, 100, 0.0).detectable_drop is None
    assert of_rate(0.1, 0.95, 0.0, ONCE, 100, 0.9).detectable_drop is None
    assert of_rate(0.003, 0.5, 0.0, ONCE, 1, 1.0).detectable_drop is None
    assert of_mean(2.0, 1, 4.0, 4.0, 1.0).detectable_drop is None
    assert rate_interval(0.0, 0.0) == (0.0, 1.0)
