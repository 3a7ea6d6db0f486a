"""How small a drop of a slice a comparison finds, and what a smaller one needs: the whole procedure, simulated. Pure.

A difference errs by how a case's samples differ, which more samples make smaller, and by how much more one case moved
than another, which only more cases do. Both are estimated from the comparison itself, with all cases taken to fall
alike, so that a drop in a few cases is found more seldom than is told here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from evalcore.stats.power import POWER
from evalcore.suite.comparison import SEED, Comparison, Difference
from evalcore.suite.confirm import FRESH, MOST
from evalcore.suite.pairing import Pair, Paired
from evalcore.suite.words import BLIND, SURE, SURE_OF_FRESH

if TYPE_CHECKING:
    from evalcore.suite.comparison import Numbers

SMALLEST = 0.05
"""The drop that is planned for, as a share of the scale."""
DRAWS = 10_000
MOST_SAMPLES = 1_000
MOST_CASES = 1_000
"""So many times as many cases as there are."""
LOSSES = 5
"""Samples of a steady agent that have to fail: chance puts all of them on the candidate's side once in 32 times."""


@dataclass(frozen=True)
class Errors:
    """What makes a difference of means err, as variances: `samples`, of samples with as many as there are, and
    `cases`, of cases with endless samples. `apart`: 1 / baseline's + 1 / candidate's samples of a case, on average."""

    samples: float
    cases: float
    apart: float
    units: int

    def fresh(self, cases: int) -> Errors:
        """The same of the fresh samples of both sides, of which there are for sixty of so many cases."""
        return self.with_samples(FRESH).with_cases(min(cases, MOST) / cases)

    def with_cases(self, times: float) -> Errors:
        """The same where there are so many times as many cases."""
        return replace(
            self, samples=self.samples / times, cases=self.cases / times, units=max(round(self.units * times), 2)
        )

    def with_samples(self, count: int) -> Errors:
        """The same where both sides have so many samples of each case."""
        return replace(self, samples=self.samples / self.apart * 2 / count, apart=2 / count)


@dataclass(frozen=True)
class Power:
    """`smallest`: the drop that is found 8 times in 10, and `found`, how often one of `drop` is; `confirmed_…`: with
    fresh samples, as `suite run` decides (of the headline the same). `cases` and `samples` are what finding `drop` so
    often takes then, None where there is enough, or none suffice; `never`: however many samples of these cases do not
    suffice."""

    drop: float
    smallest: float
    found: float
    confirmed_smallest: float
    confirmed_found: float
    cases: int | None = None
    samples: int | None = None
    never: bool = False

    def blind(self, *, fresh: bool) -> bool:
        """Tells whether a drop of a fifth of the scale is not found; `fresh`: where what fell is asked again."""
        return (self.confirmed_smallest if fresh else self.smallest) / self.drop * SMALLEST > BLIND


def powers(paired: Paired, comparison: Comparison, seed: int = SEED) -> tuple[Power | None, dict[str, Power]]:
    """Returns that of the headline, and of each slice; none where there is no case."""
    drop, drawn = SMALLEST * (paired.scale.high - paired.scale.low), Drawn(seed)
    found: dict[str | None, Power] = {}
    for name in (*comparison.slices, None):
        pairs, one = paired.of(name), comparison.of(name)
        errors = errors_of(pairs, one)
        if errors is not None and not one.few:
            found[name] = (slice_power if name is not None else headline_power)(errors, one.n, drop, drawn)
        elif pairs:
            found[name] = few_power(pairs, errors, drop, drawn)
    return found.get(None), {name: power for name, power in found.items() if name is not None}


def errors_of(pairs: Sequence[Pair], one: Difference) -> Errors | None:
    """Takes apart how a difference errs. Where no case has two samples, all of it is taken to be of cases."""
    import numpy as np

    if not one.error or one.units < 2:
        return None
    total = one.error**2 * one.units / (one.units - 1)
    sides = [side for pair in pairs for side in (pair.baseline.best, pair.candidate.worst)]
    spare = sum(len(side) - 1 for side in sides)
    within = math.fsum(float(np.var(side)) * len(side) for side in sides if len(side) > 1) / spare if spare else 0.0
    apart = math.fsum(1 / len(side) for side in sides) / one.n
    samples = min(within * apart / one.n, total)
    return Errors(samples, total - samples, apart, one.units)


class Drawn:
    """Draws that all sizes share, so that a larger suite never comes out as the weaker one by chance."""

    def __init__(self, seed: int = SEED) -> None:
        import numpy as np

        rng = np.random.default_rng(seed)
        self._case, self._first, self._again = rng.standard_normal((3, DRAWS))
        self._ranks = rng.standard_normal(DRAWS)
        self._spreads: dict[int, Numbers] = {}

    def plain(self, errors: Errors) -> Numbers:
        """The drop from which on each draw trips a slice: by more than two of its own standard errors."""
        spread = self._spread(errors.units)
        return self._seen(errors, self._first) + 2 * _error(errors) * spread * math.sqrt(1 - 1 / errors.units)

    def confirmed(self, errors: Errors, fresh: Errors) -> Numbers:
        """The drop from which on each draw trips a slice, and its fresh samples are worse as well."""
        import numpy as np

        return np.maximum(self.plain(errors), self.again(fresh))

    @property
    def none(self) -> Numbers:
        """Draws of samples that do not differ."""
        out: Numbers = self._case * 0
        return out

    def again(self, fresh: Errors) -> Numbers:
        """The drop from which on fresh samples are worse. What cases are like has no part in their test."""
        from scipy import special

        return self._seen(fresh, self._again) + float(special.ndtri(1 - SURE_OF_FRESH)) * math.sqrt(fresh.samples)

    def headline(self, errors: Errors) -> Numbers:
        """The drop from which on each draw is worse at the headline's p."""
        from scipy import special

        spread = self._spread(errors.units)
        sure = float(special.stdtrit(errors.units - 1, 1 - SURE / 2))
        return self._seen(errors, self._first) + sure * _error(errors) * spread

    def _seen(self, errors: Errors, samples: Numbers) -> Numbers:
        """By how much chance makes a drop look smaller. What is of cases is the same in fresh samples of them."""
        out: Numbers = math.sqrt(errors.cases) * self._case + math.sqrt(errors.samples) * samples
        return out

    def _spread(self, units: int) -> Numbers:
        """What estimated standard errors are of the true one: roots of chi-square by Wilson and Hilferty, which many
        sizes can afford."""
        import numpy as np

        if units not in self._spreads:
            off = 2 / (9 * (units - 1))
            self._spreads[units] = np.maximum(1 - off + math.sqrt(off) * self._ranks, 0.0) ** 1.5
        return self._spreads[units]


def slice_power(errors: Errors, cases: int, drop: float, drawn: Drawn) -> Power:
    """What the gate of a slice finds, by the plain rule and as `suite run` confirms it."""

    def found(one: Errors, many: int) -> Numbers:
        return drawn.confirmed(one, one.fresh(many))

    return _planned(drawn.plain(errors), found, errors, cases, drop)


def headline_power(errors: Errors, cases: int, drop: float, drawn: Drawn) -> Power:
    """What the gate of all cases finds; nothing is confirmed there."""
    return _planned(drawn.headline(errors), lambda one, many: drawn.headline(one), errors, cases, drop)


def few_power(pairs: Sequence[Pair], errors: Errors | None, drop: float, drawn: Drawn) -> Power:
    """What samples that change sides within their case find, stored and fresh ones: of an agent that never failed
    before; of one that does, no less than its own samples differ by."""

    from scipy import special

    def steady(samples: int) -> tuple[float, float]:
        if samples < LOSSES:
            return whole, 0.0
        smallest = float(special.betaincinv(LOSSES, samples - LOSSES + 1, POWER)) * whole
        return max(smallest, _smallest(noise)), float(special.betainc(LOSSES, samples - LOSSES + 1, SMALLEST))

    n, whole = len(pairs), drop / SMALLEST
    noise = drawn.again(errors.fresh(n)) if errors is not None else drawn.none
    plain = steady(sum(len(pair.candidate.worst) for pair in pairs))
    confirmed, found = steady(FRESH * min(n, MOST))
    needed = next((many for many in range(n, MOST + 1) if steady(FRESH * many)[0] <= drop), None)
    short = confirmed > drop
    return Power(drop, *plain, confirmed, min(found, _share(noise, drop)), needed if short else None, never=short)


def _planned(plain: Numbers, found: Callable[[Errors, int], Numbers], errors: Errors, cases: int, drop: float) -> Power:
    def enough(one: Errors, many: int = cases) -> bool:
        return _smallest(found(one, many)) <= drop

    now = found(errors, cases)
    power = Power(drop, _smallest(plain), _share(plain, drop), _smallest(now), _share(now, drop))
    if power.confirmed_smallest <= drop:
        return power
    needed = _least(lambda many: enough(errors.with_cases(many / cases), many), cases, cases * MOST_CASES)
    if not enough(errors.with_samples(MOST_SAMPLES)):
        return replace(power, cases=needed, never=True)
    return replace(power, cases=needed, samples=_least(lambda many: enough(errors.with_samples(many)), 1, MOST_SAMPLES))


def _least(enough: Callable[[int], bool], few: int, many: int) -> int | None:
    """The smallest number between these two that is enough; None where none is."""
    if not enough(many):
        return None
    while many - few > 1:
        middle = math.isqrt(few * many) if many > 2 * few else (few + many) // 2
        few, many = (few, middle) if enough(middle) else (middle, many)
    return many


def _error(errors: Errors) -> float:
    return math.sqrt(errors.cases + errors.samples)


def _smallest(drops: Numbers) -> float:
    import numpy as np

    return max(float(np.quantile(drops, POWER)), 0.0)


def _share(drops: Numbers, drop: float) -> float:
    return float((drops < drop).mean())
