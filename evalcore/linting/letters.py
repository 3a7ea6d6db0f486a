"""Which letters a part of a regular expression can begin with, as far as that shows where a repeat before it ends."""

from __future__ import annotations

import re
from typing import Any

ALPHABET = frozenset(map(chr, range(0x250)))
"""Latin letters and what stands around them; two classes that differ on these are taken to be apart."""
_CATEGORIES = {
    "CATEGORY_DIGIT": r"\d",
    "CATEGORY_NOT_DIGIT": r"\D",
    "CATEGORY_SPACE": r"\s",
    "CATEGORY_NOT_SPACE": r"\S",
    "CATEGORY_WORD": r"\w",
    "CATEGORY_NOT_WORD": r"\W",
}


def apart(repeated: list[Any], after: Any | None) -> bool:
    """Whether what comes after a repeat of one letter is a letter that the repeat can't take: it ends just there."""
    mine = letters(repeated[0]) if len(repeated) == 1 else None
    if after is not None and str(after[0]).endswith("_REPEAT") and after[1][0] > 0 and len(after[1][2]) == 1:
        after = after[1][2][0]
    others = letters(after) if after is not None else None
    return mine is not None and others is not None and not mine & others


def letters(node: Any) -> frozenset[str] | None:
    """Of a part that is one letter, in both cases; None for any other part."""
    op, argument = node
    name = str(op)
    found: frozenset[str] | None = None
    if name == "LITERAL":
        found = frozenset({chr(argument)})
    elif name == "NOT_LITERAL":
        found = ALPHABET - {chr(argument)}
    elif name == "ANY":
        found = ALPHABET
    elif name == "IN":
        found = _class(argument)
    return None if found is None else frozenset(case for one in found for case in (one.lower(), one.upper()))


def _class(parts: list[Any]) -> frozenset[str]:
    found: set[str] = set()
    negated = False
    for op, argument in parts:
        name = str(op)
        if name == "NEGATE":
            negated = True
        elif name == "LITERAL":
            found.add(chr(argument))
        elif name == "RANGE":
            found |= {chr(code) for code in range(argument[0], min(argument[1], 0x2FF) + 1)}
        elif name == "CATEGORY":
            found |= {one for one in ALPHABET if re.fullmatch(_CATEGORIES[str(argument)], one)}
    return ALPHABET - found if negated else frozenset(found)
