"""Agents whose truth is known, and suites that they answer, for whole simulations of a suite's decision: each case has
a quality of its own, and the samples of both sides, fresh ones too, are drawn from it. The decision is the product's.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist
from typing import Final

import numpy as np
from numpy.typing import NDArray

from evalcore.drift.scale import Scale
from evalcore.suite.confirm import FRESH, Doubt, confirmed, doubt
from evalcore.suite.gates import Judged, judge
from evalcore.suite.pairing import Paired, paired
from evalcore.suite.results import Case, Gone, Run, Sample
from schemas.verdicts import VerdictLevel

Numbers = NDArray[np.float64]
Places = NDArray[np.int64]
BINARY, STARS, CONTINUOUS = "binary", "1 to 5", "continuous"
SCALES = {
    BINARY: Scale(0.0, 1.0, whole=False), STARS: Scale(1.0, 5.0, whole=False), CONTINUOUS: Scale(0.0, 1.0, whole=False),
}  # fmt: skip
SPREAD = {STARS: (0.8, 0.15), CONTINUOUS: (0.15, 0.02)}
"""By how much samples of a case differ, of a flaky agent and of a steady one."""
SAMPLES = 3
SAFETY = "safety"
BROKEN = -1.0
"""The level of a case that fails for good."""
SOUND = 0.5
"""The level from which on a case mostly passes."""
WARM = 2
"""Runs of main before anything is counted, so that its baseline is one that passed."""
GRID: Final = np.linspace(0, 1, 2_001)
NOISE: Final = np.array([NormalDist().inv_cdf((place + 0.5) / 400) for place in range(400)])
"""Normal noise, evenly by its shares."""


@dataclass(frozen=True)
class Kind:
    """How an agent answers. `flaky`: samples of a case differ much, and cases too; else nine cases of ten nearly always
    pass, and one nearly never. `missing`: the share of samples that are N/A. `cluster`: so many cases have a source,
    and a level, in common. `texts`: a candidate's answers are others, some cases a little better and as many a little
    worse, so that no slice changes."""

    scores: str = BINARY
    flaky: bool = True
    missing: float = 0.0
    cluster: int = 1
    texts: bool = False


class Agent:
    """An agent, and the suite of slices with so many cases that it answers. `level`: each case's quality, as a share
    of the scale. A slice named "" is no slice."""

    def __init__(self, kind: Kind, slices: Mapping[str, int], rng: np.random.Generator) -> None:
        self.kind, self.rng = kind, rng
        self.scale = SCALES[kind.scores]
        many = sum(slices.values())
        self.names = [f"c{place:04}" for place in range(many)]
        self.slice_of = [name for name, cases in slices.items() for _ in range(cases)]
        self.places = {
            name: np.array([place for place, one in enumerate(self.slice_of) if one == name]) for name in slices
        }
        drawn = rng.beta(6.4, 1.6, many) if kind.flaky else np.where(rng.random(many) < 0.9, 0.98, 0.05)
        self.level: Numbers = drawn[np.arange(many) // kind.cluster]

    def candidate(self) -> Numbers:
        """Returns the levels of a candidate that is no worse."""
        level = self.level.copy()
        if self.kind.texts:
            for places in self.places.values():
                order, half = self.rng.permutation(places), len(places) // 2
                up, down = order[:half], order[half : 2 * half]
                by = np.minimum.reduce([1 - level[up], level[down], np.full(half, 0.05)])
                rise = self._mean(level[up] + by) - self._mean(level[up])
                level[up] += by
                level[down] = self._level_with(self._mean(level[down]) - rise)
        return level

    def _mean(self, level: Numbers) -> Numbers:
        """Returns the mean score at these levels. Scores end at the scale's ends, so that near one of them a case that
        gets better gains less than a level says; levels alone would make the agent worse."""
        found: Numbers = np.interp(level, GRID, self._means)
        return found

    def _level_with(self, mean: Numbers) -> Numbers:
        found: Numbers = np.interp(mean, self._means, GRID)
        return found

    @cached_property
    def _means(self) -> Numbers:
        """The mean score at each level of GRID."""
        if self.kind.scores == BINARY:
            return GRID
        scores = self._spread_out(GRID[:, None], NOISE[None, :])
        return np.maximum.accumulate(scores.mean(axis=1))

    def sound(self, name: str) -> Places:
        """Returns the places of a slice's cases that mostly pass, in an order by chance."""
        places = self.places[name]
        found: Places = self.rng.permutation(places[self.level[places] > SOUND])
        return found

    def answers(self, level: Numbers, samples: int, wanted: Collection[str] | None = None) -> Run:
        """Draws samples of all cases, or of those wanted."""
        places = np.arange(len(self.names)) if wanted is None else np.array([int(name[1:]) for name in sorted(wanted)])
        drawn = self._drawn(level[places], samples)
        gone = self.rng.random(drawn.shape) < self.kind.missing
        return {
            self.names[place]: self._case(place, row, left)
            for place, row, left in zip(places.tolist(), drawn.tolist(), gone.tolist(), strict=True)
        }

    def _drawn(self, level: Numbers, samples: int) -> Numbers:
        shape = len(level), samples
        if self.kind.scores == BINARY:
            drawn = (self.rng.random(shape) < level[:, None]).astype(float)
        else:
            drawn = self._spread_out(level[:, None], self.rng.normal(0, 1, shape))
        drawn[level < 0] = self.scale.low
        return drawn

    def _spread_out(self, level: Numbers, noise: Numbers) -> Numbers:
        low, high = self.scale.low, self.scale.high
        drawn = low + (high - low) * level + SPREAD[self.kind.scores][0 if self.kind.flaky else 1] * noise
        found: Numbers = np.clip(np.rint(drawn) if self.kind.scores == STARS else drawn, low, high)
        return found

    def _case(self, place: int, scores: list[float], gone: list[bool]) -> Case:
        cluster, name = f"k{place // self.kind.cluster}" if self.kind.cluster > 1 else "", self.slice_of[place]
        samples = [
            Sample(number, {"ok": Gone.NOT_APPLICABLE if left else score})
            for number, (score, left) in enumerate(zip(scores, gone, strict=True), 1)
        ]
        return Case(self.names[place], {name} if name else set(), cluster, samples=samples)


@dataclass(frozen=True)
class Decided:
    """One comparison: the candidate's first samples, the plain rule's verdict, what was asked again, and the last
    word. `fresh` pairs the fresh samples, None where nothing was asked again."""

    run: Run
    first: Paired
    plain: Judged
    asked: Doubt
    fresh: Paired | None
    found: Judged

    @property
    def blocked(self) -> bool:
        return self.found.verdict is VerdictLevel.FAIL

    @property
    def codes(self) -> set[str]:
        return {str(one.code) for one in self.found.reasons}


def decided(agent: Agent, stored: Run, level: Numbers, *, fresh: bool = True, seed: int = 7) -> Decided:
    """Draws a candidate with these levels and has the product decide: with fresh samples of both sides, or without, as
    on files."""

    def pair(one: Run, other: Run, *, fresh: bool = False) -> Paired:
        return paired(one, other, "ok", agent.scale, {SAFETY}, **taken(paired, fresh=fresh))

    run = agent.answers(level, SAMPLES)
    first = pair(stored, run)
    plain = judge(first, seed, **taken(judge, intervals=False))
    asked = doubt(plain, first)
    if not fresh or not asked.cases:
        return Decided(run, first, plain, asked, None, plain)
    again, anew = (agent.answers(side, FRESH, asked.cases) for side in (agent.level, level))
    found, _ = confirmed(plain, asked, stored, again, anew, seed)
    return Decided(run, first, plain, asked, pair(again, anew, fresh=True), found)


def taken(function: Callable[..., object], **options: bool) -> dict[str, bool]:
    """Returns those of the options that the function takes: an earlier decision can be simulated as well."""
    return {name: value for name, value in options.items() if name in inspect.signature(function).parameters}


def main_of(agent: Agent) -> Run:
    """Returns main's last run that passed, after some: its luck is that of a baseline in use."""
    stored = agent.answers(agent.level, SAMPLES)
    for _ in range(WARM):
        one = decided(agent, stored, agent.level)
        stored = stored if one.blocked else one.run
    return stored
