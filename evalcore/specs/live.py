"""Judges traces by a spec: the evaluator kind of a rule whose model is `spec:FILE` (AgentCI specs on the stream). Pure.

FILE is below `agent-specs/` of the registry, and its content is a part of the judge's version. Of the layers those
without a model decide. A trace that no query's matcher picks is not applicable; what can't be decided is unscored.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from evalcore.judges import kinds
from evalcore.judges.bindings import layout_of, resolve
from evalcore.judges.evaluator import Evaluation, NoScore, Task
from evalcore.registry.judge import Judge
from evalcore.scoring.items import category_of
from evalcore.specs.layers import judged
from evalcore.specs.results import QueryResult, Status
from evalcore.trajectory.record import Trajectory, trajectory_of
from schemas.specs import GoldenQuery, Matcher

SCHEME: Final = "spec"
FOLDER: Final = "agent-specs"


class SpecKind:
    """Says whether a trace holds what the queries assert that pick it."""

    needs_model = False

    def evaluate(self, task: Task) -> Evaluation:
        """Returns 1.0 or 0.0, or None where no query picks the trace. Raises NoScore and Unbound."""
        spec = task.judge.spec
        if spec is None:
            raise NoScore("its spec was not loaded")
        picking = [one for one in spec.queries if one.matcher is not None and picks(one.matcher, task.source)]
        if not picking:
            return Evaluation(None, "no query of the spec picks it")
        made = _trajectory(task)
        found = [judged(_without_judges(one), made, {}, None, spec.fail_on) for one in picking]
        return _evaluation(found)

    def read(self, reply: str, judge: Judge) -> Evaluation:
        raise NoScore("no model is asked")


def picks(matcher: Matcher, trace: Mapping[str, Any]) -> bool:
    """Says whether a trace has the matcher's tag, its metadata and its category, as far as it names them."""
    metadata = trace.get("metadata")
    metadata = metadata if isinstance(metadata, Mapping) else {}
    tags = [tag for of in (trace, metadata) if isinstance(of.get("tags"), (list, tuple)) for tag in of["tags"]]
    wanted = matcher.metadata or {}
    return (
        (matcher.tag is None or matcher.tag in tags)
        and all(name in metadata and _same(metadata[name], value) for name, value in wanted.items())
        and (matcher.category is None or matcher.category == category_of(trace))
    )


def _same(one: Any, other: Any) -> bool:
    return isinstance(one, bool) is isinstance(other, bool) and bool(one == other)


def _trajectory(task: Task) -> Trajectory:
    """The trace's trajectory, with its answer where the vertical has it, and its time from start to end."""
    source = task.source
    made = trajectory_of(source, _milliseconds(source.get("started_at"), source.get("ended_at")))
    if task.context == "online":
        made = replace(made, output=resolve("answer", source, layout_of(task.judge, source)))
    return made


def _milliseconds(start: Any, end: Any) -> float | None:
    try:
        took = datetime.fromisoformat(end) - datetime.fromisoformat(start)
    except (TypeError, ValueError):
        return None
    milliseconds = took.total_seconds() * 1000
    return milliseconds if milliseconds >= 0 else None


def _without_judges(query: GoldenQuery) -> GoldenQuery:
    of = query.correctness
    if of is None:
        return query
    plain = of.model_copy(update={"llm_judge": None, "safety_check": None, "hallucination_check": None})
    return query.model_copy(update={"correctness": plain})


def _evaluation(found: Iterable[QueryResult]) -> Evaluation:
    """What several queries come to: one that fails decides, then one that can't be decided. Warnings pass."""
    results = list(found)
    said = {status: [*_words(results, status)] for status in (Status.FAIL, Status.INFRA, Status.WARN)}
    if said[Status.FAIL]:
        return Evaluation(0.0, "; ".join(said[Status.FAIL]))
    if said[Status.INFRA]:
        raise NoScore("; ".join(said[Status.INFRA]))
    if all(layer.status is Status.SKIP for one in results for layer in one.layers.values()):
        return Evaluation(None, "the spec asserts nothing of it without a model")
    return Evaluation(1.0, "; ".join(said[Status.WARN]))


def _words(results: Iterable[QueryResult], status: Status) -> Iterator[str]:
    for one in results:
        for layer in one.layers.values():
            yield from (f"{one.id}: {message.words}" for message in layer.messages if message.status is status)


kinds.register(SCHEME, SpecKind())
