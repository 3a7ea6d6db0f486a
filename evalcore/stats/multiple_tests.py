"""Controls the chance of any false alarm over many tests. Pure."""

from __future__ import annotations

from collections.abc import Sequence

CONFIRMED = 0.05
"""The chance of any false alarm among all tests, at which one is called."""
SUSPECTED = 0.2
"""That at which one is worth a warning."""
TESTS = 2
"""Of each judge at a gate: of its mean, and of its share of N/A."""


def holm(p_values: Sequence[float]) -> list[float]:
    """Returns p-values adjusted by Holm's method, in the order given.

    Where those at or below `a` are called, the chance of one false call among all is at most `a`, whatever the tests
    have to do with one another.
    """
    out = [1.0] * len(p_values)
    largest = 0.0
    for rank, place in enumerate(sorted(range(len(p_values)), key=lambda at: p_values[at])):
        largest = max(largest, min(1.0, p_values[place] * (len(p_values) - rank)))
        out[place] = largest
    return out
