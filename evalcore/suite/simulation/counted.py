"""What was counted of a suite's gates: rates, their intervals, and which are not as they should be. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from scipy import stats

from evalcore.suite.comparison import SMALL

SLICE, HEADLINE, SAFETY, PULL_REQUEST = "slice", "headline", "safety", "pull_request"
NOMINAL: Final = {SLICE: 0.023, HEADLINE: 0.025, SAFETY: 0.01, PULL_REQUEST: 0.07}
"""The share of unchanged candidates that a gate may block, as shipped: of slices, each counts."""
CONFIDENCE: Final = 0.95
MISSED: Final = 0.05
"""By how much fewer planted drops may be found than predicted."""


@dataclass(frozen=True)
class Rate:
    """How many of so many, with the interval of Clopper and Pearson."""

    found: int
    of: int

    @property
    def ratio(self) -> float:
        return self.found / self.of if self.of else math.nan

    @property
    def ci95(self) -> tuple[float, float]:
        tail, low, high = (1 - CONFIDENCE) / 2, 0.0, 1.0
        if self.found > 0:
            low = float(stats.beta.ppf(tail, self.found, self.of - self.found + 1))
        if self.found < self.of:
            high = float(stats.beta.isf(tail, self.found + 1, self.of - self.found))
        return low, high


@dataclass(frozen=True)
class Alarms:
    """How often a gate blocked a candidate that changes nothing: by the plain rule, and as shipped."""

    gate: str
    plain: Rate
    shipped: Rate

    @property
    def nominal(self) -> float:
        return NOMINAL[self.gate]

    @property
    def above(self) -> bool:
        """Tells whether it blocks, as shipped, more often than it may, beyond chance."""
        return self.shipped.of > 0 and self.shipped.ci95[0] > self.nominal


@dataclass(frozen=True)
class Detection:
    """How often a slice's gate found a drop that was planted in it, and how often `power` predicts that it does.
    `planted` is the drop that the scale left room for."""

    slice: str
    cases: int
    planted: float
    plain: Rate
    shipped: Rate
    predicted: float
    predicted_shipped: float

    @property
    def missed(self) -> bool:
        """Tells whether fewer are found than predicted, beyond chance and five points. Of few cases the prediction is
        none."""
        if self.cases < SMALL:
            return False
        pairs = ((self.plain, self.predicted), (self.shipped, self.predicted_shipped))
        return any(rate.ci95[1] < predicted - MISSED for rate, predicted in pairs)


@dataclass(frozen=True)
class Simulated:
    comparisons: int
    alarms: Sequence[Alarms]
    detections: Sequence[Detection]
