"""How much a judge disagrees with itself: measured by asking it again about the same items. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

CONFIDENCE = 0.95
Interval = tuple[float, float]


@dataclass(frozen=True)
class Retest:
    """A judge's test-retest noise over `items` that were answered at least twice, with 95 % intervals.

    `flips`: the chance that two answers about one item differ. `deviation`: the standard deviation of the answers about
    one item, on the judge's scale. Of a BOOLEAN judge `false_alarms` is the chance that an answer is false about an
    item that most answers call true, `correlation` how much such answers gather at the same items, and `misses` the
    chance of a true answer about an item that most call false; None without such items.
    """

    items: int
    answers: int
    flips: float
    flips_ci95: Interval
    deviation: float
    deviation_ci95: Interval
    false_alarms: float | None = None
    false_alarms_ci95: Interval | None = None
    misses: float | None = None
    correlation: float = 0.0


def retest(answers: Sequence[Sequence[float]], boolean: bool) -> Retest | None:
    """Returns the noise in the answers item by item, 1.0 and 0.0 for true and false; None where no item has two."""
    told = [list(item) for item in answers if len(item) > 1]
    if not told:
        return None
    flips = math.fsum(_differing(item) for item in told) / len(told)
    variance, freedom = _within(told)
    found = Retest(
        len(told), sum(map(len, told)), flips, rate_interval(flips * len(told), len(told)),
        math.sqrt(variance), _deviation_interval(variance, freedom),
    )  # fmt: skip
    if not boolean:
        return found
    passing = [(item.count(0.0), len(item)) for item in told if 2 * item.count(0.0) <= len(item)]
    failing = [(len(item) - item.count(0.0), len(item)) for item in told if 2 * item.count(0.0) > len(item)]
    alarms, correlation = _rate(passing), _correlation(passing)
    asked = sum(count for _, count in passing)
    # Answers that gather at the same items say less than as many about items of their own.
    effective = asked / (1 + (asked / len(passing) - 1) * correlation) if passing else 0.0
    return Retest(
        **{
            **vars(found),
            "false_alarms": alarms,
            "false_alarms_ci95": rate_interval(alarms * effective, effective) if alarms is not None else None,
            "misses": _rate(failing),
            "correlation": correlation,
        }
    )


def rate_interval(hits: float, n: float) -> Interval:
    """Returns Clopper and Pearson's interval for a rate, which also takes an effective number of answers."""
    from scipy import special

    tail = (1 - CONFIDENCE) / 2
    low = float(special.betaincinv(hits, n - hits + 1, tail)) if hits > 0 else 0.0
    high = float(special.betaincinv(hits + 1, n - hits, 1 - tail)) if hits < n else 1.0
    return low, high


def _differing(item: Sequence[float]) -> float:
    """The share of an item's pairs of answers that differ."""
    equal = sum(item.count(value) * (item.count(value) - 1) for value in set(item))
    return 1 - equal / (len(item) * (len(item) - 1))


def _within(items: Sequence[Sequence[float]]) -> tuple[float, int]:
    """The pooled variance of answers about the same item, and its degrees of freedom."""
    squares, freedom = [], 0
    for item in items:
        mean = math.fsum(item) / len(item)
        squares += [(value - mean) ** 2 for value in item]
        freedom += len(item) - 1
    return math.fsum(squares) / freedom, freedom


def _deviation_interval(variance: float, freedom: int) -> Interval:
    from scipy import special

    tail = (1 - CONFIDENCE) / 2
    of = [variance * freedom / float(special.chdtri(freedom, share)) for share in (tail, 1 - tail)]
    return math.sqrt(of[0]), math.sqrt(of[1])


def _rate(counts: Sequence[tuple[int, int]]) -> float | None:
    return sum(hits for hits, _ in counts) / sum(n for _, n in counts) if counts else None


def _correlation(counts: Sequence[tuple[int, int]]) -> float:
    """How much more often than by chance two answers about the same item are both hits, from 0 to 1."""
    rate = _rate(counts)
    if rate is None or not 0 < rate < 1:
        return 0.0
    both = sum(hits * (hits - 1) for hits, _ in counts) / sum(n * (n - 1) for _, n in counts)
    return min(max((both - rate**2) / (rate * (1 - rate)), 0.0), 1.0)
