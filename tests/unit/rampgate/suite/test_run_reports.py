"""A report of `suite run` never reads as a pass where the run is none, whoever reads it: people, JUnit, annotations."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from rampgate.cli import app
from tests.unit.rampgate.junit_files import junit_suite
from tests.unit.rampgate.suite.suite_commands import ran, refused
from tests.unit.rampgate.suite.suite_folders import case, written

CASES = [case(number) for number in range(12)]
DEAR = """
from pathlib import Path


def answer(case):
    return {"output": Path(__file__).with_name("prompt.md").read_text(), "cost_usd": 0.5}
"""


def told(path: Path, *words: object) -> tuple[str, str, list[tuple[str, str]], str]:
    """Page, Markdown, the tests of JUnit that found something, and the annotations of a run that ends with 1."""
    reports = [path.parent / f"r.{ending}" for ending in ("html", "md", "xml")]
    named = [str(word) for one in reports for word in ("--report", one)]
    done = CliRunner().invoke(
        app, ["suite", "run", str(path), *map(str, words), *named, "--report", "github", "--json"]
    )
    assert done.exit_code == 1, done.output
    page, markdown, junit = (one.read_text() for one in reports)
    problems = [(test.get("name"), one.get("type")) for test in junit_suite(junit).iter("testcase") for one in test]
    found = [(str(name), str(kind)) for name, kind in problems if kind]
    return page, markdown, found, done.stderr


def test_a_plan_and_a_file_of_answers_have_reports_too(folder: Path) -> None:
    path, report = written(folder, CASES, agent=DEAR), folder / "r.md"
    asked = ["suite", "run", str(path), "--report", str(report)]
    assert CliRunner().invoke(app, [*asked, "--plan"]).exit_code == 0
    plan = report.read_text()
    assert "| answers | 24 | 0 |" in plan
    assert "cost: about" in plan
    assert CliRunner().invoke(app, [*asked, "--generate", str(folder / "a.jsonl"), "--max-cost", "2"]).exit_code == 1
    answers = report.read_text().removeprefix(plan)
    assert "incomplete, which is no pass" in answers
    assert "answers are left, and the next run resumes with them" in answers
    assert "a.jsonl: sha256" in answers


@pytest.mark.parametrize("with_baseline", [False, True])
def test_an_incomplete_run_is_no_pass_in_any_report(folder: Path, with_baseline: bool) -> None:
    path = written(folder, CASES, agent=DEAR)
    if with_baseline:
        ran(path, "--label", "main")
        (folder / "prompt.md").write_text("good as well\n")
    page, markdown, tests, annotations = told(path, "--max-cost", "2")
    assert ("the run", "incomplete") in tests
    for text in (page, markdown, annotations):
        assert "incomplete, which is no pass" in text
        assert "no regression" not in text
    assert "::error" in annotations


def test_an_agent_that_fails_every_time_is_a_failed_test_and_an_error(folder: Path) -> None:
    path = written(folder, CASES, agent="raise RuntimeError('no such module')\n")
    page, markdown, tests, annotations = told(path)
    assert ("the run", "agent_failed") in tests
    assert all("the agent failed every time" in text for text in (page, markdown, annotations))


def test_a_run_that_passes_has_no_test_of_the_whole_run(folder: Path) -> None:
    path = written(folder, CASES)
    ran(path, "--report", folder / "r.xml")
    tests = [test.get("name") for test in junit_suite((folder / "r.xml").read_bytes())]
    assert tests == ["Suite desk, full set", "all cases", "even", "odd"]


def test_where_all_cases_are_others_main_begins_anew_and_a_branch_is_told_so(folder: Path) -> None:
    ran(written(folder, CASES), "--label", "main")
    path = written(folder, [case(number, id=f"new-{number}") for number in range(12)])
    assert "run main again (--label main)" in refused(path)
    again = ran(path, "--label", "main")
    assert (again["verdict"], again["baseline"]) == ("pass", None)
    assert ran(path)["comparison"]["cases"]["compared"] == 12


def test_a_named_baseline_without_a_case_in_common_is_refused_on_main_too(folder: Path) -> None:
    first = ran(written(folder, CASES), "--out", folder / "first.jsonl")
    path = written(folder, [case(number, id=f"new-{number}") for number in range(12)])
    said = refused(path, "--label", "main", "--baseline", first["results"])
    assert "nothing can be compared" in said
