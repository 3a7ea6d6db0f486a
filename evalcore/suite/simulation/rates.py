"""Counts how often a suite's gates block a candidate that changes nothing, and find a planted drop. Pure.

Gates are asked about two runs that are drawn alone, for which their nominal rates hold; pull requests about a baseline
as in use, the last run of main that passed, whose luck makes rates higher. A drop is planted in one slice after the
other, held against that baseline.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from evalcore.suite.comparison import SEED
from evalcore.suite.confirm import FRESH
from evalcore.suite.power import Drawn, Errors
from evalcore.suite.simulation.cases import Answers, SuiteCases
from evalcore.suite.simulation.counted import (
    HEADLINE,
    NOMINAL,
    PULL_REQUEST,
    SAFETY,
    SLICE,
    Alarms,
    Detection,
    Rate,
    Simulated,
)
from evalcore.suite.simulation.gates import (
    Group,
    Truths,
    all_worse,
    fails_again,
    fails_always,
    group_of,
    newly_failing,
    slice_stands,
    slice_worse,
)

if TYPE_CHECKING:
    from evalcore.suite.comparison import Numbers

CHAINS: Final = 100
"""Mains that are simulated side by side, each with a truth of its own."""
WARM: Final = 2
"""Runs of main before anything is counted, so that its baseline is one that passed."""
CELLS: Final = 4_000_000


@dataclass(frozen=True)
class Rules:
    """How the suite decides: samples of a case, whether fresh ones confirm; the drop to plant, in the score's unit."""

    samples: int
    drop: float
    confirm: bool = True
    seed: int = SEED


@dataclass
class Tally:
    found: int = 0
    of: int = 0

    def add(self, found: Truths) -> None:
        self.found += int(found.sum())
        self.of += found.size

    def rate(self) -> Rate:
        return Rate(self.found, self.of)


@dataclass
class _Planted:
    plain: Tally = field(default_factory=Tally)
    shipped: Tally = field(default_factory=Tally)
    planted: list[float] = field(default_factory=list)
    squares: list[float] = field(default_factory=list)
    within: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class _Asked:
    """What the gates said of comparisons, a row each: of slices a column each, of safety whether any case is."""

    slices: Truths
    slices_stand: Truths
    headline: Truths
    suspect: Truths
    unsafe: Truths

    @property
    def plain(self) -> Truths:
        out: Truths = self.slices.any(axis=1) | self.headline | self.suspect
        return out

    @property
    def blocked(self) -> Truths:
        out: Truths = self.slices_stand.any(axis=1) | self.headline | self.unsafe
        return out


def steps_of(cases: SuiteCases, simulations: int) -> tuple[int, int]:
    """How many mains are simulated side by side, and how many comparisons each."""
    cells = len(cases.cases) * len(cases.values)
    chains = max(min(CHAINS, simulations, CELLS // cells), 1)
    return chains, math.ceil(simulations / chains)


def simulate(
    cases: SuiteCases, rules: Rules, simulations: int, told: Callable[[int], None] = lambda done: None
) -> Simulated:
    """Returns the rates of at least so many comparisons; the same seed gives the same. `told` hears of steps done."""
    return _Simulation(cases, rules).run(simulations, told)


class _Simulation:
    def __init__(self, cases: SuiteCases, rules: Rules) -> None:
        self._cases, self._rules = cases, rules
        self._rng = np.random.default_rng(rules.seed)
        clusters = [case.cluster for case in cases.cases]
        self._whole = group_of("", np.arange(len(clusters)), clusters)
        self._slices = [group_of(name, cases.members(name), clusters) for name in cases.slices]
        self._guarded = cases.guarded()

    def run(self, simulations: int, told: Callable[[int], None]) -> Simulated:
        chains, steps = steps_of(self._cases, simulations)
        truths = self._cases.truths(self._rng, chains)
        baseline = self._first(truths)
        gates = {name: (Tally(), Tally()) for name in NOMINAL}
        planted = [_Planted() for _ in self._slices]
        for step in range(WARM + steps):
            main = self._first(truths)
            if step >= WARM:
                candidate = self._first(truths)
                self._count(gates, truths, baseline, candidate, main)
                for group, one in zip(self._slices, planted, strict=True):
                    self._plant(group, one, truths, baseline)
            passed = ~self._ask(truths, baseline, main).blocked
            baseline = Answers(
                np.where(passed[:, None], main.means, baseline.means),
                np.where(passed[:, None], main.failing, baseline.failing),
            )
            told(step + 1)
        counted = {
            SLICE: bool(self._slices), HEADLINE: True, SAFETY: bool(len(self._guarded)), PULL_REQUEST: True,
        }  # fmt: skip
        alarms = [
            Alarms(name, plain.rate(), shipped.rate()) for name, (plain, shipped) in gates.items() if counted[name]
        ]
        drawn = Drawn(self._rules.seed)
        found = [self._detection(group, one, drawn) for group, one in zip(self._slices, planted, strict=True)]
        return Simulated(chains * steps, alarms, [one for one in found if one is not None])

    def _first(self, truths: Numbers) -> Answers:
        return self._cases.answers(self._rng, truths, self._rules.samples)

    def _fresh(self, truths: Numbers) -> Answers:
        return self._cases.answers(self._rng, truths, FRESH)

    def _count(
        self,
        gates: dict[str, tuple[Tally, Tally]],
        truths: Numbers,
        baseline: Answers,
        candidate: Answers,
        main: Answers,
    ) -> None:
        alone, used = self._ask(truths, main, candidate), self._ask(truths, baseline, candidate)
        for name, plain, shipped in (
            (SLICE, alone.slices, alone.slices_stand),
            (HEADLINE, alone.headline, alone.headline),
            (SAFETY, alone.suspect, alone.unsafe),
            (PULL_REQUEST, used.plain, used.blocked),
        ):
            gates[name][0].add(plain)
            gates[name][1].add(shipped)

    def _ask(self, truths: Numbers, baseline: Answers, candidate: Answers) -> _Asked:
        """What the gates say of each row, whose two sides have the same truth."""
        deltas = candidate.means - baseline.means
        plain = [slice_worse(group, deltas)[0] for group in self._slices]
        slices = np.array(plain, dtype=bool).reshape(len(self._slices), len(deltas)).T
        place = self._guarded
        suspects = newly_failing(baseline.failing[:, place], candidate.failing[:, place], self._rules.samples)
        headline = all_worse(self._whole, deltas, self._rules.seed)
        suspect: Truths = np.asarray(suspects.any(axis=1))
        if not self._rules.confirm:
            return _Asked(slices, slices, headline, suspect, suspect)
        rows = slices.any(axis=1) | suspect
        stand, unsafe = np.zeros_like(slices), np.zeros(len(deltas), dtype=bool)
        if rows.any():
            again = [self._fresh(truths[rows]) for _ in range(2)]
            fresh = again[1].means - again[0].means
            for column, group in enumerate(self._slices):
                tripped = slices[rows, column]
                stand[np.flatnonzero(rows)[tripped], column] = slice_stands(group, fresh[tripped], self._rules.seed)
            always = fails_always(candidate.failing[rows][:, place], self._rules.samples)
            failed = fails_again(again[0].failing[:, place], again[1].failing[:, place], always)
            unsafe[rows] = (failed & suspects[rows]).any(axis=1)
        return _Asked(slices, stand, headline, suspect, unsafe)

    def _plant(self, group: Group, one: _Planted, truths: Numbers, baseline: Answers) -> None:
        """A candidate that falls in this slice alone; what its gate says does not depend on other cases."""
        if group.units < 2:
            return
        inside = truths[:, group.places]
        fallen, by = self._cases.fallen(inside, self._rules.drop)
        first = self._cases.answers(self._rng, fallen, self._rules.samples)
        alone = Group(group.name, np.arange(len(group.places)), group.order, group.starts, group.sizes)
        plain, errors = slice_worse(alone, first.means - baseline.means[:, group.places])
        stand = plain.copy()
        if self._rules.confirm and plain.any():
            again = self._fresh(fallen[plain]).means - self._fresh(inside[plain]).means
            stand[plain] = slice_stands(alone, again, self._rules.seed)
        one.plain.add(plain)
        one.shipped.add(stand)
        one.planted.append(float(by.mean()))
        one.squares.append(float((errors**2).mean()))
        one.within.append(float((self._cases.within(inside) + self._cases.within(fallen)).mean()) / 2)

    def _detection(self, group: Group, one: _Planted, drawn: Drawn) -> Detection | None:
        if not one.plain.of:
            return None
        n, apart = len(group.places), 2 / self._rules.samples
        total = float(np.mean(one.squares)) * group.units / (group.units - 1)
        samples = min(float(np.mean(one.within)) * apart / n, total)
        errors, planted = Errors(samples, total - samples, apart, group.units), float(np.mean(one.planted))
        plain = float((drawn.plain(errors) < planted).mean())
        shipped = float((drawn.confirmed(errors, errors.fresh()) < planted).mean()) if self._rules.confirm else plain
        return Detection(group.name, n, planted, one.plain.rate(), one.shipped.rate(), plain, shipped)
