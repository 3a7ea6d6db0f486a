"""Metrics that are declared before they count: what each is called, what it means and which values its labels have."""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import prometheus_client
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

Values = tuple[str, ...]
OPEN: Final[Values] = ()
"""Of a label whose values form no closed list."""


@dataclass(frozen=True, slots=True)
class MetricSpec:
    """One metric as exposed: `name` is the exposed one (`_total` included), `labels` maps a label to its closed list
    of values or to OPEN."""

    name: str
    kind: str
    help: str
    labels: dict[str, Values]


class MetricSet:
    """The metrics of one process, in a registry of their own (or the one handed in). Nothing global is touched but
    prometheus-client's switch for `_created` series, which are left out."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        prometheus_client.disable_created_metrics()
        self.registry = registry or CollectorRegistry(auto_describe=True)
        self.specs: list[MetricSpec] = []

    def observe_many(self, histogram: Histogram, milliseconds: list[int]) -> None:
        """Many observations for the price of one sort: a batch has thousands, and one `observe` costs a microsecond."""
        ordered, last = sorted(milliseconds), 0
        for bound, bucket in zip(histogram._upper_bounds, histogram._buckets, strict=True):
            upto = bisect.bisect_right(ordered, bound * 1000)
            if upto > last:
                bucket.inc(upto - last)
                last = upto
        histogram._sum.inc(sum(ordered) / 1000)

    def exposition(self) -> bytes:
        """The text that `GET /metrics` answers (`prometheus_client.CONTENT_TYPE_LATEST`)."""
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
        "Written by `make docs` from `streams/metrics.py`; don't edit. `GET /metrics` exposes them; counters end in",
        "`_total`, durations are seconds. Series whose labels all have listed values stand at 0 from the start.",
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
