"""Decides a rubric by the answers of its judges: one, or several that vote (AgentCI 2.0, Step 2.5). Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from evalcore.specs.rubric import FAIL, LABELS, RubricAnswer, exact, reaches, scale_of
from schemas.specs import Rubric

Vote = tuple[str, Fraction]
"""A label and a score."""
_OF = re.compile(r"_of_(\d+)$")


@dataclass(frozen=True)
class Decision:
    """What a rubric comes to. `passed` is None where a missing answer could change it, as `why` says. `details` is
    JSON."""

    passed: bool | None
    details: Mapping[str, Any]
    why: str = ""


def decide(rubric: Rubric, votes: Mapping[str, RubricAnswer]) -> Decision:
    """Decides by the votes, which are by their judges' ids: a rubric passes where more than half of all votes have one
    label, not `fail`, and the mean of the scores is at the threshold or above. One judge's vote is all of them."""
    found = list(votes.values())
    missing = max([1, len(found), *(int(of[1]) for name in votes if (of := _OF.search(name)))]) - len(found)
    cast = [(one.label, exact(one.score)) for one in found if one.label is not None and one.score is not None]
    missing += len(found) - len(cast)
    passed = _passed(rubric, cast, missing)
    silent = next((one for one in found if one.score is None), None)
    why = "" if passed is not None else (silent.rationale if silent is not None else "") or "no judge was asked"
    return Decision(passed, _details(rubric, found, cast, passed), why)


def _passed(rubric: Rubric, cast: Sequence[Vote], missing: int) -> bool | None:
    """Whether the rubric passes, whatever the missing votes are; None where that depends on them."""
    scale = scale_of(rubric)
    best = [(label, exact(scale.high)) for label in LABELS if label != FAIL]
    outcomes = {_holds(rubric, [*cast, *[vote] * missing]) for vote in [*best, (FAIL, exact(scale.low))]}
    return outcomes.pop() if len(outcomes) == 1 else None


def _holds(rubric: Rubric, votes: Sequence[Vote]) -> bool:
    label, count = _most(votes)
    mean = sum((score for _, score in votes), Fraction()) / len(votes)
    return 2 * count > len(votes) and label != FAIL and reaches(rubric, mean)


def _most(votes: Sequence[Vote]) -> tuple[str, int]:
    return Counter(label for label, _ in votes).most_common(1)[0]


def _details(
    rubric: Rubric, found: Sequence[RubricAnswer], cast: Sequence[Vote], passed: bool | None
) -> dict[str, Any]:
    label, count = _most(cast) if cast else (None, 0)
    mean = float(sum((score for _, score in cast), Fraction()) / len(cast)) if cast else None
    details = {
        **({"id": rubric.id} if rubric.id is not None else {}),
        "rule": rubric.rule,
        "threshold": rubric.threshold,
        "passed": passed,
        "score": None if mean is None else round(mean, 2),
        "label": label if 2 * count > len(found) else None,
    }
    if len(found) == 1:
        return details | {"rationale": found[0].rationale, "model": found[0].model}
    said = [one.label or "no answer" for one in found]
    verdicts = [
        {"model": one.model, "score": one.score, "label": one.label, "rationale": one.rationale} for one in found
    ]
    return details | {"rationale": f"Ensemble ({len(found)} judges): {said}", "individual_verdicts": verdicts}
