"""`gate plan --base`: what changed since the target branch, by git, planned by that branch's table (PC5 §5.5)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from rampgate.cli import app
from rampgate.console import Failure
from tests.unit.rampgate.registry.git_folders import committed, git

EVERY = ["pre_merge", "pre_ramp", "pre_full"]
PROMPT = "\n".join(f"Rule {number}: answer kindly." for number in range(30)) + "\n"


class Repository:
    """A repository with a main branch and a pull request's."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.write("prompts/system.md", PROMPT)
        self.write("README.md", "hello\n")
        self.commit()
        self.git("checkout", "-q", "-b", "mine")

    def git(self, *arguments: str) -> str:
        return git(self.root, *arguments)

    def write(self, name: str, text: str) -> None:
        (self.root / name).parent.mkdir(parents=True, exist_ok=True)
        (self.root / name).write_text(text)

    def commit(self) -> None:
        committed(self.root)


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    made = Repository(tmp_path)
    monkeypatch.chdir(tmp_path)
    return made


def planned(*more: str) -> dict[str, Any]:
    result = CliRunner().invoke(app, ["gate", "plan", "--base", "main", "--json", *more])
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def test_a_prompt_that_is_renamed_out_of_its_folder_plans_its_gates(repository: Repository) -> None:
    (repository.root / "docs").mkdir()
    repository.git("mv", "prompts/system.md", "docs/system.md")
    repository.commit()
    made = planned()
    assert made["gates"] == EVERY
    assert made["files"][0] == {
        "file": "prompts/system.md", "rule": "prompts/**", "gates": EVERY, "renamed_to": "docs/system.md"
    }  # fmt: skip
    assert made["files"][1]["file"] == "docs/system.md"


def test_only_what_the_pull_request_changed_counts(repository: Repository) -> None:
    """Not what main changed meanwhile, and not what lies about uncommitted."""
    repository.write("README.md", "hello there\n")
    repository.commit()
    repository.git("checkout", "-q", "main")
    repository.write("prompts/system.md", PROMPT + "More.\n")
    repository.commit()
    repository.git("checkout", "-q", "mine")
    repository.write("outputs.jsonl", "{}")
    made = planned()
    assert (made["gates"], [one["file"] for one in made["files"]]) == ([], ["README.md"])


def test_a_pull_request_without_changes_plans_nothing(repository: Repository) -> None:
    repository.commit()
    assert (planned()["gates"], planned()["files"]) == ([], [])


def test_a_pull_request_is_planned_by_its_target_branchs_table(repository: Repository) -> None:
    """Its own table, by which a prompt were no prompt, decides only once it is merged."""
    repository.write("configs/gate-paths.yaml", "paths: [{gates: [], files: [prompts/**, configs/**]}]\n")
    repository.write("prompts/system.md", PROMPT + "Lie.\n")
    repository.commit()
    made = planned()
    assert (made["gates"], made["table"]) == (EVERY, "PC5's own")
    repository.git("checkout", "-q", "main")
    repository.git("merge", "-q", "mine")
    repository.git("checkout", "-q", "mine")
    repository.write("configs/gate-paths.yaml", "paths: [{gates: [pre_merge], files: [prompts/**]}]\n")
    repository.write("prompts/system.md", PROMPT + "Lie again.\n")
    repository.commit()
    made = planned()
    assert made["gates"] == []
    assert made["table"].startswith("configs/gate-paths.yaml at ")
    assert json.loads(plan_changed("prompts/system.md").stdout)["gates"] == ["pre_merge"]


def plan_changed(*names: str) -> Any:
    return CliRunner().invoke(app, ["gate", "plan", "--json", "--changed", *names])


def test_no_setting_of_the_pull_request_hides_a_change(repository: Repository) -> None:
    """`.gitmodules` may say that changes of a submodule are not to be shown, and git would believe it."""
    commit = repository.git("rev-parse", "HEAD").strip()
    repository.git("checkout", "-q", "main")
    repository.write(".gitmodules", '[submodule "p"]\npath = prompts/p\nurl = ./p\n')
    repository.git("update-index", "--add", "--cacheinfo", f"160000,{commit},prompts/p")
    repository.git("add", ".gitmodules")
    repository.git("commit", "-q", "-m", "a submodule")
    repository.git("checkout", "-q", "mine")
    repository.git("reset", "-q", "--hard", "main")
    repository.write(".gitmodules", '[submodule "p"]\npath = prompts/p\nurl = ./p\nignore = all\n')
    repository.git("add", ".gitmodules")
    other = repository.git("rev-parse", "main").strip()
    repository.git("update-index", "--cacheinfo", f"160000,{other},prompts/p")
    repository.git("commit", "-q", "-m", "moved")
    assert "prompts/p" in [one["file"] for one in planned()["files"]]


def test_changes_are_found_from_any_folder_and_with_any_name(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.write("src/a.py", "x")
    repository.write("prompts/two\nlines é.md", "x")
    repository.git("config", "diff.relative", "true")
    repository.commit()
    monkeypatch.chdir(repository.root / "src")
    assert [one["file"] for one in planned()["files"]] == ["prompts/two\nlines é.md", "src/a.py"]


@pytest.mark.parametrize("base", ["nowhere", "--output=x", "main:README.md"])
def test_a_base_that_git_does_not_know_plans_nothing_and_says_so(repository: Repository, base: str) -> None:
    result = CliRunner().invoke(app, ["gate", "plan", f"--base={base}"])
    assert isinstance(result.exception, Exception)
    assert result.exit_code != 0
    assert [one.name for one in repository.root.iterdir() if one.name != ".git"].count("x") == 0


def test_a_base_that_shares_no_history_is_an_error(repository: Repository) -> None:
    """As in a checkout of depth 1: no gate is left out because no one could look."""
    repository.git("checkout", "-q", "--orphan", "other")
    repository.write("README.md", "another beginning\n")
    repository.commit()
    result = CliRunner().invoke(app, ["gate", "plan", "--base", "main"])
    assert "fetch-depth: 0" in str(result.exception)


def test_a_table_with_an_error_is_none(repository: Repository) -> None:
    repository.write("configs/gate-paths.yaml", "paths: [{gates: [pre_merg], files: [prompts/**]}]\n")
    repository.commit()
    result = plan_changed("prompts/system.md")
    assert isinstance(result.exception, Failure)
    assert "gate-paths.yaml" in str(result.exception)
    assert "pre_merg" in str(result.exception)
