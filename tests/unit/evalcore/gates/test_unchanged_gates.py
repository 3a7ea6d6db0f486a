"""What gates of the shipped manifest do to an agent that stays the same, ten in a row (issue 32, line 8; PC5 R-4)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pytest

from evalcore.gates.baselines import BaselineFile
from evalcore.gates.decision import Evidence, Judged, decide
from evalcore.gates.limits import Limits
from evalcore.registry.registry import Judge, Registry
from evalcore.scoring.answers import Answers
from schemas.judges import Milestone, ScoreType
from schemas.verdicts import Code, GateVerdict, VerdictLevel
from tests.unit.evalcore.verdict_inputs import registry, shipped

GRADES = (1.0, 2.0, 3.0, 4.0, 5.0), (0.01, 0.02, 0.09, 0.32, 0.56)
"""From 1 to 5 with a mean of 4.4 and a σ of 0.8: a tenth above the thresholds."""
SHARE = 0.95
"""Of a FLOAT judge's items are 1, the others 0: the widest spread that such a mean has."""
CATEGORIES = (
    "general_qa", "greeting", "image_analysis", "limitation_handling", "location_based", "offer_discovery",
    "personalization", "product_discovery", "safety", "shopping_list",
)  # fmt: skip
EVEN = dict.fromkeys(CATEGORIES, 0.1)
"""Each trace is scored by the judges of its category alone."""
MIXED = dict(zip(CATEGORIES, (0.34, 0.1, 0.02, 0.12, 0.02, 0.06, 0.12, 0.06, 0.04, 0.12), strict=True))
"""Every judge is asked about each trace, and says N/A outside its categories: within the manifest's bounds, some of
them just so."""
BY_CHANCE = {Code.REGRESSED, Code.TOO_FEW_APPLICABLE, Code.INSUFFICIENT_SAMPLE}
THRESHOLDS = {Code.BELOW_THRESHOLD, Code.FLOOR_BREACH}


@dataclass(frozen=True)
class Broken:
    """What becomes of one judge's scores at the last gate: each falls by `by`, or a `share` of them to the lowest."""

    judge: str
    by: float = 0.0
    share: float = 0.0


@dataclass
class World:
    """Traffic by category, with N/A outside a judge's categories or without."""

    traffic: Mapping[str, float]
    na: bool
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(20261126))
    registry: Registry = field(default_factory=lambda: registry(shipped()))

    @cached_property
    def judges(self) -> dict[str, frozenset[str]]:
        """The categories on which each judge fires. One that a filter binds to another agent is left out."""
        out: dict[str, set[str]] = {}
        for category in self.traffic:
            for judge in self.registry.category(category, None):
                if judge.filter is None:
                    out.setdefault(judge.id, set()).add(category)
        return {name: frozenset(found) for name, found in sorted(out.items())}

    def last_of(
        self, gates: int, milestone: Milestone, size: int, falls: Sequence[Broken | None] = (None,)
    ) -> list[GateVerdict]:
        """Returns the verdicts of the last of so many gates in a row, one for each of the falls, None for no fall."""
        baselines, dataset = BaselineFile(), self.registry.dataset(None)
        judges = [self.registry.judge(name, None) for name in self.judges]
        evidence = Evidence.at(milestone, self.registry.gates, size, production=size)

        def decided(broken: Broken | None) -> GateVerdict:
            past = baselines.history(judges, dataset, milestone, None)
            categories = self.rng.choice(list(self.traffic), size=size, p=list(self.traffic.values()))
            judged = {
                judge.id: self._judged(judge, milestone, categories, past.get(judge.id, ()), broken) for judge in judges
            }
            return decide(milestone, judged, evidence)

        for number in range(gates - 1):
            baselines = baselines.with_run(decided(None), dataset, None, f"2026-11-{number + 1:02}T00:00:00Z")
        return [decided(broken) for broken in falls]

    def _judged(
        self, judge: Judge, milestone: Milestone, categories: np.ndarray, past: Sequence, broken: Broken | None
    ) -> Judged:
        fitting = int(np.isin(categories, list(self.judges[judge.id])).sum())
        values = self._scores(judge, fitting)
        if broken is not None and broken.judge == judge.id:
            low = judge.score_range[0]
            values = np.maximum(values - broken.by, low)
            values[self.rng.random(fitting) < broken.share] = low
        gates, absent = self.registry.gates, len(categories) - fitting if self.na else 0
        limits = Limits.of(
            judge.thresholds[milestone], judge.floor, judge.tolerance, judge.enforcement[milestone], past
        )
        return Judged(
            Answers(tuple(values.tolist()), (1.0,) * fitting, (), absent),
            limits,
            judge.score_range,
            judge.score_type is ScoreType.BOOLEAN,
            judge.version,
            not_applicable_share=float(
                gates.not_applicable_share_of.get(judge.id, gates.not_applicable_share[milestone])
            ),
        )

    def _scores(self, judge: Judge, count: int) -> np.ndarray:
        if judge.score_type is ScoreType.INTEGER:
            return self.rng.choice(GRADES[0], size=count, p=GRADES[1])
        if judge.score_type is ScoreType.BOOLEAN:
            return np.ones(count)
        return (self.rng.random(count) < SHARE).astype(float)


def levels(verdict: GateVerdict) -> Iterator[tuple[Code, VerdictLevel]]:
    """Yields each reason's code and how bad it is. No judge of the simulation may only warn, so that a judge whose
    reason warns is one that blocks nothing."""
    for name, score in verdict.per_judge_scores.items():
        level = getattr(score, "verdict", VerdictLevel.FAIL)
        yield from ((reason.code, level) for reason in verdict.reasons if reason.message.startswith(f"{name} "))


def rates(
    world: World, milestone: Milestone, size: int, runs: int, falls: Sequence[Broken] = ()
) -> tuple[Counter[str], dict[Broken, Counter[str]]]:
    """Returns of how many unchanged last gates each thing is true, and how many falls were seen and blocked."""
    told: Counter[str] = Counter()
    found: dict[Broken, Counter[str]] = {broken: Counter() for broken in falls}
    for _ in range(runs):
        unchanged, *fallen = world.last_of(10, milestone, size, (None, *falls))
        reasons = {*levels(unchanged)}
        blocks = {code for code, level in reasons if level is VerdictLevel.FAIL}
        warns = {code for code, level in reasons if level is VerdictLevel.WARN}
        told.update([f"{code} blocks" for code in blocks] + [f"{code} warns" for code in warns])
        told["blocks by chance"] += bool(blocks & BY_CHANCE)
        told["warns by chance"] += bool(warns & BY_CHANCE)
        told["misses a threshold"] += bool(blocks & THRESHOLDS)
        for broken, verdict in zip(falls, fallen, strict=True):
            score = verdict.per_judge_scores[broken.judge]
            found[broken]["seen"] += not score.passed
            blocks_alone = getattr(score, "verdict", VerdictLevel.FAIL) is VerdictLevel.FAIL
            found[broken]["blocked"] += not score.passed and blocks_alone
    return told, found


SIZES = [("pre_ramp", 100), ("pre_ramp", 200), ("pre_full", 300), ("pre_full", 600)]
WORLDS = {"traffic of its categories": (EVEN, False), "N/A elsewhere": (MIXED, True)}
RUNS, FEW = 300, 10


@pytest.mark.parametrize(("milestone", "size"), SIZES)
@pytest.mark.parametrize("world", WORLDS)
def test_an_unchanged_agent_is_hardly_ever_blocked(world: str, milestone: str, size: int) -> None:
    """A few runs, which the rule of before fails: it blocked three in four at 100 traces."""
    told, _ = rates(World(*WORLDS[world]), Milestone(milestone), size, FEW)
    assert told["blocks by chance"] <= 2
    assert told["warns by chance"] <= 3


@pytest.mark.slow
@pytest.mark.parametrize(("milestone", "size"), SIZES)
@pytest.mark.parametrize("world", WORLDS)
def test_an_unchanged_agent_is_blocked_in_4_and_warned_in_8_of_100_gates_at_most(
    world: str, milestone: str, size: int
) -> None:
    """The table of docs/verdicts.md is made of this."""
    told, _ = rates(World(*WORLDS[world]), Milestone(milestone), size, RUNS)
    assert told["blocks by chance"] <= 0.04 * RUNS
    assert told["warns by chance"] <= 0.08 * RUNS


def test_what_broke_is_found() -> None:
    """Ten of a hundred traces are greetings: with two in five of them broken eight runs of ten see it; and of 200
    traces a judge of most of them sees a tenth of its scale."""
    broken, lower = Broken("greeting_quality", share=0.4), Broken("response_quality", by=0.4)
    _, found = rates(World(EVEN, na=False), Milestone.PRE_RAMP, 100, 10, [broken])
    assert found[broken]["seen"] >= 8
    _, found = rates(World(EVEN, na=False), Milestone.PRE_RAMP, 200, 5, [lower])
    assert found[lower]["blocked"] >= 4
