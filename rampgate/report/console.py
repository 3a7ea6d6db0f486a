"""Shows a report on a terminal: a table a section, the notes, the reasons with their places, and the result last."""

from __future__ import annotations

from rich import box
from rich.console import Console
from rich.table import Table

from rampgate.console import LONGEST_MESSAGE, plain
from rampgate.report.drawing import Course
from rampgate.report.model import Cell, Link, Passage, Reason, Report, Section, Value
from rampgate.report.values import words

COLOURS = {"pass": "green", "warn": "yellow", "fail": "red"}
WIDE = 120
"""Columns of a log, which has no width of its own."""


def show(report: Report, console: Console | None = None) -> None:
    console = console or Console(highlight=False, soft_wrap=True)
    if not console.is_terminal:
        console.width = max(console.width, WIDE)
    for section in report.sections:
        if not section.pages_only:
            _section(section, console)
    for why in report.said_once:
        _reason(why, console)
    if report.facts:
        console.print(f"[dim]{plain(report.facts, LONGEST_MESSAGE)}[/]")
    result = f"[{COLOURS[report.tone]}]{plain(report.result, LONGEST_MESSAGE)}[/]"
    console.print(f"{plain(report.title, 500)}: {result}")


def _section(section: Section, console: Console) -> None:
    if section.rows:
        console.print(table(section))
    elif section.title and section.notes:
        console.print(plain(section.title))
    for note in section.notes:
        console.print(f"  {plain(note, LONGEST_MESSAGE)}")
    for line in section.text.splitlines():
        console.print(plain(line, LONGEST_MESSAGE))


def table(section: Section) -> Table:
    """The table of a section."""
    first = section.rows[0] if section.rows else [""] * len(section.heads)
    numbers = [isinstance(value, (int, float, tuple)) or value is None for value in first]
    made = Table(
        title=plain(section.title) or None, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0),
        show_header=bool(section.heads),
    )  # fmt: skip
    for head, number in zip(section.heads, numbers, strict=False):
        made.add_column(plain(head), justify="right" if number else "left", overflow="fold")
    for row in section.rows:
        made.add_row(*map(_cell, row))
    return made


def _reason(why: Reason, console: Console) -> None:
    place = f"{plain(why.place, 500)}: " if why.file else "  "
    level = f"[{'red' if why.level == 'error' else 'yellow'}]{why.level}[/]: "
    about = f"[bold]{plain(why.about)}[/]: " if why.about else ""
    code = f" [dim]({plain(why.code)})[/]" if why.code else ""
    console.print(f"{place}{level}{about}{plain(why.message, LONGEST_MESSAGE)}{code}")
    if why.fix:
        console.print(f"    fix: {plain(why.fix, LONGEST_MESSAGE)}")


def _cell(value: Value) -> str:
    if isinstance(value, Cell):
        return f"[{COLOURS[value.tone]}]{plain(value.words, LONGEST_MESSAGE)}[/]"
    if isinstance(value, Passage):
        return "\n".join(plain(line, LONGEST_MESSAGE) for line in value.words.splitlines())
    if isinstance(value, Link):
        return plain(value.words, LONGEST_MESSAGE)
    return plain(value.words() if isinstance(value, Course) else words(value), LONGEST_MESSAGE)
