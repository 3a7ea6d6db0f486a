"""The rates that a check of a suite counts are those of its gates: false alarms, and planted drops that are found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from evalcore.drift.scale import Scale
from evalcore.suite.comparison import Difference
from evalcore.suite.simulation.cases import SuiteCases, Told, suite_cases
from evalcore.suite.simulation.counted import (
    HEADLINE,
    PULL_REQUEST,
    SAFETY,
    SLICE,
    Alarms,
    Detection,
    Rate,
    Simulated,
)
from evalcore.suite.simulation.rates import Rules, simulate

UNIT = Scale(0.0, 1.0, whole=False)
RULES = Rules(samples=3, drop=0.05)


def mostly(rng: np.random.Generator) -> float:
    return float(rng.beta(6.4, 1.6))


def suite(
    slices: int, cases: int, name: str = "slice", rate: Callable[[np.random.Generator], float] = mostly
) -> SuiteCases:
    """Three samples of each case, which passes with a chance of its own."""
    rng = np.random.default_rng(17)
    told = [
        Told(f"c{place:04}", frozenset({f"{name}{place // cases}"}), f"c{place:04}", tuple(values))
        for place in range(slices * cases)
        for values in [[float(value) for value in rng.random(3) < rate(rng)]]
    ]
    return suite_cases(told, UNIT, {"safety0"}, 0.5)


def alarms(found: Simulated) -> dict[str, Alarms]:
    return {one.gate: one for one in found.alarms}


def most(of: int, rate: float) -> int:
    """The count that a rate passes by chance in one of 100."""
    return int(stats.binom.ppf(0.99, of, rate))


def test_unchanged_candidates_are_blocked_about_as_often_as_they_may() -> None:
    found = alarms(simulate(suite(4, 50), RULES, 600))
    assert found.keys() == {SLICE, HEADLINE, PULL_REQUEST}, "without cases of safety there is no such gate"
    one = found[SLICE]
    assert one.plain.of == 2_400
    assert one.plain.found <= most(one.plain.of, 0.03), "2.7 % at 50 cases"
    assert one.plain.found >= stats.binom.ppf(0.01, one.plain.of, 0.02)
    assert found[HEADLINE].shipped.found <= most(600, 0.025)
    assert found[PULL_REQUEST].shipped.found < found[PULL_REQUEST].plain.found
    assert not any(one.above for one in found.values())


def test_without_fresh_samples_many_slices_block_more_than_they_may() -> None:
    found = alarms(simulate(suite(12, 40), replace(RULES, confirm=False), 300))
    assert found[PULL_REQUEST].shipped == found[PULL_REQUEST].plain
    assert found[PULL_REQUEST].above


def test_cases_of_safety_that_fail_now_and_then_block_unchanged_candidates() -> None:
    noisy = alarms(simulate(suite(1, 60, "safety", lambda rng: 0.8), RULES, 300))
    assert noisy[SAFETY].above
    calm = alarms(simulate(suite(1, 60, "safety", lambda rng: 1.0), RULES, 300))
    assert not calm[SAFETY].above


@pytest.mark.parametrize("drop", [0.05, 0.15])
def test_a_planted_drop_is_found_as_often_as_predicted(drop: float) -> None:
    for one in simulate(suite(3, 80), replace(RULES, drop=drop), 600).detections:
        assert one.planted == pytest.approx(drop, abs=0.002)
        for rate, predicted in ((one.plain, one.predicted), (one.shipped, one.predicted_shipped)):
            tolerance = 0.05 + 2.6 * (predicted * (1 - predicted) / rate.of) ** 0.5
            assert rate.ratio == pytest.approx(predicted, abs=tolerance)
        assert not one.missed


def test_a_gate_that_looks_the_wrong_way_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def better(one: Difference) -> bool:
        return one.delta is not None and one.error is not None and one.delta > 2 * one.error

    monkeypatch.setattr(Difference, "worse", property(better))
    found = simulate(suite(2, 80), replace(RULES, drop=0.15), 200)
    assert not any(one.above for one in found.alarms), "unchanged candidates go up as often as down"
    assert all(one.missed for one in found.detections)


def test_the_same_seed_gives_the_same_digits_and_another_one_others() -> None:
    cases = suite(2, 30)
    first, again, other = (simulate(cases, replace(RULES, seed=seed), 200) for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_a_rate_that_chance_explains_is_no_finding() -> None:
    assert not Alarms(HEADLINE, Rate(32, 1_000), Rate(32, 1_000)).above
    assert Alarms(HEADLINE, Rate(40, 1_000), Rate(40, 1_000)).above
    assert Rate(0, 10).ci95 == (0.0, pytest.approx(0.3085, abs=1e-4))
    few = Rate(10, 100)
    assert Detection("s", 40, 0.05, few, few, 0.5, 0.5).missed
    assert not Detection("s", 40, 0.05, few, few, 0.15, 0.15).missed
    assert not Detection("s", 10, 0.05, few, few, 0.5, 0.5).missed, "of few cases nothing is predicted"


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_twenty_slices_of_a_hundred_cases_are_as_documented() -> None:
    found = simulate(suite(20, 100), RULES, 1_000)
    told = alarms(found)
    print(told, found.detections[0])
    assert 0.3 < told[PULL_REQUEST].plain.ratio < 0.5
    assert told[PULL_REQUEST].shipped.ratio <= 0.07
    assert not any(one.missed for one in found.detections)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("rate", [0.0, 1.0])
def test_a_suite_whose_cases_never_differed_raises_no_alarm(rate: float) -> None:
    found = simulate(suite(2, 40, rate=lambda rng: rate), RULES, 200)
    assert not any(one.above for one in found.alarms)
    assert not any(one.missed for one in found.detections), "where all fail there is no room for a drop"
