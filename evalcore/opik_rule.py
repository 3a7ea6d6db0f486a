"""A judge as an automation rule of Opik (PC5 FR-7, AC-8), as far as we write it.

Opik has no field for floor, tolerance, classification and provenance, so they travel as JSON in a variable that no
prompt mentions: Opik keeps it and the judge's model never sees it, which it would in a message.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from evalcore.registry import Judge
from schemas.judges import Filter, Operator, ScoreType

METADATA = "rampgate_metadata"
"""The variable that carries what Opik has no field for."""
LLM_JUDGE = "llm_as_judge"
_TYPES = {ScoreType.INTEGER: "INTEGER", ScoreType.FLOAT: "DOUBLE", ScoreType.BOOLEAN: "BOOLEAN"}
_TRACE_FIELDS = frozenset({"id", "name", "input", "output", "metadata", "tags", "thread_id", "start_time", "end_time"})
_METADATA_NAMES = {"sub_agent_id": "sub_agent"}
_NEVER_TRUE = frozenset({Operator.STARTS_WITH, Operator.ENDS_WITH, Operator.IN})
"""Operators that Opik stores and its rules don't evaluate: such a rule would never fire."""
LONGEST_NAME = 150
_RATE_DIGITS = 1e-5
"""Opik keeps a rule's rate in a column of single precision."""


class Inexpressible(ValueError):
    """What the judge says can't be said to Opik: without its filter it would fire on traces it must not."""


@dataclass(frozen=True)
class TraceFilter:
    field: str
    operator: str
    key: str = ""
    value: str = ""


@dataclass(frozen=True)
class OutputField:
    name: str
    type: str
    description: str


@dataclass(frozen=True)
class OpikRule:
    """An automation rule, as far as we write it. `messages`: (role, content). `projects` are ids."""

    name: str
    model: str
    temperature: float
    sampling_rate: float
    enabled: bool
    messages: tuple[tuple[str, str], ...]
    variables: Mapping[str, str]
    output: tuple[OutputField, ...]
    filters: tuple[TraceFilter, ...] = ()
    id: str = ""
    kind: str = LLM_JUDGE
    projects: tuple[str, ...] = ()

    @property
    def metadata(self) -> dict[str, Any]:
        """Floor, tolerance, classification, provenance; empty where the rule is not ours."""
        try:
            found = json.loads(self.variables.get(METADATA, ""))
        except ValueError:
            return {}
        return found if isinstance(found, dict) and isinstance(found.get("judge_id"), str) else {}

    def differences(self, other: OpikRule) -> tuple[str, ...]:
        """Names of the fields that differ; empty for the same rule. Ids and projects are Opik's own."""
        names = ("name", "model", "temperature", "enabled", "messages", "output", "filters")
        differing = [name for name in names if getattr(self, name) != getattr(other, name)]
        if abs(self.sampling_rate - other.sampling_rate) > _RATE_DIGITS * max(self.sampling_rate, other.sampling_rate):
            differing.append("sampling_rate")
        mine, theirs = dict(self.variables), dict(other.variables)
        mine.pop(METADATA, None), theirs.pop(METADATA, None)
        if mine != theirs:
            differing.append("variables")
        keys = self.metadata.keys() | other.metadata.keys()
        differing += sorted(key for key in keys if self.metadata.get(key) != other.metadata.get(key))
        return tuple(differing)


def desired(judge: Judge, vertical: str, live: bool) -> OpikRule:
    """The rule that a judge is in Opik. Raises Inexpressible."""
    rule = judge.rule
    if len(rule.name) > LONGEST_NAME:
        raise Inexpressible(f"its name has {len(rule.name)} characters, and Opik takes {LONGEST_NAME}; shorten it")
    inputs = [name for name in rule.variables.online if "{{" + name + "}}" not in rule.prompt.replace(" ", "")]
    shown = "".join(f"\n\n{name}:\n{{{{{name}}}}}" for name in inputs)
    low, high = judge.score_range
    scale = "true or false" if judge.score_type is ScoreType.BOOLEAN else f"from {low:g} to {high:g}"
    return OpikRule(
        name=rule.name,
        model=rule.model,
        temperature=float(rule.temperature),
        sampling_rate=float(rule.sampling_rate),
        enabled=live and rule.enabled,
        messages=(("SYSTEM", rule.task_introduction), ("USER", rule.prompt + shown)),
        variables={**rule.variables.online, METADATA: json.dumps(carried(judge, vertical), sort_keys=True)},
        output=(OutputField(judge.score_name, _TYPES[judge.score_type], f"{rule.description} ({scale})"),),
        filters=(opik_filter(judge.filter),) if judge.filter is not None else (),
    )


def carried(judge: Judge, vertical: str) -> dict[str, Any]:
    """What Opik has no field for, as JSON."""
    calibration = judge.calibration.model_dump(mode="json", exclude_none=True) if judge.calibration else None
    return {
        "judge_id": judge.id,
        "vertical": vertical,
        "version": judge.version,
        "classification": judge.classification.value,
        "floor": judge.floor,
        "tolerance": judge.tolerance,
        "thresholds": {milestone.value: value for milestone, value in judge.thresholds.items()},
        "default_threshold": judge.default_threshold,
        "enforcement": {milestone.value: value.value for milestone, value in judge.enforcement.items()},
        "baseline_source": judge.baseline_source.value,
        "calibration_ref": judge.calibration_ref,
        "calibration": calibration,
        "recalibration_due": str(judge.recalibration_due),
    }


def opik_filter(wanted: Filter) -> TraceFilter:
    """A field that is none of a trace's own is a metadata key (PF-9 §5.10). Raises Inexpressible."""
    if wanted.operator is Operator.MATCHES:
        raise Inexpressible("its filter matches a pattern, and Opik's filters know no patterns")
    if wanted.operator in _NEVER_TRUE:
        raise Inexpressible(
            f"its filter says {wanted.operator}, which Opik's rules don't evaluate: it would never fire"
        )
    key = wanted.key or ""
    name = wanted.field
    if name not in _TRACE_FIELDS:
        first = _METADATA_NAMES.get(name, name)
        name, key = "metadata", f"{first}.{key}" if key else first
    elif name == "metadata":
        key = _METADATA_NAMES.get(key, key)
    values = wanted.value if isinstance(wanted.value, list) else [wanted.value]
    return TraceFilter(name, wanted.operator.value, key, ",".join(map(_text, values)))


def _text(value: Any) -> str:
    return "" if value is None else value if isinstance(value, str) else json.dumps(value)
