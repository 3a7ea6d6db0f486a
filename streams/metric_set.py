"""Declares metrics with the closed lists of their labels and the buckets of their histograms, and lists them."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import prometheus_client
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from schemas.outcomes import FilterReason, ParkReason, State
from schemas.signals import kinds

Values = tuple[str, ...]
OPEN: Final[Values] = ()
"""The values of a label that form no closed list."""

MILESTONES: Final[Values] = ("pre_merge", "pre_ramp", "pre_full")
JUDGE_ANSWERS: Final[Values] = (
    "ok", "cached", "timeout", "rate_limited", "unavailable", "unreachable", "refused", "unauthorized", "slip"
)  # fmt: skip
"""How a call of a judge's model ends (`evalcore.scoring.Failure`), and `cached` for an answer that needed none."""

WAITS: Final = (0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0, 21_600.0, 86_400.0)
RUNS: Final = (1.0, 5.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1800.0, 3600.0, 7200.0, 14_400.0, 28_800.0)
LOOKUPS: Final = (0.000_001, 0.000_01, 0.000_1, 0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0)
SCORES: Final = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 2.0, 3.0, 4.0, 5.0, 10.0)


@dataclass(frozen=True, slots=True)
class MetricSpec:
    """One metric as exposed: `name` is the exposed one (`_total` included), `labels` maps a label to its closed list
    of values or to OPEN."""

    name: str
    kind: str
    help: str
    labels: dict[str, Values]


class MetricSet:
    """The metrics of one process, in a registry of their own or in `registry`. Changes nothing global but
    prometheus-client's switch for `_created` series, which it turns off."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        prometheus_client.disable_created_metrics()
        self.registry = registry or CollectorRegistry(auto_describe=True)
        self.specs: list[MetricSpec] = []

    def exposition(self) -> bytes:
        """The body of `GET /metrics` (`prometheus_client.CONTENT_TYPE_LATEST`)."""
        return generate_latest(self.registry)

    def _counter(self, name: str, text: str, zeros: Iterable[Values] | None = None, **labels: Values) -> Counter:
        counter = Counter(name, text, list(labels), registry=self.registry)
        self._declare(counter, MetricSpec(name, "counter", text, labels), zeros)
        return counter

    def _gauge(self, name: str, text: str, **labels: Values) -> Gauge:
        gauge = Gauge(name, text, list(labels), registry=self.registry)
        self._declare(gauge, MetricSpec(name, "gauge", text, labels))
        return gauge

    def _histogram(self, name: str, text: str, buckets: tuple[float, ...], **labels: Values) -> Histogram:
        histogram = Histogram(name, text, list(labels), registry=self.registry, buckets=buckets)
        self._declare(histogram, MetricSpec(name, "histogram", text, labels))
        return histogram

    def _declare(
        self, metric: Counter | Gauge | Histogram, spec: MetricSpec, zeros: Iterable[Values] | None = None
    ) -> None:
        """List the metric, and start its series at zero: `zeros`, else all, where every label has a closed list."""
        self.specs.append(spec)
        if zeros is None and spec.labels and OPEN not in spec.labels.values():
            zeros = itertools.product(*spec.labels.values())
        for combination in zeros or ():
            metric.labels(*combination)


def as_markdown(specs: Iterable[MetricSpec]) -> str:
    """The page docs/metrics.md."""
    lines = [
        "# Metrics",
        "",
        "Written by `make docs` from `streams/declared_metrics.py`; don't edit. `GET /metrics` exposes them; counters",
        "end in `_total`, durations are seconds. Series whose labels all have listed values stand at 0 from the start.",
        "",
        "| name | kind | labels | meaning |",
        "| --- | --- | --- | --- |",
    ]
    for spec in specs:
        labels = "; ".join(
            f"`{label}`" + (f": {', '.join(values)}" if values else "") for label, values in spec.labels.items()
        )
        lines.append(f"| `{spec.name}` | {spec.kind} | {labels or '–'} | {spec.help} |")
    return "\n".join(lines) + "\n"


def record_states() -> Iterable[Values]:
    """The combinations of signal, state and reason that can occur."""
    reasons: dict[State, Values] = {
        State.PARKED: tuple(reason.value for reason in ParkReason),
        State.FILTERED: tuple(reason.value for reason in FilterReason),
    }
    for signal, state in itertools.product(kinds(), State):
        for reason in reasons.get(state, ("",)):
            yield signal, state.value, reason
