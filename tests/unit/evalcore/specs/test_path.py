"""Layer 2: every figure and match mode of a path (AgentCI 2.0, Step 2: edge cases of every metric)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalcore.specs.layers import judged
from evalcore.specs.results import Status
from evalcore.trajectory.record import Trajectory, trajectory_of
from tests.unit.evalcore.specs.golden import calls, made, path, query, words

PASS, WARN, FAIL, SKIP, INFRA = Status.PASS, Status.WARN, Status.FAIL, Status.SKIP, Status.INFRA


def test_what_is_not_asserted_is_skipped() -> None:
    assert judged(query(), made("a")).path.status is SKIP
    assert path(made("a")).status is SKIP
    assert path(made("a"), forbidden_tools=[], expected_handoffs_available=[]).status is SKIP


@pytest.mark.parametrize(
    ("tools", "most", "status"),
    [((), 0, PASS), (("a",), 0, WARN), (("a", "a"), 2, PASS), (("a", "a", "b"), 2, WARN)],
)
def test_tool_calls_are_counted(tools: tuple[str, ...], most: int, status: Status) -> None:
    layer = path(made(*tools), max_tool_calls=most)
    assert (layer.status, layer.details["tool_calls"]) == (status, {"actual": len(tools), "max": most})
    assert words(layer) == [f"Tool calls: {len(tools)} > max {most}" if status is WARN else "Path OK"]
    assert layer.messages[0].field == (("path", "max_tool_calls") if status is WARN else ())


def test_a_forbidden_tool_fails_the_query() -> None:
    found = judged(query(path={"forbidden_tools": ["web", "tavily", "shell"]}), made("tavily", "a", "web", "web"))
    assert (found.path.status, found.hard_fail) == (FAIL, True)
    assert found.path.details["forbidden_tools"] == {"violations": ["web", "tavily"]}
    assert words(found.path) == ["Forbidden tools used: web, tavily"]
    assert path(made("a"), forbidden_tools=["web"]).status is PASS


def test_a_forbidden_tool_stays_so_under_another_spelling() -> None:
    for spelled in ("Web_Search", "web-search", "WebSearch"):
        assert path(made(spelled), forbidden_tools=["web_search"]).status is FAIL, spelled


def test_a_forbidden_transfer_fails_it_too() -> None:
    assert path(made(handoffs=["Billing"]), forbidden_tools=["transfer_to_billing"]).status is FAIL


# AgentCI Step 2 box 2.
@pytest.mark.parametrize(
    ("tools", "expected", "recall", "precision", "f1"),
    [
        (("a", "b"), ["a", "b"], 1.0, 1.0, 1.0),
        (("a", "a", "a"), ["a", "b"], 0.5, 1.0, 0.667),
        (("a", "b", "c"), ["a"], 1.0, 0.333, 0.5),
        (("c",), ["a", "b"], 0.0, 0.0, 0.0),
        ((), ["a"], 0.0, 0.0, 0.0),
    ],
)
def test_recall_precision_and_f1_are_of_the_sets_of_tools(
    tools: tuple[str, ...], expected: list[str], recall: float, precision: float, f1: float
) -> None:
    layer = path(made(*tools), expected_tools=expected, min_tool_recall=0.0)
    shown = {name: layer.details[name] for name in ("tool_recall", "tool_precision", "tool_f1")}
    assert shown == {"tool_recall": recall, "tool_precision": precision, "tool_f1": f1}


@pytest.mark.parametrize(
    ("tools", "least", "said"),
    [
        (("a", "b"), {"min_tool_recall": 1.0}, "Path OK"),
        (("a",), {"min_tool_recall": 1.0}, "Tool recall: 0.50 < min 1.0"),
        (("a",), {"min_tool_recall": 0.5}, "Path OK"),
        ((), {"min_tool_recall": 0.1}, "Tool recall: 0.00 < min 0.1"),
        (("a", "b", "c"), {"min_tool_precision": 0.7}, "Tool precision: 0.67 < min 0.7"),
        (("a", "c"), {"min_tool_precision": 0.5}, "Path OK"),
        ((), {"min_tool_precision": 0.1}, "Tool precision: 0.00 < min 0.1"),
    ],
)
def test_least_recall_and_precision_hold_also_where_no_tool_is_called(
    tools: tuple[str, ...], least: dict[str, float], said: str
) -> None:
    assert words(path(made(*tools), expected_tools=["a", "b"], **least)) == [said]


def test_without_expected_tools_there_is_no_recall_and_no_precision() -> None:
    layer = path(made("a"), max_tool_calls=3)
    assert not {"tool_recall", "tool_precision", "tool_f1"} & layer.details.keys()
    unknown = path(made("a"), min_tool_recall=0.5, min_tool_precision=0.5)
    assert unknown.status is WARN
    assert words(unknown) == ["no tools are expected: min_tool_recall, min_tool_precision can't be checked"], (
        "one warning a cause"
    )


def test_an_empty_list_of_expected_tools_says_that_none_may_be_called() -> None:
    assert path(made(), expected_tools=[]).status is PASS
    layer = path(made("a", "b", "a"), expected_tools=[])
    assert (layer.status, words(layer)) == (WARN, ["No tool may be called, got a, b"])
    assert "tool_recall" not in layer.details


def test_expected_tools_alone_are_a_subset_by_default() -> None:
    assert path(made("a", "x"), expected_tools=["a"]).status is PASS
    layer = path(made("x"), expected_tools=["a"])
    assert (layer.status, words(layer)) == (WARN, ["Match mode 'subset' failed: not called: a"])
    assert layer.messages[0].field == ("path", "expected_tools")
    assert "match_mode" not in path(made("x"), expected_tools=["a"], min_tool_recall=0.0).details, "a minimum is asked"
    assert "match_mode" not in path(made("x"), expected_tools=["a"], min_tool_precision=0.0).details


def test_nothing_is_matched_that_is_not_asserted() -> None:
    layer = path(made("a"), made("b", "c"), max_tool_calls=3)
    assert (layer.status, "match_mode" in layer.details) == (PASS, False)


# AgentCI Step 2 box 2.
@pytest.mark.parametrize(
    ("mode", "tools", "reference", "matched"),
    [
        ("strict", "ab", "ab", True), ("strict", "ba", "ab", False), ("strict", "", "", True),
        ("strict", "aba", "ab", False),
        ("unordered", "ba", "ab", True), ("unordered", "aba", "ab", False), ("unordered", "a", "ab", False),
        ("subset", "xayb", "ab", True), ("subset", "ab", "aab", False), ("subset", "", "", True),
        ("superset", "a", "ab", True), ("superset", "aa", "ab", False), ("superset", "", "ab", True),
        ("superset", "x", "", False),
    ],
)  # fmt: skip
def test_a_match_mode_compares_with_the_baseline(mode: str, tools: str, reference: str, matched: bool) -> None:
    layer = path(made(*tools), made(*reference), match_mode=mode)
    assert (layer.status is PASS, layer.details["match_mode"]["matched"]) == (matched, matched)
    if not matched:
        assert layer.messages[0].field == ("path", "match_mode")
        assert words(layer)[0].startswith(f"Match mode '{mode}' failed: ")


def test_a_written_mode_without_a_baseline_compares_with_expected_tools() -> None:
    assert path(made("b", "a"), match_mode="strict", expected_tools=["a", "b"]).status is WARN
    assert path(made("b", "a"), match_mode="unordered", expected_tools=["a", "b"]).status is PASS
    lone = path(made("a"), match_mode="strict")
    assert (lone.status, words(lone)) == (WARN, ["there is no baseline: match_mode can't be checked"])


def test_a_baseline_takes_nothing_back_of_what_is_expected() -> None:
    """Else a baseline that called no tool would make `expected_tools` hold of every answer."""
    assert path(made(), made(), expected_tools=["a"]).status is WARN
    assert path(made("a"), made("a", "b"), expected_tools=["a"]).status is WARN, (
        "the baseline's calls are expected, too"
    )
    assert path(made("a", "b"), made("b"), expected_tools=["a"]).status is PASS


# AgentCI Step 2 box 2.
@pytest.mark.parametrize(
    ("tools", "reference", "similarity", "least", "status"),
    [
        ("abc", "abc", 1.0, 1.0, PASS),
        ("abc", "acb", 0.667, 0.7, WARN),
        ("abc", "acb", 0.667, 0.6, PASS),
        ("", "", 1.0, 1.0, PASS),
        ("", "a", 0.0, 0.1, WARN),
        ("a", "", 0.0, 0.0, PASS),
        ("a", "b", 0.0, 0.5, WARN),
    ],
)
def test_sequence_similarity_is_by_the_longest_common_subsequence(
    tools: str, reference: str, similarity: float, least: float, status: Status
) -> None:
    layer = path(made(*tools), made(*reference), min_sequence_similarity=least)
    assert (layer.status, layer.details["sequence_similarity"]) == (status, similarity)
    assert 0 <= layer.details["sequence_edit"] <= 1


@pytest.mark.parametrize(
    ("baseline", "why"),
    [(None, "there is no baseline"), (Trajectory(output="x"), "the baseline has no `tool_calls`")],
)
def test_an_unknown_baseline_warns_once(baseline: Trajectory | None, why: str) -> None:
    layer = path(made("a"), baseline, min_sequence_similarity=0.5, match_mode="subset")
    assert layer.status is WARN
    assert words(layer) == [f"{why}: min_sequence_similarity, match_mode can't be checked"]
    assert "sequence_similarity" not in layer.details


@pytest.mark.parametrize(
    ("tools", "loops"), [("", 0), ("a", 0), ("aa", 1), ("aaa", 2), ("aabb", 2), ("abab", 0), ("aabaa", 2)]
)
def test_loops_are_repeats_of_the_call_before(tools: str, loops: int) -> None:
    layer = path(made(*tools), max_loops=1)
    assert layer.details["loops_detected"] == loops
    assert layer.status is (WARN if loops > 1 else PASS)
    if loops > 1:
        assert words(layer) == [f"Loops detected: {loops} > max 1"]


def test_longer_cycles_and_equal_calls_stand_beside_loops() -> None:
    again = Trajectory(output="x", handoffs=[], tool_calls=[
        {"name": name, "arguments": {"q": 1}} for name in "ababab"
    ])  # fmt: skip
    layer = path(again, max_loops=1)
    assert (layer.status, layer.details["loops_detected"]) == (PASS, 0)
    assert layer.details["cycles"] == [{"tools": ["a", "b"], "repeats": 2}]
    assert layer.details["repeated_calls"] == 4


def test_a_failed_call_and_its_retry_are_two() -> None:
    retried = Trajectory(output="x", tool_calls=[{"name": "a", "error": "timeout"}, {"name": "a", "result": 1}])
    assert path(retried, max_tool_calls=1).status is WARN


@pytest.mark.parametrize(
    ("wanted", "handoffs", "status"),
    [
        ("BillingAgent", ["billing_agent"], PASS),
        ("BillingAgent", ["Triage", "Billing Agent"], PASS),
        ("BillingAgent", [], WARN),
        ("BillingAgent", ["TechnicalAgent"], WARN),
        (["BillingAgent", "SalesAgent"], ["sales-agent"], PASS),
        (["BillingAgent", "SalesAgent"], ["technical"], WARN),
    ],
)
def test_a_handoff_is_to_any_of_the_targets_whatever_their_spelling(
    wanted: Any, handoffs: list[str], status: Status
) -> None:
    layer = path(made(handoffs=handoffs), expected_handoff=wanted)
    assert (layer.status, layer.details["handoffs"]) == (status, {"expected": wanted, "actual": handoffs})


def test_a_missing_handoff_is_named() -> None:
    assert words(path(made(handoffs=["Sales"]), expected_handoff="Billing")) == [
        "Expected handoff to 'Billing', got ['Sales']"
    ]


def test_handoffs_are_counted() -> None:
    assert path(made(handoffs=["a", "b"]), max_handoff_count=2).status is PASS
    assert path(made(), max_handoff_count=0).status is PASS
    layer = path(made(handoffs=["a", "b"]), max_handoff_count=1)
    assert (layer.status, words(layer)) == (WARN, ["Handoffs: 2 > max 1"])


def test_only_available_agents_may_take_over() -> None:
    available = {"expected_handoffs_available": ["BillingAgent", "sales"]}
    assert path(made(handoffs=["billing agent"]), **available).status is PASS
    assert path(made(), **available).status is PASS
    layer = path(made(handoffs=["Sales", "Root"]), **available)
    assert (layer.status, layer.details["handoffs"]["unavailable"]) == (WARN, ["Root"])


def test_a_handoff_is_no_call_of_a_tool() -> None:
    transferred = trajectory_of({"output": "x", "tool_calls": calls("transfer_to_billing", "look_up")})
    layer = path(transferred, max_tool_calls=1, expected_handoff="Billing")
    assert (layer.status, layer.details["tool_calls"]["actual"]) == (PASS, 1)


@pytest.mark.parametrize(
    "stated", [{"max_tool_calls": 0}, {"forbidden_tools": ["a"]}, {"expected_tools": []}, {"max_handoff_count": 0}]
)
def test_an_answer_without_tool_calls_is_unresolved_and_an_empty_list_is_not(stated: dict[str, Any]) -> None:
    found = judged(query(path=stated), trajectory_of({"output": "x"}))
    assert (found.path.status, found.unresolved, found.hard_fail) == (INFRA, True, False)
    assert words(found.path) == [f"the answer has no `tool_calls`: {next(iter(stated))} can't be checked"]
    assert path(trajectory_of({"output": "x", "tool_calls": []}), **stated).status is PASS


def test_unreadable_tool_calls_are_unresolved_with_what_is_wrong() -> None:
    layer = path(trajectory_of({"output": "x", "tool_calls": [{"nome": "a"}]}), max_tool_calls=0)
    assert layer.status is INFRA
    assert words(layer)[0].startswith("tool_calls.0.name: must be a text")


def test_a_path_check_blocks_where_the_author_says_so() -> None:
    limits = {"max_tool_calls": 1, "max_loops": 1}
    own = judged(query(path=limits, fail_on=["max_tool_calls"]), made("a", "a", "a"))
    assert [(one.field[1], one.status) for one in own.path.messages] == [("max_tool_calls", FAIL), ("max_loops", WARN)]
    assert own.hard_fail
    everywhere = judged(query(path=limits), made("a", "b"), {}, None, ["max_tool_calls"])
    assert everywhere.hard_fail
    assert not judged(query(path=limits), made("a", "b")).hard_fail


def test_a_check_that_blocks_and_can_not_be_made_is_unresolved() -> None:
    found = judged(query(path={"min_sequence_similarity": 0.5}, fail_on=["min_sequence_similarity"]), made("a"))
    assert (found.path.status, found.unresolved) == (INFRA, True)


names = st.lists(st.sampled_from("abc"), max_size=6)


@given(names, names)
def test_the_layer_says_what_the_metrics_say(tools: list[str], reference: list[str]) -> None:
    layer = path(made(*tools), made(*reference), min_sequence_similarity=1.0, match_mode="strict")
    assert (layer.status is PASS) == (tools == reference)
    assert layer.details["tool_calls"]["actual"] == len(tools)


@given(names, st.lists(st.sampled_from("abc"), max_size=3), st.integers(0, 6))
def test_more_calls_never_better_a_bound(tools: list[str], more: list[str], most: int) -> None:
    def well(*called: str) -> bool:
        return path(made(*called), max_tool_calls=most, max_loops=1, forbidden_tools=["c"]).status is PASS

    assert well(*tools) or not well(*tools, *more)


WANTED = {"order": "in_order", "calls": [{"tool": "look_up", "arguments": {"subset": {"id": 7}}}, {"tool": "cancel"}]}


@pytest.mark.parametrize(
    ("tool_calls", "status", "said"),
    [
        ([*calls("look_up", arguments={"id": 7, "page": 1}), *calls("cancel")], PASS, "Path OK"),
        ([*calls("cancel"), *calls("look_up", arguments={"id": 7})], WARN, "Expected calls: "),
        ([*calls("look_up", arguments={"id": 8}), *calls("cancel")], WARN, "arguments.id: must be 7, got 8"),
        ([*calls("look_up"), *calls("cancel")], WARN, "expected_calls can't be checked"),
        ([], WARN, "Expected calls: "),
    ],
)
def test_calls_are_expected_with_their_arguments_in_an_order(tool_calls: Any, status: Status, said: str) -> None:
    layer = path(made(tool_calls=tool_calls), expected_calls=WANTED)
    assert (layer.status, layer.details["expected_calls"]["matched"]) == (status, status is PASS)
    assert said in words(layer)[0]


def test_unknown_arguments_of_a_call_that_blocks_are_unresolved() -> None:
    one = query(path={"expected_calls": WANTED}, fail_on=["expected_calls"])
    assert judged(one, made("look_up", "cancel")).path.status is INFRA
    assert judged(one, made()).hard_fail
