"""On which traces a judge fires: archetypes, filters and patterns (PC5 §5.2; PF-9 FR-5)."""

from __future__ import annotations

import time
from types import SimpleNamespace

import pytest
import re2

from evalcore.registry import patterns
from evalcore.registry.patterns import LONGEST_TEXT, STEPS, compiled, contains_match, refusal
from tests.unit.evalcore.lint.lint_cases import MANIFEST, OVERLAY, QUALITY, TRAVEL, Case, check_cases


def where(operator: str, value: str = "", field: str = "sub_agent_id") -> str:
    given = f", value: {value}" if value else ""
    return f"filter: {{field: {field}, operator: '{operator}'{given}}}"


CASES = [
    Case(
        "archetype-exists",
        {QUALITY: "applies_to: [conversations]"},
        f"{QUALITY}: applies_to[0]",
        {QUALITY: "applies_to: [conversation, search]"},
        ("'conversation'",),
    ),
    Case(
        "archetype-exists",
        {MANIFEST: "categories: {general_qa: {archetypes: [chat]}}"},
        f"{MANIFEST}: categories.general_qa.archetypes[0]",
        {MANIFEST: "categories: {general_qa: {archetypes: [search]}}"},
    ),
    Case(
        "archetype-exists",
        {TRAVEL: "{vertical: travel, categories: {general_qa: {}}, archetypes: {booking: [flights]}}"},
        f"{TRAVEL}: archetypes.booking",
        {TRAVEL: "{vertical: travel, categories: {general_qa: {}}, archetypes: {search: [flights]}}"},
    ),
    Case("applies-to-declared", {QUALITY: "applies_to: null"}, f"{QUALITY}: applies_to", {QUALITY: "applies_to: []"}),
    Case(
        "archetype-has-sub-agents",
        {MANIFEST: "archetypes: {booking: []}"},
        f"{MANIFEST}: archetypes.booking",
        {MANIFEST: "archetypes: {booking: [flights]}"},
    ),
    Case(
        "archetype-has-sub-agents",
        {MANIFEST: "archetypes: {booking: [finder]}"},
        f"{MANIFEST}: archetypes.booking[0]",
        says=("search",),
    ),
    Case(
        "filter-meets-archetypes",
        {QUALITY: "applies_to: [search]", OVERLAY: "filter: {value: shop}"},
        f"{OVERLAY}: filter.value",
        {QUALITY: "applies_to: [conversation]", OVERLAY: "filter: {value: shop}"},
        ("search",),
    ),
    Case(
        "filter-meets-archetypes",
        {QUALITY: "{applies_to: [search], " + where("=", "chat") + "}", OVERLAY: "filter: null"},
        f"{QUALITY}: filter.value",
        {QUALITY: "{applies_to: [search], " + where("=", "finder") + "}", OVERLAY: "filter: null"},
    ),
    Case(
        "filter-meets-archetypes",
        {QUALITY: "{applies_to: [search], " + where("=", "chat", "agent_id") + "}", OVERLAY: "filter: null"},
        f"{QUALITY}: filter.value",
        {QUALITY: "{applies_to: [search], " + where("=", "prompter", "agent_id") + "}", OVERLAY: "filter: null"},
    ),
    Case(
        "filter-meets-archetypes",
        {QUALITY: "{applies_to: [search], " + where("=", "shop") + "}", OVERLAY: "filter: null"},
        f"{QUALITY}: filter.value",
        {QUALITY: "{applies_to: [search], " + where("!=", "shop") + "}", OVERLAY: "filter: null"},
    ),
    *(
        Case("filter-value-fits", {QUALITY: where(*wrong)}, f"{QUALITY}: filter.value", {QUALITY: where(*right)})
        for wrong, right in [
            (("is_empty", "x"), ("is_empty",)),
            (("=",), ("=", "x")),
            (("=", "[a]"), ("=", "1")),
            (("!=", "{a: 1}"), ("!=", "true")),
            (("in", "shop"), ("in", "[shop]")),
            (("in", "[]"), ("in", "[1, a]")),
            (("in", "[[a]]"), ("in", "[true]")),
            ((">", "'3'"), (">", "3")),
            ((">=", "true"), (">=", "3.5")),
            (("contains", "3"), ("contains", "'3'")),
            (("matches", "''"), ("matches", "x")),
        ]
    ),
    Case(
        "filter-field-is-known",
        {QUALITY: where("=", "x", "sub_agents")},
        f"{QUALITY}: filter.field",
        {QUALITY: where("=", "x", "vertical")},
    ),
    Case(
        "filter-field-is-known",
        {QUALITY: where("=", "x", "metadata")},
        f"{QUALITY}: filter",
        {QUALITY: "filter: {field: metadata, key: agent_id, operator: '=', value: prompt-suggestions}"},  # PC5's own
    ),
    Case(
        "filter-field-is-known",
        {QUALITY: "filter: {field: metadata, key: agent_idd, operator: '=', value: x}"},
        f"{QUALITY}: filter.key",
        {QUALITY: "filter: {field: metadata, key: loyalty_tier, operator: '=', value: gold}"},  # somebody may add it
        ("'agent_id'",),
    ),
    Case(
        "pattern-ends",
        {QUALITY: where("matches", "'(a+)\\1$'")},
        f"{QUALITY}: filter.value",
        {QUALITY: where("matches", "'^v\\d+\\.\\d+$'")},
        ("invalid escape sequence", "starts_with"),
    ),
    Case("pattern-ends", {OVERLAY: where("matches", "'(shop'")}, f"{OVERLAY}: filter.value"),
]
RUN_AWAY = [
    r"(a+)+$",
    r"(a*)*$",
    r"([a-z]+)*=",
    r"(a|aa)+$",
    r"(.*)*x",
    r"(?:.*a){20}",
    r"(x+x+)+y",
    r".*.*=",
    r"a+b",
    r"a{0,99}a{0,99}a{0,99}b",
    r"(?i)a*A*b",
    r"^.*.*a*$",
    "a?" * 40 + "a" * 40,
]
"""An engine that backtracks takes time with the square of the text, or with a power of two."""
REFUSED = {
    r"(\w+)\s\1": "invalid escape sequence",
    r"(?P<x>a)(?P=x)+": "invalid",
    r"(?=(a+))a*b": "invalid perl operator: (?=",
    r"(?!a)b": "invalid perl operator: (?!",
    r"(?<=a)b": "invalid",
    r"a++": "bad repetition operator",
    r"x{1,5000}": "invalid repetition size",
    "(": "missing )",
    "*": "no argument for repetition operator",
    "a" * 201: "201 characters long; 200",
}


def test_a_judge_fires_where_it_is_meant_to() -> None:
    check_cases(CASES)


@pytest.mark.parametrize("pattern", RUN_AWAY)
def test_a_pattern_runs_in_linear_time_whatever_its_shape(pattern: str) -> None:
    """RE2 takes at most one step for each instruction of its program and each byte of the text."""
    assert refusal(pattern) is None
    program = compiled(pattern)
    assert isinstance(program, re2._Regexp)
    assert program.programsize < 10_000
    contains_match(pattern, "a" * 40_000 + "\0")


LONG_PROGRAMS = {
    r"(?i)(?:[a-z]{1,50}\s?){1,18}!": "a" * 1_000_000,
    r"(((a{30}){30})?)b": "a" * 1_000_000,
    r"[ab]*a[ab]{100}c": "abbabaa" * 143_000,
    r"(?:\pL{1,4}\s)+!": "é" * 500_000,
}
"""Short patterns of thousands of instructions, each of which a byte of the text may take."""


@pytest.mark.parametrize("pattern", LONG_PROGRAMS)
def test_a_pattern_with_a_long_program_does_not_take_long_on_a_megabyte(pattern: str) -> None:
    began = time.process_time()
    assert not contains_match(pattern, LONG_PROGRAMS[pattern])
    assert time.process_time() - began < 5.0


@pytest.mark.parametrize("pattern", [*RUN_AWAY, *LONG_PROGRAMS])
def test_a_search_runs_a_bounded_number_of_steps(pattern: str, monkeypatch: pytest.MonkeyPatch) -> None:
    searched: list[bytes] = []
    size = compiled(pattern).programsize
    program = SimpleNamespace(programsize=size, search=searched.append)
    monkeypatch.setattr(patterns, "compiled", lambda pattern: program)
    for text in ("a" * 2_000_000, "é" * 2_000_000):
        contains_match(pattern, text)
    assert all(len(one) == min(STEPS // size, LONGEST_TEXT) for one in searched)
    assert len(searched) == 2
    assert STEPS // size > 3_000, "what ordinary texts are long"


def test_only_the_first_million_characters_are_searched() -> None:
    assert contains_match("b$", "a" * (LONGEST_TEXT - 1) + "b" + "a")
    assert not contains_match("c", "a" * LONGEST_TEXT + "c")


def test_a_text_that_is_no_utf8_is_searched_too() -> None:
    assert contains_match("^a.b$", "a\ud800b")


@pytest.mark.parametrize("pattern", REFUSED)
def test_what_re2_does_not_take_is_refused_with_its_reason(pattern: str) -> None:
    assert REFUSED[pattern] in (refusal(pattern) or "")


@pytest.mark.parametrize(
    "pattern",
    [r"^receipts$", r"^(receipts|shopping)-", r"v\d+\.\d+\.\d+$", r"(?i)^dispute\b", r"(?:foo|bar)+", r"^\S+ \S+$"],
)
def test_an_ordinary_pattern_is_taken(pattern: str) -> None:
    assert refusal(pattern) is None
