"""Where a threshold comes from, and what each source has to state (PF-9 FR-3, §5.3; PC5 §5.2)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from evalcore.corpus import Corpus
from evalcore.documents import FieldPath, Parsed
from evalcore.linting import Find, check
from evalcore.problems import Problem, Severity
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


def sourced(corpus: Corpus, *sources: BaselineSource, drift: bool = True) -> Iterator[Sourced]:
    """Everything that cites one of these sources."""
    for _, judge, rule in corpus.every_rule():
        model = rule.model
        if model.baseline_source in sources:
            yield Sourced(rule, (), judge, model)
        limit = getattr(model, "drift", None)
        if drift and limit is not None and limit.baseline_source in sources:
            yield Sourced(rule, ("drift",), judge, limit)


def _missing(corpus: Corpus, find: Find, source: BaselineSource, needed: dict[str, str]) -> Iterator[Problem]:
    for one in sourced(corpus, source, drift=False):
        for name, what in needed.items():
            if getattr(one.calibration, name) is None:
                message = f"{one.judge} cites {source} and does not state {name}"
                yield find(one.parsed, ("calibration", name), message, f"add calibration.{name}: {what}")


@check(
    "jade-is-cited",
    "PF-9 FR-3, §5.3",
    "A JADE calibration states ticket, report, annotated traces, agreement and what was found inverted.",
)
def jade_is_cited(corpus: Corpus, find: Find) -> Iterator[Problem]:
    yield from _missing(corpus, find, BaselineSource.JADE_CALIBRATION, JADE_FIELDS)


@check(
    "jade-traces",
    "PF-9 §5.3",
    "A JADE calibration rests on at least 200 annotated traces.",
)
def jade_traces(corpus: Corpus, find: Find) -> Iterator[Problem]:
    for one in sourced(corpus, BaselineSource.JADE_CALIBRATION, drift=False):
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
def jade_reference(corpus: Corpus, find: Find) -> Iterator[Problem]:
    for one in sourced(corpus, BaselineSource.JADE_CALIBRATION):
        if one.stated.calibration_ref is None or not one.stated.calibration_ref.strip():
            message = f"{one.judge} cites a JADE calibration and does not say which"
            yield find(one.parsed, one.field("calibration_ref"), message, "add its ticket or document")


@check(
    "jade-agreement",
    "PF-9 §5.3, FR-10",
    "A JADE calibration found the judge to agree with people: a negative agreement is an inverted judge.",
)
def jade_agreement(corpus: Corpus, find: Find) -> Iterator[Problem]:
    for one in sourced(corpus, BaselineSource.JADE_CALIBRATION, drift=False):
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
def production_is_declared(corpus: Corpus, find: Find) -> Iterator[Problem]:
    yield from _missing(corpus, find, BaselineSource.PRODUCTION_DISTRIBUTION, PRODUCTION_FIELDS)


@check(
    "production-window",
    "PF-9 §5.3",
    "The window of a production distribution is at least 7 days.",
)
def production_window(corpus: Corpus, find: Find) -> Iterator[Problem]:
    for one in sourced(corpus, BaselineSource.PRODUCTION_DISTRIBUTION, drift=False):
        days = one.calibration.window_days
        if days is not None and days < LEAST_WINDOW_DAYS:
            message = f"a window of {days} days is too short for {one.judge}"
            yield find(one.parsed, ("calibration", "window_days"), message, "30 is the default, 7 the least")


@check(
    "seed-is-needed",
    "PF-9 §5.3",
    "A provisional seed stands only while there is no JADE round or production distribution for the judge.",
)
def seed_is_needed(corpus: Corpus, find: Find) -> Iterator[Problem]:
    for one in sourced(corpus, BaselineSource.PROVISIONAL_SEED, drift=False):
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
def calibration_days(corpus: Corpus, find: Find) -> Iterator[Problem]:
    tomorrow = corpus.today + timedelta(days=1)  # where the sun rises earlier, it has come
    for one in sourced(corpus, *BaselineSource, drift=False):
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
def calibration_day_stated(corpus: Corpus, find: Find) -> Iterator[Problem]:
    for one in sourced(corpus, *BaselineSource, drift=False):
        name = "seeded_on" if one.stated.baseline_source is BaselineSource.PROVISIONAL_SEED else "calibrated_on"
        if getattr(one.calibration, name) is None:
            message = f"{one.judge} does not say on which day its {one.stated.baseline_source} was made"
            yield find(one.parsed, ("calibration", name), message, f"add calibration.{name}")


CHECKS = (
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
