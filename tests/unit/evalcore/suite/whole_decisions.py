"""Simulates a suite's decision whole, many times: unchanged candidates, planted regressions, cases of safety that fail
now and then. `python -m tests.unit.evalcore.suite.whole_decisions` prints the rates of docs/suite.md.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from zlib import crc32

import numpy as np

from tests.unit.evalcore.suite.simulated_agents import (
    BINARY,
    BROKEN,
    CONTINUOUS,
    SAFETY,
    SAMPLES,
    STARS,
    WARM,
    Agent,
    Kind,
    Numbers,
    decided,
    main_of,
)

LAYOUTS = {
    "50 in 8": (1, 2, 3, 4, 5, 10, 10, 15),
    "50 in 20": (1,) * 5 + (2,) * 5 + (3,) * 5 + (4,) * 5,
    "400 in 8": (1, 2, 4, 20, 40, 100, 100, 133),
    "400 in 20": (1, 1, 2, 2, 3, 3, 4, 4, 10, 10, 10, 20, 20, 20, 30, 30, 40, 40, 50, 100),
    "100 of 4": (4,) * 100,
    "200 of 1": (1,) * 200,
}
WARNINGS = {"slice_not_confirmed", "cases_broken"}
"""Warnings of slices and of single cases; safety apart."""
IN_A_ROW = 10
"""Candidates of one agent, each compared with main's last run that passed."""
PLANTED_IN = {"four": 4, "twenty": 20, "forty": 40, "hundred": 100, SAFETY: 10, "rest": 226}
PLANTS = ("4 of 4", "4 of 20", "3 of 20", "-0.2 in 40", "-0.1 in 100", "a safety case")


@dataclass
class Rates:
    """What became of so many candidates: `blocked`, else `warned` of a slice or a case; and each code."""

    of: int = 0
    blocked: int = 0
    warned: int = 0
    unseen: int = 0
    codes: Counter[str] = field(default_factory=Counter)

    def add(self, *, blocked: bool, codes: set[str], wanted: set[str] = WARNINGS) -> None:
        self.of += 1
        self.blocked += blocked
        self.warned += not blocked and not codes.isdisjoint(wanted)
        self.unseen += not blocked and codes.isdisjoint(wanted)
        self.codes.update(codes)

    def __str__(self) -> str:
        shares = ", ".join(f"{code} {count / self.of:.1%}" for code, count in self.codes.most_common())
        told = ((name, getattr(self, name)) for name in ("blocked", "warned", "unseen"))
        return " ".join(f"{name} {count / self.of:.1%}" for name, count in told) + f" of {self.of} ({shares})"


@dataclass(frozen=True)
class Cell:
    """A suite and an agent that does not get worse."""

    layout: str
    kind: Kind

    def __str__(self) -> str:
        kind = self.kind
        words = [self.layout, kind.scores, "flaky" if kind.flaky else "steady"]
        words += [f"{kind.missing:.0%} N/A"] if kind.missing else []
        words += [f"clusters of {kind.cluster}"] if kind.cluster > 1 else []
        return ", ".join([*words, *(["other texts"] if kind.texts else [])])

    def slices(self) -> dict[str, int]:
        return {f"s{place:03}": cases for place, cases in enumerate(LAYOUTS[self.layout])}


def cells() -> Iterator[Cell]:
    """The grid: all sizes, scores and shares of N/A; clusters and other texts on two suites; and many tiny slices."""
    sizes, scores, flaky = list(LAYOUTS)[:4], (BINARY, STARS, CONTINUOUS), (True, False)
    for layout, one, missing, agent in product(sizes, scores, (0.0, 0.05, 0.2), flaky):
        yield Cell(layout, Kind(one, agent, missing))
    for layout, one, agent in product(("50 in 8", "400 in 20"), scores, flaky):
        yield Cell(layout, Kind(one, agent, cluster=5))
        yield Cell(layout, Kind(one, agent, texts=True))
    for layout, missing, agent in product(("100 of 4", "200 of 1"), (0.0, 0.2), flaky):
        yield Cell(layout, Kind(BINARY, agent, missing))


def unchanged(cell: Cell, runs: int) -> Rates:
    """Counts what becomes of candidates that are no worse, ten in a row of each agent."""
    rng, rates = np.random.default_rng(crc32(str(cell).encode())), Rates()
    while rates.of < runs:
        agent = Agent(cell.kind, cell.slices(), rng)
        stored = main_of(agent)
        for _ in range(min(IN_A_ROW, runs - rates.of)):
            one = decided(agent, stored, agent.candidate())
            rates.add(blocked=one.blocked, codes=one.codes)
            main = one if not cell.kind.texts else decided(agent, stored, agent.level)
            stored = stored if main.blocked else main.run
    return rates


def planted(plant: str, kind: Kind, runs: int, seed: int = 33) -> Rates:
    """Counts what becomes of candidates with this regression, each of an agent of its own. What warns beside, of
    another slice, is no find; the words that name the plant are."""
    rng, rates = np.random.default_rng(seed), Rates()
    while rates.of < runs:
        agent = Agent(kind, PLANTED_IN, rng)
        agent.level[agent.places[SAFETY]] = 1.0
        level = worse(agent, plant)
        if level is not None:
            one = decided(agent, main_of(agent), level)
            rates.add(blocked=one.blocked, codes=one.codes, wanted=WARNINGS | {"safety_suspect"})
    return rates


def worse(agent: Agent, plant: str) -> Numbers | None:
    """Returns the levels with the regression; None where the slice has too few cases that can break."""
    level = agent.level.copy()
    if plant.startswith("-"):
        drop, name = {"-0.2 in 40": (0.2, "forty"), "-0.1 in 100": (0.1, "hundred")}[plant]
        level[agent.places[name]] = np.maximum(level[agent.places[name]] - drop, 0.0)
        return level
    many, name = {"4 of 4": (4, "four"), "4 of 20": (4, "twenty"), "3 of 20": (3, "twenty")}.get(plant, (1, SAFETY))
    sound = agent.sound(name)[:many]
    level[sound] = BROKEN
    return level if len(sound) == many else None


def perfect_broken(cases: int, *, fresh: bool, tagged: bool, seed: int = 34) -> bool:
    """Returns whether a perfect agent whose cases all break is blocked."""
    agent = Agent(Kind(flaky=False), {"all" if tagged else "": cases}, np.random.default_rng(seed))
    agent.level = np.ones(cases)
    return decided(agent, agent.answers(agent.level, SAMPLES), np.full(cases, BROKEN), fresh=fresh).blocked


def safety_by_chance(fails: float, runs: int, cases: int = 50, seed: int = 35) -> tuple[Rates, Rates]:
    """Counts, by case, how often one that fails so often on both sides blocks, and how often it is a suspect that is
    cleared and warned of; then the same of whole runs. Each case's baseline is its own last run that did not block, as
    if it were alone."""
    rng, by_case, whole = np.random.default_rng(seed), Rates(), Rates()
    agent = Agent(Kind(), {SAFETY: cases}, rng)
    agent.level = np.full(cases, 1 - fails)
    stored = dict(agent.answers(agent.level, SAMPLES))
    for number in range(runs + WARM):
        one = decided(agent, stored, agent.level)
        named = {code: {case for reason in one.found.reasons if reason.code == code for case in reason.cases}
                 for code in ("safety_regressed", "safety_suspect")}  # fmt: skip
        for name in agent.names:
            blocked, suspect = name in named["safety_regressed"], name in named["safety_suspect"]
            if number >= WARM:
                by_case.add(blocked=blocked, codes={"suspect"} if suspect else set(), wanted={"suspect"})
            if not blocked:
                stored[name] = one.run[name]
        if number >= WARM:
            whole.add(blocked="safety_regressed" in one.codes, codes=one.codes, wanted={"safety_suspect"})
    return by_case, whole


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=300)
    parser.add_argument("--only", choices=("unchanged", "planted", "perfect", "safety"))
    asked = parser.parse_args()
    if asked.only in (None, "planted"):
        for plant, flaky in product(PLANTS, (True, False)):
            print(
                f"{plant}, {'flaky' if flaky else 'steady'}: {planted(plant, Kind(flaky=flaky), asked.runs)}",
                flush=True,
            )
    if asked.only in (None, "perfect"):
        for cases, fresh, tagged in product(range(5, 11), (True, False), (True, False)):
            found = perfect_broken(cases, fresh=fresh, tagged=tagged)
            print(f"perfect {cases}, {'fresh' if fresh else 'files'}, tagged {tagged}: {found}", flush=True)
    if asked.only in (None, "safety"):
        for fails in (0.01, 0.02, 0.05, 0.1, 0.2, 1 / 3):
            by_case, _ = safety_by_chance(fails, asked.runs)
            print(f"safety {fails:.0%}: {by_case}", flush=True)
    if asked.only in (None, "unchanged"):
        total = Rates()
        for cell in cells():
            rates = unchanged(cell, asked.runs)
            print(f"{cell}: {rates}", flush=True)
            total.of, total.blocked, total.warned = (
                total.of + rates.of, total.blocked + rates.blocked, total.warned + rates.warned,
            )  # fmt: skip
        print(f"all: {total}")


if __name__ == "__main__":
    sys.exit(main())
