"""Golden queries and answers for the tests of a spec's layers."""

from __future__ import annotations

from typing import Any

from evalcore.specs.layers import judged
from evalcore.specs.results import LayerResult, QueryResult
from evalcore.trajectory.record import Trajectory
from schemas.specs import GoldenQuery


def query(**stated: Any) -> GoldenQuery:
    return GoldenQuery.model_validate({"id": "q", "query": "How do I install it?", **stated})


def calls(*names: str, **more: Any) -> list[dict[str, Any]]:
    return [{"name": name, **more} for name in names]


def made(*tools: str, output: Any = "fine", handoffs: Any = (), **more: Any) -> Trajectory:
    """A trajectory of these tools, with all else that a path reads."""
    return Trajectory(output=output, **{"tool_calls": calls(*tools), "handoffs": list(handoffs), **more})


def correctness(output: Any, **stated: Any) -> LayerResult:
    return judged(query(correctness=stated), Trajectory(output=output)).correctness


def path(made: Trajectory, baseline: Trajectory | None = None, **stated: Any) -> LayerResult:
    return judged(query(path=stated), made, {}, baseline).path


def cost(made: Trajectory, baseline: Trajectory | None = None, **stated: Any) -> LayerResult:
    return judged(query(cost=stated), made, {}, baseline).cost


def words(found: LayerResult | QueryResult) -> list[str]:
    layers = found.layers.values() if isinstance(found, QueryResult) else [found]
    return [one.words for layer in layers for one in layer.messages]
