"""Until when a threshold holds: 90 days for a seed, 180 for a calibration (PF-9 FR-3, FR-4, AC-9)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Protocol

from evalcore.corpus import Corpus
from evalcore.linting import Find, check
from evalcore.linting.provenance import Sourced, sourced
from evalcore.problems import Problem, Severity
from schemas.judges import BaselineSource, Enforcement, Milestone

LONGEST: Mapping[BaselineSource, int] = {
    BaselineSource.PROVISIONAL_SEED: 90,
    BaselineSource.JADE_CALIBRATION: 180,
    BaselineSource.PRODUCTION_DISTRIBUTION: 180,
}
"""Days from the calibration, or the seed, to the next one. Verticals may shorten them, never lengthen."""


class HasCadence(Protocol):
    """A rule file, a drift limit, or a judge of the registry."""

    @property
    def baseline_source(self) -> BaselineSource: ...
    @property
    def recalibration_due(self) -> date: ...


@dataclass(frozen=True)
class Overdue:
    """A recalibration that is `days` late, and what gates do about it."""

    days: int
    baseline_source: BaselineSource
    at: Mapping[Milestone, Enforcement] = field(default_factory=dict)

    @property
    def provisional(self) -> bool:
        return self.baseline_source is BaselineSource.PROVISIONAL_SEED


def overdue(judge: HasCadence, today: date) -> Overdue | None:
    """None while the recalibration is not past due; its day itself is still in time. A seed past due warns at pre_merge
    and blocks at pre_ramp and pre_full (PF-9 AC-9); a calibration past due warns."""
    days = (today - judge.recalibration_due).days
    if days <= 0:
        return None
    warns = dict.fromkeys(Milestone, Enforcement.WARN)
    if judge.baseline_source is not BaselineSource.PROVISIONAL_SEED:
        return Overdue(days, judge.baseline_source, warns)
    blocks = {Milestone.PRE_RAMP: Enforcement.BLOCK, Milestone.PRE_FULL: Enforcement.BLOCK}
    return Overdue(days, judge.baseline_source, {**warns, **blocks})


def started(one: Sourced) -> date | None:
    """The day from which the cadence counts, where the file has it."""
    calibration = one.calibration
    if one.stated.baseline_source is BaselineSource.PROVISIONAL_SEED:
        return calibration.seeded_on
    return calibration.calibrated_on


def _too_late(corpus: Corpus, find: Find, *sources: BaselineSource) -> Iterator[Problem]:
    for one in sourced(corpus, *sources):
        source = one.stated.baseline_source
        since = started(one)
        last = (since or corpus.today) + timedelta(days=LONGEST[source])
        if one.stated.recalibration_due > last:
            counted = f"{'the seed' if source is BaselineSource.PROVISIONAL_SEED else 'the calibration'} on {since}"
            message = (
                f"{one.stated.recalibration_due} is more than {LONGEST[source]} days after "
                f"{counted if since else f'today, {corpus.today}'}: too late for {source}"
            )
            yield find(one.parsed, one.field("recalibration_due"), message, f"write {last} or an earlier day")


@check(
    "seed-cadence",
    "PF-9 FR-3, FR-4",
    "A provisional seed is due for recalibration at most 90 days after its day, or after today where none is given.",
)
def seed_cadence(corpus: Corpus, find: Find) -> Iterator[Problem]:
    yield from _too_late(corpus, find, BaselineSource.PROVISIONAL_SEED)


@check(
    "calibration-cadence",
    "PF-9 FR-4",
    "A JADE calibration or production distribution is due again at most 180 days after its day, or after today.",
)
def calibration_cadence(corpus: Corpus, find: Find) -> Iterator[Problem]:
    yield from _too_late(corpus, find, BaselineSource.JADE_CALIBRATION, BaselineSource.PRODUCTION_DISTRIBUTION)


@check(
    "due-after-calibration",
    "PF-9 FR-4",
    "A recalibration is due after the calibration that it renews.",
)
def due_after_calibration(corpus: Corpus, find: Find) -> Iterator[Problem]:
    for one in sourced(corpus, *BaselineSource, drift=False):
        since = started(one)
        if since is not None and one.stated.recalibration_due <= since:
            message = f"{one.stated.recalibration_due} is not after {since}, the day of the calibration"
            yield find(one.parsed, one.field("recalibration_due"), message, "write the day of the next calibration")


@check(
    "recalibration-overdue",
    "PF-9 AC-9, FR-4",
    "No recalibration is past due. An overdue seed warns at pre_merge and blocks at pre_ramp and pre_full.",
    Severity.WARNING,
)
def recalibration_overdue(corpus: Corpus, find: Find) -> Iterator[Problem]:
    for one in sourced(corpus, *BaselineSource):
        late = overdue(one.stated, corpus.today)
        if late is not None:
            what = "drift limit of " if one.path else ""
            message = f"recalibration of the {what}{one.judge} was due {late.days} days ago"
            if late.provisional:
                message += ": a provisional seed past due warns at pre_merge and blocks at pre_ramp and pre_full"
            fix = "calibrate again and write where the new threshold comes from"
            yield find(one.parsed, one.field("recalibration_due"), message, fix)


CHECKS = (seed_cadence, calibration_cadence, due_after_calibration, recalibration_overdue)
