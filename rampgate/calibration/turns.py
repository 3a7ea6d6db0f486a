"""Reads the turns of a round, in the form of `rampgate export`: one a line, with judges' scores and the user's."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evalcore.registry.judge import digest
from evalcore.registry.registry import Registry
from rampgate.ci_gate.inputs import BadFile, lines
from schemas.judges import ScoreType, judge_id

THUMBS = "user_signal_thumbs"


@dataclass(frozen=True)
class ScoredTurn:
    """One turn, its texts, and the scores of registered judges."""

    item: str
    trace: str
    category: str
    sub_agent: str
    question: Any
    answer: Any
    scores: Mapping[str, float]
    thumbs: float | None

    @property
    def hash(self) -> str:
        """Of what annotators and judges read."""
        return digest([self.question, self.answer])


def read_turns(path: Path, vertical: str, registry: Registry) -> dict[str, ScoredTurn]:
    """The turns of a file by response id. Raises BadFile: for a turn of another vertical, too."""
    found: dict[str, ScoredTurn] = {}
    places: dict[str, int] = {}
    for number, one in lines(path):
        item = _word(path, number, one, "response_id")
        if item in places:
            raise BadFile(f"{path}:{number}: response_id: {item[:80]!r} is on line {places[item]} too")
        places[item] = number
        if one.get("vertical") != vertical:
            said = repr(one.get("vertical"))[:80]
            raise BadFile(f"{path}:{number}: vertical: {said} is not {vertical}: export this vertical's turns alone")
        for field in ("user_query", "agent_response"):
            if one.get(field) is None:
                raise BadFile(f"{path}:{number}: {field}: people and judges read it; export turns with their texts")
        signals = _object(path, number, one, "feedback_scores")
        thumbs = _number(path, number, f"feedback_scores.{THUMBS}", signals[THUMBS]) if THUMBS in signals else None
        found[item] = ScoredTurn(
            item=item,
            trace=str(one.get("trace_id") or ""),
            category=str(one.get("category") or ""),
            sub_agent=str(one.get("sub_agent") or ""),
            question=one["user_query"],
            answer=one["agent_response"],
            scores=_scores(path, number, one, registry),
            thumbs=thumbs,
        )
    if not found:
        raise BadFile(f"{path}: has no lines; `rampgate export` writes them")
    return found


def _scores(path: Path, number: int, one: Mapping[str, Any], registry: Registry) -> dict[str, float]:
    """The scores of registered judges; of dimensions and of judges that are not registered any more nothing."""
    known, found = frozenset(registry.rules()), dict[str, float]()
    for name, value in _object(path, number, one, "judge_scores").items():
        if value is None or (own := judge_id(name)) not in known:
            continue
        score, judge = _number(path, number, f"judge_scores.{name}", value), registry.judge(own)
        low, high = judge.score_range
        if not low <= score <= high or (judge.score_type is not ScoreType.FLOAT and score != math.floor(score)):
            raise BadFile(f"{path}:{number}: judge_scores.{name}: {score:g} is no score from {low:g} to {high:g}")
        found[own] = score
    return found


def _word(path: Path, number: int, one: Mapping[str, Any], field: str) -> str:
    value = one.get(field)
    if isinstance(value, str) and value and len(value.splitlines()) == 1:
        return value
    raise BadFile(f"{path}:{number}: {field}: a name is needed")


def _object(path: Path, number: int, one: Mapping[str, Any], field: str) -> Mapping[str, Any]:
    value = one.get(field, {})
    if isinstance(value, dict):
        return value
    raise BadFile(f"{path}:{number}: {field}: scores by name are needed")


def _number(path: Path, number: int, field: str, value: Any) -> float:
    if isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value):
        return float(value)
    raise BadFile(f"{path}:{number}: {field}: is no finite number")
