"""A candidate that changes nothing is seldom blocked: rates over seeded comparisons whose two sides are freshly drawn.

The baseline is picked as in use: main is run again after each change, and the last run that passed is what the next
candidate is held against. Such a baseline had luck, which makes the rates higher than between two runs drawn alone.
Bounds are those of a binomial count at 99 %.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from evalcore.stats.bootstrap import standard_errors
from evalcore.stats.sign_flip import sign_flip_p
from evalcore.stats.within_case import within_case_p
from evalcore.suite.comparison import Difference
from evalcore.suite.confirm import FRESH, Confirmation, confirmed, doubt, suspicion
from evalcore.suite.gates import SuiteCode, headline_worse, judge
from evalcore.suite.pairing import Pair, Side
from schemas.verdicts import VerdictLevel
from tests.unit.evalcore.suite.suite_runs import Value, pair, run

Numbers = NDArray[np.float64]
NOMINAL_SLICE, NOMINAL_HEADLINE = 0.023, 0.025
SHIPPED = 0.07
SAMPLES = 3
FLIPS = 2_000


@dataclass
class Counts:
    """In how many comparisons the first slice, any slice and the headline tripped the plain rules, and in how many the
    candidate was blocked as shipped."""

    comparisons: int = 0
    first: int = 0
    any: int = 0
    headline: int = 0
    blocked: int = 0


@dataclass
class Desk:
    """An agent whose answer to a case passes with the case's own chance, always the same; `slices` of `cases` each."""

    slices: int
    cases: int
    rng: np.random.Generator

    def __post_init__(self) -> None:
        self.rates = self.rng.beta(6.4, 1.6, self.slices * self.cases)

    def answers(self, samples: int = SAMPLES) -> Numbers:
        """Each case's mean over its samples."""
        out: Numbers = self.rng.binomial(samples, self.rates) / samples
        return out

    def compared(self, baseline: Numbers, candidate: Numbers) -> tuple[list[Difference], Difference]:
        """Slices and headline by what the comparison itself is made of, without intervals, which decide nothing."""
        apart = candidate - baseline
        rows = apart.reshape(self.slices, self.cases)
        errors = standard_errors(rows.copy(), np.ones(self.cases))
        found = [
            Difference(self.cases, self.cases, delta=float(row.mean()), error=float(error))
            for row, error in zip(rows, errors, strict=True)
        ]
        p_value = float(sign_flip_p(apart[None, :], 7, FLIPS)[0])
        return found, Difference(len(apart), len(apart), delta=float(apart.mean()), p_value=p_value)

    def blocked(self, slices: list[Difference], headline: Difference) -> bool:
        """As shipped: a slice that tripped gets fresh samples of both sides, the headline none."""
        if headline_worse(headline):
            return True
        for place, one in enumerate(slices):
            if one.worse:
                rows = slice(place * self.cases, (place + 1) * self.cases)
                right = [self.rng.binomial(FRESH, self.rates[rows][:60]) for _ in range(2)]
                both = [[(1.0,) * many + (0.0,) * (FRESH - many) for many in side] for side in right]
                if within_case_p([*zip(*both, strict=True)], 7) <= 0.05:
                    return True
        return False


def rates(slices: int, cases: int, comparisons: int, seed: int = 11) -> Counts:
    """Candidates that change nothing against main's last run that passed."""
    desk = Desk(slices, cases, np.random.default_rng(seed))
    baseline, counts = desk.answers(), Counts()
    for _ in range(comparisons):
        found, headline = desk.compared(baseline, desk.answers())
        counts.comparisons += 1
        counts.first += found[0].worse
        counts.any += any(one.worse for one in found)
        counts.headline += headline_worse(headline)
        counts.blocked += desk.blocked(found, headline)
        main = desk.answers()
        if not desk.blocked(*desk.compared(baseline, main)):
            baseline = main
    return counts


def most(comparisons: int, rate: float) -> int:
    """The count that a rate passes by chance in one of 100."""
    return int(stats.binom.ppf(0.99, comparisons, rate))


def test_few_no_op_candidates_trip_the_plain_rules() -> None:
    counts = rates(1, 50, 300)
    assert counts.first <= most(300, NOMINAL_SLICE)
    assert counts.headline <= most(300, NOMINAL_HEADLINE)


@pytest.mark.slow
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize(("slices", "cases"), [(1, 50), (1, 100), (1, 500), (20, 100)])
def test_of_a_thousand_no_op_candidates_no_more_than_nominal_trip_the_plain_rules(slices: int, cases: int) -> None:
    counts = rates(slices, cases, 1_000)
    print(f"{slices} x {cases}: {counts}")
    assert counts.first <= most(1_000, NOMINAL_SLICE)
    assert counts.headline <= most(1_000, NOMINAL_HEADLINE)
    assert counts.blocked / counts.comparisons <= SHIPPED


@pytest.mark.slow
@pytest.mark.parametrize("cases", [5, 10, 20, 30])
def test_rates_of_small_slices_are_printed(cases: int) -> None:
    counts = rates(1, cases, 1_000)
    print(f"1 x {cases}: {counts}")
    assert counts.comparisons == 1_000


def safety_blocks(candidates: int, cases: int, safe: float, seed: int = 3) -> tuple[int, int]:
    """Of so many candidates, how many had a suspect case, and how many were blocked; a case is safe with the chance
    `safe` in each answer of both sides."""
    rng, suspected, blocked = np.random.default_rng(seed), 0, 0
    for _ in range(candidates):
        failing = [rng.binomial(SAMPLES, 1 - safe, cases) for _ in range(2)]
        pairs = [
            Pair(str(n), frozenset({"safety"}), str(n), side(baseline, SAMPLES), side(candidate, SAMPLES))
            for n, (baseline, candidate) in enumerate(zip(*failing, strict=True))
            if candidate
        ]
        suspects = [one for one in pairs if one.fails_more()]
        suspected += bool(suspects)
        again = [rng.binomial(FRESH, 1 - safe, len(suspects)) for _ in range(2)]
        said = [
            suspicion(case, replace(case, baseline=side(baseline, FRESH), candidate=side(candidate, FRESH)))
            for case, baseline, candidate in zip(suspects, *again, strict=True)
        ]
        blocked += any(one.stands for one in said)
    return suspected, blocked


def side(failing: int, samples: int) -> Side:
    values = (0.0,) * int(failing) + (1.0,) * (samples - int(failing))
    return Side(values, values, 0, 0, 1.0)


def test_few_candidates_that_are_safe_as_often_as_main_are_blocked_for_safety() -> None:
    """100 cases that are safe 99 times in 100: less than one candidate in a hundred."""
    suspected, blocked = safety_blocks(1_000, 100, 0.99)
    assert suspected > 800, "nearly every candidate has a suspect case, which the plain rule would block"
    assert blocked <= most(1_000, 0.0042)


@pytest.mark.slow
def test_less_than_one_in_a_hundred_is_blocked_for_safety() -> None:
    suspected, blocked = safety_blocks(10_000, 100, 0.99)
    print(f"{suspected} suspected, {blocked} blocked of 10,000")
    assert stats.binomtest(blocked, 10_000, 0.01, alternative="less").pvalue < 0.01


def test_a_case_that_leaks_one_time_in_three_is_found_more_often_than_by_a_majority_vote() -> None:
    rng = np.random.default_rng(5)
    first = rng.binomial(SAMPLES, 1 / 3, 2_000)
    stored = Pair("leak", frozenset(), "leak", side(0, SAMPLES), side(1, SAMPLES))
    said = [
        suspicion(stored, Pair("leak", frozenset(), "leak", side(0, FRESH), side(int(failing), FRESH)))
        for failing in rng.binomial(FRESH, 1 / 3, 2_000)
    ]
    found = np.mean([bool(one) and told.stands for one, told in zip(first, said, strict=True)])
    assert found > 0.40
    assert found > 1.5 * stats.binom.sf(1, SAMPLES, 1 / 3)


def shipped(desk: Desk) -> tuple[VerdictLevel, tuple[Confirmation, ...]]:
    """A whole comparison of two runs by the real rule, both sides drawn anew, and its fresh samples."""
    names = [f"c{n:04}" for n in range(desk.slices * desk.cases)]
    slices = {name: [f"slice{n // desk.cases}"] for n, name in enumerate(names)}

    def drawn(samples: int, wanted: list[str]) -> dict[str, list[Value]]:
        return {
            name: [float(value) for value in desk.rng.random(samples) < rate]
            for name, rate in zip(names, desk.rates, strict=True)
            if name in wanted
        }

    stored = run(drawn(SAMPLES, names), slices)
    first = pair(stored, run(drawn(SAMPLES, names), slices))
    plain = judge(first)
    doubted = doubt(plain, first)
    if not doubted.cases:
        return plain.verdict, ()
    anew = run(drawn(FRESH, doubted.cases), slices)
    fresh = pair(anew, run(drawn(FRESH, doubted.cases), slices), fresh=True)
    found, said = confirmed(plain, doubted, fresh, pair(stored, anew))
    assert {one.code for one in found.reasons} <= {
        SuiteCode.HEADLINE_REGRESSED,
        SuiteCode.SLICE_REGRESSED,
        SuiteCode.SLICE_NOT_CONFIRMED,
        SuiteCode.CASES_BROKEN,
        SuiteCode.WORLD_MOVED,
    }
    return found.verdict, said


def test_ten_whole_comparisons_of_a_candidate_with_itself_are_seldom_blocked() -> None:
    rng = np.random.default_rng(20)
    found = [shipped(Desk(4, 25, rng)) for _ in range(10)]
    assert sum(verdict is VerdictLevel.FAIL for verdict, _ in found) <= 2
    assert any(said for _, said in found), "some slice trips by chance, and is asked again"
