"""What a plain scalar of YAML means here: YAML 1.2's core schema without its surprises, and days.

Only `true` and `false` are booleans (`yes`, `on` and `off` are text), numbers are decimal (`0644`, `0x1F`, `1_000` and
`12:30` are text), `2026-08-22` is a day. A field that wants another type then says so, with its place.
"""

from __future__ import annotations

import math
import re
from datetime import date
from typing import Final

Scalar = str | int | float | bool | date | None

_NULLS: Final = frozenset({"", "~", "null", "Null", "NULL"})
_BOOLEANS: Final = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_INTEGER: Final = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,17})", re.ASCII)
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|(?:0|[1-9][0-9]*)(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]{1,4})?", re.ASCII)
_DAY: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
_NO_NUMBER: Final = re.compile(r"[-+]?\.(?:inf|nan)", re.IGNORECASE)
_STARTS: Final = frozenset("0123456789-+.")


class NotANumber(ValueError):
    """Infinite, not a number, or too long to be meant."""


def scalar(text: str) -> Scalar:
    """The value of a plain scalar; raises NotANumber with a sentence."""
    if text in _NULLS:
        return None
    if text in _BOOLEANS:
        return _BOOLEANS[text]
    if text[0] not in _STARTS:
        return text
    if _INTEGER.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text):
        number = float(text)
        if not math.isfinite(number) or len(text) > 40:
            raise NotANumber(f"{text[:20]} is no number of a sensible size")
        return number
    if _NO_NUMBER.fullmatch(text):
        raise NotANumber(f"{text} is not a finite number")
    if _DAY.fullmatch(text):
        try:
            return date.fromisoformat(text)
        except ValueError:
            return text
    return text
