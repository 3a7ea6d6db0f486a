"""Makes the record of an evaluation out of a gate's answers, and what is watched out of such a record (PC5 §5.7). Pure.

Between the two it crosses a topic: who evaluates needs no right to page anybody, and the response is decided where
that to live scores is.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from evalcore.gates.evaluate import ScoredGate
from evalcore.gates.regression import Watched, distinct, person
from evalcore.registry.registry import Judge, Registry
from evalcore.scoring.answers import Answers, Judgement, Scored, collect
from evalcore.scoring.items import Item
from evalcore.yaml.suggestions import UnknownJudge
from schemas.checks.evaluation import EvaluatedJudge, Evaluation, Origin


def evaluation_of(
    scored: ScoredGate,
    vertical: str | None,
    origin: Origin,
    agent: tuple[str, str],
    event_id: str,
    by: str,
    at: datetime,
) -> Evaluation:
    """Returns the record of a gate's answers about an `agent`: its id and its version."""
    said: dict[str, tuple[Judge, list[tuple[Item, Judgement]]]] = {}
    for (judge, item), made in zip(scored.assignments, scored.judgements, strict=True):
        said.setdefault(judge.id, (judge, []))[1].append((item, made))
    judges = tuple(_evaluated(judge, found) for judge, found in said.values())
    return Evaluation(
        event_id=event_id, origin=origin, agent_id=agent[0], agent_version=agent[1], vertical=vertical,
        judges=judges, by=by, at=at,
    )  # fmt: skip


def strangers(items: Sequence[Item], agent: tuple[str, str]) -> int:
    """Returns how many of the traces are not of this agent's version: they say nothing about it."""
    names = ("agent_id", "agent_version")
    return sum(
        tuple(_metadata(item).get(name) for name in names) != agent for item in items if item.context == "online"
    )


def lines_of(evaluation: Evaluation, registry: Registry) -> tuple[list[Watched], list[str]]:
    """Returns what is watched, and the judges of which the registry does not serve the version that was asked: their
    scores may be on another scale."""
    lines, unknown = [], []
    for one in evaluation.judges:
        try:
            judge = registry.judge(one.judge_id, evaluation.vertical)
        except UnknownJudge:
            unknown.append(one.judge_id)
            continue
        if judge.version != one.judge_version:
            unknown.append(one.judge_id)
            continue
        answers, agent, version = _answers(one, judge), evaluation.agent_id, evaluation.agent_version
        lines.append(Watched(judge, agent, version, answers, one.users, one.sessions, evaluation.origin))
    return lines, unknown


def _evaluated(judge: Judge, found: Sequence[tuple[Item, Judgement]]) -> EvaluatedJudge:
    answers = collect((made.answer for _, made in found), judge.score_range)
    pairs = Counter(zip(answers.values, answers.weights, strict=True))
    low = [item for item, made in found if isinstance(made.answer, Scored) and made.answer.value < judge.floor]
    return EvaluatedJudge(
        judge_id=judge.id,
        judge_version=judge.version,
        scores=tuple((*pair, count) for pair, count in pairs.items()),
        missing=tuple(Counter(answers.missing).items()),
        not_applicable=answers.not_applicable,
        users=_distinct(low, "user_id"),
        sessions=_distinct(low, "session_id"),
    )


def _distinct(items: Sequence[Item], name: str) -> int:
    """An item of a dataset is no one's in particular: one that was curated can't be one user's doing."""
    return distinct((person(_metadata(item).get(name)) if item.context == "online" else "" for item in items), "")


def _metadata(item: Item) -> Mapping[str, Any]:
    found = item.source.get("metadata")
    return found if isinstance(found, Mapping) else {}


def _answers(one: EvaluatedJudge, judge: Judge) -> Answers:
    """A record comes from elsewhere: what is off the judge's scale, or has no usable weight, is unscored, as
    everywhere."""
    low, high = judge.score_range
    fine = [
        (value, weight, count) for value, weight, count in one.scores if low <= value <= high and 0 < weight < math.inf
    ]
    off = sum(count for _, _, count in one.scores) - sum(count for _, _, count in fine)
    return Answers(
        tuple(value for value, _, count in fine for _ in range(count)),
        tuple(weight for _, weight, count in fine for _ in range(count)),
        tuple(weight if 0 < weight < math.inf else 1.0 for weight, count in one.missing for _ in range(count))
        + (1.0,) * off,
        one.not_applicable,
    )
