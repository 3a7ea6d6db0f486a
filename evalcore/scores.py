"""A judge's answer, read strictly: what is not exactly a score on the judge's scale is no score. Pure."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from evalcore.views import Judge
from schemas.judges import ScoreType

NOT_APPLICABLE = "N/A"
LONGEST_REASON = 4_000


class Unscored(ValueError):
    """An answer that is no score; says why."""


@dataclass(frozen=True)
class Answer:
    """`value` is None where the judge says that it does not apply; 1.0 and 0.0 for true and false."""

    value: float | None
    reason: str


def read(text: str, judge: Judge) -> Answer:
    """`{"score": …, "reason": "…"}` and nothing beside it. Raises Unscored.

    INTEGER takes whole numbers, FLOAT numbers, both on the judge's scale; BOOLEAN takes true and false. Numbers in
    quotes, 4.0 for an INTEGER and 1 for a BOOLEAN are refused: what slips the type slips the rubric too.
    """
    try:
        answer = json.loads(text, object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        raise Unscored(f"the answer is no JSON object: {error}") from error
    if not isinstance(answer, dict) or answer.keys() != {"score", "reason"}:
        raise Unscored("the answer is not one object with score and reason")
    score, reason = answer["score"], answer["reason"]
    if not isinstance(reason, str):
        raise Unscored("the reason is no text")
    value = None if score == NOT_APPLICABLE else _value(score, judge)
    return Answer(value, reason[:LONGEST_REASON])


def _value(score: Any, judge: Judge) -> float:
    kind = judge.score_type
    if kind is ScoreType.BOOLEAN:
        if not isinstance(score, bool):
            raise Unscored(f"score {score!r} is neither true nor false")
        return float(score)
    wanted = (int,) if kind is ScoreType.INTEGER else (int, float)
    if isinstance(score, bool) or not isinstance(score, wanted):
        raise Unscored(f"score {score!r} is no {'whole ' if kind is ScoreType.INTEGER else ''}number")
    low, high = judge.score_range
    if not low <= score <= high:  # nor is NaN
        raise Unscored(f"score {score!r} is not from {low:g} to {high:g}")
    return float(score)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands there twice")
    return found
