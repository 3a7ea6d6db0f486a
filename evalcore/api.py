"""The eval-config API (PC5 §5.4): judges, thresholds and the manifest of the serving registry.

A call reads memory (PC5 NFR-1). The first call of a process reads the files, and the first call that needs a metric
imports opik; no call asks Opik anything. Each function takes `vertical`, for that vertical's thresholds, floor,
tolerance and filter; a vertical without files of its own sees what the platform sees.
"""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any

from evalcore import reloading
from evalcore.registry.registry import Judge, Registry
from schemas.judges import Score

if TYPE_CHECKING:
    from evalcore.scoring.opik_metric import LLMJudgeMetric


class _Metrics:
    """The metrics of one version of the registry, each made once, when it is first used."""

    def __init__(self, registry: Registry) -> None:
        from evalcore.scoring.opik_metric import LLMJudgeMetric

        self.registry = registry
        self._metric, self._schema = LLMJudgeMetric, registry.manifest.get("schema", {})
        self.by_id: dict[tuple[str, str | None], LLMJudgeMetric] = {}
        self.by_category: dict[tuple[str, str | None], tuple[LLMJudgeMetric, ...]] = {}

    def of(self, judge: Judge) -> LLMJudgeMetric:
        key = (judge.id, judge.vertical)
        return self.by_id.get(key) or self.by_id.setdefault(key, self._metric(judge, schema=self._schema))

    def found(self, name: str, vertical: str | None) -> LLMJudgeMetric:
        """Returns a metric by any spelling of its id, and keeps it under the kebab spelling too. Other spellings are
        not kept, since there is no end to them."""
        judge = self.registry.judge(name, vertical)
        metric = self.of(judge)
        if vertical == judge.vertical and name == judge.id.replace("_", "-"):
            self.by_id[name, vertical] = metric
        return metric

    def category(self, name: str, vertical: str | None) -> tuple[LLMJudgeMetric, ...]:
        metrics = tuple(self.of(judge) for judge in self.registry.category(name, vertical))
        if vertical is None or vertical in self.registry.verticals:
            self.by_category[name, vertical] = metrics
        return metrics


_metrics: _Metrics | None = None
_manifest: tuple[Registry, dict[str, Any]] | None = None


def _serving() -> _Metrics:
    global _metrics
    registry, metrics = reloading.current(), _metrics
    if metrics is None or metrics.registry is not registry:
        metrics = _metrics = _Metrics(registry)
    return metrics


def get_metric_by_id(judge_id: str, *, vertical: str | None = None) -> LLMJudgeMetric:
    """Returns a judge by its id, in kebab or snake case. Raises UnknownJudge (a KeyError), TypeError for an id that is
    no text, BrokenRegistry (a ValueError)."""
    serving = _serving()
    return serving.by_id.get((judge_id, vertical)) or serving.found(judge_id, vertical)


def get_metrics_for_category(category: str, *, vertical: str | None = None) -> list[LLMJudgeMetric]:
    """Returns the judges that fire on an item of the category: its own, the global ones, every safety judge, each once.
    The list is the caller's. Raises UnknownCategory (a KeyError), BrokenRegistry."""
    serving = _serving()
    return list(serving.by_category.get((category, vertical)) or serving.category(category, vertical))


def get_metrics_for_classification(classification: str, *, vertical: str | None = None) -> list[LLMJudgeMetric]:
    """Returns all judges that are `safety_refusal` or `quality` (PF-9 FR-2). Raises ValueError for another word."""
    serving = _serving()
    return [serving.of(judge) for judge in serving.registry.classified(classification, vertical)]


def get_metrics_for_archetype(archetype: str, *, vertical: str | None = None) -> list[LLMJudgeMetric]:
    """Returns the judges of a sub-agent archetype (PF-9 FR-5): those that name it, those for all, every safety judge.
    Raises UnknownArchetype (a KeyError)."""
    serving = _serving()
    return [serving.of(judge) for judge in serving.registry.for_archetype(archetype, vertical)]


def get_metrics_for_sub_agent(sub_agent: str, *, vertical: str | None = None) -> list[LLMJudgeMetric]:
    """Returns the judges of a sub-agent by its archetypes; for one that has none, the judges for all."""
    serving = _serving()
    return [serving.of(judge) for judge in serving.registry.for_sub_agent(sub_agent, vertical)]


def load_manifest() -> dict[str, Any]:
    """Returns the resolved manifest as its file has it. Raises BrokenRegistry.

    Each call returns the same dict (PC5 §9.1) until a caller changes it; the next call then returns a new one. Lookups
    never read it.
    """
    global _manifest
    registry, given = reloading.current(), _manifest
    if given is None or given[0] is not registry or given[1] != registry.manifest:
        given = _manifest = (registry, deepcopy(registry.manifest))
    return given[1]


def get_threshold(judge_id: str, milestone: str | None = None, *, vertical: str | None = None) -> Score:
    """Returns the threshold on the judge's own scale, true for a BOOLEAN judge; without a milestone the default.
    `judge.dimension` names a dimension. Raises UnknownJudge, ValueError for an unknown milestone, BrokenRegistry; and
    ThresholdTypeError (a TypeError) where nothing serves because a stated threshold does not fit the judge (PC5
    §9.5)."""
    try:
        registry = reloading.current()
    except reloading.BrokenRegistry as error:
        error.raise_threshold_error(judge_id, vertical)
        raise
    return registry.threshold(judge_id, milestone, vertical)


def list_rules() -> list[str]:
    """Returns the ids of all judges, sorted."""
    return reloading.current().rules()
