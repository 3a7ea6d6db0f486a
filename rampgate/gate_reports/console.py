"""A gate's outcome for a person at a terminal, and as GitHub's annotations."""

from __future__ import annotations

from rich import box
from rich.console import Console
from rich.table import Table

from rampgate.cli.findings import PER_LEVEL, in_data, in_property
from rampgate.cli.query_view import plain
from rampgate.gate_reports.rows import LONGEST, facts, headline, of_the_whole, rows, said
from rampgate.gate_run import Outcome
from schemas.verdicts import Reason, Word

WIDE = 120
"""Columns where nobody says how wide it is: a log."""
COLOURS = {Word.PASS: "green", Word.WARN: "yellow", Word.FAIL: "red"}


def show(outcome: Outcome, console: Console | None = None) -> None:
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


def commands(outcome: Outcome) -> list[str]:
    """Workflow commands: one for each reason, an error where it blocks, and one for the gate."""
    verdict = outcome.verdict
    by_level: dict[str, list[str]] = {"error": [], "warning": []}
    title = in_property(f"gate {verdict.milestone}")
    for row in rows(outcome):
        level = "error" if row.word is Word.FAIL else "warning"
        by_level[level] += [_command(level, title, reason) for reason in row.why]
    by_level["error"] += [_command("error", title, reason) for reason in of_the_whole(outcome)]
    out = []
    for level, found in by_level.items():
        shown = found if len(found) <= PER_LEVEL else found[: PER_LEVEL - 1]
        left = len(found) - len(shown)
        out += shown
        if left:
            out.append(f"::{level} title={title}::{left} more {level}s are not shown here; `--format text` shows all")
    out.append(f"::notice title={title}::{in_data(f'{headline(outcome)}. {facts(outcome)}')}")
    return out


def _command(level: str, title: str, reason: Reason) -> str:
    return f"::{level} title={title}::{in_data(said(reason))}"
