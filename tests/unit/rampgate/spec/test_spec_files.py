"""A spec is read from disk with what its folder has, and becomes a suite of cases (Step 0.5, Step 1)."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
import yaml

from evalcore.specs.rubric import rubrics_of
from rampgate.input_files import BadFile
from rampgate.suite.spec_files import open_spec, reading_of, suite_name, templates
from tests.root import ROOT
from tests.unit.rampgate.spec.spec_on_disk import SPEC, written


def test_a_query_is_a_case_and_its_tags_are_slices(tmp_path: Path) -> None:
    loaded = open_spec(written(tmp_path))
    suite = loaded.suite
    assert [case.id for case in suite.cases] == [query.id for query in loaded.spec.queries]
    one, two = suite.cases
    assert (one.row["input"], one.tags, one.slices) == ("One?", ("smoke", "edge"), ("smoke", "edge"))
    assert two.tags == ()
    assert (suite.file.suite, suite.file.agent, suite.file.score) == ("spec-rag-agent", "rag-agent", "correctness")
    assert suite.file.samples == 1
    assert suite.folder == tmp_path


def test_what_is_expected_of_a_query_is_part_of_its_question(tmp_path: Path) -> None:
    """`suite compare` leaves out cases of two questions: scores of two assertions can't be compared."""
    before = open_spec(written(tmp_path)).suite.cases
    after = open_spec(written(tmp_path, SPEC.replace("[yes]", "[no]").replace("smoke, ", ""))).suite.cases
    assert before[0].question != after[0].question
    assert before[1].question == after[1].question


def test_no_answer_is_kept_unless_parts_name_the_code_that_answers(tmp_path: Path) -> None:
    assert open_spec(written(tmp_path)).suite.unnamed == "agent.py"
    named = SPEC.replace("agent:answer\n", "agent:answer\n  parts: {code: {files: ['*.py']}}\n")
    assert open_spec(written(tmp_path, named)).suite.unnamed == ""


def test_a_part_that_is_not_there_is_an_error_when_the_suite_is_made(tmp_path: Path) -> None:
    text = SPEC.replace("agent:answer\n", "agent:answer\n  parts: {prompt: {files: [prompt.md]}}\n")
    with pytest.raises(BadFile, match=r"candidate\.parts\.prompt\.files: no file is 'prompt\.md'"):
        _ = open_spec(written(tmp_path, text)).suite


def test_a_spec_without_a_candidate_is_valid_and_makes_no_suite(tmp_path: Path) -> None:
    """The document's specs have none."""
    loaded = open_spec(written(tmp_path, SPEC.replace("candidate:\n  entry: agent:answer\n", "")))
    with pytest.raises(BadFile, match=r"candidate: must be there, got nothing; write `candidate:"):
        _ = loaded.suite


def test_places_are_those_of_the_author(tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "cost.yaml").write_text("\nmax_llm_calls: 1\n")
    path = written(tmp_path, SPEC.replace("{max_llm_calls: 1}", "!include shared/cost.yaml"))
    loaded = open_spec(path)
    two = str(loaded.spec.queries[1].id)
    assert loaded.place("one", ("correctness", "expected_in_answer", 0)) == (str(path), 8)
    assert loaded.place("one", ()) == (str(path), 5)
    assert loaded.place(two, ("cost", "max_llm_calls")) == (str(tmp_path / "shared" / "cost.yaml"), 2)


def test_a_bad_spec_is_refused_with_all_that_is_wrong(tmp_path: Path) -> None:
    text = SPEC.replace("max_llm_calls: 1", "max_llm_calls: -1").replace("id: one", "id: o ne")
    with pytest.raises(BadFile) as caught:
        open_spec(written(tmp_path, text))
    assert "queries[0].id" in str(caught.value)
    assert "queries[1].cost.max_llm_calls" in str(caught.value)


# AgentCI Step 1 box 2.
@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("../outside.yaml", "leads out of the spec's folder"),
        ("link.yaml", "leads out of the spec's folder"),
        ("links/outside.yaml", "leads out of the spec's folder"),
        ("missing.yaml", "can't be read: No such file"),
        ("folder", "is no regular file"),
        ("pipe", "is no regular file"),
        ("/etc/passwd", "is no path from the including file on"),
        ("''", "is no path from the including file on"),
        ("rubric:polite", "there is no such rubric"),
        ("rubric:../../sense", "there is no such rubric"),
    ],
)
def test_what_is_not_in_the_specs_folder_is_not_included(tmp_path: Path, target: str, words: str) -> None:
    home = tmp_path / "home"
    path = written(home, SPEC.replace("{max_llm_calls: 1}", f"!include {target}"))
    (tmp_path / "outside.yaml").write_text("max_llm_calls: 1\n")
    (home / "link.yaml").symlink_to(tmp_path / "outside.yaml")
    (home / "links").symlink_to(tmp_path)
    (home / "folder").mkdir()
    os.mkfifo(home / "pipe")
    found = reading_of(path)
    assert [(one.check, one.field, one.line) for one in found.errors] == [("include", "queries[1].cost", 10)]
    assert words in found.errors[0].message
    assert found.errors[0].fix


# AgentCI Step 1 box 2.
def test_an_included_file_includes_from_its_own_folder_on(tmp_path: Path) -> None:
    (tmp_path / "shared" / "deep").mkdir(parents=True)
    (tmp_path / "shared" / "cost.yaml").write_text("!include deep/own.yaml\n")
    (tmp_path / "shared" / "deep" / "own.yaml").write_text("max_llm_calls: !include ../../number.yaml\n")
    (tmp_path / "number.yaml").write_text("7\n")
    loaded = open_spec(written(tmp_path, SPEC.replace("{max_llm_calls: 1}", "!include shared/cost.yaml")))
    assert loaded.spec.queries[1].cost is not None
    assert loaded.spec.queries[1].cost.max_llm_calls == 7


# AgentCI Step 2.5 box 2.
def test_the_three_templates_are_rubrics_that_a_spec_includes(tmp_path: Path) -> None:
    """Step 2.5: "3 built-in rubric templates"."""
    assert templates() == ["actionable_steps", "factual_grounded", "polite_refusal"]
    includes = "".join(f"    - !include rubric:{name}\n" for name in templates())
    text = f"{SPEC}  correctness:\n    llm_judge:\n{includes}"
    path = written(tmp_path, text)
    loaded = open_spec(path)
    of = loaded.spec.queries[1].correctness
    assert of is not None
    rubrics = [one.rubric for one in rubrics_of(of)]
    assert [rubric.id for rubric in rubrics] == [f"{name}_v1" for name in templates()]
    assert all(rubric.scale and len(rubric.scale) == 5 for rubric in rubrics)
    assert not loaded.warnings
    # A template is no file of the author's: a finding about it stands at the line that includes it.
    assert loaded.place(str(loaded.spec.queries[1].id), ("correctness", "llm_judge", 1, "rule")) == (str(path), 14)


# AgentCI Step 0.5 box 4.
def test_the_sample_spec_is_valid() -> None:
    found = reading_of(ROOT / "docs" / "sample_spec.yaml")
    assert found.spec is not None, found.findings
    assert not found.findings
    document = yaml.safe_load((ROOT / "docs" / "sample_spec.yaml").read_text())
    assert len(document["queries"]) == 3


# AgentCI Step 0.5 box 4.
def test_the_sample_spec_explains_each_of_its_parts() -> None:
    """A comment stands on the line of every part, or directly above it."""
    lines = (ROOT / "docs" / "sample_spec.yaml").read_text().splitlines()
    explained = {
        named[1]
        for above, line in zip(["", *lines], lines, strict=False)
        if (named := re.match(r"\W*(\w+):", line)) and (" #" in line or above.startswith("#"))
    }
    parts = "version agent baseline_dir candidate defaults judge_config correctness path cost fail_on tags threshold"
    assert {*parts.split()} <= explained


@pytest.mark.parametrize(
    ("agent", "file", "name"),
    [
        ("rag-agent", "agentci_spec.yaml", "spec-rag-agent"),
        ("rag-agent", "smoke.yaml", "spec-rag-agent-smoke"),
    ],
)
def test_a_specs_runs_are_stored_under_its_agents_name(agent: str, file: str, name: str) -> None:
    assert suite_name(agent, Path("a", file)) == name


def test_no_two_agents_of_a_folder_share_a_name() -> None:
    agents = ["RAG agent", "rag agent", "rag-agent", "x" * 90, "x" * 91, "é", "e"]
    names = [suite_name(agent, Path("agentci_spec.yaml")) for agent in agents]
    assert len({*names}) == len(names)
    for name in names:
        assert re.fullmatch(r"[a-z][a-z0-9_-]{0,62}", name)
