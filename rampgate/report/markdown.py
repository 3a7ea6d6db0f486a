"""Writes a report as Markdown, as GitHub shows it in a job's summary. What stands in it is escaped. Pure."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from typing import Final

from rampgate.report.drawing import Course
from rampgate.report.model import Cell, Link, Passage, Report, Section, Value
from rampgate.report.values import LONGEST, LONGEST_LINE, MOST_ROWS, address, left_out, words
from schemas.dead_letters import clean

SIGNS = {"pass": "✅", "warn": "⚠️", "fail": "❌"}
_MARKS: Final = re.compile(r"([\\`*_{}\[\]()#+!|~])")
_GAP: Final = "&#8203;"
_LINKED: Final = re.compile(r"(&#64;|&#36;|\\#|GH-|(?:https?|ftp):(?=//)|www(?=\.))", re.IGNORECASE)
"""What GitHub makes a mention, a formula, an issue's or an address's link of, also where it is escaped: it looks again
at what was rendered. A space without width right behind it hides it from that look, and from no one's eyes."""


def markdown(report: Report) -> str:
    lines = [f"## {SIGNS[report.tone]} {in_markdown(report.title)}: {in_markdown(report.result)}", ""]
    lines += [f"- {in_markdown(why.sentence)}" for why in report.said_once] + [""] * bool(report.reasons)
    for section in report.sections:
        lines += _section(section)
    return "\n".join([*lines, *([in_markdown(report.facts), ""] if report.facts else []), ""])


def _section(section: Section) -> Iterator[str]:
    if section.pages_only or not (section.rows or section.notes or section.text):
        return
    if section.title:
        yield f"### {in_markdown(section.title)}"
        yield ""
    if section.rows:
        yield _row(map(in_markdown, section.heads))
        yield _row("---" for _ in section.heads)
        yield from (_row(map(_cell, row)) for row in section.rows[:MOST_ROWS])
        yield ""
    notes = [*left_out(section), *section.notes]
    yield from (f"- {in_markdown(note)}" for note in notes)
    yield from [""] * bool(notes)
    if section.text:
        fence = "`" * max(3, 1 + max(map(len, re.findall("`+", section.text)), default=0))
        yield from (f"{fence}diff", *(clean(line, LONGEST) for line in section.text.splitlines()), fence, "")


def _row(cells: Iterator[str] | map[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(value: Value) -> str:
    if isinstance(value, Cell):
        return f"{SIGNS[value.tone]} {in_markdown(value.words)}"
    if isinstance(value, Link):
        target = address(value.target).replace("&", "&amp;")
        return f"[{in_markdown(value.words)}](<{target}>)" if target else in_markdown(value.words)
    if isinstance(value, Passage):
        return "<br>".join(in_markdown(line) for line in value.words[:LONGEST].splitlines())
    if isinstance(value, Course):
        return value.words()
    return in_markdown(words(value)).replace("\n", " ")


def in_markdown(raw: str) -> str:
    """The text escaped for Markdown: nothing in it marks up, ends a table cell, mentions a user or becomes a link."""
    escaped = _MARKS.sub(r"\\\1", html.escape(clean(raw, LONGEST_LINE), quote=False))
    return _LINKED.sub(rf"\1{_GAP}", escaped.replace("@", "&#64;").replace("$", "&#36;"))
