"""Two versions of an agent's answers are compared in three tiers (AgentCI Step 4)."""

from __future__ import annotations

from typing import Any

import pytest

from evalcore.trajectory.record import Trajectory, trajectory_of
from rampgate.spec.comparison import DiffType, QueryDiff, Side, query_diff
from rampgate.spec.diff import boxed

BROKEN = ["retriever_tool", "rewrite_question", *["retriever_tool", "retriever_tool", "rewrite_question"] * 3]


def answer(
    *tools: str, output: str = "no", tokens: float = 180, cost: float | None = 0.0001, calls: int = 1, ms: float = 1100,
    handoffs: tuple[str, ...] = (),
) -> Trajectory:  # fmt: skip
    usage = {"total_tokens": tokens} | ({"cost_usd": cost} if cost is not None else {})
    told: dict[str, Any] = {
        "output": output, "tool_calls": [{"name": name} for name in tools], "llm_calls": [{"model": "m"}] * calls,
        "handoffs": [*handoffs], "usage": usage,
    }  # fmt: skip
    return trajectory_of(told, ms)


def compared(
    *first: Trajectory, then: Trajectory, verdicts: tuple[str, str] = ("pass", "pass"), **how: Any
) -> QueryDiff:
    before, after = Side(verdicts[0], first), Side(verdicts[1], [then])
    return query_diff("weather", "weather?", before, after, how.get("expected"), how.get("reference"))


def texts(found: QueryDiff) -> dict[str, str]:
    return {one.words: one.text() for one in (*found.path.values(), *found.cost.values())}


# AgentCI Step 4 box 1.
def test_the_documents_figures() -> None:
    """AgentCI Step 4: what is printed of the broken and of the fixed agent."""
    broken = answer(*BROKEN, tokens=4200, cost=0.0080, calls=11, ms=8200)
    found = compared(broken, then=answer())
    assert texts(found) == {
        "Tool calls": "11 → 0  (▼ 100%)",
        "Sequence LCS": "0.00 → 1.00  (▲)",
        "Loops detected": "3 → 0  (▼ 100%)",
        "Total cost": "$0.0080 → $0.0001  (▼ 98.8%)",
        "Total tokens": "4,200 → 180  (▼ 95.7%)",
        "LLM calls": "11 → 1  (▼ 90.9%)",
        "Latency": "8,200ms → 1,100ms  (▼ 86.6%)",
    }
    assert found.types == [DiffType.TOOLS_CHANGED, DiffType.COST_CHANGED]
    assert not found.regressed
    assert found.told()["correctness"] == {"before": "pass", "after": "pass", "changed": False}


def test_recall_and_precision_need_expected_tools() -> None:
    """Without them the document's 0.09 and 1.00 don't exist."""
    some = answer("search", "search", "guess")
    assert "Tool recall" not in texts(compared(some, then=some))
    found = texts(compared(some, then=answer("search"), expected=["search", "read"]))
    assert found["Tool precision"] == "0.50 → 1.00  (▲)"
    assert found["Tool recall"] == "0.50 → 0.50  (unchanged)"


def test_sequences_are_compared_with_the_pinned_baseline() -> None:
    pinned = answer("a", "b")
    found = compared(answer("a", "b"), then=answer("b"), reference=pinned)
    assert texts(found)["Sequence LCS"] == "1.00 → 0.67  (▼)"


# AgentCI Step 4 box 3.
@pytest.mark.parametrize(
    ("then", "kind"),
    [
        (answer("b"), DiffType.TOOLS_CHANGED),
        (answer("a", tokens=181), DiffType.COST_CHANGED),
        (answer("a", output="yes"), DiffType.OUTPUT_CHANGED),
        (answer("a", handoffs=("BillingAgent",)), DiffType.ROUTING_CHANGED),
    ],
)
def test_each_type_of_difference(then: Trajectory, kind: DiffType) -> None:
    """The four DiffTypes of the document; nothing else differs."""
    assert compared(answer("a"), then=then).types == [kind]
    assert compared(then, then=then).types == []


def test_latency_alone_is_no_change() -> None:
    assert compared(answer(ms=1100), then=answer(ms=1250)).types == []


# AgentCI Step 4 box 1.
def test_what_the_baselines_own_repeats_span_is_noise() -> None:
    """The tools of the second version, and its tokens, are those of a repeat of the first."""
    first = [answer("a", tokens=100), answer("a", "b", tokens=140)]
    found = compared(*first, then=answer("a", tokens=130))
    assert found.types == []
    assert found.cost["total_tokens"].noise
    assert "within the baseline's own spread" in found.cost["total_tokens"].text()
    beyond = compared(*first, then=answer("a", tokens=141))
    assert beyond.types == [DiffType.COST_CHANGED]
    assert beyond.cost["total_tokens"].worse


# AgentCI Step 4 box 3.
def test_what_is_unknown_is_neither_zero_nor_a_change() -> None:
    found = compared(answer(cost=None), then=answer())
    assert texts(found)["Total cost"] == "unknown → $0.0001"
    assert found.types == []
    assert found.told()["cost"]["cost_usd"] == {"before": None, "after": 0.0001, "change": None, "noise": False}
    blind = compared(Trajectory(output="no"), then=answer("a"))
    assert texts(blind)["Tool calls"] == "unknown → 1"
    assert DiffType.TOOLS_CHANGED not in blind.types


def test_a_rise_from_zero_has_no_percentage() -> None:
    assert texts(compared(answer(), then=answer("a")))["Tool calls"] == "0 → 1  (▲)"


@pytest.mark.parametrize(
    ("verdicts", "regressed", "shown"),
    [
        (("pass", "fail"), True, ("pass", "fail")),
        (("fail", "pass"), False, ("fail", "pass")),
        (("infra", "fail"), False, ("unknown", "fail")),
        (("pass", "infra"), False, ("pass", "unknown")),
    ],
)
def test_verdicts_are_those_that_were_kept(verdicts: tuple[str, str], regressed: bool, shown: tuple[str, str]) -> None:
    found = compared(answer(), then=answer(), verdicts=verdicts)
    assert (found.regressed, found.verdicts, found.types) == (regressed, shown, [DiffType.OUTPUT_CHANGED])


def test_a_box_is_as_wide_as_a_terminal_shows_it() -> None:
    from rich.cells import cell_len

    lines = list(boxed("a title", ["✅ Correctness: Unchanged (PASS → PASS)", "📈 Path:", "質" * 80]))
    assert {cell_len(line) for line in lines} == {64}
