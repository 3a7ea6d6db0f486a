"""Writes a report's reasons as GitHub annotations: workflow commands, which a runner reads from stderr too. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from rampgate.console import LONGEST_MESSAGE
from rampgate.report.model import Reason, Report

ANNOTATIONS_PER_LEVEL = 10
"""GitHub shows this many annotations of a level for each step of a job and drops the rest silently."""


def workflow_commands(report: Report) -> list[str]:
    """Return a command for each reason, at most as many of a level as GitHub shows, and with `facts` one for the
    result."""
    title = {"title": report.title}
    by_level: dict[str, list[str]] = {"error": [], "warning": []}
    for why in report.reasons:
        by_level[why.level].append(_reason(why, title))
    notice = [annotation("notice", title, f"{report.result}. {report.facts}")] if report.facts else []
    return [*limited_annotations(by_level, title if notice else {}), *notice]


def _reason(why: Reason, title: Mapping[str, str]) -> str:
    """A reason with a place is shown at its line in the pull request, under its code."""
    fix = f"\n{why.fix}" if why.fix else ""
    if not why.file:
        code = f"{why.code}: " if why.code else ""
        return annotation(why.level, title, f"{code}{why.words}{fix}")
    place = {"file": why.file, "line": str(why.line or ""), "col": str(why.column if why.line else "")}
    shown = {**place, "title": why.code}
    properties = {name: text for name, text in shown.items() if text not in ("", "0")}
    return annotation(why.level, properties, f"{why.words}{fix}")


def annotation(level: str, properties: Mapping[str, str], message: str) -> str:
    """Return one GitHub workflow command, escaped: nothing in its texts can begin a command of its own."""
    about = ",".join(f"{name}={escape_property(text)}" for name, text in properties.items())
    return f"::{level} {about}::{escape_message(message)}" if about else f"::{level}::{escape_message(message)}"


def limited_annotations(by_level: Mapping[str, list[str]], properties: Mapping[str, str]) -> list[str]:
    """Return at most `ANNOTATIONS_PER_LEVEL` workflow commands of each level.

    Where a level has more, its last command, with `properties`, says how many are left out.
    """
    commands: list[str] = []
    for level, found in by_level.items():
        shown = found if len(found) <= ANNOTATIONS_PER_LEVEL else found[: ANNOTATIONS_PER_LEVEL - 1]
        commands += shown
        if left := len(found) - len(shown):
            message = f"{left} more {level}s are not shown here; the report on stdout shows all"
            commands.append(annotation(level, properties, message))
    return commands


def escape_message(text: str) -> str:
    """Escape the message of a GitHub workflow command: nothing in it begins a command of its own, or moves a cursor."""
    shown = "".join(mark if mark.isprintable() or mark in "\r\n" else " " for mark in text[:LONGEST_MESSAGE])
    return shown.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def escape_property(text: str) -> str:
    """Escape a property of a GitHub workflow command."""
    return escape_message(text).replace(":", "%3A").replace(",", "%2C")
