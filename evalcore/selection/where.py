"""Reads and applies the filter of an export (PF-9 FR-12): comparisons of scores and labels, joined by AND. Pure.

A missing value matches no comparison, `!=` neither: no one said what it is.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from schemas.answers import TurnView

KINDS: Final = ("feedback_scores", "judge_scores")
LABELS: Final = (
    *("response_id", "user_id", "session_id", "environment", "agent_version"),
    *("vertical", "sub_agent", "prompt_version", "category"),
)
OPERATORS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "!=": operator.ne,
    "=": operator.eq,
    "<": operator.lt,
    ">": operator.gt,
}
_TOKEN: Final = re.compile(
    r"""(?P<space>\s+)
    |(?P<operator><=|>=|!=|==|=|<|>)
    |(?P<number>[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?![\w.]))
    |(?P<text>"(?:[^"]|"")*"|'(?:[^']|'')*')
    |(?P<word>[^\W\d][\w.\-]*(?:"(?:[^"]|"")*")?)""",
    re.VERBOSE,
)
_PLAIN: Final = re.compile(r"[^\W\d][\w.\-]*")


class BadWhere(ValueError):
    """The filter can't be read; `column` counts from 1."""

    def __init__(self, column: int, reason: str) -> None:
        super().__init__(f"column {column}: {reason}")
        self.column = column


@dataclass(frozen=True)
class Comparison:
    """`kind`: one of KINDS, then `name` is a score's; or "" for a label. `than`: a number for a score, else a text."""

    kind: str
    name: str
    operator: str
    than: float | str

    def matches(self, view: TurnView) -> bool:
        found = self._value(view)
        return found is not None and OPERATORS[self.operator](found, self.than)

    def _value(self, view: TurnView) -> float | str | None:
        if self.kind == "feedback_scores":
            return view.feedback_scores.get(self.name)
        if self.kind == "judge_scores":
            return next((judge.score for judge in view.judge_scores if judge.judge_id == self.name), None)
        found: str | None = getattr(view, self.name)
        return found

    def __str__(self) -> str:
        name = self.name if _PLAIN.fullmatch(self.name) else _quoted(self.name)
        than = _quoted(self.than) if isinstance(self.than, str) else f"{self.than!r}"
        return f"{f'{self.kind}.' if self.kind else ''}{name} {self.operator} {than}"


Where = tuple[Comparison, ...]


def matches(where: Where, view: TurnView) -> bool:
    """True where every comparison holds."""
    return all(comparison.matches(view) for comparison in where)


def printed(where: Where) -> str:
    """The text that `parse_where` reads as this filter."""
    return " AND ".join(map(str, where))


def needed_scores(where: Where) -> tuple[str, ...]:
    """Names of the scores without which no turn matches."""
    return tuple(dict.fromkeys(comparison.name for comparison in where if comparison.kind))


def parse_where(text: str) -> Where:
    """The comparisons of a text such as `feedback_scores.user_signal_thumbs < 0 AND category = "tips"`. Raises
    BadWhere."""
    tokens, found, at = _tokens(text), list[Comparison](), 0
    while True:
        found.append(_comparison(tokens[at : at + 3], len(text) + 1))
        at += 3
        if at == len(tokens):
            return tuple(found)
        _, joining, column = tokens[at]
        if joining.lower() != "and":
            raise BadWhere(column, f"{joining[:64]!r} joins nothing; comparisons are joined by AND only")
        at += 1


def _tokens(text: str) -> list[tuple[str, str, int]]:
    """(sort, text, column) of each token but spaces."""
    found, at = list[tuple[str, str, int]](), 0
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None or not token.lastgroup:
            hint = "a quote is not closed" if text[at] in "\"'" else f"{text[at]!r} begins nothing that is known"
            raise BadWhere(at + 1, f'{hint}; write NAME OPERATOR VALUE, such as category = "tips"')
        if token.lastgroup != "space":
            found.append((token.lastgroup, token.group(), at + 1))
        at = token.end()
    return found


def _comparison(tokens: Sequence[tuple[str, str, int]], end: int) -> Comparison:
    expected = ("a field", f"one of {', '.join(OPERATORS)}", "a number or a quoted text")
    for number, sorts in enumerate((("word",), ("operator",), ("number", "text"))):
        if number >= len(tokens):
            raise BadWhere(end, f"the filter ends here; {expected[number]} is missing")
        sort, text, column = tokens[number]
        if sort not in sorts:
            raise BadWhere(column, f"{text[:64]!r} is not {expected[number]}")
    (_, field, at), (_, symbol, symbol_at), (sort, value, value_at) = tokens
    symbol = "=" if symbol == "==" else symbol
    kind, _, name = field.partition(".")
    if kind in KINDS and name:
        if sort != "number":
            raise BadWhere(value_at, f"{field[:64]} is a score; compare it with a number")
        number_value = float(value)
        if not math.isfinite(number_value):
            raise BadWhere(value_at, f"{value[:64]} is too large")
        return Comparison(kind, _unquoted(name) if name[0] == '"' else name, symbol, number_value)
    if field not in LABELS:
        known = ", ".join((*(f"{kind}.NAME" for kind in KINDS), *LABELS))
        raise BadWhere(at, f"{field[:64]!r} is no field; there are {known}")
    if sort != "text":
        raise BadWhere(value_at, f'{field} is a text; write "{value[:64]}" with quotes')
    if symbol not in ("=", "!="):
        raise BadWhere(symbol_at, f"{field} is a text, which knows only = and !=, not {symbol}")
    return Comparison("", field, symbol, _unquoted(value))


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def _unquoted(text: str) -> str:
    return text[1:-1].replace(text[0] * 2, text[0])
