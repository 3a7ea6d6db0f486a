"""Judges and the items that are theirs to score, one by one; also those that nobody can score."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from evalcore.judges.prompt import Task
from evalcore.registry.registry import Judge
from evalcore.scoring.answers import Judgement, Unscored
from evalcore.scoring.applicability import scores
from evalcore.scoring.calls import Failure, Spend
from evalcore.scoring.items import REFERENCES, Item
from evalcore.scoring.runner import Scorer

NO_MODEL = "no judges' model is configured: RAMPGATE_MODEL_URL"
Pair = tuple[Judge, Item]


def pairs_of(judges: Iterable[Judge], items: Sequence[Item]) -> list[Pair]:
    """Item by item, so that what a gate has when time runs out is of as few items as possible, each scored by all. A
    judge that decides by several names is asked once. Filters, sub-agents and sampling rates are about traces; an item
    of a dataset is that of the judges that fire on it, and so is a trace that says who does (PC5 §5.2, §5.3, FR-11)."""
    distinct = {judge.id: judge for judge in judges}.values()
    return [(judge, item) for item in items for judge in distinct if _fires(judge, item)]


def _fires(judge: Judge, item: Item) -> bool:
    own = judge.safety or item.judges is None or judge.id in item.judges
    return own and (item.context == "offline" or scores(judge, item.source, item.share))


def task_of(judge: Judge, item: Item) -> Task:
    return Task(judge, item.id, item.context, item.source, item.weight, item.digest)


async def score_pairs(
    scorer: Scorer | None, gate: str, pairs: Sequence[Pair], *, spend: Spend | None = None, within: float | None = None
) -> list[Judgement]:
    """In the order of the pairs; without a scorer all of them are unscored. Raises nothing but CancelledError."""
    found: list[Judgement | None] = [_none(scorer, judge, item) for judge, item in pairs]
    open_ = [place for place, one in enumerate(found) if one is None]
    if scorer is not None and open_:
        asked = await scorer.score(gate, [task_of(*pairs[place]) for place in open_], spend=spend, within=within)
        for place, one in zip(open_, asked, strict=True):
            found[place] = one
    return [one for one in found if one is not None]


def _none(scorer: Scorer | None, judge: Judge, item: Item) -> Judgement | None:
    why = unscorable(judge, item) or (NO_MODEL if scorer is None else "")
    if not why:
        return None
    missing = Unscored(why, item.weight)
    return Judgement(missing, "", dict.fromkeys(judge.dimensions, missing), False, Failure.UNBOUND)


def unscorable(judge: Judge, item: Item) -> str:
    """Why nobody can score the item for this judge; empty where its evaluator may try.

    An item without an output has nothing to judge; a binding that reads the reference as the output would judge what a
    person wrote as if an agent had said it (contracts §3).
    """
    path = judge.rule.variables.offline.get("output", "") if item.context == "offline" else ""
    root = path.split(".")[0].split("[")[0]
    reference = f"{judge.id} binds output to {path}: a reference is no output" if root in REFERENCES else ""
    return item.missing or reference
