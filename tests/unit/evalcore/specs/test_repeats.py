"""pass^k: the chance that k answers to a query all pass (AgentCI 2.0, after launch)."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalcore.specs.repeats import pass_hat_k, reliability


@given(st.integers(1, 8).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(1, n))))
def test_it_is_the_share_of_all_choices_of_k_that_pass(counts: tuple[int, int, int]) -> None:
    asked, passed, k = counts
    answers = [True] * passed + [False] * (asked - passed)
    drawn = [all(some) for some in combinations(answers, k)]
    assert pass_hat_k(passed, asked, k) == pytest.approx(sum(drawn) / len(drawn))


@pytest.mark.parametrize(("passed", "asked", "k"), [(1, 2, 3), (3, 2, 1), (-1, 2, 1), (1, 2, 0)])
def test_counts_that_do_not_fit_are_refused(passed: int, asked: int, k: int) -> None:
    with pytest.raises(ValueError, match="k must be"):
        pass_hat_k(passed, asked, k)


def test_queries_are_what_the_interval_is_over() -> None:
    few = reliability({str(number): (4, 5) for number in range(4)}, 2)
    assert (few.value, few.ci95, few.queries) == (pytest.approx(0.6), None, 4)
    counts = {str(number): (number % 6, 5) for number in range(30)}
    one = reliability(counts, 2)
    assert one.ci95 is not None
    low, high = one.ci95
    assert 0 <= low < one.value < high <= 1
    assert reliability(counts, 2) == one, "the same digits"
    assert reliability(counts, 1).value > one.value, "more answers pass together less often"
    all_pass = reliability({str(number): (5, 5) for number in range(10)}, 5)
    assert (all_pass.value, all_pass.ci95) == (1.0, (1.0, 1.0))
    with pytest.raises(ValueError, match="must be of one query or more"):
        reliability({}, 1)
