"""What came of a task, in the gates' words. Pure.

What a judge said of each item, sorted: scored, not applicable, unscored. Pure.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from evalcore.judges.evaluator import Evaluation, Task
from evalcore.registry.judge import Judge
from evalcore.scoring.calls import CallFailed, Failure


@dataclass(frozen=True)
class Scored:
    """On the judge's scale; 1.0 and 0.0 for true and false. `weight` is the item's, by inverse probability of its
    sampling."""

    value: float
    weight: float = 1.0


@dataclass(frozen=True)
class NotApplicable:
    """An answer: the judge says that the item is none of its."""


@dataclass(frozen=True)
class Unscored:
    """No answer: the model failed, or answered off the scale."""

    reason: str
    weight: float = 1.0


Answer = Scored | NotApplicable | Unscored


@dataclass(frozen=True)
class Answers:
    """Of one judge over a sample. `values` and `weights` belong together; `missing` are the weights of what is
    unscored, `why` the first reasons."""

    values: tuple[float, ...] = ()
    weights: tuple[float, ...] = ()
    missing: tuple[float, ...] = ()
    not_applicable: int = 0
    why: tuple[str, ...] = ()

    @property
    def n(self) -> int:
        """Items that were the judge's to score; what is not applicable leaves the denominator."""
        return len(self.values) + len(self.missing)


REASONS_KEPT = 3


def collect(answers: Iterable[Answer], scale: tuple[float, float]) -> Answers:
    """A value that is not finite or not on the scale is unscored; so is one whose weight says nothing."""
    low, high = scale
    values, weights, missing = [], [], []
    why: list[str] = []
    not_applicable = 0
    for answer in answers:
        if isinstance(answer, NotApplicable):
            not_applicable += 1
            continue
        weight = answer.weight if math.isfinite(answer.weight) and answer.weight > 0 else 1.0
        if isinstance(answer, Unscored):
            reason = answer.reason
        elif weight != answer.weight:
            reason = f"weight {answer.weight} is no weight"
        elif low <= answer.value <= high:  # nor is NaN
            values.append(float(answer.value))
            weights.append(float(weight))
            continue
        else:
            reason = f"{answer.value} is not from {low:g} to {high:g}"
        missing.append(float(weight))
        if reason not in why and len(why) < REASONS_KEPT:
            why.append(reason)
    return Answers(tuple(values), tuple(weights), tuple(missing), not_applicable, tuple(why))


@dataclass(frozen=True)
class Judgement:
    """What came of a task. `reason`: the judge's words. `dimensions`: by the dimension's id. `failure` says why it is
    unscored, `cached` that no call was made for it."""

    answer: Answer
    reason: str = ""
    dimensions: Mapping[str, Answer] = field(default_factory=dict)
    cached: bool = False
    failure: Failure | None = None


def by_name(judges: Iterable[Judge], found: Iterable[Judgement]) -> dict[str, list[Answer]]:
    """Answers by judge id, and by `judge.dimension` for judges that have some, in the order given. `judges`: whose each
    judgement is."""
    out: dict[str, list[Answer]] = {}
    for judge, one in zip(judges, found, strict=True):
        out.setdefault(judge.id, []).append(one.answer)
        for dimension, answer in one.dimensions.items():
            out.setdefault(f"{judge.id}.{dimension}", []).append(answer)
    return out


def judgement(task: Task, found: Evaluation | CallFailed, cached: bool = False) -> Judgement:
    if isinstance(found, CallFailed):
        missing = Unscored(found.message, task.weight)
        return Judgement(missing, "", dict.fromkeys(task.judge.dimensions, missing), False, found.kind)
    dimensions = {name: _answer(value, task.weight) for name, value in found.dimensions.items()}
    return Judgement(_answer(found.value, task.weight), found.reason, dimensions, cached)


def _answer(value: float | None, weight: float) -> Answer:
    return NotApplicable() if value is None else Scored(value, weight)
