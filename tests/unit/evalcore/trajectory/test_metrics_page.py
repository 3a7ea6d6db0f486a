"""The reference of metrics has formulas for every path and cost metric (AgentCI Step 0.5); its figures are right."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest
import yaml

from evalcore.trajectory.expected import shortfall, unusable
from evalcore.trajectory.metrics import sequence_edit, sequence_lcs, tool_f1, tool_precision, tool_recall
from evalcore.trajectory.record import trajectory_of
from schemas.expected_calls import ExpectedCalls
from schemas.specs import CostLimits, MatchMode, PathLimits
from tests.root import ROOT

PAGE = (Path(ROOT) / "docs" / "metrics_reference.md").read_text()


# AgentCI Step 0.5 box 5.
@pytest.mark.parametrize("field", [*PathLimits.model_fields, *CostLimits.model_fields, *MatchMode])
def test_the_page_names_every_assertion_of_path_and_cost(field: str) -> None:
    """AgentCI Step 0.5: formulas for every path and cost metric."""
    assert re.search(rf"\b{field}\b", PAGE)


# AgentCI Step 0.5 box 5.
def test_the_example_of_the_page_is_what_the_functions_return() -> None:
    found = re.search(r"\*P\* = `([^`]+)`, \*R\* = `([^`]+)`", PAGE)
    figures = re.search(r"\| (\d\.\d{3}(?: \| \d\.\d{3})+) \|", PAGE)
    assert found is not None
    assert figures is not None
    both = [names.split(", ") for names in found.groups()]
    metrics = (tool_precision, tool_recall, tool_f1, sequence_lcs, sequence_edit)
    assert [f"{metric(*both):.3f}" for metric in metrics] == figures[1].split(" | ")


def test_the_beginning_similarity_tolerates_what_the_page_says() -> None:
    """Thresholds that are recommended (AgentCI Step 2B, tuning)."""
    whole = ["a", "b", "c"]
    told = [f"{sequence_lcs(path, whole):.2f}".rstrip("0") for path in ([*whole, "d"], ["a", "b"], ["a", "b", "d"])]
    assert told == ["0.86", "0.8", "0.67"]
    assert all(f"({one})" in PAGE for one in told)


def test_the_five_runs_of_the_page_are_those_of_the_example() -> None:
    """Natural variance across 5+ runs (AgentCI Step 2B, tuning); times aside, which no test repeats."""
    answer = runpy.run_path(str(ROOT / "examples" / "rag" / "agent.py"))["answer"]
    asked = {"input": "How do I install AgentCI?", "configuration": {"pace": "0"}}
    for found in (trajectory_of(answer(asked)) for _ in range(5)):
        assert found.usage is not None
        assert found.llm_calls is not None
        assert found.tools == ["retriever_tool"]
        assert f"| tokens | {found.usage['total_tokens']:.0f} each |" in PAGE
        assert f"| cost | ${found.usage['cost_usd']:.5f} each |" in PAGE
        assert f"| model calls | {', '.join([str(len(found.llm_calls))] * 5)} |" in PAGE


def test_the_expected_calls_of_the_page_are_valid_and_hold_for_a_run_that_meets_them() -> None:
    text = re.search(r"```yaml\npath:\n(.+?)```", PAGE, re.DOTALL)
    assert text is not None
    found = yaml.safe_load(f"path:\n{text[1]}")["path"]["expected_calls"]
    expected = ExpectedCalls.model_validate(
        {"calls": tuple(one if "tool" in one else {"any_of": tuple(one["any_of"])} for one in found["calls"])}
        | {"order": found["order"]},
        strict=False,
    )
    assert unusable(expected) is None
    made = [
        {"name": "find_order", "arguments": {"order": "A-17", "request_id": 7}},
        {"name": "refund", "arguments": {"payment": "P-9", "reason": "Lost on the way"}},
        {"name": "notify", "arguments": {}},
    ]
    assert shortfall(expected, made) is None
    assert shortfall(expected, made[1:]) is not None
