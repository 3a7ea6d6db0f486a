"""Checks where a threshold comes from and until when it holds.

Each source has facts that it must state (PF-9 FR-3, §5.3; PC5 §5.2). A seed holds for 90 days, a calibration for 180
(PF-9 FR-3, FR-4, AC-9).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

from evalcore.lint.check import Find, check
from evalcore.registry.files import RegistryFiles
from evalcore.registry.judge import overdue
from evalcore.yaml.findings import Finding, Severity
from evalcore.yaml.loader import FieldPath, Parsed
from schemas.judges import BaselineSource, Calibration, Drift, Provenance

LEAST_TRACES = 200
LEAST_WINDOW_DAYS = 7
JADE_FIELDS = {
    "ticket": "the ticket of the calibration round, such as PLT-596",
    "report": "the Confluence report of the round",
    "traces": "how many production traces people annotated",
    "agreement": "the agreement with people: `{metric: krippendorff_alpha, value: 0.71}`",
    "inverted_findings": "which judges the round found inverted, or that there were none",
}
PRODUCTION_FIELDS = {
    "window_days": "the sampling window in days; the default is 30",
    "percentile": "the percentile; the default is 5",
    "sigma": "how many standard deviations are subtracted; the default is 2",
}


@dataclass(frozen=True)
class Sourced:
    """Something that cites a source: a rule file, or the drift limit in one."""

    parsed: Parsed[Any]
    path: FieldPath
    judge: str
    stated: Provenance | Drift

    @property
    def calibration(self) -> Calibration:
        found = self.stated.calibration if isinstance(self.stated, Provenance) else None
        return found or Calibration()

    def field(self, name: str) -> FieldPath:
        return (*self.path, name)


def sourced(files: RegistryFiles, *sources: BaselineSource, drift: bool = True) -> Iterator[Sourced]:
    """Everything that cites one of these sources."""
    for _, judge, rule in files.every_rule():
        model = rule.model
        if model.baseline_source in sources:
            yield Sourced(rule, (), judge, model)
        limit = getattr(model, "drift", None)
        if drift and limit is not None and limit.baseline_source in sources:
            yield Sourced(rule, ("drift",), judge, limit)


def _missing(files: RegistryFiles, find: Find, source: BaselineSource, needed: dict[str, str]) -> Iterator[Finding]:
    for one in sourced(files, source, drift=False):
        for name, what in needed.items():
            if getattr(one.calibration, name) is None:
                message = f"{one.judge} cites {source} and does not state {name}"
                yield find(one.parsed, ("calibration", name), message, f"add calibration.{name}: {what}")


@check(
    "jade-is-cited",
    "PF-9 FR-3, §5.3",
    "A JADE calibration states ticket, report, annotated traces, agreement and what was found inverted.",
)
def jade_is_cited(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    yield from _missing(files, find, BaselineSource.JADE_CALIBRATION, JADE_FIELDS)


@check(
    "jade-traces",
    "PF-9 §5.3",
    "A JADE calibration rests on at least 200 annotated traces.",
)
def jade_traces(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    for one in sourced(files, BaselineSource.JADE_CALIBRATION, drift=False):
        traces = one.calibration.traces
        if traces is not None and traces < LEAST_TRACES:
            message = f"{traces} annotated traces are too few for a JADE calibration of {one.judge}"
            fix = f"annotate {LEAST_TRACES} or more, or cite provisional_seed until then"
            yield find(one.parsed, ("calibration", "traces"), message, fix)


@check(
    "jade-reference",
    "PC5 §5.2",
    "What cites jade_calibration has a `calibration_ref`.",
)
def jade_reference(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    for one in sourced(files, BaselineSource.JADE_CALIBRATION):
        if one.stated.calibration_ref is None or not one.stated.calibration_ref.strip():
            message = f"{one.judge} cites a JADE calibration and does not say which"
            yield find(one.parsed, one.field("calibration_ref"), message, "add its ticket or document")


@check(
    "jade-agreement",
    "PF-9 §5.3, FR-10",
    "A JADE calibration found the judge to agree with people: a negative agreement is an inverted judge.",
)
def jade_agreement(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    for one in sourced(files, BaselineSource.JADE_CALIBRATION, drift=False):
        agreement = one.calibration.agreement
        if agreement is not None and not agreement.value > 0:
            message = f"{one.judge} agrees with people by {agreement.value:g}: it is inverted, or says nothing"
            fix = "rewrite its prompt and calibrate again, or remove the judge"
            yield find(one.parsed, ("calibration", "agreement", "value"), message, fix)


@check(
    "production-is-declared",
    "PF-9 FR-3, §5.3",
    "A production distribution states its window, its percentile and its sigma rule.",
)
def production_is_declared(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    yield from _missing(files, find, BaselineSource.PRODUCTION_DISTRIBUTION, PRODUCTION_FIELDS)


@check(
    "production-window",
    "PF-9 §5.3",
    "The window of a production distribution is at least 7 days.",
)
def production_window(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    for one in sourced(files, BaselineSource.PRODUCTION_DISTRIBUTION, drift=False):
        days = one.calibration.window_days
        if days is not None and days < LEAST_WINDOW_DAYS:
            message = f"a window of {days} days is too short for {one.judge}"
            yield find(one.parsed, ("calibration", "window_days"), message, "30 is the default, 7 the least")


@check(
    "seed-is-needed",
    "PF-9 §5.3",
    "A provisional seed stands only while there is no JADE round or production distribution for the judge.",
)
def seed_is_needed(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    for one in sourced(files, BaselineSource.PROVISIONAL_SEED, drift=False):
        stated = one.calibration
        better = None
        if all(getattr(stated, name) is not None for name in JADE_FIELDS) and (stated.traces or 0) >= LEAST_TRACES:
            better = BaselineSource.JADE_CALIBRATION
        elif all(getattr(stated, name) is not None for name in PRODUCTION_FIELDS):
            better = BaselineSource.PRODUCTION_DISTRIBUTION
        if better is not None:
            message = f"{one.judge} cites a seed, yet its calibration states all that {better} requires"
            yield find(one.parsed, ("baseline_source",), message, f"write `baseline_source: {better}`")


@check(
    "calibration-days",
    "PF-9 FR-3, FR-4",
    "The day of a calibration or a seed has come.",
)
def calibration_days(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    tomorrow = files.today + timedelta(days=1)  # where the sun rises earlier, it has come
    for one in sourced(files, *BaselineSource, drift=False):
        for name in ("calibrated_on", "seeded_on"):
            day = getattr(one.calibration, name)
            if day is not None and day > tomorrow:
                yield find(one.parsed, ("calibration", name), f"{day} has not come yet", "write the day it was done")


@check(
    "calibration-day-stated",
    "PF-9 FR-3, FR-4",
    "A calibration says on which day it was made, and a seed on which it was set: the cadence counts from there.",
    Severity.WARNING,
)
def calibration_day_stated(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    for one in sourced(files, *BaselineSource, drift=False):
        name = "seeded_on" if one.stated.baseline_source is BaselineSource.PROVISIONAL_SEED else "calibrated_on"
        if getattr(one.calibration, name) is None:
            message = f"{one.judge} does not say on which day its {one.stated.baseline_source} was made"
            yield find(one.parsed, ("calibration", name), message, f"add calibration.{name}")


PROVENANCE_CHECKS = (
    jade_is_cited,
    jade_traces,
    jade_reference,
    jade_agreement,
    production_is_declared,
    production_window,
    seed_is_needed,
    calibration_days,
    calibration_day_stated,
)


LONGEST: Mapping[BaselineSource, int] = {
    BaselineSource.PROVISIONAL_SEED: 90,
    BaselineSource.JADE_CALIBRATION: 180,
    BaselineSource.PRODUCTION_DISTRIBUTION: 180,
}
"""Days from the calibration, or the seed, to the next one. Verticals may shorten them, never lengthen."""


def started(one: Sourced) -> date | None:
    """The day from which the cadence counts, where the file has it."""
    calibration = one.calibration
    if one.stated.baseline_source is BaselineSource.PROVISIONAL_SEED:
        return calibration.seeded_on
    return calibration.calibrated_on


def _too_late(files: RegistryFiles, find: Find, *sources: BaselineSource) -> Iterator[Finding]:
    for one in sourced(files, *sources):
        source = one.stated.baseline_source
        since = started(one)
        last = (since or files.today) + timedelta(days=LONGEST[source])
        if one.stated.recalibration_due > last:
            counted = f"{'the seed' if source is BaselineSource.PROVISIONAL_SEED else 'the calibration'} on {since}"
            message = (
                f"{one.stated.recalibration_due} is more than {LONGEST[source]} days after "
                f"{counted if since else f'today, {files.today}'}: too late for {source}"
            )
            yield find(one.parsed, one.field("recalibration_due"), message, f"write {last} or an earlier day")


@check(
    "seed-cadence",
    "PF-9 FR-3, FR-4",
    "A provisional seed is due for recalibration at most 90 days after its day, or after today where none is given.",
)
def seed_cadence(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    yield from _too_late(files, find, BaselineSource.PROVISIONAL_SEED)


@check(
    "calibration-cadence",
    "PF-9 FR-4",
    "A JADE calibration or production distribution is due again at most 180 days after its day, or after today.",
)
def calibration_cadence(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    yield from _too_late(files, find, BaselineSource.JADE_CALIBRATION, BaselineSource.PRODUCTION_DISTRIBUTION)


@check(
    "due-after-calibration",
    "PF-9 FR-4",
    "A recalibration is due after the calibration that it renews.",
)
def due_after_calibration(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    for one in sourced(files, *BaselineSource, drift=False):
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
def recalibration_overdue(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    for one in sourced(files, *BaselineSource):
        late = overdue(one.stated, files.today)
        if late is not None:
            what = "drift limit of " if one.path else ""
            message = f"recalibration of the {what}{one.judge} was due {late.days} days ago"
            if late.provisional:
                message += ": a provisional seed past due warns at pre_merge and blocks at pre_ramp and pre_full"
            fix = "calibrate again and write where the new threshold comes from"
            yield find(one.parsed, one.field("recalibration_due"), message, fix)


CADENCE_CHECKS = (seed_cadence, calibration_cadence, due_after_calibration, recalibration_overdue)
