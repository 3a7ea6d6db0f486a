"""Writes tests and how they went as JUnit XML, as readers in CI take it. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal
from xml.etree import ElementTree as ET

from rampgate.report.model import Reason, Report
from schemas.dead_letters import clean

LONGEST = 2_000


@dataclass(frozen=True)
class Tested:
    """One test. `problem`: a failure is found by the test, an error kept it from finding anything; without one it
    passed, and `text` is a warning. `word` is said of it whichever way it went."""

    name: str
    problem: Literal["failure", "error"] | None = None
    code: str = ""
    message: str = ""
    text: str = ""
    word: str = ""


def junit(suite: str, group: str, tests: Sequence[Tested]) -> bytes:
    """Returns the document: one suite, whose tests are of the class `group`."""
    root = ET.Element("testsuites")
    about = ET.SubElement(root, "testsuite", name=_line(suite))
    for one in tests:
        case = ET.SubElement(about, "testcase", classname=_line(group), name=_line(one.name))
        if one.problem is not None:
            problem = ET.SubElement(case, one.problem, type=one.code, message=_line(one.message))
            problem.text = _lines(one.text)
        said = [one.word, *([f"warning: {one.text}"] if one.problem is None and one.text else [])]
        if any(said):
            ET.SubElement(case, "system-out").text = _lines("\n".join(filter(None, said)))
    numbers = {
        "tests": len(tests), "failures": sum(one.problem == "failure" for one in tests),
        "errors": sum(one.problem == "error" for one in tests), "skipped": 0,
    }  # fmt: skip
    for key, value in numbers.items():
        about.set(key, str(value))
    ET.indent(root)
    written: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return written + b"\n"


def of_report(report: Report) -> bytes:
    """Returns the document of a report: each of its tests passes unless a reason is about it, and so does the whole,
    which has the report's title, unless a reason is about none of them. A report that fails and has no error fails as a
    whole."""
    found: dict[str, list[Reason]] = {report.title: [], **{name: [] for name in report.tests}}
    for why in report.reasons:
        about = why.test or why.about
        found[about if about in found else report.title].append(why)
    if report.tone == "fail" and all(why.level != "error" for why in report.reasons):
        found[report.title].append(Reason("error", report.result))
    words = report.tests if isinstance(report.tests, Mapping) else {}
    return junit(report.title, report.title, [_tested(name, why, words.get(name, "")) for name, why in found.items()])


def _tested(name: str, found: Sequence[Reason], word: str) -> Tested:
    text = "\n".join(why.sentence for why in found)
    errors = [why for why in found if why.level == "error" or why.undecided]
    if not errors:
        return Tested(name, text=text, word=word)
    problem: Literal["failure", "error"] = "error" if all(why.undecided for why in errors) else "failure"
    details = dict.fromkeys(why.detail for why in errors if why.detail)
    return Tested(name, problem, errors[0].code, errors[0].message, "\n".join([text, *details]), word)


def _line(words: str) -> str:
    return clean(words, LONGEST)


def _lines(words: str) -> str:
    """Without characters that XML has not."""
    return "\n".join(map(_line, words.splitlines()))
