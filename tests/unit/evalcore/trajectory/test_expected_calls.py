"""Expected calls are found among those made: arguments, alternatives, order (`path.expected_calls`)."""

from __future__ import annotations

import json
from itertools import combinations, permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from evalcore.trajectory.expected import Shortfall, shortfall, unusable
from schemas.expected_calls import ExpectedCalls


def calls(*made: Any) -> list[dict[str, Any]]:
    return [one if isinstance(one, dict) else {"name": one[0], "arguments": one[1]} for one in made]


def expected(*wanted: Any, order: str = "any") -> ExpectedCalls:
    return ExpectedCalls.model_validate_json(
        json.dumps({"order": order, "calls": [{"tool": one} if isinstance(one, str) else one for one in wanted]})
    )


def why(wanted: ExpectedCalls, *made: Any) -> list[str]:
    found = shortfall(wanted, calls(*made))
    return list(found.reasons) if found is not None else []


REFUND = ("refund", {"order": "A-1", "reason": "Broken", "request": 7, "items": [{"sku": "x", "n": 1}]})


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"exact": dict(REFUND[1])}, ""),
        ({"exact": {"order": "A-1"}}, "arguments.items: must not be there"),
        ({"exact": {**REFUND[1], "more": 1}}, "arguments.more: must be 1, got nothing"),
        ({"exact": {k: v for k, v in REFUND[1].items() if k != "request"}, "ignored": ["request"]}, ""),
        ({"exact": {**REFUND[1], "request": 7.0}}, ""),
        ({"exact": {**REFUND[1], "request": True}}, "arguments.request: must be true, got 7"),
        ({"subset": {"order": "A-1"}}, ""),
        ({"subset": {"order": "A-2"}}, 'arguments.order: must be "A-2", got "A-1"'),
        ({"subset": {"items": [{"sku": "x"}]}}, "arguments.items: must be"),
        ({"regex": {"reason": "(?i)^broken$"}}, ""),
        ({"regex": {"reason": "late"}}, "arguments.reason: must match late, got 'Broken'"),
        ({"regex": {"request": "^7$"}}, ""),
        ({"regex": {"other": "."}}, "arguments.other: must be there, got nothing"),
        ({"json_schema": {"required": ["order"], "properties": {"request": {"type": "integer"}}}}, ""),
        ({"json_schema": {"properties": {"request": {"type": "string"}}}}, "arguments: $.request: 7 is not of type"),
        ({"json_schema": {"additionalProperties": False}, "ignored": list(REFUND[1])}, ""),
        ({"subset": {"order": "A-1"}, "regex": {"reason": "late"}}, "arguments.reason: must match late"),
    ],
)
def test_arguments_are_compared_as_the_rule_says(arguments: dict[str, Any], reason: str) -> None:
    found = why(expected({"tool": "refund", "arguments": arguments}), REFUND)
    assert len(found) == bool(reason)
    assert all(reason in one for one in found), found


def test_a_subset_reaches_into_objects() -> None:
    wanted = expected({"tool": "a", "arguments": {"subset": {"where": {"city": "Rome"}}}})
    assert why(wanted, ("a", {"where": {"city": "Rome", "zip": 1}, "n": 2})) == []
    assert "arguments.where.city" in why(wanted, ("a", {"where": {"city": "Oslo"}}))[0]


def test_an_alternative_may_be_called_instead_and_says_why_neither_was() -> None:
    wanted = expected({"any_of": [{"tool": "a", "arguments": {"exact": {"x": 1}}}, {"tool": "b"}]})
    assert why(wanted, ("b", {})) == []
    assert why(wanted, ("a", {"x": 1})) == []
    assert why(wanted, ("c", {})) == ["expected call 1, a or b: not called"]
    assert "must be 1, got 2; must call b" in why(wanted, ("a", {"x": 2}))[0]


def test_orders_differ_in_what_may_lie_between() -> None:
    made = [("c", {}), ("a", {}), ("c", {}), ("b", {})]
    assert why(expected("b", "a"), *made) == []
    assert why(expected("a", "b", order="in_order"), *made) == []
    assert why(expected("b", "a", order="in_order"), *made) == ["expected call 2, a: call 2, a({}): not in this order"]
    assert why(expected("c", "a", "c", "b", order="strict"), *made) == []
    assert why(expected("a", "b", order="strict"), *made) == [
        "expected call 1, a: call 1, c({}): must call a",
        "expected call 2, b: call 2, a({}): must call b",
        "call 3 must not be there, got c({})",
    ]
    assert why(expected("c", "a", "c", "b", "d", order="strict"), *made) == ["expected call 5, d: there is no call 5"]


def test_what_must_come_before_has_to_succeed_before() -> None:
    wanted = expected({"tool": "refund", "after": ["verify"]})
    failed = {"name": "verify", "arguments": {}, "error": "timed out"}
    assert why(wanted, ("verify", {}), REFUND) == []
    assert why(wanted, REFUND, ("verify", {})) == [
        f"expected call 1, refund: call 1, {_said()}: must come after verify"
    ]
    assert why(wanted, failed, REFUND) != []
    assert why(wanted, failed, ("verify", {}), REFUND) == []


def _said() -> str:
    return f"refund({json.dumps(REFUND[1])})"


def test_two_alike_ask_for_two_calls_and_a_failed_one_was_made() -> None:
    assert why(expected("a", "a"), ("a", {})) == ["expected call 2, a: not called another time"]
    assert why(expected("a", "a"), {"name": "a", "error": "x"}, ("a", {})) == []


def test_arguments_that_the_trace_lacks_are_unknown_and_no_match() -> None:
    wanted = expected({"tool": "a", "arguments": {"subset": {"x": 1}}})
    found = shortfall(wanted, [{"name": "a"}])
    assert found == Shortfall(("expected call 1, a: call 1, a: its arguments are not in the trace",), unknown=True)
    assert shortfall(wanted, [{"name": "b"}]) == Shortfall(("expected call 1, a: not called",), unknown=False)
    other = shortfall(expected("b", {"tool": "a", "arguments": {"subset": {"x": 1}}}), [{"name": "a"}])
    assert other is not None
    assert not other.unknown, "no arguments could help the other call"
    assert why(expected("a"), {"name": "a"}) == [], "where no arguments are asked for, none are needed"


@pytest.mark.parametrize("given", ["{broken", ["a"], None, 7])
def test_arguments_that_are_no_object_fit_no_rule(given: Any) -> None:
    assert "must be an object" in why(expected({"tool": "a", "arguments": {"subset": {}}}), ("a", given))[0]


TOOL, VALUE = st.sampled_from("ab"), st.integers(0, 2)
RULE = st.tuples(st.sets(TOOL, min_size=1), st.sets(VALUE, min_size=1))
MADE = st.lists(st.tuples(TOOL, VALUE), max_size=5)


@given(st.lists(RULE, min_size=1, max_size=4), MADE, st.sampled_from(["any", "in_order", "strict"]))
def test_calls_are_assigned_as_a_search_of_all_assignments_does(
    rules: list[tuple[set[str], set[int]]], made: list[tuple[str, int]], order: str
) -> None:
    """A greedy choice would give the one call that fits both to the wrong one."""

    def one(tool: str, values: set[int]) -> dict[str, Any]:
        return {"tool": tool, "arguments": {"json_schema": {"properties": {"x": {"enum": sorted(values)}}}}}

    wanted = [[one(tool, values) for tool in sorted(tools)] for tools, values in rules]
    spec = expected(*(each[0] if len(each) == 1 else {"any_of": each} for each in wanted), order=order)

    def fits(chosen: tuple[int, ...]) -> bool:
        return all(
            made[at][0] in tools and made[at][1] in values for at, (tools, values) in zip(chosen, rules, strict=True)
        )

    count = len(rules)
    if order == "any":
        possible = any(fits(chosen) for chosen in permutations(range(len(made)), count))
    elif order == "in_order":
        possible = any(fits(chosen) for chosen in combinations(range(len(made)), count))
    else:
        possible = len(made) == count and fits(tuple(range(count)))
    assert (shortfall(spec, calls(*((tool, {"x": value}) for tool, value in made))) is None) is possible


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"exact": {}, "subset": {}}, "exact or subset"),
        ({"ignored": ["x"]}, "ignored"),
        ({"exactly": {}}, "exactly"),
        ({"regex": {"x": ""}}, "regex"),
    ],
)
def test_a_rule_that_asks_for_nothing_or_two_things_is_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        expected({"tool": "a", "arguments": arguments})


def test_a_pattern_or_a_schema_that_can_not_be_used_is_named_before_anything_runs() -> None:
    assert unusable(expected("a", {"tool": "a", "arguments": {"regex": {"x": "^ok"}}})) is None
    named = unusable(expected("a", {"tool": "a", "arguments": {"regex": {"x": "(a"}}}))
    assert named is not None
    assert named.startswith("calls.1.arguments.regex.x: ")
    wrong = unusable(expected({"any_of": [{"tool": "a", "arguments": {"json_schema": {"type": 3}}}, {"tool": "b"}]}))
    assert wrong is not None
    assert wrong.startswith("calls.0.arguments.json_schema: ")


def test_a_pattern_that_would_backtrack_for_ever_is_searched_at_once() -> None:
    import time

    began = time.process_time()
    why(expected({"tool": "a", "arguments": {"regex": {"x": "^(a+)+$"}}}), ("a", {"x": "a" * 50_000 + "b"}))
    assert time.process_time() - began < 1
