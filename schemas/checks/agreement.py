"""How much annotators have to agree: levels of measurement, sources of thresholds (PF-9 FR-14)."""

from __future__ import annotations

from enum import StrEnum


class Level(StrEnum):
    """What may be said of two ratings that differ."""

    NOMINAL = "nominal"
    ORDINAL = "ordinal"
    INTERVAL = "interval"
    RATIO = "ratio"


class AgreementSource(StrEnum):
    """Where a threshold of agreement comes from."""

    AGREEMENT_CALIBRATION = "agreement_calibration"
    PRODUCTION_ANNOTATION_DISTRIBUTION = "production_annotation_distribution"
    PROVISIONAL_SEED = "provisional_seed"


SEED_THRESHOLD = 0.667
"""Krippendorff's floor for tentative conclusions."""
