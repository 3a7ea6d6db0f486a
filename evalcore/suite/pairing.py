"""Pairs two runs of a suite case by case: what each side's samples of a case are on average, and whose case is not in
both. Pure.

Samples of a case are averaged first. A sample that no one could score is bounded: `Pair.low` is the candidate's least
favourable difference, `Pair.high` its most favourable one.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from evalcore.drift.scale import Scale
from evalcore.stats.within_case import Both
from evalcore.suite.results import SAFETY, Case, Gone, Run


@dataclass(frozen=True)
class Side:
    """One side's samples of a case: those that count, at the worst and at the best. `absent`: how many are not
    applicable. `failing`: how many lie below the score at which a case passes, at the worst and at the best."""

    worst: tuple[float, ...]
    best: tuple[float, ...]
    unscored: int
    failed: int
    safe_at: float
    absent: int = 0

    def mean(self, best: bool) -> float:
        values = self.best if best else self.worst
        return math.fsum(values) / len(values)

    def failing(self, best: bool) -> int:
        return sum(value < self.safe_at for value in (self.best if best else self.worst))


@dataclass(frozen=True)
class Pair:
    """A case that both runs have. `win`: the mean of its pairwise results, None without any."""

    case_id: str
    slices: frozenset[str]
    cluster: str
    baseline: Side
    candidate: Side
    win: float | None = None

    def means(self, best: bool) -> tuple[float, float]:
        """The sides' means, as favourable to the candidate as can be, or as unfavourable."""
        return self.baseline.mean(not best), self.candidate.mean(best)

    def delta(self, best: bool = False) -> float:
        baseline, candidate = self.means(best)
        return candidate - baseline

    def samples(self, best: bool = False) -> Both:
        """The samples of both sides, the baseline's first."""
        return (self.baseline.worst, self.candidate.best) if best else (self.baseline.best, self.candidate.worst)

    def fails_more(self, best: bool = False) -> bool:
        """Tells whether the candidate fails the case more often than the baseline."""
        one, other = self.samples(best)
        return self.candidate.failing(best) * len(one) > self.baseline.failing(not best) * len(other)

    def lost_wholly(self, best: bool = False) -> bool:
        """Tells whether the candidate fails the case in each sample, and the baseline in none."""
        return self.candidate.failing(best) == len(self.candidate.worst) and not self.baseline.failing(not best)


@dataclass(frozen=True)
class Paired:
    """Cases of both runs in the order of their ids, and the ids of those that are not compared. `removed`: of the
    baseline alone; `changed`: of both, that ask or expect something else by now; `unguarded`: those of both lists that
    are of safety on the baseline's side and that no one let go. `lost`: the baseline has the score, and the candidate
    in no sample; they are among the pairs, as missing. `apart`: slices without a case of both; `moved`: cases of which
    the candidate names another cluster. `present`: for each case that lacks the score somewhere, which samples of both
    sides have it (1.0), and which don't. A case fails below `safe_at`."""

    score: str
    scale: Scale
    pairs: Sequence[Pair]
    slices: Sequence[str]
    safety: Collection[str] = SAFETY
    safe_at: float | None = None
    removed: Sequence[str] = ()
    changed: Sequence[str] = ()
    unguarded: Sequence[str] = ()
    added: Sequence[str] = ()
    not_applicable: Sequence[str] = ()
    lost: Sequence[str] = ()
    apart: Sequence[str] = ()
    moved: Sequence[str] = ()
    present: Sequence[Both] = ()
    unequal: Sequence[str] = ()
    unscored: Sequence[str] = ()
    failed: Sequence[str] = ()

    def of(self, name: str | None) -> list[Pair]:
        """The pairs of a slice, or all."""
        return [pair for pair in self.pairs if name is None or name in pair.slices]

    def without(self, cases: Collection[str]) -> Paired:
        """The same without these cases, which are not compared then."""
        return replace(
            self,
            pairs=[pair for pair in self.pairs if pair.case_id not in cases],
            lost=[name for name in self.lost if name not in cases],
            not_applicable=[*self.not_applicable, *cases],
            unscored=[name for name in self.unscored if name not in cases],
        )


def paired(
    baseline: Run,
    candidate: Run,
    score: str,
    scale: Scale,
    safety: Collection[str] = SAFETY,
    safe_at: float | None = None,
    let_go: Collection[str] = (),
    *,
    fresh: bool = False,
) -> Paired:
    """Pairs the runs. A case is in each slice that one of the sides names, so that a branch takes none out of one; its
    cluster is the baseline's.

    A case fails below `safe_at`, without it below the middle of the scale. `let_go`: cases of safety that a person says
    may be missing or be another one. Where both sides are `fresh`, what is not applicable is at its worst.
    """
    limit = (scale.low + scale.high) / 2 if safe_at is None else safe_at
    both = sorted(baseline.keys() & candidate.keys())
    changed = [name for name in both if _differ(baseline[name].question, candidate[name].question)]
    removed = sorted(baseline.keys() - candidate.keys())
    pairs, not_applicable, lost, present = [], [], [], []
    usual = max((len(case.samples) for case in candidate.values()), default=0)
    for case_id in sorted({*both} - {*changed}):
        one, other = baseline[case_id], candidate[case_id]
        slices = frozenset(one.slices | other.slices)
        safe = not slices.isdisjoint(safety)
        sides = [side_of(case, score, scale, limit, safety=safe, fresh=fresh) for case in (one, other)]
        asked = len(one.samples), max(len(other.samples), min(usual, len(one.samples)))
        if asked != tuple(len(side.worst) for side in sides) and all(asked):
            has = [[1.0] * len(side.worst) for side in sides]
            lacks = [[0.0] * (many - len(side)) for many, side in zip(asked, has, strict=True)]
            present.append((has[0] + lacks[0], has[1] + lacks[1]))
        if sides[0].worst and sides[1].absent and not sides[1].worst:
            lost.append(case_id)
            sides[1] = _missing(sides[1], scale)
        if not all(side.worst for side in sides):
            not_applicable.append(case_id)
            continue
        wins = [sample.pairwise[score] for sample in other.samples if score in sample.pairwise]
        win = math.fsum(wins) / len(wins) if wins else None
        pairs.append(Pair(case_id, slices, one.cluster or case_id, sides[0], sides[1], win))
    every = [*baseline.values(), *candidate.values()]
    common = {name for case in {*both} - {*changed} for name in baseline[case].slices | candidate[case].slices}
    return Paired(
        score, scale, pairs, sorted({name for case in every for name in case.slices}), safety, limit,
        removed=removed,
        changed=changed,
        unguarded=[
            name for name in (*removed, *changed) if not baseline[name].slices.isdisjoint(safety) and name not in let_go
        ],
        added=sorted(candidate.keys() - baseline.keys()),
        not_applicable=not_applicable,
        lost=lost,
        apart=sorted({name for case in every for name in case.slices} - common),
        moved=[pair.case_id for pair in pairs if (candidate[pair.case_id].cluster or pair.case_id) != pair.cluster],
        present=present,
        unequal=[pair.case_id for pair in pairs if len(pair.baseline.worst) != len(pair.candidate.worst)],
        unscored=[pair.case_id for pair in pairs if pair.baseline.unscored + pair.candidate.unscored],
        failed=[pair.case_id for pair in pairs if pair.baseline.failed + pair.candidate.failed],
    )  # fmt: skip


def _differ(one: str, other: str) -> bool:
    """A candidate that does not say what it was asked, where the baseline does, may have been asked anything."""
    return bool(one) and one != other


def _missing(side: Side, scale: Scale) -> Side:
    """The side with what is not applicable as samples that no one could score."""
    worst, best = (scale.low,) * side.absent, (scale.high,) * side.absent
    return replace(side, worst=worst, best=best, unscored=side.absent)


def side_of(case: Case, score: str, scale: Scale, safe_at: float, *, safety: bool, fresh: bool = False) -> Side:
    """A safety check has no "not applicable": such a sample is unscored (contracts §3). Of `fresh` samples it is the
    worst."""
    found = [sample.score(score) for sample in case.samples]
    if safety:
        found = [Gone.UNSCORED if value is Gone.NOT_APPLICABLE else value for value in found]
    absent = found.count(Gone.NOT_APPLICABLE)
    found = [value for value in found if fresh or value is not Gone.NOT_APPLICABLE]
    ends = [
        [(scale.high if best else scale.low) if value is Gone.UNSCORED else value for value in found]
        for best in (False, True)
    ]
    worst, best = (tuple(scale.low if isinstance(value, Gone) else value for value in values) for values in ends)
    return Side(worst, best, found.count(Gone.UNSCORED), found.count(Gone.FAILED), safe_at, absent)
