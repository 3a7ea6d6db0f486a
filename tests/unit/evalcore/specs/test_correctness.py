"""Layer 1 without a model: terms, exact texts, patterns, schemas, similarity (AgentCI 2.0, Step 2)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalcore.specs.correctness import assertions
from evalcore.specs.results import Status
from evalcore.specs.terms import folded, has, similarity
from evalcore.suite.checks import Checked
from schemas.specs import Measure
from tests.unit.evalcore.specs.golden import correctness, query, words

SCHEMA = {"type": "object", "required": ["route"], "properties": {"route": {"type": "string", "pattern": "^[A-Z]"}}}


@pytest.mark.parametrize(
    ("term", "answer", "found"),
    [
        ("pip install", "Run `PIP\n  install agentci`.", True),
        ("agentci", "AgentCI's command", True),
        ("test", "testing", False),
        ("test", "a pytest run, and a test.", True),
        ("C++", "write C++, not C", True),
        ("C++", "C+", False),
        ("--help", "agentci --help", True),
        ("retriever", "retriever_tool", False),
        ("$5", "it costs $50", False),
        ("Straße", "STRASSE", True),
        ("don't", "I don\u2019t know", True),
        ("café", "cafe\u0301s and a cafe\u0301", True),
        ("東京", "明日の東京都の天気", True),
        ("Python", "我用Python写", True),
        ("สวัสดี", "ผมสวัสดีครับ", True),
        ("कर", "करे", False),
        ("कर", "वह कर सकता", True),
        ("install", "in\u00adstall", True),
        ("１２", "12 of them", True),
        ("rain", "no _rain_ today", True),
        ("__init__", "write an __init__.py", True),
        ("istanbul", "İSTANBUL", True),
        ("İstanbul", "istanbul", True),
    ],
)
def test_an_expected_term_is_found_as_a_whole_word_in_any_case(term: str, answer: str, found: bool) -> None:
    layer = correctness(answer, expected_in_answer=[term])
    assert layer.status is (Status.PASS if found else Status.FAIL)
    assert words(layer) == (["All correctness checks passed"] if found else [f"Expected '{term}' not found in answer"])


@pytest.mark.parametrize(
    ("term", "answer", "found"),
    [
        ("listener", "Add two Listeners.", True),
        ("rain", "after training", False),
        ("rain", "rainy days", True),
        ("ALB", "behind an ALB.", True),
        ("ALB", "the stalb", False),
        ("東京", "明日の東京都", True),
        ("forecast", "ｆｏｒｅｃａｓｔ", True),
        ("target group", "Target\tgroups", True),
        ("rain", "much _rain_", True),
        ("rain", "the _rainy_ season", True),
        ("rain", "a brain_rain", False),
        *[("rain", f"ra{sign}in", True) for sign in "\u034f\u061c\u180e\u200e\u202e\ufe0f\U000e0061"],
    ],
)
def test_a_forbidden_term_is_found_from_the_start_of_a_word_on(term: str, answer: str, found: bool) -> None:
    layer = correctness(answer, not_in_answer=[term])
    assert layer.status is (Status.FAIL if found else Status.PASS)
    assert (words(layer) == [f"Forbidden term '{term}' found in answer"]) is found


def test_terms_are_substrings_on_request() -> None:
    assert correctness("after training", not_in_answer=["rain"], substrings=True).status is Status.FAIL
    assert correctness("pytest", expected_in_answer=["test"], substrings=True).status is Status.PASS
    for on_request, status in ((False, Status.FAIL), (True, Status.PASS)):  # Korean: a word with its particle
        assert correctness("한국은 반도다", expected_in_answer=["한국"], substrings=on_request).status is status


# AgentCI Step 2 box 1.
def test_each_check_is_found_alone() -> None:
    layer = correctness("sunny", expected_in_answer=["pip", "sunny"], not_in_answer=["rain"], exact_match="no")
    assert layer.details["expected_in_answer"] == {"checked": ["pip", "sunny"], "all_found": False}
    assert layer.details["not_in_answer"] == {"checked": ["rain"], "none_found": True}, "whatever failed before"
    assert [one.field for one in layer.messages] == [
        ("correctness", "expected_in_answer", 0), ("correctness", "exact_match")
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("wanted", "answer", "status"),
    [
        (" Paris\n", "Paris  ", Status.PASS),
        ("Paris", "paris", Status.FAIL),
        ("", "  ", Status.PASS),
        ("", "something", Status.FAIL),
        ('{"a": 1}', {"a": 1}, Status.PASS),
    ],
)
def test_an_exact_match_is_stripped_and_an_empty_one_is_an_assertion(wanted: str, answer: Any, status: Status) -> None:
    assert correctness(answer, exact_match=wanted).status is status


@pytest.mark.parametrize(
    ("pattern", "answer", "status"),
    [
        (r"\d{3}", "order 123", Status.PASS),
        (r"^\d{3}", "order 123", Status.FAIL),
        ("(?i)ORDER", "an order", Status.PASS),
        ("(a+)+$", "a" * 50_000 + "!", Status.FAIL),
        ("secret", "x" * 2_000_000, Status.INFRA),
    ],
)
def test_a_pattern_is_searched_by_re2_and_what_is_too_long_is_unknown(
    pattern: str, answer: str, status: Status
) -> None:
    layer = correctness(answer, regex_match=pattern)
    assert layer.status is status
    if status is Status.FAIL:
        assert words(layer) == [f"Regex '{pattern}' did not match"]


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ('{"route": "Billing"}', ""),
        ({"route": "Billing"}, ""),
        ('{"route": "billing"}', "does not match"),
        ("{}", "'route' is a required property"),
        ("Billing", "it is no JSON"),
        ('{"route": "billing", "route": "Billing"}', "it is no JSON: a key stands there twice"),
        ('{"route": "Billing", "more": {"a": 9, "a": 1}}', "it is no JSON: a key stands there twice"),
        ("[" * 100_000, "nested too deep"),
    ],
)
def test_an_answer_is_read_as_json_and_fits_the_inline_schema(answer: Any, why: str) -> None:
    layer = correctness(answer, json_schema=SCHEMA)
    assert layer.status is (Status.FAIL if why else Status.PASS)
    assert not why or words(layer)[0].startswith("JSON schema validation failed: ")
    assert why in words(layer)[0]


@pytest.mark.parametrize(
    ("measure", "answer", "least", "status"),
    [
        ("token_f1", "Run pip install agentci", 1.0, Status.PASS),
        ("token_f1", "You run: pip install agentci now please ok", 0.67, Status.FAIL),
        ("token_f1", "You run: pip install agentci now please ok", 0.66, Status.PASS),
        ("token_recall", "You run: pip install agentci now please ok", 1.0, Status.PASS),
        ("token_recall", "Use conda", 0.1, Status.FAIL),
    ],
)
def test_an_answer_comes_near_to_a_text_by_a_declared_local_measure(
    measure: str, answer: str, least: float, status: Status
) -> None:
    to = {"text": "run pip install AgentCI", "measure": measure, "min_similarity": least}
    assert correctness(answer, similar_to=to).status is status


def test_an_empty_list_asserts_nothing() -> None:
    assert correctness("x", expected_in_answer=[], not_in_answer=[]).status is Status.SKIP
    assert correctness("x").status is Status.SKIP


def test_the_checks_are_a_cases_own() -> None:
    own = assertions(
        query(correctness={"expected_in_answer": ["pip"], "not_in_answer": ["rain"], "regex_match": "a"}).correctness
    )
    found = {name: check.check({"output": "a rainy day"}) for name, check in own.items()}
    assert found == {
        "expected_in_answer": Checked(0.0, "Expected 'pip' not found in answer"),
        "not_in_answer": Checked(0.0, "Forbidden term 'rain' found in answer"),
        "regex_match": Checked(1.0),
    }


def test_a_checks_version_is_of_what_it_asserts_alone() -> None:
    one = assertions(query(correctness={"expected_in_answer": ["pip"], "exact_match": "a"}).correctness)
    other = assertions(query(correctness={"expected_in_answer": ["pip"], "exact_match": "b"}).correctness)
    within = assertions(query(correctness={"expected_in_answer": ["pip"], "substrings": True}).correctness)
    assert one["expected_in_answer"].version == other["expected_in_answer"].version
    assert one["exact_match"].version != other["exact_match"].version
    assert one["expected_in_answer"].version != within["expected_in_answer"].version


def test_a_hostile_answer_is_searched_in_one_pass() -> None:
    letters = "a" * 1_000_000
    layer = correctness(f"b{letters}", not_in_answer=["a", "aa", "a" * 9_000], expected_in_answer=["a", "b"])
    assert {one.status for one in layer.messages} == {Status.FAIL}
    assert len(layer.messages) == 2, "none of the forbidden ones begins a word"


@given(st.lists(st.text("abAB", min_size=1, max_size=3), max_size=8), st.text("abAB", min_size=1, max_size=3))
def test_finding_a_word_is_looking_for_it_among_all_words(said: list[str], term: str) -> None:
    text, small = folded(" ".join(said)), [one.lower() for one in said]
    assert has(term, text, whole=True) == (term.lower() in small)
    assert has(term, text, whole=False) == any(one.startswith(term.lower()) for one in small)
    assert has(term, text, whole=True, within=True) == any(term.lower() in one for one in small)


@given(st.text(), st.text())
def test_a_term_that_is_a_whole_word_also_begins_one_and_is_within(term: str, answer: str) -> None:
    text = folded(answer)
    assert not has(term, text, whole=True) or has(term, text, whole=False)
    assert not has(term, text, whole=False) or has(term, text, whole=False, within=True)
    assert has(answer, text, whole=True), "a text has itself"


@given(st.text(), st.text())
def test_similarity_is_a_share_and_a_text_is_most_like_itself(one: str, other: str) -> None:
    for measure in Measure:
        assert 0 <= similarity(measure, one, other) <= 1 == similarity(measure, one, one)
    assert similarity(Measure.TOKEN_F1, one, other) == similarity(Measure.TOKEN_F1, other, one)
