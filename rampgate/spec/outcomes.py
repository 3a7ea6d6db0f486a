"""Puts the results of a spec's queries together: repeats, the summary, the exit code, and JSON of all. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evalcore.specs.layers import repeated
from evalcore.specs.results import LayerResult, Message, QueryResult, Status


@dataclass(frozen=True)
class Outcome:
    """A query's result, the worst of its answers in each layer; how many answers there are, and how many passed."""

    result: QueryResult
    answers: int
    passes: int

    @property
    def passed(self) -> bool:
        return passes(self.result)


def passes(result: QueryResult) -> bool:
    return not result.hard_fail and not result.unresolved


def outcome_of(results: Sequence[QueryResult]) -> Outcome:
    """Returns the outcome of a query from the result of each of its answers: it passes if all do."""
    return Outcome(repeated(results), len(results), sum(map(passes, results)))


def summary_of(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Returns `{total, passed, failed, warnings, infra}`: total = passed + failed + infra, and warnings are passed
    queries that warn. With repeats also `pass_hat`, `[{k, pass, ci95}]`."""
    found = {
        "total": len(outcomes),
        "passed": sum(one.passed for one in outcomes),
        "failed": sum(one.result.hard_fail for one in outcomes),
        "warnings": sum(one.passed and one.result.warns for one in outcomes),
        "infra": sum(one.result.unresolved for one in outcomes),
    }
    return found | ({"pass_hat": _pass_hat(outcomes)} if any(one.answers > 1 for one in outcomes) else {})


def _pass_hat(outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    """pass^k for each k up to the number of repeats, with its 95 % interval over queries. A query that is not decided
    did not pass."""
    from evalcore.specs.repeats import reliability

    counts = {one.result.id: (one.passes, one.answers) for one in outcomes}
    found = [reliability(counts, k) for k in range(1, min(one.answers for one in outcomes) + 1)]
    return [{"k": one.k, "pass": one.value, "ci95": one.ci95} for one in found]


def exit_code(outcomes: Sequence[Outcome], *, strict: bool = False, noted: bool = False) -> int:
    """Returns 1 where a query fails, and if `strict` where one warns or a warning about the spec is `noted`; else 2
    where one is not decided; else 0."""
    if any(one.result.hard_fail for one in outcomes):
        return 1
    if strict and (noted or any(one.result.warns for one in outcomes)):
        return 1
    return 2 if any(one.result.unresolved for one in outcomes) else 0


def result_json(outcome: Outcome) -> dict[str, Any]:
    """Returns a query's result as JSON, its layers by their names."""
    one = outcome.result
    told = {"id": one.id, "query": one.query, "status": status_of(one)} | layers_json(one)
    return told | ({"answers": outcome.answers, "passes": outcome.passes} if outcome.answers > 1 else {})


def layers_json(one: QueryResult) -> dict[str, Any]:
    """Returns the layers of a result as JSON, and `infra` where the agent gave no answer that could be judged."""
    told: dict[str, Any] = {
        name: {
            "status": str(layer.status),
            "details": dict(layer.details),
            "messages": [message.words for message in layer.messages],
        }
        for name, layer in one.layers.items()
    }
    return told | ({"infra": one.infra} if one.infra else {})


def result_of(name: str, query: str, told: Mapping[str, Any]) -> QueryResult:
    """Returns the result that `layers_json` wrote, without the fields that its messages are about. Raises KeyError,
    TypeError and ValueError for other JSON."""
    layers = {
        layer: LayerResult(
            Status(told[layer]["status"]),
            told[layer]["details"],
            tuple(Message(words) for words in told[layer]["messages"]),
        )
        for layer in ("correctness", "path", "cost")
    }
    return QueryResult(name, query, **layers, infra=told.get("infra", ""))


def status_of(one: QueryResult) -> str:
    """Returns how the query ended: fail, infra, warn or pass."""
    if one.hard_fail:
        return str(Status.FAIL)
    if one.unresolved:
        return str(Status.INFRA)
    return str(Status.WARN if one.warns else Status.PASS)
