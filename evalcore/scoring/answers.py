"""Holds judges' answers: scored, not applicable or unscored, alone and over a sample. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from evalcore.judges.evaluator import Evaluation, Task
from evalcore.registry.judge import Judge
from evalcore.scoring.calls import CallFailed, Failure

REASONS_KEPT = 3
NA_REFUSED = "answered N/A, which the judge's rule does not allow"


@dataclass(frozen=True)
class Scored:
    """A score on the judge's scale, 1.0 and 0.0 for true and false. `weight` is the inverse probability that the item
    was sampled."""

    value: float
    weight: float = 1.0


@dataclass(frozen=True)
class NotApplicable:
    """The judge's answer that it does not apply to the item."""


@dataclass(frozen=True)
class Unscored:
    """An item without a score: the evaluator failed, or answered off the scale."""

    reason: str
    weight: float = 1.0


Answer = Scored | NotApplicable | Unscored


@dataclass(frozen=True)
class Answers:
    """One judge's answers over a sample. `values` and `weights` belong together; `missing` holds the weights of
    unscored items, `why` the first reasons."""

    values: tuple[float, ...] = ()
    weights: tuple[float, ...] = ()
    missing: tuple[float, ...] = ()
    not_applicable: int = 0
    why: tuple[str, ...] = ()

    @property
    def n(self) -> int:
        """Number of items the judge had to score; those it does not apply to leave the denominator."""
        return len(self.values) + len(self.missing)


def collect(answers: Iterable[Answer], scale: tuple[float, float]) -> Answers:
    """Sort answers. A value that is not finite or not on the scale is unscored, and so is one without a usable
    weight."""
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
        elif low <= answer.value <= high:  # NaN fails here too
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
    """A task's result. `reason`: the judge's words. `dimensions`: answers by the dimension's id. `failure` says why it
    is unscored; `cached` that no model was called for it."""

    answer: Answer
    reason: str = ""
    dimensions: Mapping[str, Answer] = field(default_factory=dict)
    cached: bool = False
    failure: Failure | None = None


def by_name(judges: Iterable[Judge], found: Iterable[Judgement]) -> dict[str, list[Answer]]:
    """Group answers by judge id, and by `judge.dimension` for judges with dimensions, in the order given. `judges`
    names the judge of each judgement."""
    out: dict[str, list[Answer]] = {}
    for judge, made in zip(judges, found, strict=True):
        out.setdefault(judge.id, []).append(made.answer)
        for dimension, answer in made.dimensions.items():
            out.setdefault(f"{judge.id}.{dimension}", []).append(answer)
    return out


def judgement(task: Task, found: Evaluation | CallFailed, cached: bool = False) -> Judgement:
    """Makes a task's judgement of its evaluation, or of the failure that left it unscored."""
    if isinstance(found, CallFailed):
        missing = Unscored(found.message, task.weight)
        return Judgement(missing, "", dict.fromkeys(task.judge.dimensions, missing), False, found.kind)
    dimensions = {name: answer_of(task.judge, value, task.weight) for name, value in found.dimensions.items()}
    return Judgement(answer_of(task.judge, found.value, task.weight), found.reason, dimensions, cached)


def answer_of(judge: Judge, value: float | None, weight: float = 1.0) -> Answer:
    """Makes an answer of an evaluation's value. None, not applicable, is an answer only where the judge's rule allows
    it, whoever evaluated and whenever; elsewhere it is the cheapest way around a score, and leaves the item
    unscored."""
    if value is not None:
        return Scored(value, weight)
    return NotApplicable() if judge.rule.takes_na else Unscored(NA_REFUSED, weight)
