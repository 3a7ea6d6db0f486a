"""An answer is kept only where the candidate's parts name the code that gave it (issue 32, line 4)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.rampgate.registry.git_folders import committed, git
from tests.unit.rampgate.suite.suite_commands import ended, ran
from tests.unit.rampgate.suite.suite_folders import case, written

CASES = [case(number) for number in range(12)]
PROMPT: dict[str, Any] = {"files": ["prompt.md"]}
GOOD = "from helper import word\n\ndef answer(case):\n    return f'{word} {case[\"input\"]}'\n"
PRINTS = "import sys\nfrom helper import word\nprint(word, sys.stdin.read())\n"
MAIN = ("--label", "main")


def desk(folder: Path, agent: str = GOOD, **candidate: Any) -> Path:
    path = written(folder, CASES, agent, candidate={"parts": {"prompt": PROMPT}} | candidate)
    (folder / "helper.py").write_text("word = 'good'\n")
    return path


def run(path: Path, *arguments: object) -> tuple[int, dict[str, Any], str]:
    done = ended("run", path, *arguments, "--report", "github", "--json")
    assert done.stdout, (done.exception, done.output)
    return done.exit_code, json.loads(done.stdout), done.stderr


def test_answers_of_code_that_was_edited_are_asked_again_and_block(folder: Path) -> None:
    """The code is in no part: before, 24 kept answers of the old code passed for the new."""
    path = desk(folder, entry="agent:answer")
    assert run(path, *MAIN)[0] == 0
    (folder / "agent.py").write_text(GOOD.replace("{word}", "bad"))
    code, told, _ = run(path)
    assert (code, told["verdict"], told["answers"]["kept"]) == (1, "fail", 0)


@pytest.mark.parametrize(
    ("candidate", "agent"),
    [({"entry": "agent:answer"}, GOOD), ({"command": ["python3", "agent.py", "prompt.md"]}, PRINTS)],
)
def test_what_the_code_may_load_has_to_be_in_a_part_too(folder: Path, candidate: dict[str, Any], agent: str) -> None:
    """Otherwise an edit of the module beside the one that is named is not seen."""
    some = {"prompt": PROMPT, "code": {"files": ["agent.py"]}}
    path = desk(folder, agent, **candidate, parts=some)
    assert run(path, *MAIN)[0] == 0
    (folder / "helper.py").write_text("word = 'bad'\n")
    code, told, _ = run(path)
    assert (code, told["answers"]["kept"]) == (1, 0)

    path = desk(folder, agent, **candidate, parts={"prompt": PROMPT, "code": {"files": ["*.py"]}})
    assert run(path, *MAIN)[0] == 0
    assert run(path)[1]["answers"]["kept"] == 24, "all code is named, and nothing was edited"
    (folder / "helper.py").write_text("word = 'bad'\n")
    code, told, _ = run(path)
    assert (code, told["answers"]["kept"]) == (1, 0)


def test_it_is_said_that_no_answer_is_kept_and_what_to_do(folder: Path) -> None:
    path = desk(folder, entry="agent:answer")
    shown = ended("run", path, *MAIN)
    assert "no answer is kept: agent.py is in no part of the candidate" in shown.stdout
    path = desk(folder, command=["echo", "good"])
    shown = ended("run", path, *MAIN)
    assert "no answer is kept: echo good is in no part" in shown.stdout
    path = desk(folder, command=["echo", "good" * 100], parts={"code": {"value": "1.2"}})
    assert "no answer is kept" not in ended("run", path, *MAIN).stdout


def test_a_configuration_without_its_code_is_of_its_commit_and_of_what_is_changed_since(folder: Path) -> None:
    """It is the canary's `agent_version`: two commits of an agent are two versions, and an edited one a third."""
    path = desk(folder, entry="agent:answer")
    (folder / ".gitignore").write_text(".rampgate/\n__pycache__/\n")
    found = []
    for word in ("one", "two", "two"):
        (folder / "agent.py").write_text(f"{GOOD}# {word}\n")
        committed(folder, word)
        found.append(run(path, *MAIN)[1])
    (folder / "agent.py").write_text(f"{GOOD}# three\n")
    found.append(run(path)[1])
    (folder / "agent.py").write_text(f"{GOOD}# two\n")
    found.append(run(path)[1])
    versions = [one["configuration"] for one in found]
    assert len({*versions}) == 4
    assert versions[4] == versions[2], "the tree is clean again"
    assert found[4]["canary_plan"][0]["agent_version"] == versions[4]

    named = desk(folder, entry="agent:answer", parts={"prompt": PROMPT, "code": {"files": ["*.py"]}})
    before = run(named)[1]["configuration"]
    git(folder, "commit", "--quiet", "--allow-empty", "-m", "another")
    assert run(named)[1]["configuration"] == before, "parts that name all code say alone what answers"


def test_fresh_samples_of_the_baseline_are_of_the_stored_runs_configuration(folder: Path) -> None:
    """The commit is part of it where no part names the code: the baseline is asked again as it was."""
    path = desk(folder, entry="agent:answer")
    (folder / ".gitignore").write_text(".rampgate/\n__pycache__/\n")
    committed(folder)
    ran(path, *MAIN)
    (folder / "agent.py").write_text(GOOD.replace("{word}", "{'good' if case['input'][-1] in '02468' else 'bad'}"))
    found = ran(path, code=1)
    assert found["comparison"]["confirmation"]["why_not"] is None
    assert found["comparison"]["confirmation"]["found"]


def test_a_part_that_the_branch_dropped_is_reported(folder: Path, tmp_path: Path) -> None:
    both = {"code": {"files": ["*.py"]}, "prompt": PROMPT}
    path = desk(folder, entry="agent:answer", parts=both)
    said = "parts that main has and this candidate's suite file lacks: prompt"
    _, _, first = run(path, *MAIN)
    assert said not in first
    theirs = desk(tmp_path / "theirs", entry="agent:answer", parts={"code": {"files": ["*.py"]}})
    code, told, annotations = run(path, "--proposed", theirs.parent)
    assert (code, told["dropped_parts"]) == (0, ["prompt"])
    assert f"::warning title=Suite desk%2C full set::{said}" in annotations
    desk(folder, entry="agent:answer", parts={"code": {"files": ["*.py"]}})
    assert f"::warning title=Suite desk%2C full set::{said}" in run(path)[2], "as main's stored run names them"
