"""Path metrics and match modes are those of their definitions: they equal a slow search on 10,000 random sequences."""

from __future__ import annotations

import inspect
import random
import re
from collections import Counter
from collections.abc import Callable
from functools import cache
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalcore.trajectory.matching import matches
from evalcore.trajectory.metrics import (
    LONGEST_CYCLE,
    Cycle,
    cycles,
    loops,
    repeated_calls,
    sequence_edit,
    sequence_lcs,
    tool_f1,
    tool_precision,
    tool_recall,
)
from schemas.specs import MatchMode

TOOLS = ("a", "b", "search", "look up")
NAMES = st.lists(st.sampled_from(TOOLS), max_size=9)
METRICS = (tool_recall, tool_precision, tool_f1, sequence_lcs, sequence_edit)


def all_modes(actual: list[str], reference: list[str]) -> dict[str, bool]:
    return {mode.value: matches(mode, actual, reference) is None for mode in MatchMode}


def drawn(seed: int, count: int) -> list[tuple[list[str], list[str]]]:
    source = random.Random(seed)

    def names() -> list[str]:
        return source.choices(TOOLS, k=source.randint(0, 7))

    return [(names(), names()) for _ in range(count)]


def searched_lcs(actual: list[str], reference: list[str]) -> int:
    """The longest of all selections of the one that are found in the other."""
    for length in range(min(len(actual), len(reference)), 0, -1):
        inside = set(combinations(reference, length))
        if any(chosen in inside for chosen in combinations(actual, length)):
            return length
    return 0


def searched_edit(actual: list[str], reference: list[str]) -> int:
    @cache
    def distance(done: int, of: int) -> int:
        if done == len(actual):
            return len(reference) - of
        if of == len(reference):
            return len(actual) - done
        changed = distance(done + 1, of + 1) + (actual[done] != reference[of])
        return min(changed, distance(done + 1, of) + 1, distance(done, of + 1) + 1)

    return distance(0, 0)


# AgentCI Step 2 box 4.
def test_metrics_equal_brute_force_on_ten_thousand_random_sequences() -> None:
    """Issue 35, Done when 2."""
    for actual, reference in drawn(35, 10_000):
        both, used, wanted = len({*actual} & {*reference}), len({*actual}), len({*reference})
        if not actual and not reference:
            expected = [1.0] * 5
        elif not actual or not reference:
            expected = [0.0] * 5
        else:
            recall, precision = both / wanted, both / used
            f1 = 2 * precision * recall / (precision + recall) if both else 0.0
            lcs = 2 * searched_lcs(actual, reference) / (len(actual) + len(reference))
            edit = 1 - searched_edit(actual, reference) / max(len(actual), len(reference))
            expected = [recall, precision, f1, lcs, edit]
        assert [metric(actual, reference) for metric in METRICS] == pytest.approx(expected, abs=1e-12), (
            actual,
            reference,
        )


# AgentCI Step 2 box 4.
@pytest.mark.parametrize("metric", METRICS)
def test_each_metric_says_its_formula(metric: Callable[..., float]) -> None:
    said = inspect.getdoc(metric) or ""
    assert re.search(r"\|[EAR]|distance /", said), f"{metric.__name__} gives no formula"


# AgentCI Step 2 box 2.
def test_match_modes_equal_brute_force_on_ten_thousand_random_sequences() -> None:
    """Each call of a multiset is taken out of the other, one by one."""

    def left(of: list[str], by: list[str]) -> list[str]:
        rest = list(of)
        for name in by:
            if name in rest:
                rest.remove(name)
        return rest

    met = Counter[tuple[str, bool]]()
    for actual, reference in drawn(36, 10_000):
        missing, extra = left(reference, actual), left(actual, reference)
        expected = {
            "strict": actual == reference,
            "unordered": not missing and not extra,
            "subset": not missing,
            "superset": not extra,
        }
        assert all_modes(actual, reference) == expected, (actual, reference)
        met.update(expected.items())
    assert (len(met), min(met.values()) > 20) == (8, True), "each mode was seen to match and not to match"


def test_loops_and_cycles_equal_brute_force_on_ten_thousand_random_sequences() -> None:
    for first, second in drawn(37, 10_000):
        names = first + second
        assert loops(names) == sum(names[place] == names[place - 1] for place in range(1, len(names)))
        expected, place = [], 0
        while place < len(names):
            for length in range(2, len(names)):
                block = names[place : place + length]
                count = 0
                while names[place + length * (count + 1) : place + length * (count + 2)] == block and len(block) > 1:
                    count += 1
                if count and len({*block}) > 1:
                    expected.append(Cycle(tuple(block), count))
                    place += length * (count + 1) - 1
                    break
            place += 1
        assert cycles(names) == expected, names


@given(NAMES, NAMES)
def test_metrics_lie_between_none_and_all_and_are_one_for_alike(actual: list[str], reference: list[str]) -> None:
    for metric in METRICS:
        assert 0.0 <= metric(actual, reference) <= 1.0
        assert metric(actual, actual) == 1.0
    assert tool_recall(actual, reference) == tool_precision(reference, actual)
    assert sequence_edit(actual, reference) <= sequence_lcs(actual, reference) + 1e-12


@given(NAMES, NAMES)
def test_strict_implies_unordered_which_is_subset_and_superset(actual: list[str], reference: list[str]) -> None:
    modes = all_modes(actual, reference)
    assert modes["unordered"] == (modes["subset"] and modes["superset"])
    assert modes["unordered"] or not modes["strict"]


@given(NAMES, st.lists(st.sampled_from(TOOLS), max_size=3), st.integers(0, 9))
def test_what_is_called_beside_the_reference_keeps_subset(names: list[str], more: list[str], place: int) -> None:
    assert matches(MatchMode.SUBSET, names[:place] + more + names[place:], names) is None
    assert matches(MatchMode.SUPERSET, names, names[:place] + more + names[place:]) is None


@pytest.mark.parametrize(
    ("mode", "actual", "reference", "why"),
    [
        (MatchMode.STRICT, ["a", "c"], ["a", "b"], "call 2 must be b, got c"),
        (MatchMode.STRICT, ["a"], ["a", "b"], "call 2 must be b, got none"),
        (MatchMode.STRICT, ["a", "b"], ["a"], "call 2 must not be there, got b"),
        (MatchMode.UNORDERED, ["a", "a"], ["b", "a"], "not called: b; called beyond the reference: a"),
        (MatchMode.SUBSET, ["a"], ["a", "a", "a", "b"], "not called: a (2 times), b"),
        (MatchMode.SUPERSET, ["a", "b"], [], "called beyond the reference: a, b"),
        (MatchMode.SUPERSET, list("abcdefg"), [], "called beyond the reference: a, b, c, d, e and 2 more"),
    ],
)
def test_a_mode_says_why_it_does_not_match(mode: MatchMode, actual: list[str], reference: list[str], why: str) -> None:
    assert matches(mode, actual, reference) == why


def test_a_long_cycle_is_found_and_a_longer_one_is_not() -> None:
    block = [f"tool {number}" for number in range(LONGEST_CYCLE)]
    assert cycles(block * 2) == [Cycle(tuple(block), 1)]
    assert cycles([*block, "one more"] * 2) == []
    assert (cycles(["a"] * 9), loops(["a"] * 9)) == ([], 8), "a loop is no cycle"
    assert (cycles(["a", "b"] * 3), loops(["a", "b"] * 3)) == ([Cycle(("a", "b"), 2)], 0)


def call(name: str, arguments: Any, error: str | None = None) -> dict[str, Any]:
    return {"name": name, "arguments": arguments} | ({"error": error} if error else {})


def test_equal_arguments_are_counted_whatever_their_order_and_not_after_a_failure() -> None:
    first, again = call("a", {"x": 1, "y": [2]}), call("a", {"y": [2], "x": 1})
    assert repeated_calls([first, again, call("b", {"x": 1, "y": [2]})]) == 1
    assert repeated_calls([first, call("b", None), again, first]) == 2
    assert repeated_calls([call("a", {}, "timed out"), call("a", {})]) == 0, "a retry of what failed"
    assert repeated_calls([call("a", {}), call("a", {}, "timed out")]) == 1
    assert repeated_calls([first, {"name": "a"}]) is None, "unknown arguments are not other arguments"
    assert repeated_calls([]) == 0


def test_a_path_of_ten_thousand_calls_takes_under_a_second() -> None:
    import time

    names = random.Random(1).choices(TOOLS, k=10_000)
    began = time.process_time()
    cycles(names), sequence_lcs(names, names[::-1]), sequence_edit(names, names[::-1])
    assert time.process_time() - began < 1.5
