"""What a judge's own noise makes of a gate: the chance that a clean candidate passes, and the drop it would see. Pure.

A rate (a BOOLEAN judge) is compared with its limit item by item: a clean item fails where the judge raises a false
alarm that it confirms, k of n. A mean is compared with normal errors. Either is what noise alone does: it says nothing
of whether the judge is right.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

POWER = 0.8
"""The chance with which a drop of the told size is found."""
_ROUNDING = 1e-9
_TIGHTEST = 0.999
"""A correlation beyond which an item's answers are as good as all the same, and the beta distribution degenerates."""


@dataclass(frozen=True)
class Figures:
    """`detectable_drop`: the smallest fall of the true mean, on the judge's scale, that the gate finds with 80 % power;
    None where no fall is. `clean_pass`: the chance that a candidate without any fall passes."""

    detectable_drop: float | None
    clean_pass: float


@dataclass(frozen=True)
class Confirmed:
    """An item counts as failing where its first answer fails and `failing` of `asks` do."""

    asks: int = 1
    failing: int = 1


def failing_chance(rate: float, correlation: float, rule: Confirmed) -> float:
    """Returns the chance that an item counts as failing where one answer fails with the chance `rate`.

    `correlation` says how much alike the answers about one item are: 0 where each is a throw of its own, 1 where all
    are the same. The items' own chances are beta distributed around `rate`.
    """
    later = rule.asks - 1
    return math.fsum(
        math.comb(later, more) * _moment(rate, correlation, more + 1, later - more)
        for more in range(max(rule.failing - 1, 0), later + 1)
    )


def of_rate(
    false_alarms: float, misses: float, correlation: float, rule: Confirmed, items: int, limit: float
) -> Figures:
    """Figures of a judge whose rate over `items` has to be `limit` or more.

    `false_alarms` and `misses` are the chances that one answer about an item that passes is failing, and the other way
    round. The drop is the share of items that truly fail.
    """
    from scipy import special

    allowed = math.floor(items * (1 - limit) + _ROUNDING)
    alarm = failing_chance(false_alarms, correlation, rule)
    if allowed >= items:
        return Figures(None, 1.0)
    clean = float(special.bdtr(allowed, items, alarm))
    found = failing_chance(1 - misses, 0.0, rule)
    # The rate of failing items at which one more than is allowed comes with the chance POWER.
    needed = float(special.betaincinv(allowed + 1, items - allowed, POWER))
    drop = (needed - alarm) / (found - alarm) if found > alarm else math.inf
    return Figures(max(drop, 0.0) if drop <= 1 else None, clean)


def of_mean(deviation: float, items: float, reference: float, limit: float, scale: float, runs: int = 0) -> Figures:
    """Figures of a judge whose mean over `items` has to be `limit` or more and is `reference` where nothing fell.

    `deviation` is that of one item's score from run to run. `runs`: of as many runs the limit itself is the mean, so
    that it errs, too; 0 for a limit that somebody set. `scale` is the scale's width.
    """
    from scipy import special

    error = deviation * math.sqrt((1 + (1 / runs if runs else 0)) / items)
    room = reference - limit + _ROUNDING
    clean = float(special.ndtr(room / error)) if error > 0 else float(room >= 0)
    drop = max(room - _ROUNDING + float(special.ndtri(POWER)) * error, 0.0)
    return Figures(drop if drop <= scale else None, clean)


def _moment(rate: float, correlation: float, failing: int, passing: int) -> float:
    """The mean over items of p^failing (1 - p)^passing."""
    if rate <= 0 or rate >= 1 or correlation <= 0:
        return float(rate**failing * (1 - rate) ** passing)
    from scipy import special

    spread = 1 / min(correlation, _TIGHTEST) - 1
    one, other = rate * spread, (1 - rate) * spread
    return math.exp(float(special.betaln(one + failing, other + passing) - special.betaln(one, other)))
