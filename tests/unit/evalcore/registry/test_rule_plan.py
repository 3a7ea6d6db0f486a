"""A sync's plan: it changes only what differs, touches nothing that is not ours, and once applied has nothing to do. A
difference is one of values that hold, told by judge, vertical and field."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalcore.registry.opik_rules import (
    METADATA,
    Inexpressible,
    OpikRule,
    Plan,
    TraceFilter,
    desired,
    opik_filter,
    plan,
)
from evalcore.registry.registry import Judge
from evalcore.registry.rule_diff import Change, changes
from schemas.judges import Enforcement, Filter, Milestone
from tests.unit.evalcore.registry.built_judges import judge

PROJECT = "p-1"


def applied(made: Plan, there: list[OpikRule]) -> list[OpikRule]:
    """What Opik holds after a sync, which puts the ids that Opik gave into the rules."""
    changed = {update.rule.id: replace(update.rule, projects=(PROJECT,)) for update in made.update}
    kept = [changed.get(rule.id, rule) for rule in there]
    new = [replace(rule.with_id(f"n-{at}-{len(there)}"), projects=(PROJECT,)) for at, rule in enumerate(made.create)]
    return kept + new


def planned(judges: list[Judge], there: list[OpikRule], live: bool = False) -> Plan:
    return plan(judges, "receipts", live, there, PROJECT)


def test_what_is_not_there_is_created_disabled() -> None:
    (rule,) = planned([judge()], []).create
    assert not rule.enabled
    assert rule.name == "Response Quality"
    assert rule.filters == (TraceFilter("metadata", "=", "sub_agent", "receipts"),)


def test_opik_judges_only_where_it_is_the_verticals_one_live_judge() -> None:
    (rule,) = planned([judge()], [], live=True).create
    assert rule.enabled
    (off,) = planned([judge(enabled=False)], [], live=True).create
    assert not off.enabled


@pytest.mark.parametrize(
    ("model", "temperature"),
    [("gpt-5-mini", 1.0), ("openai/gpt-5", 1.0), ("o3", 1.0), ("o4-mini", 1.0), ("gpt-4o", 0.0), ("our-gpt-5", 0.0)],
)
def test_opik_is_given_the_one_temperature_that_the_model_takes(model: str, temperature: float) -> None:
    """Opik hands a rule's temperature on, and OpenAI's reasoning models refuse all but 1: nothing would be scored."""
    asked = judge(model=model, temperature=0)
    assert desired(asked, "receipts", False).temperature == temperature
    (rule,) = planned([asked], []).create
    assert planned([asked], applied(planned([asked], []), [])).empty, rule


def test_floor_tolerance_classification_and_provenance_survive_and_no_message_shows_them() -> None:
    rule = desired(judge(), "receipts", False)
    kept = rule.metadata
    assert (kept["floor"], kept["tolerance"], kept["classification"]) == (2.0, 0.5, "quality")
    assert (kept["baseline_source"], kept["calibration_ref"]) == ("jade_calibration", "PLT-596")
    assert kept["calibration"] == {"ticket": "PLT-596", "traces": 250}
    assert kept["recalibration_due"] == "2027-01-01"
    assert kept["thresholds"] == {"pre_merge": 4.0, "pre_ramp": 4.0, "pre_full": 4.0}
    text = "".join(content for _, content in rule.messages)
    assert METADATA not in text
    assert "PLT-596" not in text


def test_every_input_of_the_judge_reaches_its_prompt_once() -> None:
    (_, rubric), (_, turn) = desired(judge(), "receipts", False).messages
    assert turn.count("{{output}}") == turn.count("{{input}}") == 1
    assert "{{" not in rubric
    assert "the field `input`" in rubric


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"floor": 3.0}, "floor"),
        ({"tolerance": 0.1}, "tolerance"),
        ({"calibration_ref": "PLT-700"}, "calibration_ref"),
        ({"recalibration_due": date(2027, 5, 1)}, "recalibration_due"),
        ({"filter": None}, "filters"),
        ({"prompt": "Rate {{input}} again."}, "messages"),
        ({"model": "gpt-5"}, "model"),
        ({"sampling_rate": 1.0}, "sampling_rate"),
    ],
)
def test_only_what_differs_is_changed_and_named(change: dict[str, Any], named: str) -> None:
    there = applied(planned([judge(), judge("ux_quality")], []), [])
    made = planned([judge(**change), judge("ux_quality")], there)
    assert not made.create
    assert made.unchanged == ("ux_quality",)
    (update,) = made.update
    assert update.changes == (named,)
    assert update.rule.id == next(rule.id for rule in there if rule.metadata["judge_id"] == "response_quality")


def test_a_rule_switched_on_by_hand_is_switched_off_again() -> None:
    (there,) = applied(planned([judge()], []), [])
    (update,) = planned([judge()], [replace(there, enabled=True)]).update
    assert update.changes == ("enabled",)


def test_what_is_not_ours_is_left_alone_and_said() -> None:
    """PC5 FR-7, §5.6: a project is its vertical's, and so is what lies there and no sync has made."""
    (ours,) = applied(planned([judge()], []), [])
    by_hand = replace(ours, id="h", variables={"input": "input"})
    shared = replace(ours.with_id("s"), projects=(PROJECT, "p-2"))
    other = replace(desired(judge(), "shopping", False), id="o", projects=(PROJECT,))
    second, copy = ours.with_id("z"), replace(ours, id="a")
    (gone,) = applied(planned([judge("gone")], []), [])
    gone = gone.with_id("g")
    made = planned([judge()], [ours, by_hand, shared, other, second, copy, gone])
    assert made.empty
    assert made.unchanged == ("response_quality",)
    assert sorted(left.reason for left in made.left_alone) == [
        "a copy of response_quality's rule that no sync made",
        "a second copy of response_quality; delete it in Opik",
        "belongs to vertical shopping",
        "judge gone is no longer in the registry",
        "not made by a sync",
        "other projects share it",
    ]


@pytest.mark.parametrize("text", ["", "{", "[]", "3", '{"judge_id": 3}', "null"])
def test_metadata_that_is_not_ours_is_none(text: str) -> None:
    assert replace(desired(judge(), "receipts", False), variables={METADATA: text}).metadata == {}


def test_a_filter_that_opik_cannot_express_is_not_dropped() -> None:
    odd = Filter(field="metadata", key="agent_id", operator="matches", value="a.*")
    with pytest.raises(Inexpressible):
        opik_filter(odd)
    made = planned([judge(filter=odd)], [], live=True)
    assert [(rule.enabled, rule.filters) for rule in made.create] == [(False, ())]
    assert "pattern" in made.left_alone[0].reason


def test_filters_are_told_in_opiks_words() -> None:
    shipped = Filter(field="metadata", key="agent_id", operator="=", value="prompt-suggestions")
    assert opik_filter(shipped) == TraceFilter("metadata", "=", "agent_id", "prompt-suggestions")
    assert opik_filter(Filter(field="input", operator="contains", value="x")) == TraceFilter(
        "input", "contains", "", "x"
    )
    assert opik_filter(Filter(field="tier", operator=">=", value=3)) == TraceFilter("metadata", ">=", "tier", "3")


some_judges = st.lists(
    st.builds(
        judge,
        st.sampled_from(["a", "b_c", "d", "e_f"]),
        prompt=st.text(min_size=1, max_size=30),
        floor=st.floats(1, 5),
        tolerance=st.floats(0, 1),
        calibration_ref=st.none() | st.text(min_size=1, max_size=10),
        enabled=st.booleans(),
        filter=st.none() | st.just(Filter(field="tier", operator=">", value=1)),
    ),
    max_size=4,
    unique_by=lambda one: one.id,
)


@given(some_judges, some_judges, st.booleans(), st.booleans())
def test_after_a_plan_was_applied_there_is_nothing_to_do(
    before: list[Judge], after: list[Judge], live: bool, then: bool
) -> None:
    there = applied(planned(before, [], live), [])
    there = applied(planned(after, there, then), there)
    again = planned(after, there, then)
    assert again.empty
    assert again.unchanged == tuple(sorted(one.id for one in after))


def test_a_name_that_opik_numbered_is_not_asked_for_again_and_again() -> None:
    """Opik stores a second "Response Quality" of a project as "Response Quality-1"."""
    by_hand = replace(desired(judge(), "receipts", False), id="a", variables={}, projects=(PROJECT,))
    (ours,) = applied(planned([judge()], [by_hand]), [])
    numbered = replace(ours, name="Response Quality-1")
    assert planned([judge()], [by_hand, numbered]).empty
    (update,) = planned([judge(floor=3.0)], [by_hand, numbered]).update
    assert (update.rule.name, update.changes) == ("Response Quality-1", ("floor",))
    (update,) = planned([judge()], [numbered]).update
    assert update.rule.name == "Response Quality"


def test_a_rate_that_opik_keeps_in_single_precision_is_the_same_rate() -> None:
    (there,) = applied(planned([judge(sampling_rate=0.123456789)], []), [])
    assert planned([judge(sampling_rate=0.123456789)], [replace(there, sampling_rate=0.123457)]).empty
    assert not planned([judge(sampling_rate=0.124)], [replace(there, sampling_rate=0.123457)]).empty


@pytest.mark.parametrize(("operator", "value"), [("in", ["a", "b"]), ("starts_with", "a"), ("ends_with", "a")])
def test_a_filter_that_opik_would_never_find_true_is_not_sent(operator: str, value: Any) -> None:
    with pytest.raises(Inexpressible, match="never fire"):
        opik_filter(Filter(field="tier", operator=operator, value=value))


def test_a_name_longer_than_opik_takes_is_said_and_not_sent() -> None:
    made = planned([judge(name="x" * 151)], [])
    assert made.empty
    assert "151 characters" in made.left_alone[0].reason


def test_a_plan_about_one_judge_says_nothing_of_the_others() -> None:
    there = applied(planned([judge("a"), judge("b")], []), [])
    made = plan([judge("a", floor=3.0), judge("b", floor=3.0)], "receipts", False, there, PROJECT, only={"a"})
    assert [update.rule.metadata["judge_id"] for update in made.update] == ["a"]
    assert made.left_alone == ()
    assert plan([judge("b")], "receipts", False, there, PROJECT, only={"a"}).left_alone[0].reason.startswith("judge a")


def for_some(**changes: Any) -> Judge:
    return replace(judge(**{"filter": None, "applies_to": ["conversation"], **changes}), sub_agents=("chat", "talk"))


def test_a_judge_of_some_sub_agents_is_synced_and_never_enabled_which_is_said() -> None:
    """Opik's rules have no `applies_to`: an enabled copy would fire on every trace of the project."""
    made = planned([for_some()], [], live=True)
    assert [rule.enabled for rule in made.create] == [False]
    (left,) = made.left_alone
    assert left.name == "Response Quality"
    for told in ("conversation", "applies_to", "stays disabled"):
        assert told in left.reason
    assert planned([for_some()], []).left_alone == planned([for_some(enabled=False)], [], live=True).left_alone == ()


def test_a_copy_of_before_that_fires_on_every_trace_is_disabled_once() -> None:
    there = [replace(rule, enabled=True) for rule in applied(planned([judge(filter=None)], []), [])]
    made = planned([for_some()], there, live=True)
    assert [(update.rule.id, update.rule.enabled, update.changes) for update in made.update] == [
        (there[0].id, False, ("enabled",))
    ]
    assert planned([for_some()], applied(made, there), live=True).empty


def test_a_filter_that_names_one_agent_says_what_applies_to_says() -> None:
    one = Filter(field="metadata", key="agent_id", operator="=", value="prompt-suggestions")
    (rule,) = planned([for_some(filter=one)], []).create
    assert rule.filters == (TraceFilter("metadata", "=", "agent_id", "prompt-suggestions"),)
    for other in (
        Filter(field="metadata", key="agent_id", operator="!=", value="x"),
        Filter(field="tier", operator="=", value="gold"),
    ):
        (rule,) = planned([for_some(filter=other)], [], live=True).create
        assert (rule.enabled, len(rule.filters)) == (False, 1)


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
