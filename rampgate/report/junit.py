"""Writes a report as JUnit XML, as readers in CI take it. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from xml.etree import ElementTree as ET

from rampgate.report.model import Reason, Report
from schemas.dead_letters import clean

LONGEST = 2_000
_COMMAND = re.compile(rb"^(\s*):(?=:)", re.MULTILINE)
"""What a CI runner takes for a command where a line of its log begins: the document may go to stdout."""


def junit(report: Report) -> bytes:
    """Returns the document: each of the report's tests passes unless a reason is about it, and so does the whole, which
    has the report's title, unless a reason is about none of them. A report that fails and has no error fails as a
    whole."""
    found: dict[str, list[Reason]] = {report.title: [], **{name: [] for name in report.tests}}
    for why in report.reasons:
        about = why.test or why.about
        found[about if about in found else report.title].append(why)
    if report.tone == "fail" and not any(why.level == "error" or why.undecided for why in report.reasons):
        found[report.title].append(Reason("error", report.result))
    words = report.tests if isinstance(report.tests, Mapping) else {}
    root = ET.Element("testsuites")
    suite = ET.SubElement(root, "testsuite", name=_line(report.title))
    problems = Counter(_add(suite, report.title, name, why, words.get(name, "")) for name, why in found.items())
    counts = {"tests": len(found), "failures": problems["failure"], "errors": problems["error"], "skipped": 0}
    for key, value in counts.items():
        suite.set(key, str(value))
    ET.indent(root)
    written: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return _COMMAND.sub(rb"\1&#58;", written).replace(b"##[", b"#&#35;[") + b"\n"


def _add(suite: ET.Element, group: str, name: str, found: Sequence[Reason], word: str) -> str:
    """Add one test of the class `group`, and return what it ended in: a failure is found by the test, an error kept it
    from finding anything, `` where it passed, with its warnings. `word` is said of it whichever way it went."""
    case = ET.SubElement(suite, "testcase", classname=_line(group), name=_line(name))
    errors = [why for why in found if why.level == "error" or why.undecided]
    problem, text = "", "\n".join(why.sentence for why in found)
    if errors:
        problem = "error" if all(why.undecided for why in errors) else "failure"
        made = ET.SubElement(case, problem, type=errors[0].code, message=_line(errors[0].message))
        made.text = _lines("\n".join([text, *dict.fromkeys(why.detail for why in errors if why.detail)]))
    said = [word, f"warning: {text}" if text and not errors else ""]
    if any(said):
        ET.SubElement(case, "system-out").text = _lines("\n".join(filter(None, said)))
    return problem


def _line(words: str) -> str:
    return clean(words, LONGEST)


def _lines(words: str) -> str:
    """Without characters that XML has not."""
    return "\n".join(map(_line, words.splitlines()))
