"""What a spec's run comes to: summary, exit code, repeats (AgentCI Step 3)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rampgate.spec.outcomes import (
    Outcome,
    exit_code,
    layers_json,
    outcome_of,
    result_json,
    result_of,
    summary_of,
)
from tests.unit.rampgate.spec.spec_results import AWAY, FAILED, FORBIDDEN, PASSED, WARNED, layer, result

ALL = [PASSED, WARNED, FAILED, FORBIDDEN, AWAY]


def outcomes(*results: object) -> list[Outcome]:
    return [outcome_of([one]) for one in results]  # type: ignore[list-item]


def test_the_summary_counts_warnings_of_passed_queries_alone() -> None:
    """A failed query that also warns is no warning; total = passed + failed + infra."""
    both = result("both", correctness=layer("fail", "no"), cost=layer("warn", "dear"))
    found = summary_of(outcomes(*ALL, both))
    assert found == {"total": 6, "passed": 2, "failed": 3, "warnings": 1, "infra": 1}
    assert found["total"] == found["passed"] + found["failed"] + found["infra"]


# AgentCI Step 3 box 2, Step 3 box 5.
@pytest.mark.parametrize(
    ("results", "code", "strict"),
    [
        ([PASSED], 0, 0),
        ([PASSED, WARNED], 0, 1),
        ([FAILED], 1, 1),
        ([FORBIDDEN], 1, 1),
        ([AWAY], 2, 2),
        ([AWAY, WARNED], 2, 1),
        ([AWAY, FAILED], 1, 1),
    ],
)
def test_exit_codes(results: list[object], code: int, strict: int) -> None:
    """AgentCI Step 3: 0 passes, warnings too; 1 a failure or a forbidden tool, before 2, which is what can't be
    decided. `--strict` makes warnings 1."""
    assert exit_code(outcomes(*results)) == code
    assert exit_code(outcomes(*results), strict=True) == strict


def test_what_is_loosened_is_a_warning() -> None:
    assert exit_code(outcomes(PASSED), noted=True) == 0
    assert exit_code(outcomes(PASSED), strict=True, noted=True) == 1


@given(st.permutations(ALL), st.integers(1, 5))
def test_a_query_passes_if_all_its_answers_do(results: list[object], many: int) -> None:
    some = results[:many]
    found = outcome_of(some)  # type: ignore[arg-type]
    assert found.passed == all(one in (PASSED, WARNED) for one in some)
    assert found.passes == sum(one in (PASSED, WARNED) for one in some)
    if FAILED in some or FORBIDDEN in some:
        assert found.result.hard_fail


def test_repeats_come_with_pass_hat_k() -> None:
    """pass^k = C(c,k)/C(n,k), as a mean over queries."""
    found = summary_of([Outcome(PASSED, 4, 4), Outcome(FAILED, 4, 2)])
    assert [(one["k"], round(one["pass"], 6)) for one in found["pass_hat"]] == [
        (1, 0.75), (2, round((1 + 1 / 6) / 2, 6)), (3, 0.5), (4, 0.5),
    ]  # fmt: skip
    assert "pass_hat" not in summary_of(outcomes(PASSED))


@pytest.mark.parametrize("one", ALL, ids=lambda one: one.id)
def test_layers_are_read_as_they_are_written(one: object) -> None:
    told = layers_json(one)  # type: ignore[arg-type]
    back = result_of(one.id, one.query, told)  # type: ignore[attr-defined]
    assert layers_json(back) == told
    assert (back.hard_fail, back.unresolved, back.warns) == (one.hard_fail, one.unresolved, one.warns)  # type: ignore[attr-defined]


def test_json_of_a_result() -> None:
    found = result_json(outcome_of([WARNED]))
    assert found["status"] == "warn"
    assert found["path"]["messages"] == ["Tool calls: 11 > max 0"]
    assert found["cost"]["details"]["actual"]["total_tokens"] == 4200
    assert "answers" not in found
    assert result_json(outcome_of([WARNED, AWAY]))["answers"] == 2
