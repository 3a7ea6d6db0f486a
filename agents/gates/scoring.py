"""Scores gates' samples: each judge on its items, through one scorer for the process."""

from __future__ import annotations

from collections.abc import Sequence

from agents.gates.ports import Item, OutOfTime
from evalcore.registry.registry import Judge
from evalcore.scoring.answers import Answer, Judgement, by_name
from evalcore.scoring.assignments import NO_MODEL, Assignment, assign, score_assignments
from evalcore.scoring.calls import Failure, Spend
from evalcore.scoring.runner import Scorer

__all__ = ["NO_MODEL", "JudgeScoring", "NoScoring", "answers_of"]


class JudgeScoring:
    """Scores with the judges' model. A judge's filter, sub-agents and sampling rate choose its items; others get no
    answer."""

    def __init__(self, scorer: Scorer, calls: int | None = None, tokens: int | None = None) -> None:
        """`calls` and `tokens` are what one gate may spend; None is no limit."""
        self._scorer, self._calls, self._tokens = scorer, calls, tokens

    async def score(
        self, request_id: str, judges: Sequence[Judge], items: Sequence[Item], within: float | None = None
    ) -> dict[str, list[Answer]]:
        pairs = assign(judges, items)
        spend = Spend(self._calls, self._tokens)
        found = await score_assignments(self._scorer, request_id, pairs, spend=spend, within=within)
        if any(one.failure is Failure.OUT_OF_TIME for one in found):
            raise OutOfTime
        return answers_of(pairs, found)


class NoScoring:
    """Scores nothing, because no model is configured: every answer is missing, so every gate fails closed and says
    why."""

    async def score(
        self, request_id: str, judges: Sequence[Judge], items: Sequence[Item], within: float | None = None
    ) -> dict[str, list[Answer]]:
        pairs = assign(judges, items)
        return answers_of(pairs, await score_assignments(None, request_id, pairs))


def answers_of(pairs: Sequence[Assignment], found: Sequence[Judgement]) -> dict[str, list[Answer]]:
    return by_name((judge for judge, _ in pairs), found)
