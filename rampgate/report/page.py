"""Writes a report as Markdown and as one HTML page that loads nothing: sections of a table, a drawing, a list, a text.

What stands in it is escaped for the form at hand: ids come from files, and reasons quote them. Pure but for
what touches files: `check_paths`, `write` and `write_all`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from rampgate.console import Failure
from rampgate.registry.file_writer import replace_file, require_regular, writable
from rampgate.report.drawing import STYLE as DRAWN
from rampgate.report.drawing import Course, Drawing
from rampgate.report.escaped import in_html, in_markdown
from rampgate.report.style import POLICY, STYLE
from schemas.dead_letters import clean

MOST_ROWS = 1_000
"""Rows of a table that a report has; it says how many more there are. `--json` has all."""
OWN_STYLE = (
    "h2{margin-top:1.5rem}td.left{min-width:9rem}td.passage,pre{white-space:pre-wrap;overflow-wrap:anywhere}"
    "td{vertical-align:top}pre{background:var(--card);padding:.6rem;max-height:24rem;overflow:auto;font-size:13px}"
    "table.sides{table-layout:fixed}.sides th:first-child{width:8rem}details h2{display:inline}a{color:var(--bar)}"
)
LONGEST = 8_000
"""Characters of a passage that a report shows."""
PAGES = {".html", ".htm"}
SIGNS = {"pass": "✅", "warn": "⚠️", "fail": "❌"}


@dataclass(frozen=True)
class Cell:
    """A result in a table: its words, and whether they are good (`pass`), bad (`fail`) or neither (`warn`)."""

    words: str
    tone: str


@dataclass(frozen=True)
class Link:
    """Words that lead to an address, https or http, or to the section of that anchor, `#…`; other targets are none."""

    words: str
    target: str


@dataclass(frozen=True)
class Passage:
    """A text of several lines, shown as it is."""

    words: str


Value = str | float | int | None | Sequence[float] | Cell | Link | Passage | Course


@dataclass(frozen=True)
class Section:
    """A part of a report. `heads` name the table's columns; `notes` come below it. A page alone has the `drawing` above
    them, and the `text`, as it is, at the `anchor`; `folded` it opens by a click, `side_by_side` its columns but the
    first are equally wide."""

    title: str
    heads: Sequence[str] = ()
    rows: Sequence[Sequence[Value]] = ()
    notes: Sequence[str] = ()
    drawing: Drawing | None = None
    text: str = ""
    anchor: str = ""
    folded: bool = False
    side_by_side: bool = False


@dataclass(frozen=True)
class Report:
    """A check's result. `tone` is that of the whole: `pass`, `warn` or `fail`."""

    title: str
    result: str
    tone: str
    sections: Sequence[Section]


def check_paths(paths: Sequence[Path]) -> None:
    """Raises Failure before anything costs."""
    for path in paths:
        if not writable(path):
            raise Failure(f"--report {path}: name a regular file in a folder that exists")


def write_all(paths: Sequence[Path], report: Report) -> None:
    """Write the report to each file. Raises Failure."""
    for path in paths:
        write(path, report)


def write(path: Path, report: Report) -> None:
    """Write the report, a page to a file that is called so, else Markdown at the file's end, as to a job's summary.
    Raises Failure."""
    try:
        require_regular(path)
        if path.suffix.lower() in PAGES:
            replace_file(path, html(report))
            return
        file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
        with os.fdopen(file, "wb") as opened:
            opened.write(markdown(report).encode())
    except OSError as error:
        raise Failure(f"--report {path}: can't be written: {error.strerror or error}") from error


def markdown(report: Report) -> str:
    lines = [f"## {SIGNS[report.tone]} {in_markdown(report.title)}: {in_markdown(report.result)}", ""]
    for section in report.sections:
        if not (section.rows or section.notes):
            continue
        lines += [f"### {in_markdown(section.title)}", ""]
        if section.rows:
            lines += [_row(map(in_markdown, section.heads)), _row("---" for _ in section.heads)]
            lines += [_row(map(_in_markdown, row)) for row in section.rows[:MOST_ROWS]] + [""]
        notes = [*_left_out(section), *section.notes]
        lines += [f"- {in_markdown(note)}" for note in notes] + [""] * bool(notes)
    return "\n".join([*lines, ""])


def html(report: Report) -> str:
    parts = [
        '<!doctype html><html lang="en"><head><meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{in_html(report.title)}</title><style>{STYLE}{OWN_STYLE}{DRAWN}</style></head><body><main>",
        f'<h1>{in_html(report.title)}: <span class="{report.tone}">{in_html(report.result)}</span></h1>',
        *(part for section in report.sections for part in _section(section)),
        "</main></body></html>\n",
    ]
    return "".join(parts)


def _section(section: Section) -> Iterator[str]:
    head = f"<h2>{in_html(section.title)}</h2>"
    yield f"<details><summary>{head}</summary>" if section.folded else head
    if section.drawing is not None:
        yield f'<div class="drawn">{section.drawing.svg()}</div>'
    if section.rows:
        words = [isinstance(value, (str, Link, Passage)) for value in section.rows[0]]
        sides = (' class="left"' if left else "" for left in words)
        heads = "".join(f"<th{side}>{in_html(head)}</th>" for head, side in zip(section.heads, sides, strict=True))
        table = '<table class="sides">' if section.side_by_side else "<table>"
        rows = "".join(f"<tr>{''.join(map(_in_html, row))}</tr>" for row in section.rows[:MOST_ROWS])
        yield (
            f'<div class="wide">{table}<thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>'
        )  # fmt: skip
    notes = "".join(f"<li>{in_html(note)}</li>" for note in (*_left_out(section), *section.notes))
    if notes:
        yield f"<ul>{notes}</ul>"
    if section.text:
        anchor = f' id="{in_html(section.anchor)}"' if section.anchor else ""
        yield f"<pre{anchor}>{_passage(section.text)}</pre>"
    if section.folded:
        yield "</details>"


def _left_out(section: Section) -> Iterator[str]:
    if (more := len(section.rows) - MOST_ROWS) > 0:
        yield f"{more:,} rows more are in the document of --json"


def _row(cells: Iterator[str] | map[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _in_markdown(value: Value) -> str:
    if isinstance(value, Cell):
        return f"{SIGNS[value.tone]} {in_markdown(value.words)}"
    if isinstance(value, Link):
        address = _address(value.target)
        return f"[{in_markdown(value.words)}](<{address}>)" if address else in_markdown(value.words)
    if isinstance(value, Passage):
        return "<br>".join(in_markdown(line) for line in value.words[:LONGEST].splitlines())
    if isinstance(value, Course):
        return value.words()
    return in_markdown(_words(value)).replace("\n", " ")


def _in_html(value: Value) -> str:
    if isinstance(value, Cell):
        return f'<td class="{value.tone}">{in_html(value.words)}</td>'
    if isinstance(value, Link):
        anchor = value.target if _ANCHOR.fullmatch(value.target) else ""
        target = _address(value.target) or anchor
        words = in_html(value.words)
        return f'<td class="left"><a href="{target}">{words}</a></td>' if target else f'<td class="left">{words}</td>'
    if isinstance(value, Passage):
        return f'<td class="left passage">{_passage(value.words)}</td>'
    if isinstance(value, Course):
        return f"<td>{value.svg()}</td>"
    side = ' class="left"' if isinstance(value, str) else ""
    return f"<td{side}>{in_html(_words(value))}</td>"


def _words(value: str | float | Sequence[float] | None) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, (int, float)):
        return f"{value:,}" if isinstance(value, int) else f"{value:.4g}"
    return " to ".join(f"{end:.3g}" for end in value)


_ADDRESS = re.compile(r"https?://[A-Za-z0-9][\w.:\[\]/?#@!$&*+,;=~%-]*", re.ASCII)
_ANCHOR = re.compile(r"#[\w-]+", re.ASCII)


def _address(target: str) -> str:
    """The address, fit for both forms; empty where it is none."""
    return target.replace("&", "&amp;") if _ADDRESS.fullmatch(target) else ""


def _passage(words: str) -> str:
    rest = f"\n… {len(words) - LONGEST:,} characters more" if len(words) > LONGEST else ""
    lines = words[:LONGEST].expandtabs(4).splitlines()
    return "\n".join(_line(line) for line in lines) + rest


def _line(line: str) -> str:
    return escape(clean(line, LONGEST))
