"""Defines the models of judge rule files (PC5 §5.2; PF-9 §5.2, §5.3): provenance, filters, and the rule itself. Unknown
fields are errors.

The models state which fields and types a file may have. The linter (`evalcore.lint.checks`) checks values against those
of other files.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Annotated, Any, Final, Literal

from pydantic import BeforeValidator, Field, StrictBool, StrictFloat, StrictInt, StrictStr

from schemas.files import Day, FileModel, Number, Path, Prose, Text
from schemas.terms import BaselineSource as BaselineSource
from schemas.terms import Milestone as Milestone


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


SAME_OPERATOR: Final = {"equals": "=", "==": "=", "eq": "=", "not_equals": "!=", "ne": "!="}


def _operator(value: Any) -> Any:
    return SAME_OPERATOR.get(value.strip().lower(), value.strip().lower()) if isinstance(value, str) else value


class Filter(FileModel):
    """Which traces a judge fires on; without one, all that it applies to."""

    field: Text
    """A field of the trace, such as metadata, or a Tier-1/2 metadata key, such as sub_agent_id."""
    key: Text | None = None
    """A dotted path below the field."""
    operator: Annotated[Operator, BeforeValidator(_operator)]
    """How field and value are compared. `equals` is `=`."""
    value: Any = None
    """What the field is compared with; a list for `in`, a regular expression for `matches`, absent for `is_empty`."""

    @property
    def compared(self) -> str:
        """The name of what is compared: the key, else the field."""
        return self.key or self.field

    @property
    def words(self) -> str:
        """What it asks for, such as `sub_agent_id = receipts`."""
        return f"{self.compared} {self.operator}{'' if self.value is None else f' {self.value}'}"

    @property
    def values(self) -> list[Any]:
        """The value as a list: the members of `in`'s, else the one value."""
        return self.value if isinstance(self.value, list) else [self.value]


class Agreement(FileModel):
    """Between human annotation and judge score (PF-9 §5.3)."""

    metric: Literal["krippendorff_alpha", "cohen_kappa"]
    """How the agreement was measured."""
    value: Annotated[Number, Field(ge=-1, le=1)]
    """1 is full agreement, 0 what chance gives."""


class Calibration(FileModel):
    """What the source of a threshold must state (PF-9 FR-3, §5.3): of `jade_calibration` the ticket, the report, the
    annotated traces, the agreement and what was found inverted; of `production_distribution` window, percentile and
    sigma rule; of `provisional_seed` the day of the seed."""

    ticket: Text | None = None
    """JADE: the round's ticket, such as PLT-596."""
    report: Text | None = None
    """JADE: where the round's report is."""
    traces: Annotated[StrictInt, Field(ge=0)] | None = None
    """JADE: how many production traces people annotated; at least 200."""
    agreement: Agreement | None = None
    """JADE: between human annotation and judge score."""
    inverted_findings: Prose | None = None
    """JADE: which judges ran against human judgement, or that none did."""
    window_days: Annotated[StrictInt, Field(ge=1, le=365)] | None = None
    """Production: days of scores that were looked at; 30, not below 7."""
    percentile: Annotated[Number, Field(gt=0, lt=50)] | None = None
    """Production: the percentile the floor starts from; 5."""
    sigma: Annotated[Number, Field(ge=0, le=6)] | None = None
    """Production: how many standard deviations below the percentile the floor is; 2."""
    seeded_on: Day | None = None
    """Seed: the day it was set. It holds for 90 days at most."""
    calibrated_on: Day | None = None
    """JADE and production: the day of the calibration. It holds for 180 days at most."""


class Provenance(FileModel):
    """Fields that say where a limit comes from and until when it holds."""

    baseline_source: BaselineSource
    """Where the limit comes from (PF-9 FR-3)."""
    calibration_ref: Text | None = None
    """The calibration's ticket, commit or experiment. Required with jade_calibration."""
    recalibration_due: Day
    """The day by which it is derived again: a seed within 90 days, all else within 180 (PF-9 FR-4)."""
    calibration: Calibration | None = None
    """What its source has to state (PF-9 §5.3)."""


class Drift(Provenance):
    """The limit for KL divergence between calibrations, and where it comes from (PF-9 FR-13)."""

    kl_threshold: Annotated[Number, Field(gt=0)]
    """In nats; above it the judge has drifted."""


class Limits(Provenance):
    """Where threshold and floor come from. The fields of the file itself say it of both, or of the threshold alone."""

    floor_provenance: Provenance | None = None
    """Where the floor comes from, if not from where the threshold does."""

    @property
    def provenance(self) -> Provenance:
        return Provenance(**{name: getattr(self, name) for name in Provenance.model_fields})


__all__ = [
    "JUDGE_ID", "Agreement", "BaselineSource", "Calibration", "Classification", "Confirmation", "Day", "Dimension",
    "Drift", "Enforcement", "FileModel", "Filter", "Milestone", "Noise", "NoiseFile", "Number", "Operator", "Path",
    "PerMilestone", "Prose", "Provenance", "RuleFile", "Score", "ScoreType", "Text", "Thresholds", "Variables",
    "VerticalRuleFile", "judge_id", "score_range"
]  # fmt: skip


class Classification(StrEnum):
    """Platform-wide; no vertical redefines it (PF-9 FR-2, Decision 10)."""

    SAFETY_REFUSAL = "safety_refusal"
    QUALITY = "quality"


class ScoreType(StrEnum):
    """Whole numbers, fractions, or true and false."""

    INTEGER = "INTEGER"
    FLOAT = "FLOAT"
    BOOLEAN = "BOOLEAN"


class Enforcement(StrEnum):
    """What a failing judge does at a gate."""

    WARN = "warn"
    BLOCK = "block"


def judge_id(name: str) -> str:
    """Returns the one spelling of a judge's id: kebab and snake case name the same judge."""
    return name.strip().replace("-", "_").lower()


Score = StrictBool | StrictInt | StrictFloat
"""A threshold: true for a BOOLEAN judge, else a number on the judge's own scale."""
Thresholds = Score | dict[Milestone | Literal["default"], Score]
"""One for all milestones, or one for each named beside a `default` (PC5 FR-6, AC-5)."""
PerMilestone = dict[Milestone, Enforcement]
JUDGE_ID = re.compile(r"^[a-z][a-z0-9_]{0,62}$")


class Variables(FileModel):
    """Where the prompt's variables come from, by context (PC5 AC-9): name -> dotted path, such as
    `input.messages[-1].content`."""

    offline: dict[StrictStr, Path] = Field(min_length=1)
    """In an item of the dataset and the candidate's answer."""
    online: dict[StrictStr, Path] = Field(min_length=1)
    """In a production trace."""
    playground: dict[StrictStr, Path] = Field(min_length=1)
    """In Opik's playground."""


class Dimension(FileModel):
    """A part of a judge with a score of its own, `judge.dimension` to gates."""

    description: Prose
    """What is scored."""
    threshold: Thresholds | None = None
    """The score that passes; without one the judge's."""
    floor: Number | None = None
    """The score below which the dimension always blocks; without one the judge's."""
    applies: Path | None = None
    """Where an item says whether the dimension applies, such as `proposal_steps.execution`: of `ran` it takes no N/A,
    of `broke` it may, `absent` is N/A whatever the judge says, and `unread`, or nothing there, is unscored. An unscored
    dimension leaves the judge's score unscored."""


class Confirmation(FileModel):
    """How often a BOOLEAN judge has to say false of an item before it counts: `failing` of at most `asks` answers."""

    asks: Annotated[StrictInt, Field(ge=2, le=9)]
    """How many answers an item gets at most, its first one included. Only an item whose first answer is false gets
    another one."""
    failing: Annotated[StrictInt, Field(ge=2, le=5)]
    """How many of them have to be false; at most half of `asks`, rounded up. A false answer stands unless so many
    others are true that this number is out of reach."""


Rate = Annotated[Number, Field(ge=0, le=1)]
Interval = Annotated[list[Number], Field(min_length=2, max_length=2)]
"""Lower and upper end."""


class Noise(FileModel):
    """How much a judge disagrees with itself about the same items: its test-retest noise, with 95 % intervals."""

    judge: Text
    """The judge's id."""
    judge_version: Text
    """The version that was asked. What another version does is not known."""
    measured_on: Day
    """The day of the measurement."""
    items: Annotated[StrictInt, Field(ge=1)]
    """How many items it was asked about."""
    asks: Annotated[StrictInt, Field(ge=2)]
    """How often about each."""
    flip_rate: Rate
    """The chance that two answers about one item differ."""
    flip_rate_ci95: Interval
    """Its interval."""
    deviation: Annotated[Number, Field(ge=0)]
    """The standard deviation of the answers about one item, on the judge's scale."""
    deviation_ci95: Interval
    """Its interval."""
    false_alarm_rate: Rate | None = None
    """BOOLEAN: the chance that an answer is false about an item that most answers call true."""
    false_alarm_ci95: Interval | None = None
    """Its interval."""
    miss_rate: Rate | None = None
    """BOOLEAN: the chance that an answer is true about an item that most answers call false; absent without any."""
    correlation: Rate = 0
    """BOOLEAN: how much false alarms gather at the same items, from 0 to 1."""


class NoiseFile(FileModel):
    """`configs/judge-noise.yaml`, which `rampgate check noise --write` writes."""

    measured: list[Noise] = Field(default_factory=list)
    """One entry a judge; the last one about the judge's version counts."""


class RuleFile(Limits):
    """A judge of the central registry: `configs/rules/<judge>.yaml`."""

    id: Text | None = None
    """The judge's id: the file's stem, in kebab or snake case. Never `user_signal_…` (PF-9 R-4)."""
    name: Text
    """The judge's name as people read it, in Opik too."""
    calibration_ref: Text
    """The ticket, commit or experiment of the calibration or seed, whatever the source (PF-9 §5.8)."""
    model: Text
    """The model that judges, such as gpt-5-mini."""
    temperature: Annotated[Number, Field(ge=0, le=2)]
    """The judging model's temperature."""
    sampling_rate: Annotated[Number, Field(ge=0, le=1)]
    """The share of traces that are judged at pre_ramp and pre_full; pre_merge judges every item (PC5 FR-11)."""
    enabled: StrictBool
    """Whether the judge runs. A safety judge can't be switched off."""
    score_name: Text
    """What the score is called in Opik. Never `user_signal_…`."""
    score_type: ScoreType
    """Whole numbers, fractions, or true and false. Thresholds and floor have to fit it."""
    score_range: Annotated[list[Number], Field(min_length=2, max_length=2)] | None = None
    """The lowest and the highest score; without it 1 to 5 for INTEGER, 0 to 1 for FLOAT and BOOLEAN."""
    description: Prose
    """What the judge looks at, in a line."""
    task_introduction: Prose
    """The role the judging model is given."""
    variables: Variables
    """Where the prompt's variables come from, by context."""
    prompt: Prose
    """The rubric. `{{name}}` refers to a variable, whose text the judge gets beside it. Changing the rubric changes the
    judge's version (PC5 FR-12)."""
    components: list[Text] = Field(default_factory=list)
    """Ids of prompt components that the rubric is about, such as `greeting`. A change of one is a change the judge is
    checked for drift after (PF-9 FR-13); which ones they are is part of the judge's version."""
    filter: Filter | None = None
    """Which traces the judge fires on. Safety judges have none."""
    classification: Classification
    """safety_refusal: a baseline that no vertical may relax, blocks everywhere. quality: all else (PF-9 FR-2)."""
    applies_to: list[Text] = Field(default_factory=list)
    """Archetypes whose sub-agents the judge scores, as the manifest names them; empty for all (PF-9 FR-5)."""
    floor: Score
    """The aggregate below which the judge always blocks, on its own scale; for BOOLEAN the share that is true."""
    tolerance: Annotated[Number, Field(ge=0)]
    """How far below the rolling baseline still passes."""
    threshold: Thresholds | None = None
    """The score that passes where neither vertical nor manifest says one; one, or one per milestone."""
    enforcement: PerMilestone | None = None
    """warn or block per milestone, where stricter than the classification's default; looser takes an override."""
    confirmation: Confirmation | None = None
    """How often a failing answer is asked for again; without it the first one counts. BOOLEAN judges alone."""
    dimensions: dict[Text, Dimension] | None = None
    """Parts with scores of their own; gates may name `judge.dimension`."""
    score_of: Literal["dimensions"] | None = None
    """dimensions: the score is the mean of the dimensions that apply, whatever score the model gives beside them or
    leaves out; N/A where none applies. Without it the model gives the score."""
    drift: Drift | None = None
    """How far the scores may move between calibrations (PF-9 FR-13)."""
    allow_na: StrictBool | None = None
    """Whether the judge may answer N/A, not applicable, which leaves the count. Without it a quality judge may; a
    safety judge never may. Where it may not, N/A is no answer: the item is unscored."""

    @property
    def safety(self) -> bool:
        return self.classification is Classification.SAFETY_REFUSAL

    @property
    def takes_na(self) -> bool:
        """Tells whether N/A is an answer of this judge's (contracts §3, "Missing")."""
        return not self.safety and self.allow_na is not False


class VerticalRuleFile(Limits):
    """What a vertical may say of a central judge: `configs/rules/<vertical>/<judge>.yaml` (PF-9 §5.2). Calibration,
    threshold and filter; stricter enforcement; the classification is repeated, never changed."""

    id: Text | None = None
    """The judge's id: the file's stem."""
    classification: Classification
    """As in the judge's central file."""
    calibration_ref: Text
    """The ticket, commit or experiment of the calibration or seed, whatever the source (PF-9 §5.8)."""
    threshold: Thresholds | None = None
    """The score that passes, on the judge's own scale; not below the platform's."""
    floor: Score | None = None
    """The aggregate below which the judge always blocks; not below the central one."""
    tolerance: Annotated[Number, Field(ge=0)] | None = None
    """How far below the rolling baseline still passes; not above the central one."""
    filter: Filter | None = None
    """Which traces the judge fires on for this vertical; replaces the central one."""
    enforcement: PerMilestone | None = None
    """warn or block per milestone, where stricter than the platform's."""
    drift: Drift | None = None
    """How far the scores of this vertical's turns may move between calibrations; without it the central limit holds."""


def score_range(rule: RuleFile) -> tuple[float, float]:
    """Returns the scale of a judge: as declared, else 1 to 5 for INTEGER and 0 to 1 for FLOAT and BOOLEAN."""
    if rule.score_range is not None:
        return float(rule.score_range[0]), float(rule.score_range[1])
    return (1.0, 5.0) if rule.score_type is ScoreType.INTEGER else (0.0, 1.0)
