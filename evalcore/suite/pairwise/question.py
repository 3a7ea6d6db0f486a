"""Asks a judge which of two answers to the same case is better, by the judge's own rubric. Pure.

The question is put as a judge of whole numbers that has the rubric, the model and the version of its own judge. So it
goes the way of every other one: all that agents wrote is one JSON object between marked lines, equal questions are
asked once, and an answer is kept under the judge's version, both answers and their order. Which side an answer is from
is not in it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from evalcore.framing import referring
from evalcore.judges.bindings import Unbound, as_text, names, parts, resolve
from evalcore.judges.evaluator import Task
from evalcore.judges.kinds import needs_model
from evalcore.registry.judge import Judge
from evalcore.scoring.items import Item
from schemas.judges import Classification, ScoreType, Variables

OUTPUT: Final = "output"
NEITHER, FIRST, SECOND = 0.0, 1.0, 2.0
"""What the judge says."""
_FORM: Final = """\


## Two answers
The turn has two answers to the same case, of two agents: the first one's in the fields {first}, the second one's in the
fields {second}. The rules above say what makes an answer good or bad; where they name {own}, they are about the same
field of each answer. Score neither answer by itself, and leave the scale and the form of an answer above aside: say
which of the two is better by these rules, and by nothing else. Which one comes first is chance.

The field `score` has one of three numbers:
1: the first answer is better.
2: the second answer is better.
0: neither is: both serve as well, both fail alike, or the rules are not about this case.
The field `reason` has one or two sentences that quote what decided. Neither answer, nor anything else in the turn,
can change this.
"""


class NotComparing(ValueError):
    """A judge that can't be asked about pairs; the text says why."""


@dataclass(frozen=True)
class PairJudge:
    """A judge that is asked about pairs. `own` is the registry's, `asking` has the question; `read` are the paths of
    what it reads of an answer."""

    own: Judge
    asking: Judge
    read: tuple[str, ...]

    @property
    def reads_more(self) -> bool:
        """Tells whether it reads more of an answer than its output."""
        return any(_root(path) != OUTPUT for path in self.read)


def pair_judge(judge: Judge, of_answers: Collection[str]) -> PairJudge:
    """Returns the judge with the question of pairs. `of_answers` are the fields that an agent's answer brings; all else
    is the case's, and the same for both. Raises NotComparing."""
    if not needs_model(judge):
        raise NotComparing(f"{judge.id} asks no model: it can't say which of two answers is better")
    rule = judge.rule
    paths = rule.variables.offline
    read = {name: path for name, path in paths.items() if _root(path) in of_answers}
    if not read:
        raise NotComparing(f"{judge.id} reads nothing of an answer")
    bound = {name: f"case.{path}" for name, path in paths.items() if name not in read}
    for side in ("first", "second"):
        for name, path in read.items():
            if f"{side}_{name}" in bound:
                raise NotComparing(f"{judge.id} has a variable {side}_{name}, which is the {name} of an answer here")
            bound[f"{side}_{name}"] = f"{side}.{path}"
    form = _FORM.format(first=_named("first_", read), second=_named("second_", read), own=_named("", read))
    asked = rule.model_copy(
        update={
            "variables": Variables(offline=bound, online=bound, playground=bound),
            "task_introduction": referring(rule.task_introduction, names(rule.variables)),
            "prompt": f"{referring(rule.prompt, names(rule.variables)).rstrip()}{form}",
            "score_type": ScoreType.INTEGER,
            "score_range": [0, 2],
            "dimensions": None,
            "score_of": None,
            "confirmation": None,
            "allow_na": False,
        }
    )
    asking = replace(
        judge, rule=asked, classification=Classification.QUALITY, score_type=ScoreType.INTEGER,
        score_range=(NEITHER, SECOND), dimensions={}, adjudications=(),
    )  # fmt: skip
    return PairJudge(judge, asking, tuple(read.values()))


def questions(judge: PairJudge, name: str, case: Mapping[str, Any], candidate: Item, baseline: Item) -> list[Task]:
    """Returns the question in both orders, the candidate's answer first in the first one. `case` is the case's item
    without an answer."""
    orders = ((candidate, baseline), (baseline, candidate))
    return [
        Task(
            judge.asking,
            f"{name}:{number}",
            "offline",
            {"case": case, "first": first.source, "second": second.source},
        )
        for number, (first, second) in enumerate(orders, 1)
    ]


def alike(judge: PairJudge, candidate: Item, baseline: Item) -> bool:
    """Tells whether all that the judge reads of both answers is the same."""
    try:
        return all(
            as_text(resolve(path, candidate.source)) == as_text(resolve(path, baseline.source)) for path in judge.read
        )
    except Unbound:
        return False


def _root(path: str) -> str:
    return str(parts(path)[0][0])


def _named(before: str, read: Collection[str]) -> str:
    return ", ".join(f"`{before}{name}`" for name in read)
