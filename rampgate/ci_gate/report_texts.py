"""A gate's outcome as Markdown, for a job's summary or a comment. Pure.

A gate's outcome for a person at a terminal, and as GitHub's annotations.

A gate's outcome as JUnit's XML: a test for each judge. Pure.
"""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from xml.etree import ElementTree as ET

from rich import box
from rich.console import Console
from rich.table import Table

from rampgate.ci_gate.report_rows import LONGEST, distributions, facts, headline, of_the_whole, rows, said
from rampgate.ci_gate.run import GateRun
from rampgate.console import ANNOTATIONS_PER_LEVEL, escape_message, escape_property, plain
from schemas.dead_letters import clean
from schemas.verdicts import Code, Reason, VerdictLevel

WIDE = 120
"""Columns where nobody says how wide it is: a log."""
COLOURS = {VerdictLevel.PASS: "green", VerdictLevel.WARN: "yellow", VerdictLevel.FAIL: "red"}


def show(outcome: GateRun, console: Console | None = None) -> None:
    console = console or Console(highlight=False, soft_wrap=True)
    if not console.is_terminal:
        console.width = max(console.width, WIDE)
    found = rows(outcome)
    if found:
        table = Table(box=box.SIMPLE_HEAD)
        for head in ("Judge", "", "Score", "Threshold", "Floor", "Baseline", "Items", "Unscored"):
            table.add_column(head, justify="left" if head in ("Judge", "") else "right", overflow="fold")
        for row in found:
            score = row.score
            table.add_row(
                plain(row.judge), f"[{COLOURS[row.word]}]{row.word}[/]", row.shown, f"{score.threshold:g}",
                f"{score.floor:g}", row.baseline, str(score.n), str(score.unscored),
            )  # fmt: skip
        console.print(table)
    for reason in outcome.verdict.reasons:
        console.print(f"  {plain(said(reason), LONGEST)}")
    console.print(f"  [dim]{plain(facts(outcome), LONGEST)}[/]")
    word = outcome.verdict.verdict
    console.print(f"[{COLOURS[word]}]{plain(headline(outcome), LONGEST)}[/]")


def commands(outcome: GateRun) -> list[str]:
    """Workflow commands: one for each reason, an error where it blocks, and one for the gate."""
    verdict = outcome.verdict
    by_level: dict[str, list[str]] = {"error": [], "warning": []}
    title = escape_property(f"gate {verdict.milestone}")
    for row in rows(outcome):
        level = "error" if row.word is VerdictLevel.FAIL else "warning"
        by_level[level] += [_command(level, title, reason) for reason in row.why]
    by_level["error"] += [_command("error", title, reason) for reason in of_the_whole(outcome)]
    out = []
    for level, found in by_level.items():
        shown = found if len(found) <= ANNOTATIONS_PER_LEVEL else found[: ANNOTATIONS_PER_LEVEL - 1]
        left = len(found) - len(shown)
        out += shown
        if left:
            out.append(f"::{level} title={title}::{left} more {level}s are not shown here; `--format text` shows all")
    out.append(f"::notice title={title}::{escape_message(f'{headline(outcome)}. {facts(outcome)}')}")
    return out


def _command(level: str, title: str, reason: Reason) -> str:
    return f"::{level} title={title}::{escape_message(said(reason))}"


def junit(outcome: GateRun) -> bytes:
    """What blocks is a failure, what could not be judged an error; what warns passed, and says so in its output."""
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


SIGNS = {VerdictLevel.PASS: "✅", VerdictLevel.WARN: "⚠️", VerdictLevel.FAIL: "❌"}
_MARKS = re.compile(r"([\\`*_{}\[\]()#+!|~])")


def markdown(outcome: GateRun) -> str:
    verdict, spread = outcome.verdict, distributions(outcome)
    lines = [f"## {SIGNS[verdict.verdict]} Gate {text(headline(outcome))}", ""]
    found = rows(outcome)
    if found:
        lines += [
            "| judge | | score | threshold | floor | baseline | items | unscored | low to high |",
            "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |",
        ]
        for row in found:
            score, one = row.score, spread.get(row.judge)
            cells = (
                text(row.judge), f"{SIGNS[row.word]} {row.word}", row.shown, f"{score.threshold:g}",
                f"{score.floor:g}", row.baseline, str(score.n), str(score.unscored), one.drawn if one else "",
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
    """As it stands: it can be no mark-up, no cell's end and nobody's mention."""
    escaped = _MARKS.sub(r"\\\1", html.escape(clean(raw, LONGEST), quote=False))
    return escaped.replace("@", "&#64;")
