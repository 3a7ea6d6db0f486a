"""A report links to addresses and to its own sections alone; texts keep their lines, drawings tell their numbers."""

from __future__ import annotations

import pytest

from rampgate.report.drawing import Course, Estimate, Intervals
from rampgate.report.html import html
from rampgate.report.junit import junit
from rampgate.report.markdown import markdown
from rampgate.report.model import Link, Passage, Reason, Report, Section
from rampgate.report.values import LONGEST
from tests.unit.rampgate.checks.report_pages import Page
from tests.unit.rampgate.junit_files import junit_suite


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
