"""On which traces a judge fires: archetypes, filters and patterns (PC5 §5.2; PF-9 FR-5)."""

from __future__ import annotations

import re
import time

import pytest

from evalcore.lint.patterns import runs_away
from tests.unit.evalcore.lint.lint_cases import MANIFEST, OVERLAY, QUALITY, TRAVEL, Case, check_case, params


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
        {QUALITY: where("matches", "'(a+)+$'")},
        f"{QUALITY}: filter.value",
        {QUALITY: where("matches", "'^v\\d+\\.\\d+$'")},
        ("a repeat within a repeat", "starts_with"),
    ),
    Case("pattern-ends", {OVERLAY: where("matches", "'(shop'")}, f"{OVERLAY}: filter.value"),
]
RUN_AWAY = [
    r"(a+)+$",
    r"(a*)*$",
    r"([a-z]+)*=",
    r"(a|aa)+$",
    r"(a|a?)+$",
    r"(.*)*x",
    r"(?:.*a){20}",
    r"(x+x+)+y",
    r"^(\d+,?)+$",
    r"(\w+)\s\1",
    r".*.*=",
    r"^.*.*.*=",
    r"\s*\s*\s*$x",
    r"foo.*bar.*baz",
    "a?" * 40 + "a" * 40,
    r"^(a?){40}$",
    r"a{0,99}a{0,99}a{0,99}b",
    r"(?i)a*A*b",
    r"(?=(a+))a*b+c",
    r"x{1,5000}",
    r"((((a{1,2}){1,2}){1,2}){1,2}){1,2}",
    "(" * 60 + "a+" + ")+" * 60,
    "a" * 201,
    "(",
    "*",
    r"(?P<x>a)(?P=x)+",
    r"x|(a+)+$",
    r"\b.*.*=",
    r"(?m)^[^x]*[^x]*=",
    r"(?:(a|b)+(a|b)*[ab]+?x)?",
    r"x(?:a*a*a*b)*",
    r".{1,40}.*?=",
    r"[^a]{0,3}.[^a]*[ab][^a]{1,40}.{0,3}x",
    r"(?=(a+)+$)x",
    r"(?!(a+)+$)x",
    r"(?:a|(?:b+)+)c",
    r"^.*.*a*$",
    r"^(?:.*b|c.*.*d.*e)$",
]
FINE = [
    r"^receipts$",
    r"^(receipts|shopping)-",
    r".*receipts.*",
    r"^prompt-.*$",
    r"v\d+\.\d+\.\d+$",
    r"^[a-z]+(-[a-z]+)?$",
    r"\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}",
    r"^\w+@\w+\.com$",
    r"foo.*bar|baz.*qux",
    r"(?i)^dispute\b",
    r"[\w-]{1,63}",
    r"[^=]*=.*",
    r"(ab|cd)?e",
    r"(?:a{99}){99}",
    r"[[a]",
    r"^[^=]*=[^=]*=[^=]*$",
    r"^[^=;]*=[^=;]*;[^=;]*$",
    r"^\S+ \S+ \S+ \S+$",
    r"^\D+\d+\W+\w+$",
    "a" * 200,
]


@pytest.mark.parametrize("case", params(CASES))
def test_a_judge_fires_where_it_is_meant_to(case: Case) -> None:
    check_case(case)


@pytest.mark.parametrize("pattern", RUN_AWAY)
def test_a_pattern_that_could_run_away_is_refused(pattern: str) -> None:
    assert runs_away(pattern)


@pytest.mark.parametrize("pattern", FINE)
def test_a_pattern_that_ends_is_taken(pattern: str) -> None:
    assert runs_away(pattern) is None


@pytest.mark.parametrize("pattern", FINE)
def test_a_pattern_that_is_taken_ends_soon_on_text_made_to_keep_it(pattern: str) -> None:
    """Texts of 2,000 characters that match almost everywhere and nowhere to the end."""
    compiled = re.compile(pattern)
    for part in ("a", "1", "1.", "v1.", "foo", "foobar", "receipts-", " ", "=", "aab"):
        text = (part * 2_000)[:2_000] + "\x00"
        started = time.process_time()
        compiled.search(text)
        assert time.process_time() - started < 5


@pytest.mark.parametrize("pattern", ["a?" * 20 + "b" * 3, "a" * 150, "[a-z]*" * 10])
def test_looking_at_a_pattern_takes_no_time_itself(pattern: str) -> None:
    started = time.process_time()
    runs_away(pattern)
    assert time.process_time() - started < 5
