"""Step 1's box "verify defaults merging, override behavior": only what the author wrote is merged into a query, and
each part keeps its author's file and line."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from evalcore.specs.merging import switched_off, with_defaults
from evalcore.specs.reading import spec_hash
from evalcore.yaml.loader import read_yaml
from evalcore.yaml.source_locations import Document, FieldPath
from tests.unit.evalcore.specs.spec_texts import FILE, of, query, reading, spec

NAMES = st.sampled_from(["a", "b", "c", "json_schema"])
LEAVES = st.one_of(st.none(), st.booleans(), st.integers(0, 9), st.text("xyz", max_size=2), st.lists(st.integers(0, 3)))
TREES = st.recursive(LEAVES, lambda inner: st.dictionaries(NAMES, inner, max_size=3), max_leaves=8)
LAYERED = st.dictionaries(st.sampled_from(["correctness", "path", "cost"]), TREES)


def merged(defaults: dict[str, Any], own: dict[str, Any]) -> Any:
    data = {"defaults": defaults, "queries": [{"query": "q", **own}]}
    return with_defaults(Document(FILE, copy.deepcopy(data))).data["queries"][0]


def leaves(value: Any, path: FieldPath = ()) -> dict[FieldPath, Any]:
    """What has no mapping of fields below it, by path."""
    if isinstance(value, dict) and value and not (path and path[-1] == "json_schema"):
        return {at: one for name, inner in value.items() for at, one in leaves(inner, (*path, name)).items()}
    return {path: value}


# AgentCI Step 1 box 1.
@given(LAYERED, LAYERED)
def test_a_query_has_all_that_it_says_and_of_the_defaults_what_it_says_nothing_of(defaults: Any, own: Any) -> None:
    found, mine, shared = leaves(merged(defaults, own)), leaves(own), leaves(defaults)
    for path, value in mine.items():
        if path and value != {}:  # an empty mapping says nothing of its fields
            assert found[path] == value
    for path, value in shared.items():
        said = [path[:end] in mine and mine[path[:end]] != {} for end in range(1, len(path) + 1)]
        below = any(one[: len(path)] == path for one in mine)
        if path and not any(said) and not below and value != {}:
            assert found[path] == value


# AgentCI Step 1 box 4.
@given(LAYERED, LAYERED)
def test_merging_invents_nothing_and_changes_neither_side(defaults: Any, own: Any) -> None:
    before = copy.deepcopy((defaults, own))
    found = leaves(merged(defaults, own))
    either = {**leaves(defaults), **leaves(own), ("query",): "q"}
    assert all(path in either or value == {} for path, value in found.items())
    assert (defaults, own) == before


@given(LAYERED)
def test_without_defaults_a_query_is_what_is_written_and_without_a_word_it_is_the_defaults(one: Any) -> None:
    assert merged({}, one) == {"query": "q", **one}
    assert merged(one, {}) == {"query": "q", **one}
    assert merged(one, one) == {"query": "q", **one}


@given(LAYERED, LAYERED)
def test_each_part_of_a_merged_query_is_found_at_the_line_where_it_is_written(defaults: Any, own: Any) -> None:
    text = yaml.safe_dump({"defaults": defaults, "queries": [{"query": "q", **own}]}, sort_keys=False)
    document, _ = read_yaml(FILE, text.encode())
    assert document is not None
    made = with_defaults(document)
    for path, value in leaves(made.data["queries"][0]).items():
        if not path or not isinstance(path[-1], str):
            continue
        line = text.splitlines()[made.at(("queries", 0, *path))[0] - 1]
        assert f"{path[-1]}:" in line, (path, value)
        if isinstance(value, (bool, int)):
            assert str(value).lower() in line


# AgentCI Step 1 box 4.
def test_lists_replace_and_the_query_wins() -> None:
    found = of(
        spec(
            query("a", correctness={"not_in_answer": ["b"]}, cost={"max_llm_calls": 2}),
            query("b"),
            defaults={
                "correctness": {"not_in_answer": ["x", "y"]},
                "cost": {"max_llm_calls": 9, "max_total_tokens": 5},
            },
        )
    ).spec
    assert found is not None
    first, second = found.queries
    assert first.correctness is not None
    assert first.correctness.not_in_answer == ("b",)
    assert first.cost is not None
    assert (first.cost.max_llm_calls, first.cost.max_total_tokens) == (2, 5)
    assert second.correctness is not None
    assert second.correctness.not_in_answer == ("x", "y")


def test_a_part_of_a_rubric_is_enough_where_defaults_have_the_rest() -> None:
    """Validation comes after merging: half a rubric in a query, or in defaults, is none before."""
    shared = {"correctness": {"hallucination_check": {"rule": "grounded", "threshold": 0.8}}}
    for defaults, own in (
        (shared, {"correctness": {"hallucination_check": {"threshold": 0.9}}}),
        ({"correctness": {"hallucination_check": {"threshold": 0.9}}},
         {"correctness": {"hallucination_check": {"rule": "grounded"}}}),
    ):  # fmt: skip
        found = of(spec(query(**own), defaults=defaults)).spec
        assert found is not None
        assert found.queries[0].correctness is not None
        check = found.queries[0].correctness.hallucination_check
        assert check is not None
        assert (check.rule, check.threshold) == ("grounded", 0.9)


# AgentCI Step 1 box 1.
def test_a_models_own_default_never_stands_over_the_authors() -> None:
    """The document dumps models before it merges: then a query's own 0.5, never written, hides the 0.8 of defaults."""
    found = of(
        spec(
            query(correctness={"hallucination_check": {"rule": "mine"}}, path={"max_tool_calls": 1}),
            defaults={
                "correctness": {"hallucination_check": {"rule": "theirs", "threshold": 0.8}},
                "path": {"match_mode": "strict"},
            },
        )
    ).spec
    assert found is not None
    one = found.queries[0]
    assert one.correctness is not None
    assert one.correctness.hallucination_check is not None
    assert (one.correctness.hallucination_check.rule, one.correctness.hallucination_check.threshold) == ("mine", 0.8)
    assert one.path is not None
    assert one.path.match_mode == "strict"


def test_a_json_schema_is_one_value_and_replaced_whole() -> None:
    own = {"correctness": {"json_schema": {"type": "array"}}}
    found = merged({"correctness": {"json_schema": {"type": "object", "required": ["a"]}}}, own)
    assert found["correctness"]["json_schema"] == {"type": "array"}


TEXT = """\
agent: a
defaults:
  correctness:
    not_in_answer: [x]
    hallucination_check: {rule: grounded}
  cost: {max_llm_calls: 2}
queries:
- query: one
  correctness: {hallucination_check: ~, not_in_answer: []}
  cost: null
- query: two
"""


def test_an_explicit_null_switches_a_check_off_and_is_listed() -> None:
    found = reading(TEXT)
    assert found.spec is not None
    one, two = found.spec.queries
    assert one.correctness is not None
    assert one.correctness.hallucination_check is None
    assert one.correctness.not_in_answer == ()
    assert one.cost is None
    assert two.cost is not None
    assert found.off == {str(one.id): (("correctness", "hallucination_check"), ("cost",))}
    assert [(find.check, find.line) for find in found.warnings] == [("asserts-nothing", 8)]


def test_a_null_in_a_schema_is_a_part_of_the_schema() -> None:
    assert switched_off({"correctness": {"json_schema": {"const": None}, "regex_match": None}}) == [
        ("correctness", "regex_match")
    ]


@pytest.mark.parametrize("text", ["tags:", "description: ~", "baseline: null", "id: ~", "fail_on:"])
def test_a_null_elsewhere_is_still_an_error(text: str) -> None:
    """The loader's rule for all other files: who wants no value leaves the field out."""
    found = reading(f"agent: a\nqueries:\n- query: q\n  {text}\n")
    assert [(one.check, one.line) for one in found.errors] == [("empty-value", 4)]


@pytest.mark.parametrize(
    ("own", "warns"),
    [
        ({}, True),
        ({"correctness": {}}, True),
        ({"correctness": {"expected_in_answer": []}}, True),
        ({"correctness": {"not_in_answer": []}}, True),
        ({"correctness": {"substrings": True}}, True),
        ({"path": {"forbidden_tools": []}}, True),
        ({"path": {"match_mode": "strict"}}, False),  # of the baseline
        ({"correctness": {"exact_match": ""}}, False),
        ({"path": {"expected_tools": []}}, False),
        ({"path": {"max_tool_calls": 0}}, False),
        ({"cost": {"max_cost_usd": 0}}, False),
    ],
)
def test_a_query_that_asserts_nothing_warns(own: dict[str, Any], warns: bool) -> None:
    found = of(spec(query(**own)))
    assert found.spec is not None
    assert [one.check for one in found.warnings] == (["asserts-nothing"] if warns else [])


@pytest.mark.parametrize(
    ("own", "field"),
    [
        ({"correctness": {"safety_check": {"rule": "r", "threshold": 0.2}}}, "correctness.safety_check.threshold"),
        ({"correctness": {"llm_judge": [{"rule": "r", "threshold": 0}]}}, "correctness.llm_judge[0].threshold"),
        (
            {"correctness": {"llm_judge": [{"rule": "r", "scale": ["no", "yes"], "threshold": 0.5}]}},
            "correctness.llm_judge[0].threshold",
        ),
        ({"path": {"expected_tools": ["a"], "min_tool_recall": 0}}, "path.min_tool_recall"),
        ({"path": {"min_sequence_similarity": 0.0}}, "path.min_sequence_similarity"),
    ],
)
def test_a_threshold_that_cannot_fail_warns(own: dict[str, Any], field: str) -> None:
    found = of(spec(query(**own)))
    assert [(one.check, one.field) for one in found.warnings] == [("cannot-fail", f"queries[0].{field}")]


def test_a_threshold_that_some_score_misses_does_not_warn() -> None:
    rubrics = [{"rule": "r", "threshold": 0.21}, {"rule": "s", "scale": ["1: a", "3: b"], "threshold": 0.4}]
    assert not of(spec(query(correctness={"llm_judge": rubrics}))).findings


def test_a_model_named_twice_in_an_ensemble_warns_at_its_second_name() -> None:
    config = {"ensemble": {"models": ["claude", "gpt-4o-mini", "gpt-4o-mini"]}}
    found = of(spec(query(cost={"max_llm_calls": 1}), judge_config=config))
    assert found.spec is not None
    assert [(one.check, one.field) for one in found.warnings] == [("model-twice", "judge_config.ensemble.models[2]")]


def test_a_warning_about_defaults_is_given_once_for_all_queries() -> None:
    defaults = {"correctness": {"safety_check": {"rule": "r", "threshold": 0.1}}}
    found = of(spec(query("a"), query("b"), query("c"), defaults=defaults))
    assert [one.field for one in found.warnings] == ["defaults.correctness.safety_check.threshold"]


def test_a_query_is_named_by_its_text_unless_it_has_an_id() -> None:
    one, two = of(spec(query("a"), query("a", id="second"))).spec.queries  # type: ignore[union-attr]
    again = of(spec(query("b"), query("a"))).spec.queries[1]  # type: ignore[union-attr]
    assert one.id == again.id != two.id == "second"


def test_the_hash_is_of_what_is_asserted_and_not_of_how_it_is_written() -> None:
    limits = {"path": {"max_tool_calls": 1}}
    one, other, third = (
        of(spec(query("a", **limits))).spec,
        of(spec(query("a"), defaults=limits, version=1)).spec,
        of(spec(query("a", path={"max_tool_calls": 2}))).spec,
    )
    assert one
    assert other
    assert third
    assert spec_hash(one) == spec_hash(other) != spec_hash(third)
    assert spec_hash(one).startswith("sha256:")
