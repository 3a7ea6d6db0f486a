"""Which traces a judge scores: filter, sub-agents, sampling rate (PC5 §5.2, FR-11; PF-9 FR-5)."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from agents.gates.ports import AskingGate, Item
from agents.gates.scoring import JudgeScoring
from evalcore.registry.disk import read_tree
from evalcore.registry.registry import Judge, Registry, build
from evalcore.scoring.answers import Unscored
from evalcore.scoring.applicability import matches, scores
from evalcore.scoring.assignments import NO_MODEL, assign
from evalcore.validation import checked
from schemas.judges import Filter, Milestone
from tests.memory_ports import ManualClock, MemoryScoreEvents

TRACE: dict[str, Any] = {
    "input": {"messages": [{"content": "hello receipts"}]},
    "output": "done",
    "metadata": {
        "sub_agent": "receipts",
        "category": "receipt_scan",
        "retries": 3,
        "tags": ["a", "b"],
        "empty": "",
        "ok": True,
    },
}


@cache
def registry() -> Registry:
    files, _ = checked(read_tree(Path("configs")), date(2026, 11, 21))
    return build(files)


def judge(**changes: Any) -> Judge:
    found = registry().judge("ux_quality")
    rule = found.rule.model_copy(update={name: changes.pop(name) for name in ("sampling_rate",) if name in changes})
    return replace(found, rule=rule, **changes)


@pytest.mark.parametrize(
    ("field", "key", "operator", "value", "holds"),
    [
        ("sub_agent_id", None, "=", "receipts", True),
        ("sub_agent_id", None, "equals", "other", False),
        ("metadata", "sub_agent_id", "=", "receipts", True),
        ("metadata", "category", "!=", "receipt_scan", False),
        ("category", None, "!=", "other", True),
        ("nowhere", None, "!=", "x", True),
        ("nowhere", None, "=", "x", False),
        ("input", "messages[-1].content", "contains", "receipts", True),
        ("input", "messages[4].content", "contains", "receipts", False),
        ("input", "messages[4].content", "is_empty", None, True),
        ("metadata", "tags", "contains", "b", True),
        ("metadata", "tags", "not_contains", "c", True),
        ("output", None, "starts_with", "do", True),
        ("output", None, "ends_with", "ne", True),
        ("metadata", "retries", ">", 2, True),
        ("metadata", "retries", ">=", "3", True),
        ("metadata", "retries", "<", 3, False),
        ("metadata", "category", "<", 3, False),
        ("metadata", "retries", "=", "3", True),
        ("metadata", "ok", "=", True, True),
        ("metadata", "ok", "=", "true", True),
        ("category", None, "in", ["a", "receipt_scan"], True),
        ("category", None, "in", ["a"], False),
        ("category", None, "matches", "^receipt_", True),
        ("metadata", "empty", "is_empty", None, True),
        ("category", None, "is_not_empty", None, True),
    ],
)
def test_a_filter_compares_as_its_operator_says(
    field: str, key: str | None, operator: str, value: Any, holds: bool
) -> None:
    wanted = Filter.model_validate({"field": field, "key": key, "operator": operator, "value": value})
    assert matches(wanted, TRACE) is holds


def test_pc5_fr11_a_sampling_rate_selects_by_the_traces_share() -> None:
    half = judge(sampling_rate=0.5)
    assert scores(half, TRACE, 0.49)
    assert not scores(half, TRACE, 0.5)
    assert not scores(judge(sampling_rate=0.0), TRACE, 0.0)


def test_pf9_fr5_a_judge_scores_its_sub_agents_only() -> None:
    assert scores(judge(sub_agents=("receipts",)), TRACE, 0.0)
    assert not scores(judge(sub_agents=("search",)), TRACE, 0.0)


def test_a_safety_judge_scores_everything() -> None:
    safety = registry().judge("jailbreaking")
    rule = safety.rule.model_copy(update={"sampling_rate": 0.0})
    assert scores(replace(safety, rule=rule, sub_agents=("search",)), TRACE, 0.99)


def test_a_vertical_filter_is_the_verticals() -> None:
    own = registry().judge("ux_quality", "receipts")
    other = {**TRACE, "metadata": {"sub_agent": "search"}}
    assert (scores(own, TRACE, 0.0), scores(own, other, 0.0)) == (True, False)


async def test_without_a_model_every_answer_is_missing_and_says_what_to_set() -> None:
    items = [Item(str(n), "online", TRACE) for n in range(3)]
    asking, events = AskingGate("r", Milestone.PRE_RAMP, "a", "v"), MemoryScoreEvents()
    found = await JudgeScoring(None, events, ManualClock()).score(asking, [registry().judge("ux_quality")], items)
    assert found == {"ux_quality": [Unscored(NO_MODEL)] * 3}
    assert "RAMPGATE_MODEL_URL" in NO_MODEL
    assert [event.get("unscored") for event in events.events] == [True] * 3


def test_an_item_of_a_dataset_is_scored_whatever_the_rate() -> None:
    assert len(assign([judge(sampling_rate=0.01)], [Item("1", "offline", TRACE)])) == 1
