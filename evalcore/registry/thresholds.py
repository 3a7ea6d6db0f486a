"""Resolves the threshold of a judge at a milestone and checks it against the judge's scale (PC5 FR-6, FR-8, §9.5).

The most specific source comes first: the vertical's rule file, the manifest, the central rule. Each source gives a
value for a milestone by name, else its single value (or `default`). The floor holds where no source gives a value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from schemas.judges import Milestone, Score, ScoreType, Thresholds


class ThresholdTypeError(TypeError):
    """A threshold does not fit the judge's score type or scale."""


@dataclass(frozen=True)
class Stated:
    """The thresholds of one source; `source` is its name in messages, such as `the manifest`."""

    source: str
    single: Score | None
    named: Mapping[Milestone, Score]

    @classmethod
    def of(cls, source: str, thresholds: Thresholds | None) -> Stated:
        if not isinstance(thresholds, Mapping):
            return cls(source, thresholds, {})
        named = {Milestone(name): value for name, value in thresholds.items() if name != "default"}
        return cls(source, thresholds.get("default"), named)

    def at(self, milestone: Milestone) -> Score | None:
        return self.named.get(milestone, self.single)


@dataclass(frozen=True)
class Resolved:
    """The thresholds that hold. `default` is for lookups without a milestone: the first single value; else the
    strictest of the first source that names milestones; else the floor."""

    default: Score
    at: Mapping[Milestone, Score]


def resolve(sources: Sequence[Stated], floor: Score, score_type: ScoreType) -> Resolved:
    beneath = _floor(floor, score_type)
    at: dict[Milestone, Score] = {}
    for milestone in Milestone:
        stated = (source.at(milestone) for source in sources)
        at[milestone] = next((value for value in stated if value is not None), beneath)
    singles = (source.single for source in sources)
    strictest = (max(source.named.values()) for source in sources if source.named)
    default = next((value for value in (*singles, *strictest) if value is not None), beneath)
    return Resolved(default, at)


def unfit_threshold(value: Score, score_type: ScoreType, scale: tuple[float, float]) -> str | None:
    """Returns why a threshold does not fit a judge, with the value that may be meant; None when it fits.

    Fractions fit an INTEGER judge, whose aggregate is a mean. A BOOLEAN judge takes `true` and nothing else: its
    aggregate is a pass rate, and `false` would let everything pass.
    """
    low, high = scale
    if score_type is ScoreType.BOOLEAN:
        if value is True:
            return None
        return f"{_shown(value)} for a BOOLEAN judge, whose threshold is true"
    if isinstance(value, bool):
        return f"{_shown(value)} for a judge of type {score_type}, whose threshold is a number from {low:g} to {high:g}"
    if low <= value <= high:
        return None
    message = f"{value:g} is off the judge's own scale of {low:g} to {high:g}"
    return f"{message}; as a share of that scale it is {low + value * (high - low):g}" if 0 <= value <= 1 else message


def require_fit(judge: str, stated: Stated, score_type: ScoreType, scale: tuple[float, float]) -> None:
    """Raises ThresholdTypeError for the first value that does not fit (PC5 §9.5)."""
    for milestone, value in ((None, stated.single), *stated.named.items()):
        wrong = None if value is None else unfit_threshold(value, score_type, scale)
        if wrong is not None:
            where = f" at {milestone}" if milestone else ""
            raise ThresholdTypeError(f"threshold of {judge}{where} in {stated.source}: {wrong}")


def _floor(floor: Score, score_type: ScoreType) -> Score:
    return True if score_type is ScoreType.BOOLEAN and floor >= 1 else floor


def _shown(value: Score) -> str:
    return str(value).lower() if isinstance(value, bool) else f"{value:g}"
