"""Regular expressions in filters: they run on users' text, so they must not be able to run away.

The search backtracks. What is refused is everything that makes its time grow faster than the text squared: a repeat
within a repeat, a repeated choice, a reference back, and many open repeats in a row.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module
from typing import Any

from evalcore.corpus import Corpus
from evalcore.linting import Find, check
from evalcore.problems import Problem
from schemas.judges import Operator

LONGEST = 200
OPEN_REPEATS = 2
"""As many may be open-ended; each more is another factor of the text's length."""
_parser: Any = import_module("re._parser")
_REPEATS = ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT")


def runs_away(pattern: str) -> str | None:
    """Why a pattern is refused; None when it is not."""
    if len(pattern) > LONGEST:
        return f"it is {len(pattern)} characters long; {LONGEST} are the most"
    try:
        re.compile(pattern)
        tree = _parser.parse(pattern)
    except (re.error, RecursionError, OverflowError) as wrong:
        return f"it is no regular expression: {wrong}"
    found = list(_walk(tree, 0))
    names = {name for name, _ in found}
    if "nested" in names:
        return "it has a repeat within a repeat"
    if "choice" in names:
        return "it repeats a choice"
    if "back" in names:
        return "it refers back to a group"
    if "bound" in names:
        return "it counts a repeat to more than 1000"
    if (count := sum(1 for name, _ in found if name == "open")) > OPEN_REPEATS:
        return f"it has {count} open repeats; {OPEN_REPEATS} are the most"
    return None


def _walk(tree: Any, within: int) -> Iterator[tuple[str, int]]:
    """What is risky below a tree; `within` counts the repeats around it."""
    for op, argument in tree:
        name = str(op)
        if name in _REPEATS:
            least, most, inner = argument
            repeats = int(most) > 1
            if int(most) > 1000 and most is not _parser.MAXREPEAT:
                yield "bound", within
            if most is _parser.MAXREPEAT or int(most) > 100:
                yield "open", within
            if within and least != most:
                yield "nested", within
            yield from _walk(inner, within + int(repeats))
        elif name == "BRANCH":
            if within:
                yield "choice", within
            for branch in argument[1]:
                yield from _walk(branch, within)
        elif name == "SUBPATTERN":
            yield from _walk(argument[-1], within)
        elif name in ("ASSERT", "ASSERT_NOT"):
            yield from _walk(argument[1], within)
        elif name == "ATOMIC_GROUP":
            yield from _walk(argument, within)
        elif name in ("GROUPREF", "GROUPREF_EXISTS"):
            yield "back", within


@check(
    "pattern-ends",
    "PC5 §5.2",
    "A regular expression in a filter compiles and can't run away: no repeat in a repeat, no more than 200 characters.",
)
def pattern_ends(corpus: Corpus, find: Find) -> Iterator[Problem]:
    for _, _, rule in corpus.every_rule():
        filter_ = rule.model.filter
        if filter_ is None or filter_.operator is not Operator.MATCHES or not isinstance(filter_.value, str):
            continue
        wrong = runs_away(filter_.value)
        if wrong is not None:
            fix = "write a simpler pattern, or use contains, starts_with, ends_with or in"
            yield find(rule, ("filter", "value"), f"the pattern is refused: {wrong}", fix)


CHECKS = (pattern_ends,)
