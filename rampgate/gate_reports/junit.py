"""A gate's outcome as JUnit's XML: a test for each judge. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree as ET

from rampgate.gate_reports.rows import headline, of_the_whole, rows, said
from rampgate.gate_run import Outcome
from schemas.verdicts import Code, Reason, Word


def junit(outcome: Outcome) -> bytes:
    """What blocks is a failure, what could not be judged an error; what warns passed, and says so in its output."""
    verdict = outcome.verdict
    suite = ET.Element("testsuite", name=f"rampgate gate {verdict.milestone}", timestamp=outcome.decided_at)
    counted = {"failure": 0, "error": 0}
    cases: list[tuple[str, Word, Sequence[Reason]]] = [(row.judge, row.word, row.why) for row in rows(outcome)]
    whole = of_the_whole(outcome)
    cases.append(("the gate as a whole", Word.FAIL if whole else Word.PASS, whole))
    for name, word, why in cases:
        case = ET.SubElement(suite, "testcase", classname=f"gate.{verdict.milestone}", name=name)
        told = "\n".join(said(reason) for reason in why)
        if word is Word.FAIL:
            kind = "error" if any(reason.code is Code.JUDGE_UNAVAILABLE for reason in why) else "failure"
            counted[kind] += 1
            first = why[0] if why else None
            problem = ET.SubElement(case, kind, type=first.code if first else verdict.verdict)
            problem.set("message", said(first) if first else headline(outcome))
            problem.text = told
        elif told:
            ET.SubElement(case, "system-out").text = f"warning: {told}"
    seconds = f"{outcome.duration_seconds:.3f}"
    numbers = {
        "tests": len(cases), "failures": counted["failure"], "errors": counted["error"], "skipped": 0, "time": seconds
    }  # fmt: skip
    for key, value in numbers.items():
        suite.set(key, str(value))
    root = ET.Element("testsuites")
    root.append(suite)
    ET.indent(root)
    written: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return written + b"\n"
