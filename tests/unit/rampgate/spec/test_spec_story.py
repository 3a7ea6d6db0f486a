"""The playbook's story, from a broken agent to a fixed one (AgentCI Step 3.5, Step 4, Step 5)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from rampgate.cli import app
from tests.unit.rampgate.spec.spec_commands import SPEC, change, fix_prompt, ran, refused, told


def both(folder: Path) -> None:
    """Saves v1-broken and v2-fixed."""
    ran("test")
    ran("save", "--agent", "rag-agent", "--version", "v1-broken", "--force-save")
    fix_prompt(folder)
    ran("test")
    ran("save", "--agent", "rag-agent", "--version", "v2-fixed")


# AgentCI Step 3.5 box 4, Step 4 box 2, Step 4 box 4, Step 5 box 4.
def test_the_story(rag: Path) -> None:
    both(rag)
    done = ran("diff", "--baseline", "v1-broken", "--compare", "v2-fixed", "--query", "weather")
    for line in (
        "Spec diff: rag-agent (v1-broken → v2-fixed)",
        "✅ Correctness: Unchanged (PASS → PASS)",
        "Tool calls:        11 → 0  (▼ 100%)",
        "Sequence LCS:      0.00 → 1.00",
        "Loops detected:    3 → 0",
        "Total cost:        $0.0080 → $0.0001  (▼ 98.8%)",
        "Total tokens:      4,200 → 180  (▼ 95.7%)",
        "LLM calls:         11 → 1  (▼ 90.9%)",
    ):
        assert line in done.stdout
    found = told("diff", "--baseline", "v1-broken", "--compare", "v2-fixed")
    assert found["queries"][1]["types"] == ["TOOLS_CHANGED", "COST_CHANGED"]
    assert found["queries"][1]["correctness"] == {"before": "pass", "after": "pass", "changed": False}
    back = ran("diff", "--baseline", "v2-fixed", "--compare", "v1-broken", "--format", "github")
    assert f"::warning file={SPEC},line=" in back.stderr
    assert "[COST] What's the weather in Tokyo?: Total tokens: 180 → 4,200" in back.stderr


# AgentCI Step 3.5 box 1, Step 3.5 box 5.
def test_a_baseline_has_the_documents_fields(rag: Path) -> None:
    """Model, spec hash, rubric ids, capture time and the precheck's own result, of all queries."""
    both(rag)
    made = json.loads((rag / "baselines" / "v1-broken.json").read_text())
    assert (made["version"], made["agent"]) == ("v1-broken", "rag-agent")
    assert made["metadata"]["model"] == "gpt-4.1-mini"
    assert made["metadata"]["spec_hash"].startswith("sha256:")
    assert len(made["metadata"]["judge_rubric_ids"]) == 4
    assert made["metadata"]["precheck_passed"] is True
    assert list(made["queries"]) == ["install", "weather", "load-balancer"]
    assert len(made["queries"]["weather"]["trace"]["tool_calls"]) == 11
    found = told("baselines", "--agent", "rag-agent")["baselines"]
    assert [(one["version"], one["queries"]) for one in found] == [("v1-broken", 3), ("v2-fixed", 3)]


# AgentCI Step 3.5 box 2.
def test_the_precheck_refuses_what_is_not_correct(dev: Path) -> None:
    """`--force-save` saves it, and the file says that the precheck did not pass."""
    change(dev, '"No findings."', '"Fine."', "agent.py")
    ran("test", code=1)
    why = refused("save", "--version", "v1")
    assert "Use --force-save to bypass" in why
    assert "clean: " in why
    assert not (dev / "baselines").exists()
    assert told("save", "--version", "v1", "--force-save")["metadata"]["precheck_passed"] is False
    assert told("save", "--version", "v2", "--no-precheck-correctness")["metadata"]["precheck_passed"] is False
    assert told("save", "--version", "v3", "--query", "eval")["queries"] == ["eval"]
    assert told("save", "--version", "v4", "--query", "eval", "--force-save")["metadata"]["precheck_passed"] is True


# AgentCI Step 3.5 box 3.
def test_save_takes_the_run_that_was_seen(dev: Path) -> None:
    """It asks neither the agent nor a model; without a run it ends with exit code 2."""
    assert "`rampgate spec test` makes one" in refused("save", "--version", "v1")
    ran("test")
    (dev / "agent.py").write_text("raise RuntimeError\n")
    assert len(told("save", "--version", "v1")["queries"]) == 7


def test_save_says_that_the_agent_changed_after_its_run(dev: Path) -> None:
    """The answers are those that were seen, of the configuration that the file names."""
    ran("test")
    first = told("save", "--version", "v1")
    assert first["notes"] == []
    change(dev, '"No findings."', '"Fine."', "agent.py")
    second = told("save", "--version", "v2")
    assert second["metadata"]["configuration"] == first["metadata"]["configuration"]
    (note,) = second["notes"]
    assert "the candidate changed since the run whose answers these are: code" in note
    assert "code" in ran("save", "--version", "v3").stdout
    ran("test", code=1)
    third = told("save", "--version", "v4", "--force-save")
    assert third["notes"] == []
    assert third["metadata"]["configuration"] != first["metadata"]["configuration"]


def test_save_says_that_code_in_no_part_may_have_changed(dev: Path) -> None:
    change(dev, '  parts:\n    code: {files: ["*.py"]}\n', "")
    (dev / ".git").rmdir()
    ran("test", "--tags", "smoke")
    (note,) = told("save", "--version", "v1")["notes"]
    assert "agent.py is in no part of the candidate" in note


def test_a_verdict_of_another_spec_is_unknown(dev: Path) -> None:
    ran("test")
    change(dev, '"No findings."', '"Nothing."')
    assert "the spec changed since" in refused("save", "--version", "v1")


def test_a_part_of_the_queries_is_saved_alone(dev: Path) -> None:
    ran("test", "--tags", "smoke")
    assert told("save", "--version", "v1")["queries"] == ["unused-import", "eval"]
    assert "the last run did not ask it" in refused("save", "--version", "v2", "--query", "clean")


# AgentCI Step 3.5 box 3.
@pytest.mark.parametrize("version", ["../x", "a/b", ".x"])
def test_a_version_is_no_path(dev: Path, version: str) -> None:
    ran("test", "--tags", "smoke")
    for arguments in (
        ("save", "--version", version),
        ("test", "--baseline", version),
        ("diff", "--baseline", version, "--compare", "v1"),
    ):
        assert "version: must be" in refused(*arguments)
    assert not (dev.parent / "x.json").exists()


def test_a_version_is_replaced_on_request_alone(dev: Path) -> None:
    ran("test", "--tags", "smoke")
    ran("save", "--version", "v1")
    assert "--replace" in refused("save", "--version", "v1")
    ran("save", "--version", "v1", "--replace")


def test_a_foreign_file_is_listed_with_what_is_wrong_with_it(dev: Path) -> None:
    """The versions beside it are listed, too; exit code 2 says that not all could be read."""
    ran("test", "--tags", "smoke")
    ran("save", "--version", "v1")
    (dev / "baselines" / "package.json").write_text("{}")
    found = told("baselines", code=2)
    assert [one["version"] for one in found["baselines"]] == ["v1"]
    ((file, why),) = ((one["file"], one["why"]) for one in found["unreadable"])
    assert Path(file).name == "package.json"
    assert "version" in why
    shown = ran("baselines", code=2).stdout
    assert "v1" in shown
    assert "package.json" in shown


def test_answers_are_compared_with_the_named_baseline(rag: Path) -> None:
    both(rag)
    change(rag, "      max_tool_calls: 0\n", "      max_tool_calls: 20\n      min_sequence_similarity: 0.5\n")
    change(rag, "      max_llm_calls: 2\n      max_total_tokens: 500\n", "      max_cost_multiplier: 2.0\n")
    same = told("test", "--query", "weather")  # the pinned one, v2-fixed
    assert same["summary"]["warnings"] == 0
    other = told("test", "--query", "weather", "--baseline", "v1-broken")["results"][0]
    assert other["path"]["details"]["sequence_similarity"] == 0.0
    assert "no baseline 'v9'" in refused("test", "--baseline", "v9")


# AgentCI Step 4 box 4.
def test_what_is_in_one_version_alone_is_named(dev: Path) -> None:
    ran("test")
    ran("save", "--version", "v1", "--query", "eval", "--query", "clean")
    ran("save", "--version", "v2", "--query", "eval")
    found = told("diff", "--baseline", "v1", "--compare", "v2")
    assert found["notes"] == ["clean: is in v1 alone, so it is not compared"]


# AgentCI Step 3.5 box 4.
def test_a_lost_correctness_ends_with_1(dev: Path) -> None:
    ran("test")
    ran("save", "--version", "good")
    change(dev, '"No findings."', '"Fine."', "agent.py")
    ran("test", code=1)
    ran("save", "--version", "bad", "--force-save")
    done = ran("diff", "--baseline", "good", "--compare", "bad", "--format", "github", code=1)
    assert "[CORRECTNESS FAIL]" in done.stderr
    assert told("diff", "--baseline", "bad", "--compare", "good")["queries"][3]["types"] == ["OUTPUT_CHANGED"]


def test_metrics_are_those_of_the_run_that_was_seen(dev: Path) -> None:
    assert "`rampgate spec test` makes one" in refused("export-metrics")
    shown = ran("test", "--format", "prometheus").stdout
    assert ran("export-metrics").stdout == shown
    ran("export-metrics", "--metrics-file", "specs.prom")
    assert (dev / "specs.prom").read_text() == shown


def test_two_runs_of_a_spec_are_compared_as_suites_are(dev: Path) -> None:
    """`suite compare` takes the results that `spec test` left, by the score `correctness`."""
    first = told("test")["results_file"]
    change(dev, '"No findings."', '"Fine."', "agent.py")
    second = told("test", code=1)["results_file"]
    assert first != second
    done = CliRunner().invoke(app, ["suite", "compare", first, second, "--score", "correctness", "--json"])
    assert done.exit_code in (0, 1), done.output
    found = json.loads(done.stdout)
    assert found["headline"]["baseline"] == 1.0
    assert found["headline"]["candidate"] == pytest.approx(6 / 7)
    shown = CliRunner().invoke(app, ["suite", "report", "--suite", SPEC, "--json"])
    assert [one["verdict"] for one in json.loads(shown.stdout)["runs"]] == ["pass", "fail"]


def test_the_baseline_of_another_text_is_none(rag: Path) -> None:
    """What was answered to another question says nothing of this one: the multiplier is unknown, which warns."""
    fix_prompt(rag)
    change(rag, "      max_llm_calls: 2\n", "      max_llm_calls: 2\n      max_cost_multiplier: 2.0\n")
    ran("test")
    ran("save", "--version", "v2-fixed")
    assert told("test", "--query", "weather")["summary"]["warnings"] == 0
    change(rag, "What's the weather in Tokyo?", "What's the weather in Kyoto?")
    found = told("test", "--query", "weather")["results"][0]
    assert found["cost"]["status"] == "warn"
    assert "no baseline" in found["cost"]["messages"][0]
