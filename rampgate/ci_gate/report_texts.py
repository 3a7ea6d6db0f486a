"""Writes a gate's outcome for a terminal, as GitHub annotations, as JUnit XML and as Markdown.

All but `show` are pure.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from rampgate.ci_gate.report_rows import (
    LONGEST,
    OF_SUITE,
    distributions,
    facts,
    headline,
    of_the_suite,
    of_the_whole,
    rows,
    said,
)
from rampgate.ci_gate.run import GateRun
from rampgate.console import plain
from rampgate.report.escaped import in_markdown as text
from rampgate.report.github import annotation, limited_annotations
from rampgate.report.junit import Tested
from rampgate.report.junit import junit as write_junit
from rampgate.tables import make_table
from schemas.verdicts import Code, Reason, VerdictLevel

WIDE = 120
"""Columns of a log, which has no width of its own."""
COLOURS = {VerdictLevel.PASS: "green", VerdictLevel.WARN: "yellow", VerdictLevel.FAIL: "red"}
SIGNS = {VerdictLevel.PASS: "✅", VerdictLevel.WARN: "⚠️", VerdictLevel.FAIL: "❌"}


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
    for reason in of_the_suite(outcome)[1]:
        level = "error" if OF_SUITE[reason.code] is VerdictLevel.FAIL else "warning"
        by_level[level].append(annotation(level, title, said(reason)))
    return [
        *limited_annotations(by_level, title),
        annotation("notice", title, f"{headline(outcome)}. {facts(outcome)}"),
    ]


def junit(outcome: GateRun) -> bytes:
    """JUnit XML: a test for each judge, one for the gate, and where one was joined one for the suite's run.

    A judge that blocks is a failure, one that could not score an error; one that warns passes, with its warning as
    output.
    """
    verdict, tests = outcome.verdict, []
    cases: list[tuple[str, VerdictLevel, Sequence[Reason]]] = [(row.judge, row.word, row.why) for row in rows(outcome)]
    whole = of_the_whole(outcome)
    cases.append(("the gate as a whole", VerdictLevel.FAIL if whole else VerdictLevel.PASS, whole))
    if outcome.suite is not None:
        cases.append(("the suite", *of_the_suite(outcome)))
    for name, word, why in cases:
        told = "\n".join(said(reason) for reason in why)
        if word is not VerdictLevel.FAIL:
            tests.append(Tested(name, text=told))
            continue
        unscored = any(reason.code in (Code.JUDGE_UNAVAILABLE, Code.UNREADABLE_ITEM) for reason in why)
        code, message = (why[0].code, said(why[0])) if why else (verdict.verdict, headline(outcome))
        tests.append(Tested(name, "error" if unscored else "failure", code, message, told))
    return write_junit(
        f"rampgate gate {verdict.milestone}", f"gate.{verdict.milestone}", tests,
        seconds=outcome.duration_seconds, at=outcome.decided_at,
    )  # fmt: skip


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
