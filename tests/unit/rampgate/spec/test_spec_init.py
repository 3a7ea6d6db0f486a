"""`rampgate spec init` writes a valid spec, its schema, and a workflow that keeps code and keys apart (Steps 3, 6)."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from rampgate.cli import app
from rampgate.console import Failure
from rampgate.suite.spec_files import open_spec, reading_of
from schemas.publish.file_schemas import SPEC, schema
from tests.root import ROOT
from tests.unit.repository.workflow_files import load


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)


def begun(*words: str) -> dict[str, Any]:
    done = CliRunner().invoke(app, ["spec", "init", *words, "--json"])
    assert done.exit_code == 0, (done.exception, done.output)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def refused(*words: str) -> str:
    done = CliRunner().invoke(app, ["spec", "init", *words])
    assert isinstance(done.exception, Failure), done.output
    return str(done.exception)


def queries(path: str = "agentci_spec.yaml") -> list[dict[str, Any]]:
    fields = {"query", "id", "tags", "correctness", "path", "cost"}
    return [
        one.model_dump(mode="json", exclude_defaults=True, include=fields) for one in open_spec(Path(path)).spec.queries
    ]


# AgentCI Step 0.5 box 2, Step 3 box 4.
def test_it_writes_a_valid_spec_its_schema_and_a_workflow(tmp_path: Path) -> None:
    Path("agent.py").write_text("")
    found = begun("--agent", "desk", "--candidate", "agent:answer")
    assert found["written"] == ["agentci_spec.yaml", "agentci_spec.schema.json", ".github/workflows/agentci.yaml"]
    reading = reading_of(Path("agentci_spec.yaml"))
    assert reading.spec is not None
    assert not reading.findings
    assert reading.spec.candidate is not None
    assert (reading.spec.candidate.entry, [*reading.spec.candidate.parts]) == ("agent:answer", ["code"])
    first = Path("agentci_spec.yaml").read_text().splitlines()[0]
    assert first == "# yaml-language-server: $schema=agentci_spec.schema.json"
    assert json.loads(Path("agentci_spec.schema.json").read_text()) == schema(SPEC)


@pytest.mark.parametrize(
    ("told", "field", "value"),
    [
        ("http://127.0.0.1:1/answer", "url", "http://127.0.0.1:1/answer"),
        ("node agent.js --fast", "command", ("node", "agent.js", "--fast")),
    ],
)
def test_who_answers_is_a_function_a_command_or_an_address(told: str, field: str, value: object) -> None:
    begun("--agent", "desk", "--candidate", told)
    assert getattr(open_spec(Path("agentci_spec.yaml")).spec.candidate, field) == value


def test_it_overwrites_nothing_and_says_what_to_add_to_a_workflow_that_is_there() -> None:
    begun("--agent", "one", "--config", "one/agentci_spec.yaml")
    workflow = Path(".github/workflows/agentci.yaml").read_text()
    assert "is there already" in refused("--agent", "one", "--config", "one/agentci_spec.yaml")
    found = begun("--agent", "two", "--config", "two/agentci_spec.yaml")
    assert found["kept"] == [".github/workflows/agentci.yaml"]
    assert Path(".github/workflows/agentci.yaml").read_text() == workflow
    assert begun("--agent", "three", "--config", "three/agentci_spec.yaml", "--no-workflow")["kept"] == []


def test_without_a_terminal_the_agent_has_to_be_given() -> None:
    assert refused() == "there is no terminal to ask on: give --agent NAME"
    assert not Path("agentci_spec.yaml").exists()


def test_on_a_terminal_it_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rampgate.spec.init._on_terminal", lambda: True)
    done = CliRunner().invoke(app, ["spec", "init"], input="desk\nagent:answer\n")
    assert done.exit_code == 0, (done.exception, done.output)
    assert open_spec(Path("agentci_spec.yaml")).spec.agent == "desk"


# AgentCI Step 3 box 4, Step 6 box 6.
def test_no_job_of_the_workflow_has_both_the_branchs_code_and_a_key() -> None:
    begun("--agent", "desk", "--config", "agents/desk/agentci_spec.yaml")
    path = Path(".github/workflows/agentci.yaml")
    form = ["--builtin-schema", "vendor.github-workflows", str(path)]
    done = subprocess.run(
        [sys.executable, "-m", "check_jsonschema", *form], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout
    whole = load(path)
    assert set(whole["on"]) == {"pull_request", "push"}
    assert whole["permissions"] == {"contents": "read"}
    runs = {name: [step.get("run", "") for step in job["steps"]] for name, job in whole["jobs"].items()}
    for name, job in whole["jobs"].items():
        code = any("suite run" in run or "proposed/requirements" in run for run in runs[name])
        keys = "secrets." in json.dumps(job) or "vars." in json.dumps(job)
        assert code != keys, name
        assert job["strategy"]["matrix"]["spec"] == ["agents/desk/agentci_spec.yaml"]
        assert job["strategy"]["fail-fast"] == "false"
        checkouts = [step["with"] for step in job["steps"] if "checkout" in step.get("uses", "")]
        assert all(one["persist-credentials"] == "false" for one in checkouts)
    assert not [run for some in runs.values() for run in some if "${{" in run], "a word of the branch would be run"


PROMPTFOO = """
prompts: ["Answer politely: {{question}}"]
providers: [openai:gpt-4o-mini]
defaultTest:
  assert: [{type: latency, threshold: 2000}]
tests:
  - &first
    description: Install
    vars: {question: How do I install it?}
    assert:
      - {type: icontains, value: pip install}
      - {type: not-contains, value: sudo}
      - {type: llm-rubric, value: Clear steps, threshold: 0.8}
      - {type: cost, threshold: 0.002}
  - vars: {question: As JSON}
    assert:
      - {type: is-json, value: {type: object}}
      - {type: regex, value: '(?=x)y'}
      - {type: similar, value: something}
      - {type: javascript, value: output.length < 3}
  - *first
  - vars: {number: []}
"""


def test_from_promptfoo() -> None:
    Path("promptfooconfig.yaml").write_text(PROMPTFOO)
    found = begun("--agent", "desk", "--from", "promptfooconfig.yaml")
    first, second, third, *_ = queries()
    assert first == {
        "query": "Answer politely: How do I install it?",
        "id": "test-1",
        "correctness": {
            "expected_in_answer": ["pip install"], "not_in_answer": ["sudo"], "substrings": True,
            "llm_judge": [{"rule": "Clear steps", "threshold": 0.8}],
        },
        "cost": {"max_latency_ms": 2000, "max_cost_usd": 0.002},
    }  # fmt: skip
    assert second["correctness"] == {"json_schema": {"type": "object"}}
    assert third["id"] == "test-3"
    left = "\n".join(found["left"])
    assert "the assertion 'similar' has none like it" in left
    assert "the assertion 'javascript' has none like it" in left
    assert "query 2: regex_match: must be a pattern that RE2 takes" in left


def test_from_a_suite() -> None:
    shutil.copytree(ROOT / "examples" / "suite", "desk")
    found = begun("--from", "desk/suite.yaml", "--config", "desk/agentci_spec.yaml")
    assert (found["agent"], found["queries"]) == ("returns-desk", 12)
    assert found["left"] == ["checks: no_card_number: a spec has none like it"]
    loaded = open_spec(Path("desk/agentci_spec.yaml"))
    assert loaded.suite.unnamed == ""
    assert loaded.spec.queries[0].correctness is not None
    assert loaded.spec.queries[0].correctness.regex_match == r"\b(14|30) days\b"


def test_from_traces() -> None:
    rows = [
        {"input": "Cancel it", "output": "Done", "tool_calls": [{"name": "find"}, {"name": "cancel"}, {"name": "find"}],
         "handoffs": ["BillingAgent"], "llm_calls": [{}, {}]},
        {"input": {"messages": [{"role": "user", "content": "Hello"}]}, "output": "1e5", "tool_calls": []},
        {"input": "Cancel it", "output": "Again"},
        {"output": "to nothing"},
    ]  # fmt: skip
    Path("traces.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    found = begun("--agent", "desk", "--from", "traces.jsonl")
    first, second = queries()
    assert first["path"] == {
        "expected_tools": ["find", "cancel"], "max_tool_calls": 3, "expected_handoff": "BillingAgent",
    }  # fmt: skip
    assert first["cost"] == {"max_llm_calls": 2}
    assert second["path"] == {"expected_tools": [], "max_tool_calls": 0}
    assert second["correctness"]["similar_to"]["text"] == "1e5"
    assert found["left"] == ["trace 3: asks what an earlier one asks", "trace 4: has no question that is a text"]
    Path("traces.json").write_text(json.dumps(rows))
    begun("--agent", "desk", "--from", "traces.json", "--config", "other.yaml")
    assert queries("other.yaml") == [first, second]


def test_from_the_messages_of_langgraph() -> None:
    call = {"id": "c1", "name": "find", "args": {"q": "x"}, "type": "tool_call"}
    messages = [
        {"type": "human", "content": "Where is it?"},
        {"type": "ai", "content": "", "tool_calls": [call]},
        {"type": "tool", "content": "there", "tool_call_id": "c1", "name": "find"},
        {"type": "ai", "content": "It is there", "tool_calls": []},
    ]
    Path("run.json").write_text(json.dumps({"messages": messages}))
    begun("--agent", "desk", "--from", "run.json")
    (one,) = queries()
    assert (one["query"], one["path"]["expected_tools"]) == ("Where is it?", ["find"])
    assert one["correctness"]["similar_to"]["text"] == "It is there"


def test_from_an_opik_dataset(monkeypatch: pytest.MonkeyPatch) -> None:
    items = [
        (
            "item 1",
            {"input": {"question": "One?"}, "expected_output": {"text": "Yes, one"}, "metadata": {"tags": ["a"]}},
        ),
        ("item 2", {"input": {"other": 1}}),
    ]
    asked: list[str | None] = []

    def cases(settings: object, file: Any) -> Any:
        asked.append(file.cases.dataset)
        return items

    monkeypatch.setattr("rampgate.suite.dataset_cases.dataset_cases", cases)
    found = begun("--agent", "desk", "--from", "opik:golden")
    assert asked == ["golden"]
    assert found["left"] == ["item 2: its input has no question that is a text"]
    (one,) = queries()
    assert (one["query"], one["tags"]) == ("One?", ["a"])
    assert one["correctness"] == {"similar_to": {"text": "Yes, one", "min_similarity": 0.5}}


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("missing.yaml", None, "can't be read"),
        ("bad.yaml", "a: [", "must be YAML"),
        ("list.yaml", "- a", "must be a mapping"),
        ("else.yaml", "a: 1", "got neither"),
        ("bad.json", "{", "must be JSON"),
        ("empty.jsonl", "", "must have a question"),
        ("nothing.jsonl", "{}\n", "must have a question"),
    ],
)
def test_what_no_spec_can_be_made_of_is_refused_and_nothing_is_written(
    name: str, content: str | None, words: str
) -> None:
    if content is not None:
        Path(name).write_text(content)
    assert words in refused("--agent", "desk", "--from", name)
    assert not Path("agentci_spec.yaml").exists()


AGENT = """
def answer(case):
    return {"output": "WORD pip install it", "tool_calls": []}
"""


# AgentCI Step 3 box 4.
def test_the_workflows_own_commands_judge_a_branch_by_the_targets_queries_and_its_new_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each command as it is written there, in bash: answers are made without a key, and judged without the code."""
    (tmp_path / ".git").rmdir()
    target, proposed = tmp_path / "target", tmp_path / "proposed"
    for folder, word in ((target, "Run"), (proposed, "Never")):
        (folder / ".git").mkdir(parents=True)
        (folder / "agent.py").write_text(AGENT.replace("WORD", word))
    monkeypatch.chdir(target)
    begun("--agent", "desk", "--candidate", "agent:answer")
    text = Path("agentci_spec.yaml").read_text()
    (target / "agentci_spec.yaml").write_text(text.replace(r'regex_match: "\\w"', "expected_in_answer: [Run]"))
    # The branch asserts less of the old query, and something of a new one.
    (proposed / "agentci_spec.yaml").write_text(f"{text}- query: New?\n  correctness: {{expected_in_answer: [pip]}}\n")
    monkeypatch.chdir(tmp_path)
    jobs = load(target / ".github" / "workflows" / "agentci.yaml")["jobs"]
    variables = {
        "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin", "HOME": str(tmp_path), "RUNNER_TEMP": str(tmp_path),
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"), "SPEC": "agentci_spec.yaml",
    }  # fmt: skip
    codes: dict[str, int] = {}
    for name in ("answer", "judge"):
        for step in jobs[name]["steps"]:
            if "rampgate s" in (run := step.get("run", "")):
                done = subprocess.run(
                    ["bash", "-euo", "pipefail", "-c", run], env=variables, capture_output=True, text=True, check=False
                )
                codes[run.split("rampgate s")[1].split()[1]] = done.returncode
                (tmp_path / "answers").mkdir(exist_ok=True)
                if (tmp_path / "answers.jsonl").exists():
                    (tmp_path / "answers.jsonl").rename(tmp_path / "answers" / "answers.jsonl")
    assert codes == {"validate": 0, "run": 0, "test": 1}, done.stderr
    found = json.loads((tmp_path / "agentci.json").read_text())
    assert {one["query"]: one["correctness"]["status"] for one in found["results"]} == {
        "What can you do?": "fail", "New?": "pass",
    }  # fmt: skip
