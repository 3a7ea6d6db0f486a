"""The gates' `Scoring`: every judge on the items that are its to score, through one scorer for the process."""

from __future__ import annotations

from collections.abc import Sequence

from agents.gate_ports import Item
from evalcore.gates.answers import Answer, Unscored
from evalcore.gates.applicability import scores
from evalcore.registry import Judge
from evalcore.scoring import Scorer, Spend, Task, by_name

NO_MODEL = "no judges' model is configured: RAMPGATE_MODEL_URL"


class JudgeScoring:
    """A judge's filter, sub-agents and sampling rate say which items it scores; the others are not its own and leave no
    answer."""

    def __init__(self, scorer: Scorer, calls: int | None = None, tokens: int | None = None) -> None:
        """`calls` and `tokens`: what one gate may spend; None: no limit."""
        self._scorer, self._calls, self._tokens = scorer, calls, tokens

    async def score(self, request_id: str, judges: Sequence[Judge], items: Sequence[Item]) -> dict[str, list[Answer]]:
        tasks = tasks_of(judges, items)
        spend = Spend(self._calls, self._tokens)
        return by_name(tasks, await self._scorer.score(request_id, tasks, spend=spend))


class NoScoring:
    """Where no model is configured: every answer is missing, so every gate fails closed and says why."""

    async def score(self, request_id: str, judges: Sequence[Judge], items: Sequence[Item]) -> dict[str, list[Answer]]:
        tasks = tasks_of(judges, items)
        out: dict[str, list[Answer]] = {}
        for task in tasks:
            missing = Unscored(NO_MODEL, task.weight)
            for name in (task.judge.id, *(f"{task.judge.id}.{dimension}" for dimension in task.judge.dimensions)):
                out.setdefault(name, []).append(missing)
        return out


def tasks_of(judges: Sequence[Judge], items: Sequence[Item]) -> list[Task]:
    """Item by item, so that what a gate has when time runs out is of as few items as possible, each scored by all."""
    return [
        Task(judge, item.id, item.context, item.source, item.weight)
        for item in items
        for judge in judges
        if scores(judge, item.source, item.share)
    ]
