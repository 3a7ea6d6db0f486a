"""Takes judges' scores from a file as a source of limits wants them: all, or those of turns that people accept."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from evalcore.calibration.floors import LEAST_TRACES, Sampled, Values
from evalcore.inversion.check import Pairs, check
from evalcore.lint.provenance import LEAST_WINDOW_DAYS
from rampgate.checks.score_files import ScoreColumn, read_pairs, read_scores
from schemas.judges import BaselineSource, judge_id

WINDOW_DAYS = 30


@dataclass(frozen=True)
class Asked:
    """What is to be derived, and from what: the `file`, or without one production's scores in Opik. `acceptable`:
    JADE's cut, the lowest score of people's that is acceptable; `cuts` are those of single judges."""

    source: BaselineSource
    file: Path | None
    acceptable: float | None
    window_days: int | None
    cuts: Mapping[str, float] = field(default_factory=dict, kw_only=True)

    def cut(self, judge: str) -> float:
        return self.cuts.get(judge_id(judge), self.acceptable or 0.0)


@dataclass(frozen=True)
class Scored:
    """A judge's scores, of which its limit comes, with their weights, out of `traces`; `against`: why it has none at
    all. `lines` they are on; `days` as ordinals, empty where no one said. Of JADE `pairs` are all of the round, and
    `inverted` says what it found so."""

    judge: str
    of: Values
    weights: Values
    traces: int
    lines: Sequence[int]
    days: Sequence[int] = ()
    against: str = ""
    pairs: Pairs | None = None
    inverted: str = ""

    @property
    def traffic(self) -> Sampled | None:
        """JADE's scores of all turns, accepted or not; None where `of` has all there are."""
        return None if self.pairs is None else (self.pairs.judge, _weights(self.pairs))


def scored_in(file: Path, asked: Asked) -> Iterator[Scored]:
    """Yields each judge's scores of a file, as the source wants them. Raises BadFile."""
    if asked.source is not BaselineSource.JADE_CALIBRATION:
        yield from of_columns(read_scores(file, sample=True), asked)
        return
    rounds = read_pairs(file, sample=True)
    inverted = {one.name: one.inverted for one in check(rounds)}
    called = [name for name, found in inverted.items() if found]
    told = f"Inverted: {', '.join(called)}." if called else f"None of {len(rounds)} judges."
    for name, pairs in rounds.items():
        kept = pairs.human >= asked.cut(name)
        weights, traces, against = _weights(pairs), len(pairs.items), ""
        if inverted[name]:
            against = "it is inverted: rewrite its prompt, or remove the judge"
        elif traces < LEAST_TRACES:
            against = f"{traces} annotated traces are too few: a JADE calibration rests on {LEAST_TRACES}"
        elif not kept.any():
            against = f"people accept none of its turns: no score of theirs is {asked.cut(name):g} or more"
        lines = np.asarray(pairs.lines)[kept].tolist()
        yield Scored(name, pairs.judge[kept], weights[kept], traces, lines, (), against, pairs, told)


def of_columns(columns: Mapping[str, ScoreColumn], asked: Asked) -> Iterator[Scored]:
    """Yields each column as production and seed want it."""
    for name, column in columns.items():
        scores, weights = np.array(column.scores, dtype=np.float64), np.array(column.weights, dtype=np.float64)
        days = column.days if column.days and column.days[0] else ()
        against = _too_short(days, asked) if asked.source is BaselineSource.PRODUCTION_DISTRIBUTION else ""
        yield Scored(name, scores, weights, int(scores.size), column.numbers, days, against)


def _too_short(days: Sequence[int], asked: Asked) -> str:
    """Why scores of these days are no window of as many days as were asked for; empty where they are, or no one said
    which days they are of."""
    wanted = asked.window_days or WINDOW_DAYS
    if not days:
        return ""
    span, distinct = max(days) - min(days) + 1, len(set(days))
    if distinct < LEAST_WINDOW_DAYS:
        return f"its scores are of {distinct} days; {LEAST_WINDOW_DAYS} are the fewest (PF-9 §5.3)"
    if span < wanted:
        return f"its scores are of a window of {span} days, not of {wanted}: wait, or say --window-days {span}"
    return ""


def _weights(pairs: Pairs) -> Values:
    return np.ones(pairs.judge.size) if pairs.weights is None else pairs.weights
