"""Reports the registry in metrics (PC5 §10.2, PF-9 §10.2)."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from datetime import date
from functools import lru_cache
from pathlib import PurePath

from prometheus_client import Histogram

from agents.join.counting import short_name
from evalcore import reloading
from evalcore.lint.drift import DRIFT
from evalcore.registry.judge import overdue
from evalcore.registry.registry import Judge, Registry
from evalcore.yaml.findings import Finding, Severity, ValidationResult
from schemas.answers import Refresh
from schemas.judges import judge_id
from streams.metrics import Metrics


class _Observed(Registry):
    def __init__(self, registry: Registry, lookups: Histogram) -> None:
        super().__init__(**vars(registry))
        for name in ("judge", "category", "classified"):
            object.__setattr__(self, name, timed(lookups)(getattr(registry, name)))


@contextmanager
def timed(lookups: Histogram) -> Iterator[None]:
    with lookups.time():
        yield


def observed(metrics: Metrics) -> Callable[[], Registry | None]:
    """Return what gives a worker the serving registry, whose lookups are observed (PF-9 NFR-2)."""
    view = lru_cache(maxsize=1)(lambda registry: _Observed(registry, metrics.registry_lookup))
    return lambda: view(registry) if (registry := reloading.loaded()) is not None else None


class RegistryMetrics:
    """Counts a finding when it first appears, and not again at each refresh that still has it."""

    def __init__(self, metrics: Metrics, day: Callable[[], date]) -> None:
        self._metrics, self._day = metrics, day
        self._known: frozenset[tuple[str, str, str]] = frozenset()
        self._judges: set[str] = set()

    def moved(self, answer: Refresh, result: ValidationResult, registry: Registry | None) -> None:
        metrics = self._metrics
        metrics.registry_refreshes.labels(answer.outcome).inc()
        metrics.registry_refused.set(answer.outcome == "refused")
        metrics.registry_judges.set(answer.judges)
        if answer.outcome == "loaded":
            metrics.registry_loaded.set(time.time())
        if registry is not None:
            metrics.sub_agents = frozenset(map(short_name, registry.sub_agents))
            metrics.categories = frozenset(map(short_name, registry.category_files))
        self._known = count_findings(metrics, result.findings, self._known)
        self._show_overdue(registry)

    def _show_overdue(self, registry: Registry | None) -> None:
        gauge, today = self._metrics.recalibration_overdue, self._day()
        found = overdue_judges(registry, today) if registry is not None else {}
        for gone in self._judges - found.keys():
            gauge.remove(gone)
        for name, late in found.items():
            gauge.labels(name).set(late)
        self._judges = set(found)


def overdue_judges(registry: Registry, today: date) -> dict[str, bool]:
    """By judge, whether its limits or that of its drift are past due, the platform's or a vertical's (PF-9 §10.2)."""
    found: dict[str, bool] = {}
    for judge in every_view(registry):
        late = any(one is not None and overdue(one, today) is not None for one in (*judge.rests_on, judge.drift))
        found[judge.id] = found.get(judge.id, False) or late
    return found


def count_findings(
    metrics: Metrics, findings: Iterable[Finding], known: Collection[tuple[str, str, str]] = ()
) -> frozenset[tuple[str, str, str]]:
    """Count the findings that are not `known`, each once (PC5 §10.2). Return what names all of them."""
    found = {(finding.file, finding.field, finding.check): finding for finding in findings}
    for key, finding in found.items():
        if key in known:
            continue
        if is_drift(finding):
            metrics.manifest_drift.inc()
        rule = rule_of(finding.file)
        if rule is not None and finding.severity is Severity.ERROR:
            metrics.rule_validation_failed.labels(rule, finding.check).inc()
    return frozenset(found)


def every_view(registry: Registry) -> Iterator[Judge]:
    """Each judge as the platform and as each vertical sees it: a vertical's calibration may be overdue by itself."""
    for name in registry.rules():
        for vertical in (None, *sorted(registry.verticals)):
            yield registry.judge(name, vertical)


def rule_of(file: str) -> str | None:
    """The judge of a rule file, with the vertical of a vertical's file: `receipts/response_quality`. None for
    others."""
    parts = PurePath(file).parts
    if "rules" not in parts[:-1]:
        return None
    below = parts[len(parts) - parts[::-1].index("rules") :]
    return "/".join((*below[:-1], judge_id(PurePath(below[-1]).stem)))


def is_drift(finding: Finding) -> bool:
    """Tells whether the finding is that manifest and rule files name different judges (PC5 R-3)."""
    return any(finding.check == check.name for check in DRIFT.checks)
