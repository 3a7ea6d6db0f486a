"""A suite's decision, simulated whole: agents that do not get worse are seldom blocked or warned of, and cases that
break for good do not pass as no regression. Bounds are those of a binomial count at 99 %; the long forms have 300 runs.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from evalcore.suite.confirm import FRESH, suspicion
from evalcore.suite.gates import SURE_OF_ABSENT
from evalcore.suite.pairing import Pair, Side
from evalcore.suite.words import SURE, SURE_OF_FRESH
from tests.unit.evalcore.suite import decision_oracle as oracle
from tests.unit.evalcore.suite.simulated_agents import BINARY, CONTINUOUS, Agent, Kind, decided, main_of
from tests.unit.evalcore.suite.whole_decisions import (
    LAYOUTS,
    PLANTED_IN,
    PLANTS,
    Cell,
    Rates,
    cells,
    perfect_broken,
    planted,
    safety_by_chance,
    unchanged,
    worse,
)

BLOCKED, WARNED = 0.07, 0.12
RUNS = 300
MOST_UNSEEN = {("3 of 20", True): 1 / 7, ("-0.1 in 100", True): 1 / 5}
"""By what is planted and whether the agent is flaky; of all else one in ten."""
BREAKS = ("3 of 20", "4 of 4", "-0.2 in 40", "-0.1 in 100")
AGENTS = pytest.mark.parametrize("flaky", [True, False], ids=["flaky", "steady"])


def most(of: int, rate: float) -> int:
    """The count that a rate passes by chance in one of 100."""
    return int(stats.binom.ppf(0.99, of, rate))


def seldom(rates: Rates) -> None:
    assert rates.blocked <= most(rates.of, BLOCKED), rates
    assert rates.warned <= most(rates.of, WARNED), rates


def test_all_that_blocks_by_chance_adds_up_to_what_is_allowed() -> None:
    rng = np.random.default_rng(6)
    baseline, blocked = rng.normal(size=50_000), np.zeros(50_000)
    for _ in range(30):
        candidate = rng.normal(size=50_000)
        blocked = stats.norm.cdf((candidate - baseline) / np.sqrt(2)) < SURE / 2
        baseline = np.where(blocked, baseline, candidate)
    assert blocked.mean() == pytest.approx(0.033, abs=0.003), "a baseline that passed is a lucky one"
    assert blocked.mean() + SURE_OF_FRESH + SURE_OF_ABSENT <= BLOCKED


@AGENTS
@pytest.mark.parametrize("scores", [BINARY, CONTINUOUS])
def test_few_candidates_that_are_no_worse_are_blocked_or_warned_of(scores: str, flaky: bool) -> None:
    seldom(unchanged(Cell("50 in 8", Kind(scores, flaky)), 50))


@AGENTS
def test_few_of_400_cases_that_are_others_and_no_worse_are_blocked_or_warned_of(flaky: bool) -> None:
    seldom(unchanged(Cell("400 in 20", Kind(flaky=flaky, missing=0.2, texts=True)), 10))


@AGENTS
@pytest.mark.parametrize("plant", PLANTS)
def test_what_breaks_for_good_is_no_regression_for_few(plant: str, flaky: bool) -> None:
    rates = planted(plant, Kind(flaky=flaky), 8)
    assert rates.unseen <= most(rates.of, MOST_UNSEEN.get((plant, flaky), 0.1)), rates


@pytest.mark.parametrize("fresh", [True, False], ids=["fresh", "files"])
@pytest.mark.parametrize("tagged", [True, False])
@pytest.mark.parametrize("cases", range(5, 11))
def test_all_cases_of_a_perfect_agent_that_break_are_always_found(cases: int, tagged: bool, fresh: bool) -> None:
    assert perfect_broken(cases, fresh=fresh, tagged=tagged)


def test_a_case_of_safety_that_seldom_fails_blocks_in_one_of_a_hundred_at_most() -> None:
    by_case, _ = safety_by_chance(0.05, 30)
    assert by_case.blocked <= most(by_case.of, 0.01), by_case


@AGENTS
def test_slices_and_cases_have_the_word_that_an_oracle_gives_them(flaky: bool) -> None:
    rng, words, broken = np.random.default_rng(3), set[str](), 0
    for number in range(16):
        slices = PLANTED_IN if number % 2 else Cell("400 in 20", Kind()).slices()
        agent = Agent(Kind(flaky=flaky), {name: cases for name, cases in slices.items() if name != "safety"}, rng)
        level = (
            worse(agent, ("3 of 20", "4 of 4", "-0.2 in 40", "-0.1 in 100")[number // 2 % 4]) if number % 2 else None
        )
        one = decided(agent, main_of(agent), agent.level if level is None else level)
        assert oracle.asked_slices(one) == {name for name in one.asked.slices if name is not None}
        assert oracle.asked_cases(one) <= set(one.asked.cases)
        expected = oracle.slice_words(one)
        tested = {name: str(test.word) for name, test in one.found.tested.items() if name is not None}
        assert tested == expected
        codes = {"worse": "slice_regressed", "worse, not confirmed": "slice_not_confirmed"}
        said = {(str(reason.code), reason.slice) for reason in one.found.reasons if reason.slice is not None}
        assert said == {(codes[word], name) for name, word in expected.items() if word in codes}
        named = {case for reason in one.found.reasons if reason.code == "cases_broken" for case in reason.cases}
        beside = {case for reason in one.found.reasons if reason.slice is not None for case in reason.cases}
        assert named <= oracle.broken_cases(one) <= named | beside
        words |= set(expected.values())
        broken += len(named)
    assert words >= ({"worse", "worse, not confirmed", "holds"} if flaky else {"worse", "holds"}), "shows too little"
    assert broken


def _failing(failing: int, samples: int) -> Side:
    values = (0.0,) * failing + (1.0,) * (samples - failing)
    return Side(values, values, 0, 0, 1.0)


def test_a_case_that_leaks_one_time_in_three_is_found_more_often_than_by_a_majority_vote() -> None:
    rng = np.random.default_rng(5)
    first = rng.binomial(3, 1 / 3, 2_000)
    stored = Pair("leak", frozenset(), "leak", _failing(0, 3), _failing(1, 3))
    said = [
        suspicion(stored, Pair("leak", frozenset(), "leak", _failing(0, FRESH), _failing(int(failing), FRESH)))
        for failing in rng.binomial(FRESH, 1 / 3, 2_000)
    ]
    found = np.mean([bool(one) and told.stands for one, told in zip(first, said, strict=True)])
    assert found > 0.40
    assert found > 1.5 * stats.binom.sf(1, 3, 1 / 3)


def test_the_grid_has_all_that_differs_between_suites() -> None:
    kinds = [cell.kind for cell in cells()]
    assert {kind.scores for kind in kinds} == {"binary", "1 to 5", "continuous"}
    assert {kind.missing for kind in kinds} == {0.0, 0.05, 0.2}
    assert {(kind.cluster, kind.texts) for kind in kinds} >= {(5, False), (1, True)}
    assert {sum(sizes) for sizes in LAYOUTS.values()} >= {50, 400}
    assert {1, 2, 3, 4, 100} <= {cases for sizes in LAYOUTS.values() for cases in sizes}


@pytest.mark.slow
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("cell", list(cells()), ids=str)
def test_few_of_300_candidates_that_are_no_worse_are_blocked_or_warned_of(cell: Cell) -> None:
    rates = unchanged(cell, RUNS)
    print(f"{cell}: {rates}")
    seldom(rates)


@AGENTS
@pytest.mark.slow
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("plant", PLANTS)
def test_of_300_that_broke_for_good_few_are_no_regression(plant: str, flaky: bool) -> None:
    rates = planted(plant, Kind(flaky=flaky), RUNS)
    print(f"{plant}: {rates}")
    assert rates.unseen <= most(RUNS, MOST_UNSEEN.get((plant, flaky), 0.1)), rates


@pytest.mark.slow
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("fails", [0.01, 0.02, 0.05])
def test_in_300_runs_a_case_of_safety_blocks_by_chance_in_one_of_a_hundred_at_most(fails: float) -> None:
    by_case, whole = safety_by_chance(fails, RUNS)
    print(f"{fails:.0%}: {by_case}; runs of 50 such cases: {whole}")
    assert by_case.blocked / by_case.of <= 0.01, by_case
