"""Declares what a report consists of: sections of a table, a drawing, notes and a text, and the reasons. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from rampgate.report.drawing import Course, Drawing

Tone = Literal["pass", "warn", "fail"]


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
    """A part of a report. `heads` name the table's columns; `notes` come below it, and below them the `text`, as it is,
    at the `anchor`. A page alone has the `drawing` above them; `folded` it opens by a click, `side_by_side` its columns
    but the first are equally wide. A section that is `pages_only` is too wide or too long for a terminal and a job's
    summary."""

    title: str
    heads: Sequence[str] = ()
    rows: Sequence[Sequence[Value]] = ()
    notes: Sequence[str] = ()
    drawing: Drawing | None = None
    text: str = ""
    anchor: str = ""
    folded: bool = False
    side_by_side: bool = False
    pages_only: bool = False


@dataclass(frozen=True)
class Reason:
    """Why a result is not better, with its place in a file and its remedy, `fix`, where there are any.

    `about`: what it is about, for a reader the field or the judge, for JUnit one of the report's `tests`, unless `test`
    names another. `undecided`: something kept the check from finding out, which is an error in JUnit at any level.
    `detail`: what JUnit has below the message.
    """

    level: Literal["error", "warning"]
    message: str
    code: str = ""
    about: str = ""
    file: str = ""
    line: int = 0
    column: int = 0
    fix: str = ""
    undecided: bool = False
    test: str = ""
    detail: str = ""

    @property
    def place(self) -> str:
        """`file:line:column`, as far as it is known."""
        return ":".join(map(str, filter(None, (self.file, self.line, self.line and self.column))))

    @property
    def words(self) -> str:
        """What the reason is about, and what was found."""
        return f"{self.about}: {self.message}" if self.about else self.message

    @property
    def sentence(self) -> str:
        """All of it in one line: place, what was found, code and remedy."""
        place, code = f"{self.place}: " if self.file else "", f" ({self.code})" if self.code else ""
        return f"{place}{self.words}{code}{f'; {self.fix}' if self.fix else ''}"


@dataclass(frozen=True)
class Report:
    """A command's result. `tone` is that of the whole, `facts` a line about what was looked at, `tests` the names that
    JUnit lists, with a word on each where they have one: each of them passes unless a reason is about it."""

    title: str
    result: str
    tone: str
    sections: Sequence[Section] = ()
    reasons: Sequence[Reason] = ()
    tests: Sequence[str] | Mapping[str, str] = ()
    facts: str = ""

    @property
    def said_once(self) -> list[Reason]:
        """The reasons for a person: those that differ only in what they are about are one, about all of it."""
        found: dict[Reason, list[str]] = {}
        for why in self.reasons:
            found.setdefault(replace(why, about="", test=""), []).append(why.about)
        return [replace(why, about=", ".join(filter(None, names))) for why, names in found.items()]
