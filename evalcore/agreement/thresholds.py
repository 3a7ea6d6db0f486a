"""What is wrong with a threshold of agreement: where it comes from, and until when it holds (PF-9 FR-14). Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from enum import StrEnum
from typing import Final

from evalcore.yaml.suggestions import day_until
from schemas.checks.agreement import AgreementSource, CategoryAgreement

LONGEST: Final[Mapping[AgreementSource, int]] = {
    AgreementSource.PROVISIONAL_SEED: 90,
    AgreementSource.AGREEMENT_CALIBRATION: 180,
    AgreementSource.PRODUCTION_ANNOTATION_DISTRIBUTION: 180,
}
"""Days from the derivation, or the seed, to the next one."""


class Demand(StrEnum):
    """What a threshold has to fulfil."""

    DAY = "its day has come"
    CADENCE = "it is due in time"
    CITED = "it cites its source"
    FIRST = "a seed is of the first round"
    CURRENT = "it is not overdue"


@dataclass(frozen=True)
class Fault:
    """A demand that is not fulfilled, with the field at which it shows, and what to do."""

    demand: Demand
    field: str
    message: str
    fix: str


def faults(stated: CategoryAgreement, had_a_round: bool, today: date) -> Iterator[Fault]:
    """Yields what keeps anything from clearing this threshold, the gravest first."""
    source = stated.baseline_source
    seed, longest = source is AgreementSource.PROVISIONAL_SEED, LONGEST[source]
    last = stated.set_on + timedelta(days=longest)
    if stated.set_on > today:
        yield Fault(Demand.DAY, "set_on", f"{stated.set_on} has not come yet", "write the day on which it was derived")
    if not stated.set_on < stated.recalibration_due <= last:
        message = f"{source} holds for {longest} days at most, from {stated.set_on}"
        fix = day_until(last, today, "derive the threshold again, and write its new days")
        yield Fault(Demand.CADENCE, "recalibration_due", message, fix)
    if not seed and stated.calibration_ref is None:
        message = f"{source} cites what the threshold was derived from"
        yield Fault(Demand.CITED, "calibration_ref", message, "add the pilot's ticket, or the rounds")
    if seed and had_a_round:
        message = "the category has had a round, and provisional_seed holds for the first one alone"
        fix = "derive the threshold from that round: agreement_calibration or production_annotation_distribution"
        yield Fault(Demand.FIRST, "baseline_source", message, fix)
    if today > stated.recalibration_due:
        message = f"the threshold is overdue since {stated.recalibration_due}"
        yield Fault(Demand.CURRENT, "recalibration_due", message, "derive it again from the rounds since")
