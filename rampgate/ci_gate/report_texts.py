"""Writes a gate's outcome for a terminal, as GitHub annotations, as JUnit XML and as Markdown.

All but `show` are pure.
"""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from xml.etree import ElementTree as ET

from rich.console import Console

from rampgate.ci_gate.report_rows import LONGEST, distributions, facts, headline, of_the_whole, rows, said
from rampgate.ci_gate.run import GateRun
from rampgate.console import annotation, limited_annotations, plain
from rampgate.tables import make_table
from schemas.dead_letters import clean
from schemas.verdicts import Code, Reason, VerdictLevel

WIDE = 120
"""Columns of a log, which has no width of its own."""
COLOURS = {VerdictLevel.PASS: "green", VerdictLevel.WARN: "yellow", VerdictLevel.FAIL: "red"}
SIGNS = {VerdictLevel.PASS: "✅", VerdictLevel.WARN: "⚠️", VerdictLevel.FAIL: "❌"}
_MARKS = re.compile(r"([\\`*_{}\[\]()#+!|~])")


def show(outcome: GateRun, console: Console | None = None) -> None:
    console = console or Console(highlight=False, soft_wrap=True)
    if not console.is_terminal:
        console.width = max(console.width, WIDE)
    found = rows(outcome)
    if found:
        heads = ("", ">Score", ">Threshold", ">Floor", ">Baseline", ">Items", ">Unscored", "Standing, due")
        table = make_table(None, "Judge", *heads)
        for row in found:
            score = row.score
            table.add_row(
                plain(row.judge), f"[{COLOURS[row.word]}]{row.word}[/]", row.shown, f"{score.threshold:g}",
                f"{score.floor:g}", row.baseline, str(score.n), str(score.unscored), row.standing,
            )  # fmt: skip
        console.print(table)
    for reason in outcome.verdict.reasons:
        console.print(f"  {plain(said(reason), LONGEST)}")
    console.print(f"  [dim]{plain(facts(outcome), LONGEST)}[/]")
    word = outcome.verdict.verdict
    console.print(f"[{COLOURS[word]}]{plain(headline(outcome), LONGEST)}[/]")


def commands(outcome: GateRun) -> list[str]:
    """GitHub workflow commands: one for each reason, an error where it blocks, and one for the gate."""
    verdict = outcome.verdict
    by_level: dict[str, list[str]] = {"error": [], "warning": []}
    title = {"title": f"gate {verdict.milestone}"}
    for row in rows(outcome):
        level = "error" if row.word is VerdictLevel.FAIL else "warning"
        by_level[level] += [annotation(level, title, said(reason)) for reason in row.why]
    by_level["error"] += [annotation("error", title, said(reason)) for reason in of_the_whole(outcome)]
    return [
        *limited_annotations(by_level, title),
        annotation("notice", title, f"{headline(outcome)}. {facts(outcome)}"),
    ]


def junit(outcome: GateRun) -> bytes:
    """JUnit XML: a test for each judge and one for the gate.

    A judge that blocks is a failure, one that could not score an error; one that warns passes, with its warning as
    output.
    """
    verdict = outcome.verdict
    suite = ET.Element("testsuite", name=f"rampgate gate {verdict.milestone}", timestamp=outcome.decided_at)
    counted = {"failure": 0, "error": 0}
    cases: list[tuple[str, VerdictLevel, Sequence[Reason]]] = [(row.judge, row.word, row.why) for row in rows(outcome)]
    whole = of_the_whole(outcome)
    cases.append(("the gate as a whole", VerdictLevel.FAIL if whole else VerdictLevel.PASS, whole))
    for name, word, why in cases:
        case = ET.SubElement(suite, "testcase", classname=f"gate.{verdict.milestone}", name=name)
        told = "\n".join(said(reason) for reason in why)
        if word is VerdictLevel.FAIL:
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


def markdown(outcome: GateRun) -> str:
    verdict, spread = outcome.verdict, distributions(outcome)
    lines = [f"## {SIGNS[verdict.verdict]} Gate {text(headline(outcome))}", ""]
    found = rows(outcome)
    if found:
        lines += [
            "| judge | | score | threshold | floor | baseline | items | unscored | standing, due | low to high |",
            "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | --- | --- |",
        ]
        for row in found:
            score, one = row.score, spread.get(row.judge)
            cells = (
                text(row.judge), f"{SIGNS[row.word]} {row.word}", row.shown, f"{score.threshold:g}",
                f"{score.floor:g}", row.baseline, str(score.n), str(score.unscored), row.standing,
                one.drawn if one else "",
            )  # fmt: skip
            lines.append(f"| {' | '.join(cells)} |")
        lines.append("")
    lines += [f"- {text(said(reason))}" for reason in verdict.reasons]
    if verdict.reasons:
        lines.append("")
    if outcome.wanted.accepted:
        lines += [f"Accepted as a baseline shift: {text(', '.join(sorted(outcome.wanted.accepted)))}.", ""]
    return "\n".join([*lines, f"{text(facts(outcome))}.", ""])


def text(raw: str) -> str:
    """The text escaped for Markdown: nothing in it marks up, ends a table cell or mentions a user."""
    escaped = _MARKS.sub(r"\\\1", html.escape(clean(raw, LONGEST), quote=False))
    return escaped.replace("@", "&#64;")
