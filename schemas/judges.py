"""Judge rule files and what belongs to them, as files hold them (PC5 §5.2, PF-9 §5.2, §5.3). Unknown fields are errors.

The models say what a file may look like; what its values may be, seen together with other files, is the linter's
business (`evalcore.linting`).
"""

from __future__ import annotations

import re
from datetime import date, datetime
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StrictBool, StrictFloat, StrictInt, StrictStr


class Milestone(StrEnum):
    PRE_MERGE = "pre_merge"
    PRE_RAMP = "pre_ramp"
    PRE_FULL = "pre_full"


class Classification(StrEnum):
    """Platform-wide; no vertical redefines it (PF-9 FR-2, Decision 10)."""

    SAFETY_REFUSAL = "safety_refusal"
    QUALITY = "quality"


class ScoreType(StrEnum):
    INTEGER = "INTEGER"
    FLOAT = "FLOAT"
    BOOLEAN = "BOOLEAN"


class BaselineSource(StrEnum):
    JADE_CALIBRATION = "jade_calibration"
    PRODUCTION_DISTRIBUTION = "production_distribution"
    PROVISIONAL_SEED = "provisional_seed"


class Enforcement(StrEnum):
    WARN = "warn"
    BLOCK = "block"


class Operator(StrEnum):
    """Of a trace filter. `=` and `equals` are one operator; so are `==` and `eq`."""

    EQUALS = "="
    NOT_EQUALS = "!="
    CONTAINS = "contains"
    NOT_CONTAINS = "not_contains"
    STARTS_WITH = "starts_with"
    ENDS_WITH = "ends_with"
    GREATER = ">"
    AT_LEAST = ">="
    LESS = "<"
    AT_MOST = "<="
    IN = "in"
    MATCHES = "matches"
    IS_EMPTY = "is_empty"
    IS_NOT_EMPTY = "is_not_empty"


_SAME_OPERATOR = {"equals": "=", "==": "=", "eq": "=", "not_equals": "!=", "ne": "!="}


def judge_id(name: str) -> str:
    """The one spelling of a judge's id: kebab and snake case name the same judge."""
    return name.strip().replace("-", "_").lower()


def _operator(value: Any) -> Any:
    return _SAME_OPERATOR.get(value.strip().lower(), value.strip().lower()) if isinstance(value, str) else value


class FileModel(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


_DAY = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)


def _day(value: Any) -> Any:
    if isinstance(value, datetime) or not (
        isinstance(value, date) or (isinstance(value, str) and _DAY.fullmatch(value))
    ):
        raise ValueError("a day is required, such as 2026-08-22")
    return value


Day = Annotated[date, BeforeValidator(_day)]
Text = Annotated[StrictStr, Field(min_length=1, max_length=200)]
Prose = Annotated[StrictStr, Field(min_length=1, max_length=100_000)]
Path = Annotated[
    StrictStr, Field(pattern=r"^[A-Za-z_][\w-]*(\[-?\d+\])*(\.[A-Za-z_][\w-]*(\[-?\d+\])*)*$", max_length=500)
]
"""A dotted path with list indices, negative ones too: `input.messages[-1].content`."""
Number = StrictInt | StrictFloat
Score = StrictBool | StrictInt | StrictFloat
"""A threshold: true for a BOOLEAN judge, else a number on the judge's own scale."""
Thresholds = Score | dict[Milestone | Literal["default"], Score]
"""One for all milestones, or one for each named beside a `default` (PC5 FR-6, AC-5)."""
PerMilestone = dict[Milestone, Enforcement]
JUDGE_ID = re.compile(r"^[a-z][a-z0-9_]{0,62}$")


class Filter(FileModel):
    """Which traces a judge fires on. `field` is a trace's field or Tier-1/2 metadata key; `key` a path below it."""

    field: Text
    key: Text | None = None
    operator: Annotated[Operator, BeforeValidator(_operator)]
    value: Any = None


class Variables(FileModel):
    """Where the prompt's variables come from, by context (PC5 AC-9). Name -> path."""

    offline: dict[StrictStr, Path] = Field(min_length=1)
    online: dict[StrictStr, Path] = Field(min_length=1)
    playground: dict[StrictStr, Path] = Field(min_length=1)


class Agreement(FileModel):
    """Between human annotation and judge score (PF-9 §5.3)."""

    metric: Literal["krippendorff_alpha", "cohen_kappa"]
    value: Annotated[Number, Field(ge=-1, le=1)]


class Calibration(FileModel):
    """What the source of a threshold must state (PF-9 FR-3, §5.3): of `jade_calibration` the ticket, the report, the
    annotated traces, the agreement and what was found inverted; of `production_distribution` window, percentile and
    sigma rule; of `provisional_seed` the day of the seed."""

    ticket: Text | None = None
    report: Text | None = None
    traces: Annotated[StrictInt, Field(ge=0)] | None = None
    agreement: Agreement | None = None
    inverted_findings: Prose | None = None
    window_days: Annotated[StrictInt, Field(ge=1, le=365)] | None = None
    percentile: Annotated[Number, Field(gt=0, lt=50)] | None = None
    sigma: Annotated[Number, Field(ge=0, le=6)] | None = None
    seeded_on: Day | None = None
    calibrated_on: Day | None = None


class Provenance(FileModel):
    """Fields that say where a threshold comes from and until when it holds."""

    baseline_source: BaselineSource
    calibration_ref: Text | None = None
    recalibration_due: Day
    calibration: Calibration | None = None


class Dimension(FileModel):
    """A part of a judge with a score of its own, `judge.dimension` to gates."""

    description: Prose
    threshold: Thresholds | None = None
    floor: Number | None = None


class Drift(FileModel):
    """The limit for KL divergence between calibrations, and where it comes from (PF-9 FR-13)."""

    kl_threshold: Annotated[Number, Field(gt=0)]
    baseline_source: BaselineSource
    calibration_ref: Text | None = None
    recalibration_due: Day


class RuleFile(Provenance):
    """A judge of the central registry: `configs/rules/<judge>.yaml`."""

    id: Text | None = None
    name: Text
    model: Text
    temperature: Annotated[Number, Field(ge=0, le=2)]
    sampling_rate: Annotated[Number, Field(ge=0, le=1)]
    enabled: StrictBool
    score_name: Text
    score_type: ScoreType
    score_range: Annotated[list[Number], Field(min_length=2, max_length=2)] | None = None
    description: Prose
    task_introduction: Prose
    variables: Variables
    prompt: Prose
    filter: Filter | None = None
    classification: Classification
    applies_to: list[Text] = Field(default_factory=list)
    floor: Score
    tolerance: Annotated[Number, Field(ge=0)]
    threshold: Thresholds | None = None
    enforcement: PerMilestone | None = None
    dimensions: dict[Text, Dimension] | None = None
    drift: Drift | None = None


class VerticalRuleFile(Provenance):
    """What a vertical may say of a central judge: `configs/rules/<vertical>/<judge>.yaml` (PF-9 §5.2). Calibration,
    threshold and filter; stricter enforcement; the classification may be repeated, never changed."""

    id: Text | None = None
    classification: Classification | None = None
    threshold: Thresholds | None = None
    floor: Score | None = None
    tolerance: Annotated[Number, Field(ge=0)] | None = None
    filter: Filter | None = None
    enforcement: PerMilestone | None = None


def score_range(rule: RuleFile) -> tuple[float, float]:
    """The scale a judge scores on: as declared, else 1 to 5 for INTEGER and 0 to 1 for FLOAT and BOOLEAN."""
    if rule.score_range is not None:
        return float(rule.score_range[0]), float(rule.score_range[1])
    return (1.0, 5.0) if rule.score_type is ScoreType.INTEGER else (0.0, 1.0)
