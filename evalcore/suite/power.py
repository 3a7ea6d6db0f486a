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
from evalcore.suite.confirm import FRESH
from evalcore.suite.confirm import SURE as SURE_IN_FRESH
from evalcore.suite.gates import SURE
from evalcore.suite.pairing import Pair, Paired

if TYPE_CHECKING:
    from evalcore.suite.comparison import Numbers

SMALLEST = 0.05
"""The drop that is planned for, as a share of the scale."""
DRAWS = 10_000
MOST_SAMPLES = 1_000


@dataclass(frozen=True)
class Errors:
    """What makes a difference of means err, as variances: `samples`, of samples with as many as there are, and
    `cases`, of cases with endless samples. `apart`: 1 / baseline's + 1 / candidate's samples of a case, on average."""

    samples: float
    cases: float
    apart: float
    units: int

    def fresh(self) -> Errors:
        """The same of the fresh samples of both sides."""
        return self.with_samples(FRESH)

    def with_samples(self, count: int) -> Errors:
        """The same where both sides have so many samples of each case."""
        return replace(self, samples=self.samples / self.apart * 2 / count, apart=2 / count)


@dataclass(frozen=True)
class Power:
    """`smallest`: the drop that is found 8 times in 10, and `found`, how often one of `drop` is; `confirmed_…`: with
    fresh samples, as `suite run` decides (of the headline the same). `cases` and `samples` are what finding `drop` so
    often takes then, None where there is enough; `never`: however many samples of these cases do not suffice."""

    drop: float
    smallest: float
    found: float
    confirmed_smallest: float
    confirmed_found: float
    cases: int | None = None
    samples: int | None = None
    never: bool = False


def powers(paired: Paired, comparison: Comparison, seed: int = SEED) -> tuple[Power | None, dict[str, Power]]:
    """Returns that of the headline, and of each slice; none where nothing varied, or too little is there to say."""
    drop, drawn = SMALLEST * (paired.scale.high - paired.scale.low), Drawn(seed)
    whole = errors_of(paired.pairs, comparison.headline)
    slices = {}
    for name, one in comparison.slices.items():
        if (errors := errors_of([pair for pair in paired.pairs if name in pair.slices], one)) is not None:
            slices[name] = slice_power(errors, one.n, drop, drawn)
    return headline_power(whole, len(paired.pairs), drop, drawn) if whole is not None else None, slices


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
        self._ranks = rng.standard_normal((2, DRAWS))
        self._spreads: dict[int, tuple[Numbers, Numbers]] = {}

    def plain(self, errors: Errors) -> Numbers:
        """The drop from which on each draw trips a slice: by more than two of its own standard errors."""
        spread, _ = self._spread(errors.units)
        return self._seen(errors, self._first) + 2 * _error(errors) * spread * math.sqrt(1 - 1 / errors.units)

    def confirmed(self, errors: Errors, fresh: Errors) -> Numbers:
        """The drop from which on each draw trips a slice, and its fresh samples are worse as well."""
        import numpy as np
        from scipy import special

        _, spread = self._spread(fresh.units)
        sure = float(special.stdtrit(fresh.units - 1, 1 - SURE_IN_FRESH / 2))
        again = self._seen(fresh, self._again) + sure * _error(fresh) * spread
        return np.maximum(self.plain(errors), again)

    def headline(self, errors: Errors) -> Numbers:
        """The drop from which on each draw is worse at the headline's p."""
        from scipy import special

        spread, _ = self._spread(errors.units)
        sure = float(special.stdtrit(errors.units - 1, 1 - SURE / 2))
        return self._seen(errors, self._first) + sure * _error(errors) * spread

    def _seen(self, errors: Errors, samples: Numbers) -> Numbers:
        """By how much chance makes a drop look smaller. What is of cases is the same in fresh samples of them."""
        out: Numbers = math.sqrt(errors.cases) * self._case + math.sqrt(errors.samples) * samples
        return out

    def _spread(self, units: int) -> tuple[Numbers, Numbers]:
        """What estimated standard errors are of the true one, in the first samples and in the fresh ones: roots of
        chi-square by Wilson and Hilferty, which many sizes can afford."""
        import numpy as np

        if units not in self._spreads:
            off = 2 / (9 * (units - 1))
            one, other = np.maximum(1 - off + math.sqrt(off) * self._ranks, 0.0) ** 1.5
            self._spreads[units] = (one, other)
        return self._spreads[units]


def slice_power(errors: Errors, cases: int, drop: float, drawn: Drawn) -> Power:
    """What the gate of a slice finds, by the plain rule and as `suite run` confirms it."""

    def found(one: Errors) -> Numbers:
        return drawn.confirmed(one, one.fresh())

    return _planned(drawn.plain(errors), found, errors, cases, drop)


def headline_power(errors: Errors, cases: int, drop: float, drawn: Drawn) -> Power:
    """What the gate of all cases finds; nothing is confirmed there."""
    return _planned(drawn.headline(errors), drawn.headline, errors, cases, drop)


def _planned(plain: Numbers, found: Callable[[Errors], Numbers], errors: Errors, cases: int, drop: float) -> Power:
    def enough(one: Errors) -> bool:
        return _smallest(found(one)) <= drop

    now = found(errors)
    power = Power(drop, _smallest(plain), _share(plain, drop), _smallest(now), _share(now, drop))
    if power.confirmed_smallest <= drop:
        return power
    # All errors go with the root of the number of cases; that few cases' standard errors err more is left in.
    needed = math.ceil(cases * (power.confirmed_smallest / drop) ** 2)
    if not enough(errors.with_samples(MOST_SAMPLES)):
        return replace(power, cases=needed, never=True)
    few, many = 1, MOST_SAMPLES
    while many - few > 1:
        middle = math.isqrt(few * many) if many > 2 * few else (few + many) // 2
        few, many = (few, middle) if enough(errors.with_samples(middle)) else (middle, many)
    return replace(power, cases=needed, samples=many)


def _error(errors: Errors) -> float:
    return math.sqrt(errors.cases + errors.samples)


def _smallest(drops: Numbers) -> float:
    import numpy as np

    return max(float(np.quantile(drops, POWER)), 0.0)


def _share(drops: Numbers, drop: float) -> float:
    return float((drops < drop).mean())
