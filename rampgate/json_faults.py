"""Says what is wrong with a line of JSON Lines: the field, and what to do about it.

A file of scores is read by a fast parser that names no field. What it refuses is read again here, slowly and once.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable

_SURROGATE = re.compile("[\ud800-\udfff]")
_KIND = "the file is JSON Lines, one object a line"
NO_OBJECT = f"not an object; {_KIND}"


def refused(line: bytes, error: ValueError) -> str:
    """Returns why a line is no JSON, with the field where one can be told."""
    try:
        line.decode()
    except UnicodeDecodeError:
        return "not UTF-8; save the file as UTF-8"
    try:
        one = json.loads(line)
        if (way := _way(one, _no_number)) is not None:
            return f"{_field(way)}is no finite number, and JSON has no other; leave out what has no score"
        if (way := _way(one, _no_text)) is not None:
            return f"{_field(way)}has half of a surrogate pair, which is no character; write the text again"
    except (ValueError, RecursionError):
        pass  # the fast parser's own words say it
    return f"not JSON: {error}; {_KIND}"


def given_twice(line: bytes, one: dict[str, object]) -> str:
    """Returns the field that a line's object has twice, of which a parser keeps one; empty where there is none.

    A line with no more colons than fields has none. Nor has one whose names stand in it once, each as it is read.
    """
    if line.count(b":") == len(one):
        return ""
    if b"\\u" not in line and all(name.isidentifier() and line.count(b'"%b"' % name.encode()) == 1 for name in one):
        return ""
    seen: set[str] = set()
    for name, _ in json.loads(line, object_pairs_hook=list):
        if name in seen:
            return str(name)
        seen.add(name)
    return ""


def _field(way: tuple[str, ...]) -> str:
    return f"{_shown('.'.join(way))[:80]}: " if way else ""


def _shown(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()


def _no_number(one: object) -> bool:
    return isinstance(one, float) and not math.isfinite(one)


def _no_text(one: object) -> bool:
    return isinstance(one, str) and _SURROGATE.search(one) is not None


def _way(one: object, wrong: Callable[[object], bool]) -> tuple[str, ...] | None:
    """The names and places that lead to the first part that is wrong; None where none is."""
    if wrong(one):
        return ()
    parts = one.items() if isinstance(one, dict) else enumerate(one) if isinstance(one, list) else ()
    for name, part in parts:
        if wrong(name):
            return (str(name),)
        if (way := _way(part, wrong)) is not None:
            return (str(name), *way)
    return None
