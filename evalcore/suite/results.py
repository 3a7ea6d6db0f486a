"""What a run of a suite found: cases with their samples, and which value a sample has of one score. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from evalcore.drift.scale import Scale, fitting

SAFETY = frozenset({"safety"})
"""Slices in which no case may fail that the baseline never failed, unless others are named."""


class Gone(StrEnum):
    """Why a sample has no number."""

    NOT_APPLICABLE = "not_applicable"
    """The check says that the sample is not its subject, or was not asked: it leaves the comparison."""
    UNSCORED = "unscored"
    """No one could score it: it counts as the worst and as the best, and the verdict has to be the same."""
    FAILED = "failed"
    """The agent itself failed: the worst value."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One answer of the agent to a case. Of `scores` None could not be scored, and one that is absent, or not
    applicable, is no part of the score. `pairwise`: 1, 0.5 or 0 where a judge preferred this answer to the baseline's,
    called it a tie, or preferred the other. `versions`: by score, that of the judge, where a run tells it."""

    number: int
    scores: Mapping[str, float | Gone]
    error: str = ""
    output: str = ""
    reasons: Mapping[str, str] = field(default_factory=dict)
    trace: str = ""
    pairwise: Mapping[str, float] = field(default_factory=dict)
    cost_usd: float | None = None
    latency_ms: float | None = None
    versions: Mapping[str, str] = field(default_factory=dict)

    def score(self, name: str) -> float | Gone:
        return Gone.FAILED if self.error else self.scores.get(name, Gone.NOT_APPLICABLE)


@dataclass
class Case:
    """A case with its samples. What samples say of slices is put together. Cases of a `cluster` have a source in common
    and are drawn together; without a name a case is its own. `question`: the hash of what was asked and expected, empty
    where a run does not say."""

    case_id: str
    slices: set[str] = field(default_factory=set)
    cluster: str = ""
    question: str = ""
    samples: list[Sample] = field(default_factory=list)


Run = Mapping[str, Case]


class NoScore(ValueError):
    """It is not clear which score is meant, or no scale fits it. The text says what to do."""


def versions_of(cases: Iterable[Case], score: str) -> set[str]:
    """Returns the versions of what gave the score in these cases, as far as they tell them."""
    return {sample.versions[score] for case in cases for sample in case.samples if score in sample.versions}


def failed_throughout(run: Run) -> bool:
    """Tells whether the agent itself failed in every sample of a run that has any."""
    samples = [sample for case in run.values() for sample in case.samples]
    return bool(samples) and all(sample.error for sample in samples)


def chosen(runs: Iterable[Run], name: str | None, sides: Sequence[str] = ("baseline", "candidate")) -> str:
    """Returns the score that gates look at: the one named, else the only one. A run in which the agent failed every
    time has no score, and yet the worst value of each. Raises NoScore."""
    runs = list(runs)
    both = [{score for case in run.values() for sample in case.samples for score in sample.scores} for run in runs]
    known = sorted(set.union(*both))
    told = ", ".join(repr(score[:80]) for score in known[:20]) or "none"
    if name is None and len(known) != 1:
        raise NoScore(f"--score: name the one that gates look at; the files have {told}")
    wanted = known[0] if name is None else name
    for side, run, scores in zip(sides, runs, both, strict=True):
        if wanted not in scores and not failed_throughout(run):
            raise NoScore(f"--score: no line of the {side} has {wanted[:80]!r}; the files have {told}")
    return wanted


def scale_of(runs: Iterable[Run], name: str, told: tuple[float, float] | None) -> Scale:
    """Returns the scale told, else the one that the score's numbers fit. Raises NoScore for a number off it, or if none
    fits."""
    import numpy as np

    values = np.array(
        [
            value
            for run in runs
            for case in run.values()
            for sample in case.samples
            if not isinstance(value := sample.score(name), Gone)
        ],
        dtype=np.float64,
    )
    if told is not None:
        scale = Scale(*told, whole=False)
        if not told[0] < told[1]:
            raise NoScore(f"--scale: {told[0]:g} is not below {told[1]:g}")
        if (off := scale.first_off(values)) is not None:
            raise NoScore(f"--scale: {values[off]:g} is a value of {name[:80]!r} and not on the scale")
        return scale
    found = fitting(values)
    if found is None or found.low == found.high:
        why = "there is no number at all" if not values.size else f"{values.min():g} to {values.max():g} fit none known"
        raise NoScore(f"--scale: name the lowest and the highest value that {name[:80]!r} can have; {why}")
    return found
