"""Reads `--acceptable`: from which score of people's on a turn is acceptable, for all judges or for single ones."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from rampgate.console import Failure, plain

ALL = "*"


def cuts_of(words: Sequence[str]) -> dict[str, float]:
    """Returns the cut of each judge that is named; of all others it is that of `*`. Raises Failure."""
    found: dict[str, float] = {}
    for word in words:
        name, _, number = word.rpartition("=")
        try:
            cut = float(number) if number.isascii() else math.nan
        except ValueError:
            cut = math.nan
        if not math.isfinite(cut):
            raise Failure(f"--acceptable: {plain(word, 80)!r} is no score; give a number, or JUDGE=NUMBER")
        if (name or ALL) in found:
            raise Failure(f"--acceptable: {plain(name or 'all judges', 80)} has two")
        found[name or ALL] = cut
    return found


def one_cut(cuts: Mapping[str, float]) -> float:
    """Returns the one cut of a file of scores. Raises Failure."""
    if {*cuts} != {ALL}:
        raise Failure("--acceptable: give one number, the lowest score of people's that is acceptable")
    return cuts[ALL]
