"""The judgement as a library: registry, thresholds, validation and gates (PC5 §5.4).

A name is imported when it is first used, so that validating files does not load opik.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evalcore.api import (
        get_metric_by_id,
        get_metrics_for_archetype,
        get_metrics_for_category,
        get_metrics_for_classification,
        get_metrics_for_sub_agent,
        get_threshold,
        list_rules,
        load_manifest,
    )
    from evalcore.gates.evaluate import aevaluate_gate, evaluate_gate
    from evalcore.registry.registry import ThresholdTypeError, UnknownArchetype, UnknownCategory, UnknownJudge
    from evalcore.reloading import BrokenRegistry, refresh, use
    from evalcore.scoring.opik_metric import LLMJudgeMetric
    from evalcore.validation import validate_manifest, validate_rule_file
    from evalcore.yaml.findings import Finding, ValidationResult
    from schemas.verdicts import GateVerdict, JudgeScore

_MODULES = {
    "api": "get_metric_by_id get_metrics_for_archetype get_metrics_for_category get_metrics_for_classification "
    "get_metrics_for_sub_agent get_threshold list_rules load_manifest",
    "gates.decision": "GateVerdict JudgeScore",
    "gates.evaluate": "aevaluate_gate evaluate_gate",
    "registry.registry": "ThresholdTypeError UnknownArchetype UnknownCategory UnknownJudge",
    "reloading": "BrokenRegistry refresh use",
    "scoring.opik_metric": "LLMJudgeMetric",
    "validation": "validate_manifest validate_rule_file",
    "yaml.findings": "Finding ValidationResult",
}
_FROM = {name: module for module, names in _MODULES.items() for name in names.split()}

__all__ = [
    "BrokenRegistry", "Finding", "GateVerdict", "JudgeScore", "LLMJudgeMetric", "ThresholdTypeError",
    "UnknownArchetype", "UnknownCategory", "UnknownJudge", "ValidationResult", "aevaluate_gate", "evaluate_gate",
    "get_metric_by_id", "get_metrics_for_archetype", "get_metrics_for_category", "get_metrics_for_classification",
    "get_metrics_for_sub_agent", "get_threshold", "list_rules", "load_manifest", "refresh", "use",
    "validate_manifest", "validate_rule_file",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _FROM:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(f"{__name__}.{_FROM[name]}"), name)
    return found
