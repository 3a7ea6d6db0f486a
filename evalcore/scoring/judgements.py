"""What came of a task, in the gates' words. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from evalcore import scores
from evalcore.gates.answers import Answer, NotApplicable, Scored, Unscored
from evalcore.scoring.asking import Task
from evalcore.scoring.calls import CallFailed, Failure
from evalcore.views import Judge


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


def judgement(task: Task, found: scores.Answer | CallFailed, cached: bool = False) -> Judgement:
    if isinstance(found, CallFailed):
        missing = Unscored(found.message, task.weight)
        return Judgement(missing, "", dict.fromkeys(task.judge.dimensions, missing), False, found.kind)
    dimensions = {name: _answer(value, task.weight) for name, value in found.dimensions.items()}
    return Judgement(_answer(found.value, task.weight), found.reason, dimensions, cached)


def _answer(value: float | None, weight: float) -> Answer:
    return NotApplicable() if value is None else Scored(value, weight)
