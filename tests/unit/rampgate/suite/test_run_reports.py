"""A report of `suite run` never reads as a pass where the run is none, for each reader: people, JUnit, annotations. A
report links to addresses and to its own sections alone; texts keep their lines, drawings tell their numbers."""

from __future__ import annotations

from pathlib import Path

import pytest

from rampgate.report.drawing import Course, Estimate, Intervals
from rampgate.report.html import html
from rampgate.report.junit import junit
from rampgate.report.markdown import markdown
from rampgate.report.model import Link, Passage, Reason, Report, Section
from rampgate.report.values import LONGEST
from tests.unit.rampgate.checks.report_pages import Page
from tests.unit.rampgate.junit_files import junit_suite
from tests.unit.rampgate.suite.suite_commands import ended, ran, refused
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
    done = ended("run", path, *words, *named, "--report", "github", "--json")
    assert done.exit_code == 1, done.output
    page, markdown, junit = (one.read_text() for one in reports)
    problems = [(test.get("name"), one.get("type")) for test in junit_suite(junit).iter("testcase") for one in test]
    found = [(str(name), str(kind)) for name, kind in problems if kind]
    return page, markdown, found, done.stderr


def test_a_plan_and_a_file_of_answers_have_reports_too(folder: Path) -> None:
    path, report = written(folder, CASES, agent=DEAR), folder / "r.md"
    asked = ("run", path, "--report", report)
    assert ended(*asked, "--plan").exit_code == 0
    plan = report.read_text()
    assert "| answers | 24 | 0 |" in plan
    assert "cost: about" in plan
    assert ended(*asked, "--generate", folder / "a.jsonl", "--max-cost", 2).exit_code == 1
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


def of(*sections: Section) -> Report:
    return Report("T", "fine", "pass", list(sections))


@pytest.mark.parametrize(
    "target",
    ["javascript:alert(1)", "data:text/html,x", "https://a b", 'https://a"onclick="x', "https://a)(b>", "file:///etc"],
)
def test_a_link_to_anything_but_an_address_is_only_words(target: str) -> None:
    report = of(Section("S", ("a",), [[Link("look", target)]]))
    assert "a" not in Page(html(report)).tags
    assert "look" in html(report)
    assert "](" not in markdown(report)


def test_an_address_is_a_link_in_both_forms_and_an_anchor_in_a_page() -> None:
    report = of(Section("S", ("a", "b"), [[Link("look", "https://opik.test/t?a=1&b=2"), Link("here", "#trace-ab")]]))
    assert '<a href="https://opik.test/t?a=1&amp;b=2">look</a>' in html(report)
    assert '<a href="#trace-ab">here</a>' in html(report)
    assert "[look](<https://opik.test/t?a=1&amp;b=2>) | here |" in markdown(report)


def test_a_passage_keeps_its_lines_and_says_how_much_is_left_out() -> None:
    report = of(Section("S", ("a",), [[Passage("one\n\n<two>")], [Passage("x" * (LONGEST + 7))]]))
    assert "one\n\n&lt;two&gt;" in html(report)
    assert "7 characters more" in html(report)
    assert "one<br><br>&lt;two&gt;" in markdown(report)


def test_a_section_of_a_text_alone_is_part_of_the_page_and_not_of_a_summary() -> None:
    report = of(Section("Trace ab", text="a\tb", anchor="trace-ab", folded=True, pages_only=True))
    assert '<pre id="trace-ab">a   b' in html(report)
    assert "Trace" not in markdown(report)


def test_drawings_tell_their_numbers_to_who_sees_none() -> None:
    drawn = Intervals("D", [Estimate("<b>", -0.25, (-0.5, 0.0), "fail"), Estimate("one", 0.0, None)]).svg()
    assert 'aria-label="D. &lt;b&gt;: -0.250; one: +0.000"' in drawn
    assert drawn.count("<circle") == 2
    assert Course([0.0, None, 1.0]).words() == "▁·█"
    assert "0, none, 1" in Course([0.0, None, 1.0]).svg()
    assert Course([None]).words() == "·"


def test_what_is_not_decided_yet_is_an_error_in_junit_though_it_is_a_warning_to_people() -> None:
    why = [
        Reason("warning", "not yet", "waits", undecided=True, test="the run"),
        Reason("warning", "worse", test="chat"),
    ]
    told = junit_suite(junit(Report("T", "waits", "fail", reasons=why, tests={"the run": "", "chat": "holds"})))
    problems = {str(test.get("name")): [one.tag for one in test] for test in told}
    assert problems == {"T": [], "the run": ["error"], "chat": ["system-out"]}
    assert told.findall(".//system-out")[0].text == "holds\nwarning: worse"
