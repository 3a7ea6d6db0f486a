"""Step 1's box "`$ref`-style file includes": `!include` takes the place of what it names, with that file's lines."""

from __future__ import annotations

import pytest

from evalcore.specs.merging import DEEPEST
from tests.unit.evalcore.specs.spec_texts import FILE, reading

SPEC = """\
agent: a
defaults:
  correctness: !include shared/correctness.yaml
queries:
- query: one
- query: two
  correctness:
    llm_judge:
    - !include tone.yaml
"""
SHARED = "hallucination_check:\n  rule: grounded\n  threshold: 0.8\n"
FILES = {"shared/correctness.yaml": SHARED, "tone.yaml": "# a comment\nrule: polite\n"}


# AgentCI Step 1 box 2.
def test_what_is_included_stands_in_its_place_and_is_merged_like_the_rest() -> None:
    found = reading(SPEC, FILES)
    assert found.spec is not None, found.findings
    assert found.document is not None
    two = found.spec.queries[1].correctness
    assert two is not None
    assert two.llm_judge is not None
    assert two.hallucination_check is not None
    assert (two.llm_judge[0].rule, two.hallucination_check.rule) == ("polite", "grounded")
    for path, file, line in (
        (("queries", 1, "correctness", "llm_judge", 0, "rule"), "tone.yaml", 2),
        (("queries", 1, "correctness", "hallucination_check", "threshold"), "shared/correctness.yaml", 3),
        (("queries", 1, "correctness"), FILE, 7),
    ):
        assert (found.document.source(path)[0], found.document.at(path)[0]) == (file, line)


def test_an_error_in_an_included_file_is_found_there_once_by_its_own_field() -> None:
    found = reading(SPEC, {**FILES, "shared/correctness.yaml": SHARED.replace("0.8", "8")})
    assert [(one.file, one.line, one.field) for one in found.errors] == [
        ("shared/correctness.yaml", 3, "hallucination_check.threshold")
    ]


@pytest.mark.parametrize(
    ("content", "check"),
    [
        ("rule: [polite", "yaml-syntax"),
        ("", "empty-file"),
        ("rule: &a polite", "yaml-anchor"),
        ("\x00", "unprintable-character"),
    ],
)
def test_an_included_file_is_read_by_the_same_rules(content: str, check: str) -> None:
    found = reading(SPEC, {**FILES, "tone.yaml": content})
    assert found.spec is None
    assert ("tone.yaml", check) in {(one.file, one.check) for one in found.errors}


def test_an_included_text_is_a_text() -> None:
    found = reading("agent: a\nqueries:\n- query: !include question.yaml\n", {"question.yaml": "How?\n"})
    assert found.spec is not None
    assert found.spec.queries[0].query == "How?"


# AgentCI Step 1 box 2.
def test_includes_in_a_circle_are_an_error() -> None:
    files = {"a.yaml": "- !include b.yaml\n", "b.yaml": "- !include a.yaml\n"}
    found = reading("agent: a\nqueries: !include a.yaml\n", files)
    assert [one.message for one in found.errors if one.check == "include"] == [
        "must be a file that can be included, got 'a.yaml': goes in a circle: a.yaml includes b.yaml includes a.yaml"
    ]
    assert reading("agent: a\nqueries: !include agents/agentci_spec.yaml\n", {FILE: "x: !include y\n"}).errors


def test_a_long_chain_of_includes_is_an_error() -> None:
    files = {f"{number}.yaml": f"!include {number + 1}.yaml\n" for number in range(DEEPEST + 1)}
    found = reading("agent: !include 0.yaml\nqueries: [{query: q}]\n", files)
    assert "more than 8 files include one another" in found.errors[0].message


def test_includes_that_multiply_end_before_memory_does() -> None:
    files = {f"{number}.yaml": f"[{', '.join([f'!include {number + 1}.yaml'] * 40)}]\n" for number in range(5)}
    files["5.yaml"] = "[1, 2, 3, 4, 5, 6, 7, 8, 9]\n"
    found = reading("agent: a\nqueries: !include 0.yaml\n", files)
    assert any("values are included" in one.message for one in found.errors)


def test_an_include_under_a_field_that_is_none_is_an_error_at_that_field() -> None:
    found = reading("agent: a\nqueries:\n- query: q\n  corectness: !include tone.yaml\n", FILES)
    assert [(one.file, one.line, one.field) for one in found.errors] == [(FILE, 4, "queries[0].corectness")]


@pytest.mark.parametrize("text", ["!include {a: b}", "!include [a]", "!file tone.yaml", "!!python/object:os.system x"])
def test_other_tags_and_includes_of_no_text_are_errors(text: str) -> None:
    found = reading(f"agent: a\nqueries:\n- query: q\n  correctness: {text}\n", FILES)
    assert "yaml-tag" in {one.check for one in found.errors}


def test_other_files_still_take_no_include() -> None:
    from evalcore.yaml.loader import read_yaml

    assert [one.check for one in read_yaml("suite.yaml", b"suite: !include a.yaml\n")[1]] == ["yaml-tag"]
