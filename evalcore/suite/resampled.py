"""Asks a suite's decision about runs that are resampled from stored ones: unchanged, and with cases broken for good.
Pure.

Both sides draw each answer to a case from all stored answers to it, as they were scored, and the functions that decide
of a real run decide of these. The baseline is main's last run that passed, as in use: its luck makes it hard to reach.
A case whose stored answers agree never differs here: with few stored runs chance is smaller than it is.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from evalcore.drift.scale import Scale
from evalcore.stats.retest import rate_interval
from evalcore.suite.comparison import SEED
from evalcore.suite.confirm import FRESH, confirmed, doubt
from evalcore.suite.gates import BLOCKING, Judged, SuiteCode, judge
from evalcore.suite.pairing import paired
from evalcore.suite.results import Case, Gone, Run
from schemas.verdicts import VerdictLevel

BROKEN: Final = (3, 4, 6)
"""So many cases of a slice are broken for good; of a smaller slice all."""
SLICE, HEADLINE, SAFETY, WARNING, PULL_REQUEST = "slice", "headline", "safety", "warning", "pull_request"
CODES: Final = {
    SLICE: SuiteCode.SLICE_REGRESSED,
    HEADLINE: SuiteCode.HEADLINE_REGRESSED,
    SAFETY: SuiteCode.SAFETY_REGRESSED,
}
WARNINGS: Final = frozenset({SuiteCode.SLICE_NOT_CONFIRMED, SuiteCode.CASES_BROKEN})
"""What a fall comes to that is not confirmed; safety, whose cleared suspects are warned of, apart."""
NOMINAL: Final = {SAFETY: 0.01, WARNING: 0.12, PULL_REQUEST: 0.07}
"""The share of unchanged candidates that may be blocked, or warned of."""
UNSEEN: Final = {3: 1 / 7, 4: 0.1, 6: 0.1}
"""The share of candidates with so many broken cases that may pass without a word."""


class TooFew(ValueError):
    """The stored samples do not show how samples of a case differ. The text says what is missing."""


@dataclass(frozen=True)
class Rules:
    """How the suite decides: `samples` of a case, whether fresh ones confirm, and what `paired` is told."""

    score: str
    scale: Scale
    samples: int
    safety: Collection[str] = ()
    safe_at: float | None = None
    confirm: bool = True
    seed: int = SEED


@dataclass
class Rate:
    """How many of so many, with the interval of Clopper and Pearson."""

    found: int = 0
    of: int = 0

    def add(self, found: bool) -> None:
        self.found, self.of = self.found + found, self.of + 1

    @property
    def ratio(self) -> float:
        return self.found / self.of if self.of else math.nan

    @property
    def ci95(self) -> tuple[float, float]:
        return rate_interval(self.found, self.of) if self.of else (0.0, 1.0)


@dataclass(frozen=True)
class Alarms:
    """How often a candidate that changes nothing was blocked by a gate, or warned of: by the plain rule, and as
    shipped. `nominal`: how often it may be as shipped, None of a part that has no bound of its own."""

    gate: str
    nominal: float | None = None
    plain: Rate = field(default_factory=Rate)
    shipped: Rate = field(default_factory=Rate)

    @property
    def above(self) -> bool:
        """Returns whether it is more often than it may be, beyond chance."""
        return self.nominal is not None and self.shipped.of > 0 and self.shipped.ci95[0] > self.nominal


@dataclass(frozen=True)
class Planted:
    """What became of candidates with so many broken cases: `blocked`, else `warned` of, or `unseen`."""

    broken: int
    blocked: Rate = field(default_factory=Rate)
    warned: Rate = field(default_factory=Rate)
    unseen: Rate = field(default_factory=Rate)

    @property
    def most_unseen(self) -> float:
        return UNSEEN[self.broken]

    @property
    def missed(self) -> bool:
        """Returns whether more pass without a word than may, beyond chance."""
        return self.unseen.of > 0 and self.unseen.ci95[0] > self.most_unseen


@dataclass(frozen=True)
class Detection:
    """How many candidates with broken cases in a slice were blocked or warned of."""

    slice: str
    cases: int
    shipped: Rate = field(default_factory=Rate)


@dataclass(frozen=True)
class Simulated:
    """`comparisons` with an unchanged candidate, and as many of each number of broken cases."""

    comparisons: int
    alarms: Sequence[Alarms]
    planted: Sequence[Planted]
    detections: Sequence[Detection]


def pooled(runs: Sequence[Run], score: str) -> Run:
    """Returns the cases of the first run with the samples of all runs that ask the same. Raises TooFew."""
    pool = {}
    for name, first in runs[0].items():
        same = [run[name] for run in runs if name in run and _same_question(first, run[name])]
        pool[name] = replace(first, samples=[sample for case in same for sample in case.samples])
    if len(pool) < 2:
        raise TooFew(f"the stored runs have {len(pool)} cases")
    if not any(len(_numbers(case, score)) > 1 for case in pool.values()):
        raise TooFew("no case has two samples with a score: how samples of a case differ is not known")
    return pool


def unscored(pool: Run, score: str) -> int:
    """Returns how many samples have no score though their judge was asked."""
    return sum(sample.score(score) is Gone.UNSCORED for case in pool.values() for sample in case.samples)


def simulate(pool: Run, rules: Rules, simulations: int, told: Callable[[int], None] = lambda done: None) -> Simulated:
    """Returns what is decided of so many resampled candidates of each kind; the same seed gives the same. `told` gets
    how many are done."""
    resampler = Resampler(pool, rules)
    alarms = {gate: Alarms(gate, NOMINAL.get(gate)) for gate in (*CODES, WARNING, PULL_REQUEST)}
    planted = [Planted(many) for many in BROKEN]
    slices = {name: Detection(name, cases) for name, cases in resampler.slices.items()}
    baseline = resampler.run(rules.samples)
    for done in range(simulations):
        candidate = resampler.run(rules.samples)
        plain, shipped = resampler.decided(baseline, candidate)
        for gate, one in alarms.items():
            one.plain.add(_alarmed(plain, gate))
            one.shipped.add(_alarmed(shipped, gate))
        for kind in planted:
            name, broken = resampler.broken(kind.broken)
            _, found = resampler.decided(baseline, resampler.run(rules.samples, broken=broken), broken)
            blocked, seen = found.verdict is VerdictLevel.FAIL, _seen(found)
            kind.blocked.add(blocked)
            kind.warned.add(seen and not blocked)
            kind.unseen.add(not seen)
            if name in slices:
                slices[name].shipped.add(seen)
        if shipped.verdict is not VerdictLevel.FAIL:
            baseline = candidate
        told(done + 1)
    if not any(not case.slices.isdisjoint(rules.safety) for case in pool.values()):
        del alarms[SAFETY]
    if not resampler.slices:
        del alarms[SLICE]
    return Simulated(simulations, list(alarms.values()), planted, list(slices.values()))


class Resampler:
    """Draws runs from a pool of samples, and has the suite's decision compare two."""

    def __init__(self, pool: Run, rules: Rules) -> None:
        self._pool, self._rules = pool, rules
        self._rng = np.random.default_rng(rules.seed)
        self.slices = Counter(sorted(name for case in pool.values() for name in case.slices))
        middle = (rules.scale.low + rules.scale.high) / 2
        sound = [name for name, case in pool.items() if _mean(case, rules) > middle]
        self._sound = {one: [name for name in sound if one in pool[name].slices] for one in self.slices}
        self._sound = {one: names for one, names in self._sound.items() if names} or {"": sound or list(pool)}

    def run(self, samples: int, names: Iterable[str] | None = None, broken: Collection[str] = ()) -> Run:
        """Draws so many samples of each case, or of those named; those that are `broken` have the worst score."""
        out = {}
        for name in names if names is not None else self._pool:
            case = self._pool[name]
            places = self._rng.integers(0, len(case.samples), samples)
            if name in broken:
                worst = {self._rules.score: self._rules.scale.low}
                drawn = [replace(case.samples[place], scores=worst, error="") for place in places]
            else:
                drawn = [case.samples[place] for place in places]
            out[name] = replace(case, samples=drawn)
        return out

    def broken(self, many: int) -> tuple[str, frozenset[str]]:
        """Draws a slice, and so many of its cases that mostly pass."""
        slices = list(self._sound)
        name = slices[self._rng.integers(len(slices))]
        sound = self._sound[name]
        places = self._rng.permutation(len(sound))[:many]
        return name, frozenset(sound[place] for place in places)

    def decided(self, baseline: Run, candidate: Run, broken: Collection[str] = ()) -> tuple[Judged, Judged]:
        """Returns the verdict by the plain rule, and the one after fresh samples of both sides."""
        rules = self._rules
        first = paired(baseline, candidate, rules.score, rules.scale, rules.safety, rules.safe_at)
        plain = judge(first, rules.seed, intervals=False)
        doubted = doubt(plain, first)
        if not rules.confirm or not doubted.cases:
            return plain, plain
        again, fresh = [self.run(FRESH, doubted.cases, which) for which in ((), broken)]
        return plain, confirmed(plain, doubted, baseline, again, fresh, rules.seed)[0]


def _alarmed(judged: Judged, gate: str) -> bool:
    codes = {one.code for one in judged.reasons}
    if gate == PULL_REQUEST:
        return judged.verdict is VerdictLevel.FAIL
    return not codes.isdisjoint(WARNINGS) if gate == WARNING else CODES[gate] in codes


def _seen(judged: Judged) -> bool:
    codes = {one.code for one in judged.reasons}
    return not codes.isdisjoint({*BLOCKING, *WARNINGS, SuiteCode.SAFETY_SUSPECT})


def _same_question(one: Case, other: Case) -> bool:
    return not one.question or not other.question or one.question == other.question


def _mean(case: Case, rules: Rules) -> float:
    numbers = _numbers(case, rules.score, rules.scale.low)
    return math.fsum(numbers) / len(numbers) if numbers else rules.scale.low


def _numbers(case: Case, score: str, worst: float = 0.0) -> list[float]:
    """The scores of a case's samples, of those that have one; an agent that failed has the worst."""
    values = [sample.score(score) for sample in case.samples]
    return [
        worst if isinstance(value, Gone) else value
        for value in values
        if value not in (Gone.UNSCORED, Gone.NOT_APPLICABLE)
    ]
