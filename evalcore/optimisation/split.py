"""Divides items into those that the meta-LLM may see and those on which its proposals are measured. Pure.

The hash of an item's id decides, so an item stays on its side whatever is added to the dataset, and nobody chooses.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evalcore.optimisation.copying import words
from evalcore.scoring.items import identity

PART: float = 0.5
"""The part of the items that is held out."""
_PURPOSE = b"rampgate: held out\0"


@dataclass(frozen=True)
class Split:
    """Items of a dataset with their ids. `twins` are on neither side: their ids would show them, and an item that is
    held out has the same input."""

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
    inputs = {_input(row) for row in held.values()}
    twins = tuple(item for item, row in named.items() if item not in held and _input(row) in inputs)
    shown = {item: row for item, row in named.items() if item not in held and item not in twins}
    return Split(shown, held, twins)


def _input(row: Mapping[str, Any]) -> tuple[str, ...]:
    """What is asked, however it is written; an input without a word is told apart by its signs."""
    said = str(row.get("input"))
    return tuple(words(said)) or (said,)
