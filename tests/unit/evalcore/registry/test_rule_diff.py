"""A difference is one of values that hold, told by judge, vertical and field."""

from __future__ import annotations

from evalcore.registry.rule_diff import Change, changes
from schemas.judges import Enforcement, Milestone
from tests.unit.evalcore.registry.built_judges import judge


def test_the_same_values_are_no_change_wherever_they_were_written() -> None:
    moved = judge()
    moved = type(moved)(**{**vars(moved), "rule": moved.rule.model_copy(update={"threshold": 4, "floor": 2.0})})
    assert changes([judge()], [moved]) == ()


def test_a_changed_threshold_is_named_by_milestone() -> None:
    after = judge(thresholds=dict.fromkeys(Milestone, 4.0) | {Milestone.PRE_FULL: 4.5})
    assert changes([judge()], [after]) == (Change("response_quality", "receipts", "thresholds.pre_full", 4.0, 4.5),)


def test_enforcement_prompt_and_model_are_told() -> None:
    after = judge(
        prompt="Be kind.",
        model="gpt-5",
        enforcement=dict.fromkeys(Milestone, Enforcement.BLOCK) | {Milestone.PRE_MERGE: Enforcement.WARN},
    )
    found = {(one.field, one.before, one.after) for one in changes([judge()], [after])}
    assert found == {
        ("prompt", "Rate {{ input }}.", "Be kind."),
        ("model", "gpt-5-mini", "gpt-5"),
        ("enforcement.pre_merge", "block", "warn"),
    }


def test_judges_that_came_and_went_are_told_once() -> None:
    assert changes([judge("a")], [judge("b")]) == (
        Change("a", "receipts", "", "a", None),
        Change("b", "receipts", "", None, "b"),
    )


def test_one_verticals_change_is_not_anothers() -> None:
    both = [judge(), judge(vertical="shopping")]
    after = [judge(), judge(vertical="shopping", tolerance=0.1)]
    assert [one.vertical for one in changes(both, after)] == ["shopping"]
