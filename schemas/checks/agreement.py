"""How much annotators have to agree: levels of measurement, sources of thresholds (PF-9 FR-14)."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field, StrictStr

from schemas.files import Day, FileModel, Number, Text
from schemas.terms import Level as Level


class AgreementSource(StrEnum):
    """Where a threshold of agreement comes from."""

    AGREEMENT_CALIBRATION = "agreement_calibration"
    PRODUCTION_ANNOTATION_DISTRIBUTION = "production_annotation_distribution"
    PROVISIONAL_SEED = "provisional_seed"


SEED_THRESHOLD = 0.667
"""Krippendorff's floor for tentative conclusions."""


class CategoryAgreement(FileModel):
    """What annotators of one category have to reach."""

    level: Level = Level.ORDINAL
    """The level of measurement of its ratings; nominal ones may be labels."""
    threshold: Annotated[Number, Field(gt=0, le=1)]
    """The least Krippendorff's alpha of a round that enters the reference set."""
    baseline_source: AgreementSource
    """Where the threshold comes from."""
    calibration_ref: Text | None = None
    """The pilot, or the rounds, that it was derived from. Required with all but provisional_seed."""
    reference: Annotated[StrictStr, Field(pattern=r"^[0-9a-f]{64}$")] | None = None
    """The version of the reference set that it was derived from: its last entry's hash then. A set that lacks this
    entry was cut off or written again, and nothing clears."""
    set_on: Day
    """The day on which it was derived, or set."""
    recalibration_due: Day
    """The day by which it is derived again: a seed within 90 days, all else within 180 (PF-9 FR-4)."""


class AgreementFile(FileModel):
    """`specs/verticals/<vertical>/eval/agreement.yaml`."""

    vertical: Text
    """The folder's name."""
    categories: Annotated[dict[Text, CategoryAgreement], Field(min_length=1)]
    """Category -> what its annotators have to reach."""
