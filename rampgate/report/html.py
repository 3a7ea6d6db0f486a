"""Writes a report as one HTML page that loads nothing, by the template beside it, which escapes all. Pure."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from rampgate.report.drawing import Course
from rampgate.report.model import Cell, Link, Passage, Report, Value
from rampgate.report.values import LONGEST, LONGEST_LINE, MOST_ROWS, address, left_out, words
from schemas.dead_letters import clean

if TYPE_CHECKING:
    from markupsafe import Markup

_ANCHOR = re.compile(r"#[\w-]+", re.ASCII)


def html(report: Report) -> str:
    page: str = _template().render(report=report, most=MOST_ROWS)
    return page


@cache
def _template() -> Any:
    from jinja2 import Environment, StrictUndefined

    made = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    made.filters |= {"line": _line, "cell": _cell, "passage": _passage, "side": _side, "left_out": left_out}
    return made.from_string((files("rampgate.report") / "page.html.jinja").read_text())


def _line(raw: str) -> str:
    return clean(raw, LONGEST_LINE)


def _side(value: Value) -> str:
    return "left" if isinstance(value, (str, Link, Passage)) else ""


def _cell(value: Value) -> Markup:
    from markupsafe import Markup

    cell = Markup('<td class="{}">{}</td>')
    if isinstance(value, Cell):
        return cell.format(value.tone, _line(value.words))
    if isinstance(value, Link):
        target = value.target if _ANCHOR.fullmatch(value.target) else address(value.target)
        said = _line(value.words)
        return cell.format("left", Markup('<a href="{}">{}</a>').format(target, said) if target else said)
    if isinstance(value, Passage):
        return cell.format("left passage", _passage(value.words))
    if isinstance(value, Course):
        return cell.format("", Markup(value.svg()))  # noqa: S704 - a drawing escapes its own words
    return cell.format(_side(value), _line(words(value)))


def _passage(text: str) -> str:
    rest = f"\n… {len(text) - LONGEST:,} characters more" if len(text) > LONGEST else ""
    return "\n".join(clean(line, LONGEST) for line in text[:LONGEST].expandtabs(4).splitlines()) + rest
