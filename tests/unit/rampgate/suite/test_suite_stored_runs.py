"""A command takes a stored run by its label or its hash wherever it takes a file of results."""

from __future__ import annotations

from pathlib import Path

import pytest

from rampgate.suite.runs.base_folder import commit_here, suite_at
from rampgate.suite.suite_files import read_suite
from tests.unit.rampgate.registry.git_folders import committed, git
from tests.unit.rampgate.suite.suite_commands import document, failure, ran
from tests.unit.rampgate.suite.suite_folders import case, written

CASES = [case(number) for number in range(30)]


@pytest.fixture
def path(folder: Path) -> Path:
    return written(folder, CASES)


def worse(folder: Path) -> None:
    (folder / "prompt.md").write_text("bad\n")


def test_a_candidate_alone_is_held_against_mains_last_run_that_passed(folder: Path, path: Path) -> None:
    ran(path, "--label", "main")
    worse(folder)
    found = ran(path, code=1)
    compared = document("compare", found["results"], "--suite", path, codes=(1,))
    assert compared["headline"]["delta"] == -1.0
    assert compared == found["comparison"] | {"confirmation": compared["confirmation"]}


NA_AGENT = """
from pathlib import Path


def answer(case):
    lost = Path(__file__).with_name("prompt.md").read_text().strip() == "silent" and case["input"] == "question 0"
    return {"output": f"{case['input']} #quality:{'na' if lost else 1}"}
"""


def test_a_run_that_lost_cases_is_no_ones_baseline(folder: Path) -> None:
    """Else what is not applicable once is never compared again."""
    cases = [case(number, tags=["chat"]) for number in range(20)]
    path = written(folder, cases, NA_AGENT, judges=["helpfulness"], score="helpfulness")
    ran(path, "--label", "main")
    (folder / "prompt.md").write_text("silent")
    lost = ran(path, "--label", "main")
    (folder / "prompt.md").write_text("silent\n")
    later = ran(path)
    assert later["baseline"]["results"] == lost["baseline"]["results"], "the run before that lost a case"
    assert [reason["cases"] for found in (lost, later) for reason in found["comparison"]["reasons"]] == [["c0"]] * 2


def test_runs_are_named_by_the_beginning_of_their_hash(folder: Path, path: Path) -> None:
    ran(path, "--label", "main")
    worse(folder)
    ran(path, "--label", "branch", code=1)
    shown = document("report", "--suite", path)
    assert [run["verdict"] for run in shown["runs"]] == ["pass", "fail"]
    assert [slice_["means"] for slice_ in shown["slices"] if slice_["slice"] is None] == [[1.0, 0.0]]
    assert [run["label"] for run in document("report", "--suite", path, "--label", "branch")["runs"]] == ["branch"]
    first, second = (run["hash"] for run in shown["runs"])
    assert document("compare", first[:8], second[:8], "--suite", path, codes=(1,))["headline"]["delta"] == -1.0
    assert document("compare", "main", "main", "--suite", path)["headline"]["delta"] == 0.0


def test_a_name_that_nothing_has_is_refused_and_the_last_runs_are_named(path: Path) -> None:
    assert "its store has no run" in failure("compare", "main", "--suite", path)
    ran(path, "--label", "main")
    said = failure("compare", "nightly", "--suite", path)
    assert "nightly: no file, no label of a run of desk that passed, and no run's hash" in said
    assert "(main, pass, " in said


def test_an_empty_name_is_no_runs_though_many_have_no_label(path: Path) -> None:
    ran(path)
    ran(path, "--label", "main")
    assert "here the name is empty" in failure("compare", "", "main", "--suite", path)


def test_a_run_that_did_not_pass_has_no_label_to_be_found_by(folder: Path, path: Path) -> None:
    ran(path, "--label", "main")
    worse(folder)
    ran(path, "--label", "branch", code=1)
    assert "no label of a run of desk that passed" in failure("compare", "main", "branch", "--suite", path)


@pytest.mark.parametrize("label", ["main ", "3f9a1c", "a\nb", "x" * 101, "-main", "größe"])
def test_a_label_by_which_no_run_could_be_named_is_refused(path: Path, label: str) -> None:
    assert "--label" in failure("run", path, "--label", label)


def test_without_a_suite_both_files_are_named(path: Path) -> None:
    found = ran(path)
    assert "name both files" in failure("compare", found["results"])
    assert "name files of results" in failure("report")


def test_blame_takes_mains_last_run_and_its_commit(folder: Path, path: Path) -> None:
    (folder / ".gitignore").write_text(".rampgate/\n__pycache__/\nasked.log\n")
    committed(folder, "trunk", branch="trunk")
    ran(path, "--label", "main")
    worse(folder)
    found = ran(path, code=1)
    assert found["baseline"]["commit"] == git(folder, "rev-parse", "HEAD").strip()
    assert found["comparison"]["confirmation"]["why_not"] is None
    blame = document("blame", path)
    assert (blame["found"], blame["guilty"]) == ("part", ["prompt"])
    assert blame["base"] == found["baseline"]["commit"]


def test_blame_names_nobody_for_more_than_it_may_cost(folder: Path) -> None:
    agent = 'import pathlib\nP = pathlib.Path(__file__).with_name("prompt.md").read_text()\n'
    agent += 'def answer(case):\n    return {"output": P, "cost_usd": 0.5}\n'
    path = written(folder, CASES, agent=agent)
    (folder / ".gitignore").write_text(".rampgate/\n__pycache__/\n")
    committed(folder, "trunk", branch="trunk")
    ran(path, "--label", "main")
    worse(folder)
    ran(path, code=1)
    assert "no part is named: " in failure("blame", path, "--max-cost", "1.5")
    assert document("blame", path, "--max-cost", "100")["guilty"] == ["prompt"]


def test_a_commit_is_told_only_of_a_folder_that_has_its_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_SHA", "c0ffee")
    folder = tmp_path / "suite"
    folder.mkdir()
    (folder / "prompt.md").write_text("good")
    assert commit_here(folder) == "c0ffee", "git does not know it"
    head = committed(tmp_path)
    assert commit_here(folder) == head
    (folder / "results.jsonl").write_text("{}")
    assert commit_here(folder) == head, "what git does not keep changes nothing"
    (tmp_path / "elsewhere").write_text("x")
    assert commit_here(folder) == head
    (folder / "prompt.md").write_text("bad")
    assert commit_here(folder) == ""


@pytest.mark.parametrize("below", [".", "agents/desk"])
def test_a_suite_is_read_as_it_was_wherever_it_stands_in_its_repository(tmp_path: Path, below: str) -> None:
    path = written(tmp_path / below)
    was = read_suite(path).configuration
    committed(tmp_path)
    (path.parent / "prompt.md").write_text("bad")
    assert read_suite(path).configuration != was
    assert suite_at(path, "HEAD", tmp_path / "then", read_suite).configuration == was
