"""Judges that run: items in, answers out, within limits (PC5 §5.4, §9.5, NFR-2, NFR-3).

An edge: calling a judge's model. The model, the cache and the limits are handed in. Read in the order asking, calls,
cache, answered, fair, spending, outages, trying, judgements, runner; chat and opik_model are the two ways to a model.
"""

from __future__ import annotations

from evalcore.scoring.asking import Task
from evalcore.scoring.cache import MemoryScoreCache, ScoreCache
from evalcore.scoring.calls import CallFailed, Failure, Model, Reply
from evalcore.scoring.judgements import Judgement, by_name
from evalcore.scoring.runner import Scorer
from evalcore.scoring.spending import Spend
from evalcore.scoring.trying import CallLimits

__all__ = [
    "CallFailed",
    "CallLimits",
    "Failure",
    "Judgement",
    "MemoryScoreCache",
    "Model",
    "Reply",
    "ScoreCache",
    "Scorer",
    "Spend",
    "Task",
    "by_name",
]
