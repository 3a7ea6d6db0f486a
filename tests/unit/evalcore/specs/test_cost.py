"""Layer 3: multiplier, tokens, calls, latency, US dollars, and what is unknown (AgentCI 2.0, Step 2)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalcore.specs.layers import judged
from evalcore.specs.results import Status
from evalcore.trajectory.record import Trajectory, trajectory_of
from tests.unit.evalcore.specs.golden import cost, query, words

PASS, WARN, FAIL, SKIP, INFRA = Status.PASS, Status.WARN, Status.FAIL, Status.SKIP, Status.INFRA


def spent(
    dollars: float | None = 0.008, tokens: int | None = 4_200, models: int | None = 11, ms: Any = 8_200
) -> Trajectory:
    usage = {"cost_usd": dollars, "total_tokens": tokens}
    return Trajectory(
        output="x",
        usage={name: value for name, value in usage.items() if value is not None},
        llm_calls=None if models is None else [{"model": "m"}] * models,
        latency_ms=ms,
    )


def test_what_is_not_asserted_is_skipped() -> None:
    assert judged(query(), spent()).cost.status is SKIP
    assert cost(spent()).status is SKIP


# AgentCI Step 2 box 3.
@pytest.mark.parametrize(
    ("limit", "most", "said"),
    [
        ("max_total_tokens", 4_200, "Cost within bounds"),
        ("max_total_tokens", 500, "Tokens: 4200 > max 500"),
        ("max_llm_calls", 11, "Cost within bounds"),
        ("max_llm_calls", 2, "LLM calls: 11 > max 2"),
        ("max_latency_ms", 8_200, "Cost within bounds"),
        ("max_latency_ms", 8_199, "Latency: 8200ms > max 8199ms"),
        ("max_cost_usd", 0.008, "Cost within bounds"),
        ("max_cost_usd", 0.0001, "Cost: $0.0080 > max $0.0001"),
        ("max_cost_usd", 0.00799, "Cost: $0.0080 > max $0.007990"),
        ("max_total_tokens", 0, "Tokens: 4200 > max 0"),
    ],
)
def test_each_limit_bounds_its_figure(limit: str, most: float, said: str) -> None:
    layer = cost(spent(), **{limit: most})
    assert (layer.status, words(layer)) == (PASS if said == "Cost within bounds" else WARN, [said])
    assert layer.details["actual"] == {
        "cost_usd": 0.008, "total_tokens": 4_200, "llm_calls": 11, "latency_ms": 8_200
    }  # fmt: skip


# AgentCI Step 2 box 3.
@pytest.mark.parametrize(
    ("before", "most", "multiplier", "said"),
    [
        (0.004, 2.0, 2.0, "Cost within bounds"),
        (0.0033, 2.0, 2.42, "Cost 2.4x baseline (max 2.0x): $0.0080 vs $0.0033"),
        (0.08, 0.5, 0.1, "Cost within bounds"),
        (0.0, 2.0, None, "Cost above a free baseline (max 2.0x): $0.0080 vs $0.0000"),
    ],
)
def test_the_multiplier_is_of_the_baselines_cost(before: float, most: float, multiplier: Any, said: str) -> None:
    layer = cost(spent(), spent(before), max_cost_multiplier=most)
    assert (layer.details.get("cost_multiplier"), words(layer)) == (multiplier, [said])


def test_nothing_for_nothing_is_within_the_multiplier() -> None:
    assert cost(spent(0.0), spent(0.0), max_cost_multiplier=1.0).status is PASS


def test_rounding_exceeds_no_multiplier() -> None:
    assert cost(spent(0.3), spent(0.1), max_cost_multiplier=3).status is PASS
    assert cost(spent(0.45), spent(0.15), max_cost_multiplier=3).status is PASS
    assert cost(spent(0.451), spent(0.15), max_cost_multiplier=3).status is WARN


def test_ratios_are_of_the_limits() -> None:
    layer = cost(spent(), max_total_tokens=8_400, max_latency_ms=4_100)
    assert (layer.details["token_ratio"], layer.details["latency_ratio"]) == (0.5, 2.0)
    assert "token_ratio" not in cost(spent(), max_total_tokens=0).details
    assert "latency_ratio" not in cost(spent(), max_total_tokens=10).details


@pytest.mark.parametrize(
    ("unknown", "limit", "figure"),
    [
        ({"dollars": None}, {"max_cost_usd": 1, "max_cost_multiplier": 2}, "cost_usd"),
        ({"tokens": None}, {"max_total_tokens": 10}, "total_tokens"),
        ({"models": None}, {"max_llm_calls": 10}, "llm_calls"),
        ({"ms": None}, {"max_latency_ms": 10}, "latency_ms"),
    ],
)
def test_an_unknown_figure_is_not_zero_and_warns_once(unknown: Any, limit: Any, figure: str) -> None:
    layer = cost(spent(**unknown), spent(), **limit)
    named = ", ".join(name for name in ("max_cost_multiplier", "max_cost_usd") if name in limit) or next(iter(limit))
    assert (layer.status, words(layer)) == (WARN, [f"the answer has no {figure}: {named} can't be checked"])
    assert layer.details["actual"][figure] is None


@pytest.mark.parametrize(
    ("baseline", "why"), [(None, "there is no baseline"), (spent(None), "the baseline has no cost_usd")]
)
def test_an_unknown_baseline_is_no_multiplier_of_one(baseline: Trajectory | None, why: str) -> None:
    layer = cost(spent(), baseline, max_cost_multiplier=2.0)
    assert (layer.status, words(layer)) == (WARN, [f"{why}: max_cost_multiplier can't be checked"])
    assert "cost_multiplier" not in layer.details


def test_a_limit_blocks_where_the_author_says_so() -> None:
    limits = {"max_llm_calls": 2, "max_total_tokens": 10}
    found = judged(query(cost=limits, fail_on=["max_llm_calls"]), spent())
    assert {one.field[1]: one.status for one in found.cost.messages} == {
        "max_llm_calls": FAIL, "max_total_tokens": WARN
    }  # fmt: skip
    assert found.hard_fail
    unknown = judged(query(cost=limits, fail_on=["max_llm_calls"]), spent(models=None, tokens=1))
    assert (unknown.cost.status, unknown.unresolved, unknown.hard_fail) == (INFRA, True, False)


@given(st.floats(0, 100), st.floats(0, 100), st.floats(0.001, 50))
def test_a_dearer_answer_never_passes_where_a_cheaper_one_does_not(one: float, before: float, most: float) -> None:
    def well(dollars: float) -> bool:
        return cost(spent(dollars), spent(before), max_cost_multiplier=most, max_cost_usd=most).status is PASS

    assert well(one) or not well(one * 2 + 0.01)


def test_small_costs_are_compared_as_they_are_and_not_rounded() -> None:
    """1.86 times, and 3 times where both are rounded to six digits first."""
    before, now = (Trajectory(output="x", usage={"cost_usd": value}) for value in (1.4e-6, 2.6e-6))
    assert cost(now, before, max_cost_multiplier=2.0).status is PASS
    assert cost(now, before, max_cost_multiplier=1.8).status is WARN


def test_a_sum_that_is_below_its_parts_is_not_believed() -> None:
    calls = [{"model": "m", "input_tokens": 60, "output_tokens": 20, "cost_usd": 0.01}] * 2
    for stated in ({"total_tokens": 1, "cost_usd": 0.001}, {"input_tokens": 1, "output_tokens": 1}):
        found = trajectory_of({"output": "x", "usage": stated, "llm_calls": calls})
        assert cost(found, max_total_tokens=159).status is WARN
        assert cost(found, max_total_tokens=160).status is PASS
        assert cost(found, max_cost_usd=0.019).status is WARN
