"""Writes a run's figures as Prometheus reads them (AgentCI Step 3): the document's metrics, a series a query."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from evalcore.specs.results import QueryResult, Status
from rampgate.spec.report import one_line

LABELS: Final = ("agent", "id", "query")
SHOWN: Final = 40
"""Characters of a query in its label; its id tells series apart."""
METRICS: Final = {
    "agentci_correctness_pass": "1 where the answer is correct, 0 where not; absent where it can't be decided",
    "agentci_tool_recall": "Share of the expected tools that were called",
    "agentci_tool_precision": "Share of the tools called that were expected",
    "agentci_cost_usd": "What the answer cost, US dollars",
    "agentci_latency_ms": "How long the answer took, milliseconds",
    "agentci_total_tokens": "Tokens of the answer's model calls",
}


def exposition(agent: str, results: Sequence[QueryResult]) -> str:
    """Returns the text. What is not asserted or not known has no series: 0 would be a value."""
    from prometheus_client import CollectorRegistry, Gauge, generate_latest

    registry = CollectorRegistry()
    gauges = {name: Gauge(name, words, LABELS, registry=registry) for name, words in METRICS.items()}
    for one in results:
        for name, value in figures_of(one).items():
            gauges[name].labels(agent, one.id, one_line(one.query, SHOWN)).set(value)
    return generate_latest(registry).decode()


def figures_of(one: QueryResult) -> dict[str, float]:
    """Returns the figures that are known, by their metrics."""
    actual = one.cost.details.get("actual") or {}
    correct = {Status.PASS: 1, Status.FAIL: 0}.get(one.correctness.status)
    found = {
        "agentci_correctness_pass": correct,
        "agentci_tool_recall": one.path.details.get("tool_recall"),
        "agentci_tool_precision": one.path.details.get("tool_precision"),
        "agentci_cost_usd": actual.get("cost_usd"),
        "agentci_latency_ms": actual.get("latency_ms"),
        "agentci_total_tokens": actual.get("total_tokens"),
    }
    return {name: float(value) for name, value in found.items() if isinstance(value, (int, float))}
