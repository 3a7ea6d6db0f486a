"""Divides items into those that the meta-LLM may see and those on which its proposals are measured. Pure.

The hash of an item's id decides, so an item stays on its side whatever is added to the dataset, and no one chooses.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evalcore.optimisation.copying import words
from evalcore.scoring.items import identity

PART: float = 0.5
"""The part of the items that is held out."""
NEAR = 10
"""One word in so many may differ where two items ask nearly the same."""
_PURPOSE = b"rampgate: held out\0"


@dataclass(frozen=True)
class Split:
    """Items of a dataset with their ids. `twins` are on neither side: their ids would show them, and an item that is
    held out asks the same, or nearly."""

    shown: Mapping[str, Mapping[str, Any]]
    held_out: Mapping[str, Mapping[str, Any]]
    twins: tuple[str, ...]


def is_held_out(item: str, part: float = PART) -> bool:
    """Tells by its id whether an item is held out."""
    drawn = hashlib.sha256(_PURPOSE + item.encode(errors="surrogatepass")).digest()
    return int.from_bytes(drawn[:8], "big") < part * 2**64


def split(rows: Sequence[Mapping[str, Any]], part: float = PART) -> Split:
    """Returns both sides, in the order of the rows."""
    named = {identity(row, number): row for number, row in enumerate(rows)}
    held = {item: row for item, row in named.items() if is_held_out(item, part)}
    asked = _Asked(_input(row) for row in held.values())
    twins = tuple(item for item, row in named.items() if item not in held and asked.has(_input(row)))
    shown = {item: row for item, row in named.items() if item not in held and item not in twins}
    return Split(shown, held, twins)


class _Asked:
    """Questions as counts of their words, which ask whether another one is the same, or nearly, in whatever order its
    words and fields stand."""

    def __init__(self, questions: Iterable[Counter[str]]) -> None:
        self._questions = list(questions)
        self._places: dict[str, list[int]] = {}
        for place, question in enumerate(self._questions):
            for word in question:
                self._places.setdefault(word, []).append(place)

    def has(self, asked: Counter[str]) -> bool:
        # Of so many rare words a near one has at least one: no more than these differ.
        rare = sorted(asked, key=lambda word: len(self._places.get(word, ())))
        known = {place for word in rare[: asked.total() // (NEAR - 1) + 2] for place in self._places.get(word, ())}
        return any(_near(asked, self._questions[place]) for place in known)


def _near(one: Counter[str], other: Counter[str]) -> bool:
    """Tells whether one has a word that the other lacks, or where they are long so many that a tenth differs."""
    longer, shorter = max(one.total(), other.total()), min(one.total(), other.total())
    same = (one & other).total()
    return longer - same <= longer // NEAR or (same == shorter and longer - same <= 1)


def _input(row: Mapping[str, Any]) -> Counter[str]:
    """The words of what is asked, however it is written; an input without a word is told apart by its signs."""
    said = [str(leaf) for leaf in _leaves(row.get("input"))]
    return Counter(word for text in said for word in words(text)) or Counter(said)


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, Mapping | list | tuple):
        for inner in value.values() if isinstance(value, Mapping) else value:
            yield from _leaves(inner)
    else:
        yield value
