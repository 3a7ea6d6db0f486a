"""Regular expressions in filters: they run on users' text, so they must not be able to run away.

The search backtracks. What is refused is everything that makes its time grow faster than the text squared: a repeat
within a repeat, a repeated choice, a reference back, and several repeats in a row that share a text in many ways. A
search that is not anchored at the start tries every place of the text, which is a factor of its own. Who runs a pattern
has to bound the text: the square of a long one is long, too.

Which letters a part of a regular expression can begin with, as far as that shows where a repeat before it ends.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from evalcore.lint.check import Find, check
from evalcore.registry.files import RegistryFiles
from evalcore.yaml.findings import Finding
from schemas.judges import Operator

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


LONGEST = 200
MOST_FACTORS = 2
"""Of the text's length: one for each open repeat, one for a search that is not anchored."""
MOST_SHARES = 1000
"""In so many ways may repeats that are bounded share one text where its length counts once."""
FEW_SHARES = 8
"""And where it counts squared."""
OPEN = 100
"""A repeat that may go on longer is as good as open."""
_parser: Any = import_module("re._parser")
_REPEATS = ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT")


def runs_away(pattern: str) -> str | None:
    """Why a pattern is refused; None when it is not."""
    if len(pattern) > LONGEST:
        return f"it is {len(pattern)} characters long; {LONGEST} are the most"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            flags = re.compile(pattern).flags
            tree = list(_parser.parse(pattern))
    except (re.error, RecursionError, OverflowError) as wrong:
        return f"it is no regular expression: {wrong}"
    found = set(_risks(tree, 0))
    if "nested" in found:
        return "it has a repeat within a repeat"
    if "choice" in found:
        return "it repeats a choice"
    if "back" in found:
        return "it refers back to a group"
    if "bound" in found:
        return "it counts a repeat to more than 1000"
    ways = _ways(_decisive(tree), last=True)
    anchored = _is_anchored(tree) and not flags & re.MULTILINE
    factors = ways.factors + (not anchored)
    if factors > MOST_FACTORS:
        return f"it has several open repeats{'' if anchored else ' and does not begin with ^'}"
    if ways.shares > (MOST_SHARES if factors < MOST_FACTORS else FEW_SHARES):
        return f"its repeats can share one text in {ways.shares} ways"
    return None


def _risks(tree: Any, within: int) -> Iterator[str]:
    """What is refused wherever it stands; `within` counts the repeats around it."""
    for op, argument in tree:
        name = str(op)
        if name in _REPEATS:
            least, most, inner = argument
            if int(most) > 1000 and most is not _parser.MAXREPEAT:
                yield "bound"
            if within and least != most:
                yield "nested"
            yield from _risks(inner, within + int(int(most) > 1))
            continue
        if name == "BRANCH" and within:
            yield "choice"
        if name in ("GROUPREF", "GROUPREF_EXISTS"):
            yield "back"
        for inner in _inside(name, argument):
            yield from _risks(inner, within)


@dataclass(frozen=True)
class _Ways:
    """How one way through a pattern can share a text among its repeats. `scans`: it has open repeats that end where
    they must; together they read a text once. `open`: each of the others is a factor. `shares`: of the bounded ones."""

    scans: bool = False
    open: int = 0
    shares: int = 1

    @property
    def factors(self) -> int:
        return self.open + self.scans

    def __mul__(self, other: _Ways) -> _Ways:
        return _Ways(self.scans or other.scans, self.open + other.open, self.shares * other.shares)


def _ways(tree: list[Any], last: bool = False) -> _Ways:
    """`last`: nothing comes after the tree. Shortening its last repeat leads to nothing that has to be tried again."""
    found = _Ways()
    variable = [place for place, (op, argument) in enumerate(tree) if _varies(op, argument)]
    for place, (op, argument) in enumerate(tree):
        name = str(op)
        if name in _REPEATS:
            least, most, inner = argument
            after = tree[place + 1] if place + 1 < len(tree) else None
            ends = last and variable[-1:] == [place]
            found *= _ways(list(inner))
            if least == most:
                continue
            if int(most) <= OPEN:
                found *= _Ways() if apart(list(inner), after) else _Ways(shares=int(most) - int(least) + 1)
            else:
                found *= _Ways(scans=True) if ends or apart(list(inner), after) else _Ways(open=1)
            continue
        inside = [_ways(list(inner)) for inner in _inside(name, argument)]
        scans = any(one.scans for one in inside)
        most_open, shares = max((one.open for one in inside), default=0), max((w.shares for w in inside), default=1)
        found *= _Ways(scans, most_open, shares)
    return found


def _varies(op: Any, argument: Any) -> bool:
    """Whether something in it can be longer or shorter."""
    if str(op) in _REPEATS:
        return bool(argument[0] != argument[1]) or any(_varies(*node) for node in argument[2])
    return any(_varies(*node) for inner in _inside(str(op), argument) for node in inner)


def _inside(name: str, argument: Any) -> list[Any]:
    """The patterns within a part that is no repeat."""
    if name == "BRANCH":
        return list(argument[1])
    if name == "SUBPATTERN":
        return [argument[-1]]
    if name in ("ASSERT", "ASSERT_NOT"):
        return [argument[1]]
    return [argument] if name == "ATOMIC_GROUP" else []


def _decisive(tree: list[Any]) -> list[Any]:
    """Without a letter's repeat at the very end: nothing after it can fail, so it is never shortened."""
    end = tree[:-1] if len(tree) > 1 and str(tree[-1][0]) == "AT" else tree
    if end and str(end[-1][0]) in _REPEATS:
        inner = list(end[-1][1][2])
        one = len(inner) == 1 and letters(inner[0]) is not None
        if one and (len(end) == len(tree) or str(inner[0][0]) == "ANY"):
            return end[:-1]
    return tree


def _is_anchored(tree: list[Any]) -> bool:
    return bool(tree) and str(tree[0][0]) == "AT" and str(tree[0][1]) in ("AT_BEGINNING", "AT_BEGINNING_STRING")


@check(
    "pattern-ends",
    "PC5 §5.2",
    "A regular expression in a filter compiles and can't run away: at most 200 characters, no repeat within a repeat, "
    "few repeats in a row.",
)
def pattern_ends(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    for _, _, rule in files.every_rule():
        filter_ = rule.model.filter
        if filter_ is None or filter_.operator is not Operator.MATCHES or not isinstance(filter_.value, str):
            continue
        wrong = runs_away(filter_.value)
        if wrong is not None:
            fix = "write a simpler pattern, or use contains, starts_with, ends_with or in"
            yield find(rule, ("filter", "value"), f"the pattern is refused: {wrong}", fix)


CHECKS = (pattern_ends,)
