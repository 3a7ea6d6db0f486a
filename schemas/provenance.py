"""Where a threshold comes from and until when it holds (PF-9 FR-3, FR-4, §5.3)."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field, StrictInt

from schemas.files import Day, FileModel, Number, Prose, Text


class BaselineSource(StrEnum):
    """Where a threshold comes from: a JADE round, the distribution of production scores, or a provisional seed."""

    JADE_CALIBRATION = "jade_calibration"
    PRODUCTION_DISTRIBUTION = "production_distribution"
    PROVISIONAL_SEED = "provisional_seed"


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
    """Fields that say where a threshold comes from and until when it holds."""

    baseline_source: BaselineSource
    """Where floor and threshold come from (PF-9 FR-3)."""
    calibration_ref: Text | None = None
    """The calibration's ticket, commit or experiment. Required with jade_calibration."""
    recalibration_due: Day
    """The day by which the judge is calibrated again: a seed within 90 days, all else within 180 (PF-9 FR-4)."""
    calibration: Calibration | None = None
    """What the source of the threshold has to state (PF-9 §5.3)."""


class Drift(FileModel):
    """The limit for KL divergence between calibrations, and where it comes from (PF-9 FR-13)."""

    kl_threshold: Annotated[Number, Field(gt=0)]
    """In nats; above it the judge has drifted."""
    baseline_source: BaselineSource
    """Where the limit comes from."""
    calibration_ref: Text | None = None
    """The calibration's ticket, commit or experiment."""
    recalibration_due: Day
    """The day by which the limit is derived again."""
