"""Figures of a path: how far the tools called are those of a reference, and what was called over and over. Pure.

Each function takes the names `actual`, then those of the `reference` (AgentCI Step 2 and Appendix A). Two empty
sequences are alike, 1.0; an empty one and another have nothing in common, 0.0 (contracts §5).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import orjson
from rapidfuzz.distance import LCSseq, Levenshtein

Names = Sequence[str]
LONGEST_CYCLE: Final = 32
"""Calls of a cycle that is looked for; a longer one is not seen."""


def tool_recall(actual: Names, reference: Names) -> float:
    """Returns the share of the reference's tools that were called, |E ∩ U| / |E|."""
    return _share(set(reference), set(actual))


def tool_precision(actual: Names, reference: Names) -> float:
    """Returns the share of the tools called that the reference has, |E ∩ U| / |U|."""
    return _share(set(actual), set(reference))


def tool_f1(actual: Names, reference: Names) -> float:
    """Returns the harmonic mean of precision and recall, 2·|E ∩ U| / (|E| + |U|)."""
    used, expected = set(actual), set(reference)
    return 2 * len(used & expected) / (len(used) + len(expected)) if used or expected else 1.0


def sequence_lcs(actual: Names, reference: Names) -> float:
    """Returns how alike the orders are by the longest common subsequence, 2·|LCS| / (|A| + |R|)."""
    if not actual and not reference:
        return 1.0
    return 2 * int(LCSseq.similarity(*_numbered(actual, reference))) / (len(actual) + len(reference))


def sequence_edit(actual: Names, reference: Names) -> float:
    """Returns how few calls have to be added, dropped or replaced, 1 - distance / max(|A|, |R|)."""
    if not actual and not reference:
        return 1.0
    return 1 - int(Levenshtein.distance(*_numbered(actual, reference))) / max(len(actual), len(reference))


def loops(names: Names) -> int:
    """Returns how many calls repeat the tool of the call before."""
    return sum(first == second for first, second in pairwise(names))


@dataclass(frozen=True)
class Cycle:
    """Two or more different tools that were called in the same order again at once, `repeats` times after the first."""

    tools: tuple[str, ...]
    repeats: int


def cycles(names: Names) -> list[Cycle]:
    """Returns the cycles of up to LONGEST_CYCLE calls: read from the first call on, the shortest that begins at it; a
    call is part of one. What `loops` counts is none."""
    return list(_cycles(names))


def repeated_calls(calls: Iterable[Mapping[str, Any]]) -> int | None:
    """Returns how many calls have the tool and arguments of an earlier one that did not fail; None where a call does
    not say its arguments."""
    made: set[Hashable] = set()
    repeats = 0
    for call in calls:
        if "arguments" not in call:
            return None
        one = call["name"], _written(call["arguments"])
        repeats += one in made
        if call.get("error") is None:
            made.add(one)
    return repeats


def _written(arguments: Any) -> bytes | str:
    try:
        return orjson.dumps(arguments, option=orjson.OPT_SORT_KEYS)
    except TypeError:  # such as a number of more than 64 bits
        return repr(arguments)


def _share(of: set[str], found: set[str]) -> float:
    return len(of & found) / len(of) if of else float(not found)


def _numbered(*sequences: Names) -> list[list[int]]:
    """The sequences with a number for each name: the library compares hashes of what it is given."""
    numbers: dict[str, int] = {}
    return [[numbers.setdefault(name, len(numbers)) for name in sequence] for sequence in sequences]


def _cycles(names: Names) -> Iterator[Cycle]:
    count, start = len(names), 0
    longest = min(LONGEST_CYCLE, count // 2)
    alike = {length: _runs(names, length) for length in range(2, longest + 1)}
    while start < count - 3:
        found = next((length for length, runs in alike.items() if runs[start] >= length), None)
        block = tuple(names[start : start + found]) if found else ()
        if not found or len(set(block)) == 1:
            start += 1
            continue
        repeats = alike[found][start] // found
        yield Cycle(block, repeats)
        start += found * (repeats + 1)


def _runs(names: Names, length: int) -> list[int]:
    """For each call, how many in a row from it on are the same as the call `length` later."""
    found = [0] * len(names)
    for place in range(len(names) - length - 1, -1, -1):
        found[place] = found[place + 1] + 1 if names[place] == names[place + length] else 0
    return found
