"""The judgement, as a library: registry, thresholds, validation and gates (PC5 §5.4).

Names are imported on first use, so that who validates files does not wait for opik.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evalcore.evaluating import aevaluate_gate, evaluate_gate
    from evalcore.judging import LLMJudgeMetric
    from evalcore.live import BrokenRegistry, refresh, use
    from evalcore.lookup import (
        get_metric_by_id,
        get_metrics_for_archetype,
        get_metrics_for_category,
        get_metrics_for_classification,
        get_metrics_for_sub_agent,
        get_threshold,
        list_rules,
        load_manifest,
    )
    from evalcore.problems import Problem, ValidationResult
    from evalcore.registry import ThresholdTypeError, UnknownArchetype, UnknownCategory, UnknownJudge
    from evalcore.validation import validate_manifest, validate_rule_file
    from schemas.verdicts import GateVerdict, JudgeScore

_FROM = {
    "aevaluate_gate": "evaluating",
    "evaluate_gate": "evaluating",
    "GateVerdict": "gates.decision",
    "JudgeScore": "gates.decision",
    "LLMJudgeMetric": "judging",
    "BrokenRegistry": "live",
    "refresh": "live",
    "use": "live",
    "get_metric_by_id": "lookup",
    "get_metrics_for_archetype": "lookup",
    "get_metrics_for_category": "lookup",
    "get_metrics_for_classification": "lookup",
    "get_metrics_for_sub_agent": "lookup",
    "get_threshold": "lookup",
    "list_rules": "lookup",
    "load_manifest": "lookup",
    "Problem": "problems",
    "ValidationResult": "problems",
    "ThresholdTypeError": "registry",
    "UnknownArchetype": "registry",
    "UnknownCategory": "registry",
    "UnknownJudge": "registry",
    "validate_manifest": "validation",
    "validate_rule_file": "validation",
}

__all__ = [
    "BrokenRegistry",
    "GateVerdict",
    "JudgeScore",
    "LLMJudgeMetric",
    "Problem",
    "ThresholdTypeError",
    "UnknownArchetype",
    "UnknownCategory",
    "UnknownJudge",
    "ValidationResult",
    "aevaluate_gate",
    "evaluate_gate",
    "get_metric_by_id",
    "get_metrics_for_archetype",
    "get_metrics_for_category",
    "get_metrics_for_classification",
    "get_metrics_for_sub_agent",
    "get_threshold",
    "list_rules",
    "load_manifest",
    "refresh",
    "use",
    "validate_manifest",
    "validate_rule_file",
]


def __getattr__(name: str) -> Any:
    if name not in _FROM:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(f"{__name__}.{_FROM[name]}"), name)
    return found
