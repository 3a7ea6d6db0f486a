"""`suite run`, `compare`, `report` and `blame` take a spec as they take a suite, by its one score `correctness`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from rampgate.cli import app
from rampgate.input_files import BadFile
from rampgate.suite.spec_files import open_spec
from tests.unit.rampgate.registry.git_folders import git
from tests.unit.rampgate.suite.suite_commands import lines, ran

AGENT = """
from pathlib import Path

PROMPT = Path(__file__).with_name("prompt.md").read_text().strip()


def answer(case):
    return {"output": f"It is {PROMPT}, {case['input']}", "tool_calls": [], "usage": {"total_tokens": 5}}
"""


def spec(folder: Path, prompt: str, cases: int = 6, **root: Any) -> Path:
    """A spec whose answers are right while the prompt says so."""
    folder.mkdir(exist_ok=True)
    (folder / "agent.py").write_text(AGENT)
    (folder / "prompt.md").write_text(prompt)
    parts = {"prompt": {"files": ["prompt.md"]}, "code": {"files": ["*.py"]}}
    queries = [
        {"query": f"Question {number}?", "tags": ["even" if number % 2 == 0 else "odd"]} for number in range(cases)
    ]
    path = folder / "agentci_spec.yaml"
    data: dict[str, Any] = {
        "agent": "desk",
        "candidate": {"entry": "agent:answer", "parts": parts},
        "defaults": {"correctness": {"expected_in_answer": ["right"]}, "path": {"max_tool_calls": 3}},
        "queries": queries,
    }
    path.write_text(yaml.safe_dump(data | root, sort_keys=False))
    return path


def asked(*words: object) -> dict[str, Any]:
    done = CliRunner().invoke(app, ["suite", *map(str, words), "--json"])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_a_run_of_a_spec_has_the_score_correctness_and_asks_nothing_twice(tmp_path: Path) -> None:
    path = spec(tmp_path / "desk", "right")
    found = ran(path, "--label", "main")
    assert (found["suite"], found["cases"], found["samples"], found["verdict"]) == ("spec-desk", 6, 1, "pass")
    assert {line["scores"]["correctness"] for line in lines(found)} == {1.0}
    assert ran(path)["answers"] == {"asked": 0, "kept": 6, "failed": 0}


def test_a_spec_whose_answers_become_wrong_is_worse(tmp_path: Path) -> None:
    """Done when 6: `suite compare` takes two runs of a spec."""
    folder = tmp_path / "desk"
    ran(spec(folder, "right"), "--out", tmp_path / "main.jsonl", "--label", "main")
    found = ran(spec(folder, "wrong"), "--out", tmp_path / "branch.jsonl", code=1)
    assert found["comparison"]["score"] == "correctness"
    assert {line["scores"]["correctness"] for line in lines(found)} == {0.0}
    assert {one["slice"] for one in found["comparison"]["slices"]} == {"even", "odd"}
    compared = asked(
        "compare", tmp_path / "main.jsonl", tmp_path / "branch.jsonl", "--suite", folder / "agentci_spec.yaml"
    )
    assert (compared["score"], compared["headline"]["delta"]) == ("correctness", -1.0)
    plain = asked("compare", tmp_path / "main.jsonl", tmp_path / "branch.jsonl", "--score", "correctness")
    assert plain["headline"]["delta"] == -1.0


def test_its_stored_runs_are_reported(tmp_path: Path) -> None:
    path = spec(tmp_path / "desk", "right")
    ran(path, "--label", "main")
    told = asked("report", "--suite", path)
    assert [one["label"] for one in told["runs"]] == ["main"]


def test_blame_names_the_part_that_makes_its_queries_fall(tmp_path: Path) -> None:
    folder = tmp_path / "desk"
    path = spec(folder, "right")
    (folder / ".gitignore").write_text(".rampgate/\n__pycache__/\n")
    for words in (("init", "--quiet", "--initial-branch=main"), ("add", "--all"), ("commit", "-qm", "main")):
        git(folder, *words)
    ran(path, "--out", tmp_path / "main.jsonl")
    spec(folder, "wrong")
    (folder / "agent.py").write_text(f"{AGENT}\n# changed, to no effect\n")
    ran(path, "--baseline", tmp_path / "main.jsonl", code=1)
    told = asked("blame", path, "--baseline", tmp_path / "main.jsonl")
    assert told["guilty"] == ["prompt"]


def test_a_changed_assertion_is_another_question(tmp_path: Path) -> None:
    folder = tmp_path / "desk"
    ran(spec(folder, "right"), "--label", "main")
    path = spec(folder, "right", defaults={"correctness": {"expected_in_answer": ["wrong"]}})
    done = CliRunner().invoke(app, ["suite", "run", str(path)])
    assert "all cases are others than main's" in str(done.exception)


def test_a_proposal_brings_its_agent_and_new_queries_and_loosens_nothing(tmp_path: Path) -> None:
    """Queries and checks are the target branch's; new ones of the branch run, too."""
    target = spec(tmp_path / "target", "right", 2)
    theirs = spec(tmp_path / "proposed", "wrong", 3, defaults={"cost": {"max_llm_calls": 9}})
    loaded = open_spec(target, proposed=tmp_path / "proposed")
    assert len(loaded.spec.queries) == 3
    kept, new = loaded.spec.queries[0], loaded.spec.queries[2]
    assert kept.correctness is not None
    assert kept.correctness.expected_in_answer == ("right",)
    assert new.correctness is None
    assert loaded.suite.folder == tmp_path / "proposed"
    assert loaded.place(str(new.id), ("query",))[0] == str(theirs)
    found = ran(target, "--proposed", tmp_path / "proposed", code=0)
    scores = {line["case_id"]: line["scores"]["correctness"] for line in lines(found)}
    assert scores[str(kept.id)] == 0.0


def test_a_proposals_spec_that_leads_elsewhere_is_refused(tmp_path: Path) -> None:
    target = spec(tmp_path / "target", "right", 2)
    (tmp_path / "proposed").mkdir()
    (tmp_path / "proposed" / "agentci_spec.yaml").symlink_to(target)
    with pytest.raises(BadFile, match="leads elsewhere"):
        open_spec(target, proposed=tmp_path / "proposed")
