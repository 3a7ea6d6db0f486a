"""The registry: one frozen view of all judges, categories and thresholds; lookups are dictionary reads (PC5 NFR-1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from schemas.judges import (
    BaselineSource,
    Calibration,
    Classification,
    Enforcement,
    Filter,
    Milestone,
    RuleFile,
    ScoreType,
)


class UnknownJudge(KeyError):
    """No judge of that id; says which are near."""


class UnknownCategory(KeyError):
    """No category of that name; says which are near."""


class ThresholdTypeError(TypeError):
    """A threshold that does not fit the judge's score type."""


@dataclass(frozen=True)
class Judge:
    """A judge as one vertical sees it (`vertical` None: the platform's view). Thresholds are resolved: vertical's rule
    file (per milestone, then single), manifest (per milestone, then single), central rule, and the floor beneath all.

    `enforcement` is complete; `sub_agents` are those of the archetypes in `applies_to`, empty for all.
    """

    id: str
    vertical: str | None
    rule: RuleFile
    classification: Classification
    score_name: str
    score_type: ScoreType
    score_range: tuple[float, float]
    thresholds: Mapping[Milestone, float | bool]
    default_threshold: float | bool
    floor: float
    tolerance: float
    enforcement: Mapping[Milestone, Enforcement]
    filter: Filter | None
    sub_agents: tuple[str, ...]
    baseline_source: BaselineSource
    calibration_ref: str | None
    calibration: Calibration | None
    recalibration_due: Any
    version: str
    """The hash of all that decides a score: rubric, model, parameters, bindings."""
