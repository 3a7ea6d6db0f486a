"""Assigns items to judges and has them scored; says why an item can't be scored."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

from evalcore.judges.bindings import meant, parts
from evalcore.judges.evaluator import Prompt, Task
from evalcore.judges.kinds import needs_model
from evalcore.registry.registry import Judge
from evalcore.scoring.answers import Judgement, judgement
from evalcore.scoring.applicability import scores
from evalcore.scoring.calls import CallFailed, CircuitBreaker, Failure, Spend
from evalcore.scoring.items import NO_ANSWER, REFERENCES, Item, says_nothing, workflows_once
from evalcore.scoring.runner import Scorer, Scoring, evaluate

NO_MODEL = "no judges' model is configured: RAMPGATE_MODEL_URL"
Assignment = tuple[Judge, Item]


def assign(judges: Iterable[Judge], items: Sequence[Item]) -> list[Assignment]:
    """Assign items to judges, item by item: what a gate has when time runs out is few items, each scored by all.

    A judge that decides by several names is asked once. Filters, sub-agents and sampling rates are about traces; an
    item of a dataset belongs to the judges that fire on it, and so does a trace that names them (PC5 §5.2, §5.3,
    FR-11).
    """
    distinct = {judge.id: judge for judge in judges}.values()
    return [(judge, item) for item in items for judge in distinct if _fires(judge, item)]


def _fires(judge: Judge, item: Item) -> bool:
    own = judge.safety or item.judges is None or judge.id in item.judges
    return own and (item.context == "offline" or scores(judge, item.source, item.share))


def task_of(judge: Judge, item: Item) -> Task:
    return Task(judge, item.id, item.context, item.source, item.weight, item.digest)


@asynccontextmanager
async def arrived(
    scorer: Scorer | None,
    gate: str,
    judges: Iterable[Judge],
    items: Sequence[Item],
    spend: Spend | None = None,
    breaker: CircuitBreaker | None = None,
) -> AsyncIterator[tuple[list[Item], Scoring | None]]:
    """Yields the items with the agent's answers, once all are there, and the gate's scoring, which has begun with each
    item as it came. Without a scorer there is no scoring, and the items are waited for all the same.

    The judges' time so runs beside the agent's. Nothing is decided here: `score_assignments` says what the gate scores,
    and finds under way or done what came earlier, whatever the order.
    """
    items = workflows_once(items)
    if scorer is None:
        yield await _answered(items), None
        return
    asking = tuple(judges)
    async with scorer.begun(gate, spend, breaker) as scoring:

        def begin(item: Item) -> None:
            pairs = assign(asking, [item])
            scoring.take([task_of(judge, one) for judge, one in pairs if not unscorable(judge, one)])

        yield await _answered(items, begin, scoring.in_order), scoring


async def _answered(
    items: Sequence[Item], begin: Callable[[Item], None] = lambda item: None, in_order: bool = False
) -> list[Item]:
    """The items with their answers. `begin` is told of each as it comes, or in the order of the items; of none where
    all are there already."""
    if all(item.later is None for item in items):
        return list(items)

    async def one(item: Item) -> Item:
        there = replace(await item.later(), judges=item.judges) if item.later is not None else item
        if not in_order:
            begin(there)
        return there

    async with asyncio.TaskGroup() as group:
        asked = [group.create_task(one(item)) for item in items]
        if in_order:
            for waited in asked:
                begin(await waited)
    return [done.result() for done in asked]


async def score_assignments(
    scoring: Scoring | None, assignments: Sequence[Assignment], within: float | None = None
) -> list[Judgement]:
    """Judgements in the order of the assignments. Without a scoring, all that a model would have to say is unscored.

    Raises nothing but CancelledError.
    """
    tasks = [task_of(judge, item) for judge, item in assignments]
    found = [_unscorable(task, item) for task, (_, item) in zip(tasks, assignments, strict=True)]
    remaining = [place for place, known in enumerate(found) if known is None]
    scorable = [tasks[place] for place in remaining]
    scored = (
        await scoring.ended(scorable, within)
        if scoring is not None and scorable
        else [without_model(task) for task in scorable]
    )
    for place, made in zip(remaining, scored, strict=True):
        found[place] = made
    return [known for known in found if known is not None]


def _unscorable(task: Task, item: Item) -> Judgement | None:
    why = unscorable(task.judge, item)
    return judgement(task, CallFailed(Failure.UNBOUND, why)) if why else None


def without_model(task: Task) -> Judgement:
    """Returns what becomes of a task where no model is configured."""
    missing = CallFailed(Failure.UNBOUND, NO_MODEL)
    found = missing if needs_model(task.judge) else evaluate(task)
    return judgement(task, missing if isinstance(found, Prompt) else found, cached=True)


def unscorable(judge: Judge, item: Item) -> str:
    """Returns why the item can't be scored for this judge; empty where its evaluator may try.

    An item without an answer where the judge reads it has nothing to judge; a binding that reads the reference as the
    output would judge what a person wrote as if an agent had said it (contracts §3).
    """
    if item.missing or item.context == "playground":
        return item.missing
    usual = "answer" if item.context == "online" else "output"
    path = getattr(judge.rule.variables, item.context).get("output", usual)
    root = parts(path)[0][0]
    if item.context == "offline" and root in REFERENCES:
        return f"{judge.id} binds output to {path}: a reference is no output"
    path = path if root in ("output", "answer") else usual
    return NO_ANSWER if says_nothing(item.source, *meant(judge, item.context, item.source, path)) else ""
