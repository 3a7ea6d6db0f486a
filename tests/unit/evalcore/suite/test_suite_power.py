"""How small a drop is found: as often as predicted, and cases or samples that a smaller one needs suffice."""

from __future__ import annotations

import numpy as np
import pytest

from evalcore.stats.bootstrap import standard_errors
from evalcore.stats.within_case import within_case_p
from evalcore.suite.comparison import Difference, compare
from evalcore.suite.confirm import FRESH, MOST, confirmed, doubt
from evalcore.suite.gates import SuiteCode, judge
from evalcore.suite.power import Drawn, Errors, Power, errors_of, powers, slice_power
from tests.unit.evalcore.suite.suite_runs import Value, drawn, pair, run

DROP = 0.05
DRAWN = Drawn()
SAMPLES = 3


def rates(rng: np.random.Generator, cases: int) -> dict[str, float]:
    return {f"c{number:04}": float(rate) for number, rate in enumerate(rng.beta(6.4, 1.6, cases))}


def predicted_and_found(cases: int, comparisons: int, seed: int) -> tuple[float, float]:
    """The mean prediction of comparisons with a planted drop, and the share of them that find it, as shipped."""
    rng, predicted, found = np.random.default_rng(seed), 0.0, 0
    ones = np.ones(cases)
    for _ in range(comparisons):
        before = rng.beta(6.4, 1.6, cases)
        after = np.clip(before - DROP, 0, 1)
        sides = [(rng.random((cases, SAMPLES)) < side[:, None]).astype(float) for side in (before, after)]
        apart = (sides[1] - sides[0]).mean(axis=1)
        error = float(standard_errors(apart[None, :].copy(), ones)[0])
        within = sum(float(side.var(axis=1).sum()) for side in sides) * SAMPLES / (2 * cases * (SAMPLES - 1))
        total, samples = error**2 * cases / (cases - 1), within * 2 / SAMPLES / cases
        errors = Errors(min(samples, total), max(total - samples, 0.0), 2 / SAMPLES, cases)
        predicted += float((DRAWN.confirmed(errors, errors.fresh(cases)) < DROP).mean())
        if Difference(cases, cases, delta=float(apart.mean()), error=error).worse:
            asked = np.argsort(apart, kind="stable")[:MOST]
            right = [rng.binomial(FRESH, side[asked]) for side in (before, after)]
            both = [[(1.0,) * many + (0.0,) * (FRESH - many) for many in side] for side in right]
            found += within_case_p([*zip(*both, strict=True)], 7) <= 0.05
    return predicted / comparisons, found / comparisons


def test_a_planted_drop_is_found_about_as_often_as_predicted() -> None:
    predicted, found = predicted_and_found(250, 200, 5)
    assert found == pytest.approx(predicted, abs=0.10), "200 comparisons; the long run has the five points"


@pytest.mark.slow
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("cases", [50, 100, 250, 400, 800])
def test_a_planted_drop_is_found_as_often_as_predicted_but_for_five_points(cases: int) -> None:
    predicted, found = predicted_and_found(cases, 2_000, 6)
    print(f"{cases} cases: predicted {predicted:.3f}, found {found:.3f}")
    assert found == pytest.approx(predicted, abs=0.05)


def test_whole_comparisons_of_a_planted_drop_block_where_it_is_predicted() -> None:
    """By the real rule from runs to verdict: of a drop that is found nearly always, and one that is found seldom."""
    for drop, expected in ((0.3, range(9, 11)), (0.02, range(4))):
        rng, blocked, told = np.random.default_rng(8), 0, []
        for _ in range(10):
            before = rates(rng, 120)
            after = {name: max(rate - drop, 0.0) for name, rate in before.items()}
            slices = {name: ["chat"] for name in before}
            stored = run(drawn(rng, before), slices)
            first = pair(stored, run(drawn(rng, after), slices))
            plain = judge(first)
            _, by_slice = powers(first, plain.comparison)
            one, errors = by_slice["chat"], errors_of(first.pairs, plain.comparison.slices["chat"])
            assert errors is not None
            told.append(slice_power(errors, 120, drop, DRAWN).confirmed_found)
            assert one.drop == pytest.approx(0.05)
            if doubt(plain, first).slices:
                again, anew = [run(drawn(rng, side, FRESH), slices) for side in (before, after)]
                plain, _ = confirmed(plain, doubt(plain, first), stored, again, anew)
            blocked += any(reason.code is SuiteCode.SLICE_REGRESSED for reason in plain.reasons)
        assert blocked in expected
        assert np.mean(told) * 10 == pytest.approx(blocked, abs=2)


def planned(errors: Errors, cases: int, drop: float = DROP) -> Power:
    return slice_power(errors, cases, drop, DRAWN)


def test_the_cases_that_a_smaller_drop_needs_find_it() -> None:
    now = Errors(samples=0.14 * 2 / 3 / 20, cases=0.0, apart=2 / 3, units=20)
    one = planned(now, 20, 0.1)
    assert one.confirmed_smallest > 0.1
    assert one.confirmed_found < 0.8
    assert one.cases is not None
    larger = now.with_cases(one.cases / 20)
    assert planned(larger, one.cases, 0.1).confirmed_found == pytest.approx(0.8, abs=0.02)
    assert planned(larger, one.cases, 0.1).confirmed_smallest <= 0.1


def test_no_number_of_cases_finds_what_sixty_of_them_asked_again_can_not_confirm() -> None:
    one = planned(Errors(samples=0.14 * 2 / 3 / 300, cases=0.0, apart=2 / 3, units=300), 300)
    assert one.smallest <= DROP < one.confirmed_smallest
    assert (one.cases, one.samples, one.never) == (None, None, True)


def test_the_samples_that_a_smaller_drop_needs_find_it_and_one_less_does_not() -> None:
    now = Errors(samples=0.14 * 2 / 3 / 60, cases=0.0, apart=2 / 3, units=60)
    one = planned(now, 60, 0.1)
    assert one.samples is not None
    assert planned(now.with_samples(one.samples), 60, 0.1).confirmed_smallest <= 0.1
    assert planned(now.with_samples(one.samples - 1), 60, 0.1).confirmed_smallest > 0.1


def test_samples_alone_never_suffice_where_cases_move_unlike_one_another() -> None:
    one = planned(Errors(samples=0.0001, cases=0.003, apart=2 / 3, units=50), 50, 0.1)
    assert one.never
    assert one.samples is None
    assert one.cases is not None
    assert one.cases > 50


def test_a_slice_of_a_few_steady_cases_finds_only_a_large_drop() -> None:
    """Five of its fresh samples have to fail: of 24 that is a drop of a quarter, of 60 of a tenth."""
    found = {}
    for many in (1, 4, 10):
        same: dict[str, list[Value]] = {f"c{number}": [1.0] * 3 for number in range(many)}
        still = pair(run(same, {name: ["few"] for name in same}), run(same, {name: ["few"] for name in same}))
        found[many] = powers(still, compare(still))[1]["few"]
    assert [round(one.confirmed_smallest, 2) for one in found.values()] == [0.86, 0.26, 0.11]
    assert [one.blind(fresh=True) for one in found.values()] == [True, True, False]
    assert found[1].smallest == 1.0, "three stored samples show a loss of all at most"


def test_where_there_is_enough_nothing_is_needed() -> None:
    one = planned(Errors(samples=0.00001, cases=0.0, apart=2 / 3, units=200), 200)
    assert (one.cases, one.samples, one.never) == (None, None, False)
    assert one.confirmed_found > 0.99


def test_fresh_samples_find_no_more_than_the_plain_rule() -> None:
    for cases in (50, 400):
        one = planned(Errors(samples=0.09 / cases, cases=0.01 / cases, apart=2 / 3, units=cases), cases)
        assert one.confirmed_smallest >= one.smallest
        assert one.confirmed_found <= one.found


def test_errors_are_taken_apart_into_those_of_samples_and_of_cases() -> None:
    rng = np.random.default_rng(2)
    before = rates(rng, 800)
    same = pair(run(drawn(rng, before)), run(drawn(rng, before)))
    of_same = errors_of(same.pairs, compare(same).headline)
    assert of_same is not None
    assert of_same.cases < 0.2 * of_same.samples, "a candidate that changes nothing moves all cases alike"
    moved = {name: 1 - rate if place % 2 else rate for place, (name, rate) in enumerate(before.items())}
    unlike = pair(run(drawn(rng, before)), run(drawn(rng, moved)))
    of_unlike = errors_of(unlike.pairs, compare(unlike).headline)
    assert of_unlike is not None
    assert of_unlike.cases > of_unlike.samples


def test_of_single_samples_no_number_of_samples_is_claimed() -> None:
    rng = np.random.default_rng(2)
    before = rates(rng, 60)
    single = pair(run(drawn(rng, before, 1)), run(drawn(rng, before, 1)))
    whole, _ = powers(single, compare(single))
    assert whole is not None
    assert (whole.never, whole.samples) == (True, None)
