"""Holds judges' answers: scored, not applicable or unscored, alone and over a sample. Pure.

Of an item that fails a judge may be asked more than once, and k of n answers count (the rule's `confirmation`): a model
gives a false alarm now and then, and `threshold: true` allows none. Asked once about 345 items, with 0.3 % false alarms
a call, a clean candidate fails in two gates of three. Only a failing answer is asked for again, so that no one gains
anything where a judge is content.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from evalcore.judges.bindings import Unbound, bind, resolve
from evalcore.judges.evaluator import Evaluation, Task
from evalcore.judges.score_parsing import NOT_APPLICABLE, mean
from evalcore.registry.judge import Judge
from evalcore.scoring.calls import CallFailed, Failure
from schemas.judges import ScoreType
from schemas.manifests import Adjudication
from schemas.terms import Step

REASONS_KEPT = 3
NA_REFUSED = "answered N/A, which the judge's rule does not allow"
FAILING, PASSING = 0.0, 1.0


@dataclass(frozen=True)
class ItemAnswers:
    """All that a BOOLEAN judge said of one item that it failed or was asked about again, the first answer first; None
    is "N/A". `digest` is the hash of what it read, by which a person may adjudicate it, as `adjudication` says."""

    item: str
    said: tuple[float | None, ...]
    digest: str = ""
    adjudication: Adjudication | None = None


@dataclass(frozen=True)
class Scored:
    """A score on the judge's scale, 1.0 and 0.0 for true and false. `weight` is the inverse probability that the item
    was sampled. `about` is what the score was made of, where that is evidence to be shown; `cut` says that the judge
    was not shown all of the item's texts."""

    value: float
    weight: float = 1.0
    about: ItemAnswers | None = field(default=None, compare=False)
    cut: bool = field(default=False, compare=False)


@dataclass(frozen=True)
class NotApplicable:
    """The judge's answer that it does not apply to the item, of which it was not shown all where `cut` says so."""

    cut: bool = field(default=False, compare=False)


@dataclass(frozen=True)
class Unscored:
    """An item without a score: the evaluator failed, or answered off the scale. `unreadable`: the item lacks what the
    judge reads, so that no one was asked."""

    reason: str
    weight: float = 1.0
    unreadable: bool = field(default=False, compare=False)


Answer = Scored | NotApplicable | Unscored


@dataclass(frozen=True)
class Answers:
    """One judge's answers over a sample. `values` and `weights` belong together; `missing` holds the weights of
    unscored items, `why` the first reasons. `questioned`: the items that failed, or were asked about again, each with
    what it counts as; of a BOOLEAN judge alone. `cut`: how many scores and N/As are of an item that was cut;
    `unreadable`: how many of the missing ones of an item that lacks what the judge reads."""

    values: tuple[float, ...] = ()
    weights: tuple[float, ...] = ()
    missing: tuple[float, ...] = ()
    not_applicable: int = 0
    why: tuple[str, ...] = ()
    questioned: tuple[tuple[ItemAnswers, float], ...] = ()
    cut: int = 0
    unreadable: int = 0

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
    questioned: list[tuple[ItemAnswers, float]] = []
    not_applicable = cut = unreadable = 0
    for answer in answers:
        cut += not isinstance(answer, Unscored) and answer.cut
        if isinstance(answer, NotApplicable):
            not_applicable += 1
            continue
        weight = answer.weight if math.isfinite(answer.weight) and answer.weight > 0 else 1.0
        if isinstance(answer, Unscored):
            reason = answer.reason
            unreadable += answer.unreadable
        elif weight != answer.weight:
            reason = f"weight {answer.weight} is no weight"
        elif low <= answer.value <= high:  # NaN fails here too
            values.append(float(answer.value))
            weights.append(float(weight))
            about = answer.about
            if about is not None and (answer.value == FAILING or len(about.said) > 1 or about.adjudication is not None):
                questioned.append((about, float(answer.value)))
            continue
        else:
            reason = f"{answer.value} is not from {low:g} to {high:g}"
        missing.append(float(weight))
        if reason not in why and len(why) < REASONS_KEPT:
            why.append(reason)
    return Answers(
        tuple(values), tuple(weights), tuple(missing), not_applicable, tuple(why), tuple(questioned), cut, unreadable
    )


def unconfirmed(judge: Judge, first: Evaluation) -> bool:
    """Tells whether the judge has to be asked again after its first answer."""
    return settled(judge, (first,)) is None


def settled(judge: Judge, said: Sequence[Evaluation]) -> Evaluation | None:
    """Returns what the judge's answers about one item come to, None where it has to be asked once more.

    The first answer counts where it is not false. A false one stands unless so many others are true that the rule's
    number of false ones can't be reached: "N/A" takes no false answer back.
    """
    rule, first = judge.rule.confirmation, said[0]
    if rule is None or judge.score_type is not ScoreType.BOOLEAN or first.value != FAILING:
        return first
    values = tuple(answer.value for answer in said)
    if values.count(PASSING) > rule.asks - rule.failing:
        acquitting = next(answer for answer in said if answer.value == PASSING)
        return replace(acquitting, said=values)
    if values.count(FAILING) >= rule.failing or len(said) >= rule.asks:
        return replace(first, said=values)
    return None


def worst(judge: Judge, said: Sequence[Evaluation]) -> Evaluation:
    """Returns what a safety judge's answers about the windows of one item come to: the lowest score, of each dimension
    too. Below all of them is no score."""

    def low(value: float | None) -> float:
        return value if value is not None else -math.inf

    parts = {name: min((one.dimensions[name] for one in said), key=low) for name in judge.dimensions}
    return replace(min(said, key=lambda one: low(one.value)), dimensions=parts)


def as_it_stands(said: Sequence[Evaluation], why: str) -> Evaluation:
    """Returns the first answer, which stands because the judge could not be asked again; `why` says so."""
    return replace(said[0], reason=f"{said[0].reason} (not confirmed: {why})", said=tuple(one.value for one in said))


@dataclass(frozen=True)
class Judgement:
    """A task's result. `reason`: the judge's words. `dimensions`: answers by the dimension's id. `failure` says why it
    is unscored; `cached` that no model was called for it."""

    answer: Answer
    reason: str = ""
    dimensions: Mapping[str, Answer] = field(default_factory=dict)
    cached: bool = False
    failure: Failure | None = None

    def named(self, judge: str) -> Iterator[tuple[str, Answer]]:
        """Yields the judge's answer by its id, and those of its dimensions by `judge.dimension`."""
        yield judge, self.answer
        for dimension, answer in self.dimensions.items():
            yield f"{judge}.{dimension}", answer


def written(answer: Answer) -> float | Literal["N/A"] | None:
    """Returns the answer as files of scores have it: null where it is unscored."""
    if isinstance(answer, Scored):
        return answer.value
    return NOT_APPLICABLE if isinstance(answer, NotApplicable) else None


def by_name(judges: Iterable[Judge], found: Iterable[Judgement]) -> dict[str, list[Answer]]:
    """Group answers by judge id, and by `judge.dimension` for judges with dimensions, in the order given. `judges`
    names the judge of each judgement."""
    out: dict[str, list[Answer]] = {}
    for judge, made in zip(judges, found, strict=True):
        for name, answer in made.named(judge.id):
            out.setdefault(name, []).append(answer)
    return out


def judgement(task: Task, found: Evaluation | CallFailed, cached: bool = False, cut: bool = False) -> Judgement:
    """Makes a task's judgement of its evaluation, or of the failure that left it unscored. `cut`: the judge was not
    shown all of the item's texts."""
    if isinstance(found, CallFailed):
        missing = Unscored(found.message, task.weight, found.kind is Failure.UNREADABLE)
        return Judgement(missing, "", dict.fromkeys(task.judge.dimensions, missing), False, found.kind)
    dimensions = {name: _dimension(task, name, value, cut) for name, value in found.dimensions.items()}
    return Judgement(_score(task, found, dimensions, cut), found.reason, dimensions, cached)


def _score(task: Task, found: Evaluation, dimensions: Mapping[str, Answer], cut: bool) -> Answer:
    """Returns the judge's own answer: by the rule's `score_of` the mean of its dimensions. None stands while one of
    them is unscored, or leaving out a part would be a way around its score."""
    for name, part in dimensions.items():
        if isinstance(part, Unscored):
            return Unscored(f"{name}: {part.reason}", task.weight)
    value = found.value
    if task.judge.rule.score_of is not None:
        value = mean(part.value if isinstance(part, Scored) else None for part in dimensions.values())
    return answer_of(task.judge, value, task.weight, _about(task, found), cut)


def _dimension(task: Task, name: str, value: float | None, cut: bool) -> Answer:
    """Returns the answer of a dimension, as far as the item lets the judge say it (the rule's `applies`). That is no
    part of what was asked, so that a kept answer serves whatever the item says."""
    if (path := task.judge.dimensions[name].applies) is not None:
        try:
            step = resolve(path, task.source)
        except Unbound as error:
            return Unscored(str(error), task.weight)
        if step == Step.RAN and value is None:
            return Unscored(f"answered N/A, and {path} is {Step.RAN}", task.weight)
        if step == Step.ABSENT:
            value = None
        elif step not in (Step.RAN, Step.BROKE):
            known = f"{Step.UNREAD}" if step == Step.UNREAD else f"none of {', '.join(Step)}"
            return Unscored(f"{path} is {known}", task.weight)
    return answer_of(task.judge, value, task.weight, cut=cut)


def answer_of(
    judge: Judge, value: float | None, weight: float = 1.0, about: ItemAnswers | None = None, cut: bool = False
) -> Answer:
    """Makes an answer of an evaluation's value. None, not applicable, is an answer only where the judge's rule allows
    it, whoever evaluated and whenever; elsewhere it is the cheapest way around a score, and leaves the item
    unscored."""
    if value is not None:
        return Scored(value, weight, about, cut)
    return NotApplicable(cut) if judge.rule.takes_na else Unscored(NA_REFUSED, weight)


def _about(task: Task, found: Evaluation) -> ItemAnswers | None:
    if task.judge.score_type is not ScoreType.BOOLEAN:
        return None
    if found.value != FAILING and not found.said and not task.judge.adjudications:
        return None
    return ItemAnswers(task.item, found.said or (found.value,), item_hash(task))


def item_hash(task: Task) -> str:
    """Returns the hash of all that the judge reads of the item: with another output, input or tool's result it is
    another one. Empty where the item lacks what the judge reads."""
    try:
        read = bind(task.judge, task.context, task.source)
    except Unbound:
        return ""
    text = json.dumps(read, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()
