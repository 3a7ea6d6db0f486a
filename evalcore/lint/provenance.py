"""Checks where a threshold comes from and until when it holds: a judge's, its drift's, that of annotators' agreement.

Each source has facts that it must state (PF-9 FR-3, FR-14, §5.3; PC5 §5.2). A seed holds for 90 days, a calibration for
180 (PF-9 FR-3, FR-4, AC-9).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

from evalcore.agreement.thresholds import Demand, faults
from evalcore.lint.categories import known
from evalcore.lint.check import Find, Subject
from evalcore.registry.files import RegistryFiles
from evalcore.registry.judge import overdue
from evalcore.yaml.findings import Finding
from evalcore.yaml.loader import FieldPath, Parsed
from evalcore.yaml.suggestions import day_until, near_miss
from schemas.judges import BaselineSource, Calibration, Provenance

PROVENANCE = Subject("Provenance")
CADENCE = Subject("Cadence", "PF-9 FR-4")
AGREEMENT = Subject("Agreement", "PF-9 FR-14")
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
LONGEST: Mapping[BaselineSource, int] = {
    BaselineSource.PROVISIONAL_SEED: 90,
    BaselineSource.JADE_CALIBRATION: 180,
    BaselineSource.PRODUCTION_DISTRIBUTION: 180,
}
"""Days from the calibration, or the seed, to the next one. Verticals may shorten them, never lengthen."""
_LIMITS: Mapping[str, tuple[str, ...]] = {"threshold": (), "floor": ("floor_provenance",), "drift": ("drift",)}


@dataclass(frozen=True)
class Sourced:
    """Something that cites a source: a rule file for its `threshold`, or the `floor` or limit of `drift` in it."""

    parsed: Parsed[Any]
    what: str
    path: FieldPath
    judge: str
    stated: Provenance
    vertical: str | None = None

    @property
    def calibration(self) -> Calibration:
        return self.stated.calibration or Calibration()

    @property
    def name(self) -> str:
        return f"the {self.what} limit of {self.judge}" if self.path else self.judge

    def field(self, *names: str) -> FieldPath:
        return (*self.path, *names)


def sourced(files: RegistryFiles, *sources: BaselineSource) -> Iterator[Sourced]:
    """Yields everything that cites one of these sources."""
    for vertical, judge, rule in files.every_rule():
        for what, path in _LIMITS.items():
            stated = getattr(rule.model, path[0]) if path else rule.model
            if stated is not None and stated.baseline_source in sources:
                yield Sourced(rule, what, path, judge, stated, vertical)


def _missing(files: RegistryFiles, find: Find, source: BaselineSource, needed: dict[str, str]) -> Iterator[Finding]:
    for cited in sourced(files, source):
        for name, what in needed.items():
            if getattr(cited.calibration, name) is None:
                message = f"{cited.name} cites {source} and does not state {name}"
                yield find(cited.parsed, cited.field("calibration", name), message, f"add calibration.{name}: {what}")


@PROVENANCE.warning("PF-9 FR-13")
def drift_limit_stated(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    """A judge states how far its scores may move between calibrations; else nothing can say that it drifted."""
    for judge, rule in files.rules.items():
        if rule.model.drift is None:
            fix = "add drift: {kl_threshold: …} with the fields of a source, as the threshold has them"
            yield find(rule, ("drift",), f"{judge} has no limit of drift", fix)


@PROVENANCE.error("PF-9 FR-3, §5.3")
def jade_is_cited(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    """A JADE calibration states ticket, report, annotated traces, agreement and what was found inverted."""
    yield from _missing(files, find, BaselineSource.JADE_CALIBRATION, JADE_FIELDS)


@PROVENANCE.error("PF-9 §5.3")
def jade_traces(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    """A JADE calibration rests on at least 200 annotated traces."""
    for cited in sourced(files, BaselineSource.JADE_CALIBRATION):
        traces = cited.calibration.traces
        if traces is not None and traces < LEAST_TRACES:
            message = f"{traces} annotated traces are too few for a JADE calibration of {cited.name}"
            fix = f"annotate {LEAST_TRACES} or more, or cite provisional_seed until then"
            yield find(cited.parsed, cited.field("calibration", "traces"), message, fix)


@PROVENANCE.error("PC5 §5.2")
def jade_reference(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    """What cites jade_calibration has a `calibration_ref`."""
    for cited in sourced(files, BaselineSource.JADE_CALIBRATION):
        if cited.stated.calibration_ref is None or not cited.stated.calibration_ref.strip():
            message = f"{cited.name} cites a JADE calibration and does not say which"
            yield find(cited.parsed, cited.field("calibration_ref"), message, "add its ticket or document")


@PROVENANCE.error("PF-9 §5.3, FR-10")
def jade_agreement(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    """A JADE calibration found the judge to agree with people: a negative agreement is an inverted judge."""
    for cited in sourced(files, BaselineSource.JADE_CALIBRATION):
        agreement = cited.calibration.agreement
        if agreement is not None and not agreement.value > 0:
            message = f"{cited.judge} agrees with people by {agreement.value:g}: it is inverted, or says nothing"
            fix = "rewrite its prompt and calibrate again, or remove the judge"
            yield find(cited.parsed, cited.field("calibration", "agreement", "value"), message, fix)


@PROVENANCE.error("PF-9 FR-3, §5.3")
def production_is_declared(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    """A production distribution states its window, its percentile and its sigma rule."""
    yield from _missing(files, find, BaselineSource.PRODUCTION_DISTRIBUTION, PRODUCTION_FIELDS)


@PROVENANCE.error("PF-9 §5.3")
def production_window(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    """The window of a production distribution is at least 7 days."""
    for cited in sourced(files, BaselineSource.PRODUCTION_DISTRIBUTION):
        days = cited.calibration.window_days
        if days is not None and days < LEAST_WINDOW_DAYS:
            message = f"a window of {days} days is too short for {cited.name}"
            fix = "30 is the default, 7 the least"
            yield find(cited.parsed, cited.field("calibration", "window_days"), message, fix)


@PROVENANCE.error("PF-9 §5.3")
def seed_is_needed(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    """A provisional seed holds only while there is no JADE round or production distribution for the judge."""
    for cited in sourced(files, BaselineSource.PROVISIONAL_SEED):
        stated = cited.calibration
        better = None
        if all(getattr(stated, name) is not None for name in JADE_FIELDS) and (stated.traces or 0) >= LEAST_TRACES:
            better = BaselineSource.JADE_CALIBRATION
        elif all(getattr(stated, name) is not None for name in PRODUCTION_FIELDS):
            better = BaselineSource.PRODUCTION_DISTRIBUTION
        if better is not None:
            message = f"{cited.name} cites a seed, yet its calibration states all that {better} requires"
            yield find(cited.parsed, cited.field("baseline_source"), message, f"write `baseline_source: {better}`")


@PROVENANCE.error("PF-9 FR-3, FR-4")
def calibration_days(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    """The day of a calibration or a seed has come."""
    tomorrow = files.today + timedelta(days=1)  # where the sun rises earlier, it has come
    for cited in sourced(files, *BaselineSource):
        for name in ("calibrated_on", "seeded_on"):
            day = getattr(cited.calibration, name)
            if day is not None and day > tomorrow:
                path = cited.field("calibration", name)
                yield find(cited.parsed, path, f"{day} has not come yet", "write the day it was done")


@PROVENANCE.error("PF-9 FR-3, FR-4")
def calibration_day_stated(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    """A calibration says on which day it was made, and a seed on which it was set: the cadence counts from there."""
    for cited in sourced(files, *BaselineSource):
        name = "seeded_on" if cited.stated.baseline_source is BaselineSource.PROVISIONAL_SEED else "calibrated_on"
        if getattr(cited.calibration, name) is None:
            message = f"{cited.name} does not say on which day its {cited.stated.baseline_source} was made"
            yield find(cited.parsed, cited.field("calibration", name), message, f"add calibration.{name}")


def started(cited: Sourced) -> date | None:
    """Returns the day from which the cadence counts; None where the file does not state it."""
    calibration = cited.calibration
    if cited.stated.baseline_source is BaselineSource.PROVISIONAL_SEED:
        return calibration.seeded_on
    return calibration.calibrated_on


def _too_late(files: RegistryFiles, find: Find, *sources: BaselineSource) -> Iterator[Finding]:
    for cited in sourced(files, *sources):
        source = cited.stated.baseline_source
        since = started(cited)
        last = (since or files.today) + timedelta(days=LONGEST[source])
        if cited.stated.recalibration_due > last:
            counted = f"{'the seed' if source is BaselineSource.PROVISIONAL_SEED else 'the calibration'} on {since}"
            message = (
                f"{cited.stated.recalibration_due} is more than {LONGEST[source]} days after "
                f"{counted if since else f'today, {files.today}'}: too late for {source}"
            )
            fix = day_until(last, files.today, "calibrate again, and write the new source and its day")
            yield find(cited.parsed, cited.field("recalibration_due"), message, fix)


@CADENCE.error("PF-9 FR-3, FR-4")
def seed_cadence(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    """A provisional seed is due for recalibration at most 90 days after its day, or after today where none is given."""
    yield from _too_late(files, find, BaselineSource.PROVISIONAL_SEED)


@CADENCE.error()
def calibration_cadence(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    """A JADE calibration or production distribution is due again at most 180 days after its day, or after today."""
    yield from _too_late(files, find, BaselineSource.JADE_CALIBRATION, BaselineSource.PRODUCTION_DISTRIBUTION)


@CADENCE.error()
def due_after_calibration(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    """A recalibration is due after the calibration that it renews."""
    for cited in sourced(files, *BaselineSource):
        since = started(cited)
        if since is not None and cited.stated.recalibration_due <= since:
            message = f"{cited.stated.recalibration_due} is not after {since}, the day of the calibration"
            yield find(cited.parsed, cited.field("recalibration_due"), message, "write the day of the next calibration")


@CADENCE.warning("PF-9 AC-9, FR-4")
def recalibration_overdue(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    """No recalibration is past due. An overdue seed warns at pre_merge and blocks at pre_ramp and pre_full."""
    for cited in sourced(files, *BaselineSource):
        late = overdue(cited.stated, files.today)
        if late is not None:
            message = f"recalibration of {cited.name} was due {late.days} days ago"
            if late.provisional:
                message += ": a provisional seed past due warns at pre_merge and blocks at pre_ramp and pre_full"
            fix = "calibrate again and write where the new threshold comes from"
            yield find(cited.parsed, cited.field("recalibration_due"), message, fix)


def _agreements(files: RegistryFiles, find: Find, *demands: Demand) -> Iterator[Finding]:
    for vertical, parsed in files.agreements.items():
        had_a_round = (files.rounds or {}).get(vertical, frozenset())
        for category, stated in parsed.model.categories.items():
            for fault in faults(stated, category in had_a_round, files.today):
                if fault.demand in demands:
                    yield find(parsed, ("categories", category, fault.field), f"{category}: {fault.message}", fault.fix)


@AGREEMENT.warning("PF-9 FR-14, Decision 17")
def agreement_of_a_category(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    """A threshold of annotators' agreement is of a category that is declared."""
    names = known(files)
    for parsed in files.agreements.values():
        for category in parsed.model.categories:
            if names and category not in names:
                message = f"there is no category {category!r}{near_miss(category, names)}"
                yield find(parsed, ("categories", category), message, "name a category of the manifest, or remove it")


@AGREEMENT.error()
def agreement_is_cited(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    """A threshold of annotators' agreement that is no seed cites the pilot or the rounds that it was derived from."""
    yield from _agreements(files, find, Demand.CITED)


@AGREEMENT.error("PF-9 FR-14, FR-4")
def agreement_cadence(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    """A threshold of annotators' agreement was set on a day that has come, and is due after it: a seed within 90 days,
    all else within 180."""
    yield from _agreements(files, find, Demand.DAY, Demand.CADENCE)


@AGREEMENT.error("PF-9 FR-14, AC-14")
def agreement_seed_is_first(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    """A category that has had a round has no provisional seed: its second one is held to a derived threshold."""
    yield from _agreements(files, find, Demand.FIRST)


@AGREEMENT.warning("PF-9 AC-14, FR-4")
def agreement_overdue(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    """No threshold of annotators' agreement is past due. With an overdue one no round clears, and `rampgate check
    cadence` fails in CI."""
    yield from _agreements(files, find, Demand.CURRENT)
