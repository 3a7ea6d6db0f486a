"""Replaces single fields of a YAML file and leaves every other byte of it as it was. Pure.

A field of the top level owns the lines from its name to the next one's, without blank lines and comments in the first
column that stand before that one. What a comment within those lines was about is gone with them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import date
from typing import Any, Final

from evalcore.yaml.loader import NotANumber, read_yaml, scalar

_PLAIN: Final = re.compile(r"[A-Za-z][\w./-]*", re.ASCII)


class NotEditable(ValueError):
    """The file's fields can't be written one by one; the message says why, and what to do."""


def written(name: str, value: Any, inside: str = "") -> str:
    """Returns a field's lines: a mapping below its name, everything else beside it."""
    if not isinstance(value, Mapping):
        return f"{inside}{name}: {_value(value)}\n"
    below = "".join(written(str(key), one, f"{inside}  ") for key, one in value.items())
    return f"{inside}{name}:\n{below}"


def as_text(text: str) -> str:
    """Returns the text as YAML: bare where that can only be read as this text, else in quotes."""
    return text if _PLAIN.fullmatch(text) and _is_itself(text) else json.dumps(text, ensure_ascii=False)


def edited(file: str, raw: bytes, fields: Mapping[str, Any]) -> bytes:
    """Returns the file with these fields of its top level at these values; None takes a field away. One that is there
    stays in its place, a new one comes after the field before it in `fields`, else before the one after it, else at the
    end. Fields that have their value already are not touched. Raises NotEditable."""
    data = _data(file, raw)
    wanted = {name: value for name, value in fields.items() if data.get(name) != value}
    if not wanted:
        return raw
    found = _splice(file, raw, [*fields], wanted)
    if _data(file, found) != {name: value for name, value in {**data, **wanted}.items() if value is not None}:
        raise NotEditable(f"{file}: its fields can't be told apart; write one a line")
    return found


def _data(file: str, raw: bytes) -> dict[str, Any]:
    document, findings = read_yaml(file, raw)
    if document is None or findings or not isinstance(document.data, dict):
        raise NotEditable(f"{file}: can't be read: {findings[0] if findings else 'no mapping of fields'}")
    return document.data


def _splice(file: str, raw: bytes, order: list[str], wanted: Mapping[str, Any]) -> bytes:
    document, _ = read_yaml(file, raw)
    places = document.places if document is not None else {}
    begins = {str(path[0]): at for path, at in places.items() if len(path) == 1}
    if any(column != 1 for _, column in begins.values()):
        raise NotEditable(f"{file}: its fields don't stand in lines of their own; write one a line, without braces")
    text = raw.decode("utf-8")
    end_of_line = "\r\n" if "\r\n" in text else "\n"
    lines = text.splitlines(keepends=True)
    if lines and not lines[-1].endswith(("\n", "\r")):
        lines[-1] += end_of_line
    first = sorted(begins.items(), key=lambda one: one[1])
    ends = [line - 1 for _, (line, _) in first[1:]] + [len(lines)]
    spans = {name: (line - 1, _end(lines, line, end)) for (name, (line, _)), end in zip(first, ends, strict=True)}
    put: dict[int, list[str]] = {}
    for place, name in enumerate(order):
        if name in wanted and wanted[name] is not None:
            new = written(name, wanted[name]).replace("\n", end_of_line)
            put.setdefault(_place(name, order[:place], order[place + 1 :], spans, len(lines)), []).append(new)
    gone = {at for name in wanted if name in spans for at in range(*spans[name])}
    out = []
    for at in range(len(lines) + 1):
        out += put.get(at, [])
        if at < len(lines) and at not in gone:
            out.append(lines[at])
    return "".join(out).encode()


def _end(lines: list[str], begin: int, end: int) -> int:
    """The line after a field's last one: what is blank, or a comment in the first column, belongs to the next field."""
    while end > begin and (not lines[end - 1].strip() or lines[end - 1].startswith("#")):
        end -= 1
    return end


def _place(
    name: str, before: list[str], after: list[str], spans: Mapping[str, tuple[int, int]], end_of_file: int
) -> int:
    """The line before which a field comes."""
    if name in spans:
        return spans[name][0]
    for other in reversed(before):
        if other in spans:
            return spans[other][1]
    return next((spans[other][0] for other in after if other in spans), end_of_file)


def _value(value: Any) -> str:
    if isinstance(value, str):
        return as_text(value)
    return str(value) if isinstance(value, date) else json.dumps(value)


def _is_itself(text: str) -> bool:
    try:
        return scalar(text) == text
    except NotANumber:
        return False
