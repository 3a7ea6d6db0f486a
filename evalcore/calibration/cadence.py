"""Tells which limits are due to be derived again, and how far verticals' limits of one judge lie apart. Pure.

What is overdue is decided once: for judges as gates decide it (`evalcore.registry.judge.overdue`), for agreement as the
check of a round does (`evalcore.agreement.thresholds`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import date
from enum import StrEnum

from evalcore.agreement.thresholds import Demand, faults
from evalcore.lint.provenance import sourced, started
from evalcore.registry.files import RegistryFiles
from evalcore.registry.judge import Judge, overdue
from evalcore.registry.registry import Registry
from schemas.judges import BaselineSource, Milestone
from schemas.terms import LimitKind

APART = 0.1
"""The part of a judge's scale by which verticals' limits lie so far apart that it is told (PF-9 Decision 11)."""


class Status(StrEnum):
    """A limit holds on its last day; it is overdue on the day after."""

    OVERDUE = "overdue"
    SOON = "due_soon"
    HOLDS = "holds"


@dataclass(frozen=True)
class Due:
    """One limit and the day by which it is derived again. `name` is a judge's or a category's, `vertical` None the
    platform; `since` the day from which the cadence counts, where the file says it; `file` and `line` say where."""

    kind: LimitKind
    vertical: str | None
    name: str
    source: str
    since: date | None
    due: date
    days_left: int
    status: Status
    file: str
    line: int


@dataclass(frozen=True)
class Own:
    """A limit as one vertical has it; `vertical` None the platform."""

    vertical: str | None
    value: float
    source: BaselineSource


@dataclass(frozen=True)
class Apart:
    """A judge's limits of the platform and of all verticals that state their own: threshold at the milestone where they
    lie farthest apart, or floor (`milestone` None). `share` is the part of the judge's scale that lies between them."""

    judge: str
    milestone: Milestone | None
    limits: tuple[Own, ...]
    spread: float
    share: float

    @property
    def diverges(self) -> bool:
        return self.share >= APART


def due(files: RegistryFiles, within_days: int) -> list[Due]:
    """Returns every limit that is derived again, the one due first first (PF-9 FR-4, FR-13, FR-14)."""
    found = [*_of_judges(files, within_days), *_of_agreement(files, within_days)]
    return sorted(found, key=lambda one: (one.due, one.kind, one.vertical or "", one.name))


def apart(registry: Registry, stated: Collection[tuple[str, str]]) -> list[Apart]:
    """Returns the limits of judges that lie apart, the farthest first. `stated`: vertical and judge of each file in
    which a vertical states limits of its own (PF-9 Decision 11)."""
    found: list[Apart] = []
    for name in registry.rules():
        verticals = sorted(vertical for vertical, judge in stated if judge == name)
        seen = [registry.judge(name, vertical) for vertical in (None, *verticals)]
        widest = [_apart(seen, milestone) for milestone in Milestone]
        found += [max(widest, key=lambda one: one.spread), _apart(seen, None)]
    return sorted((one for one in found if one.spread > 0), key=lambda one: (-one.share, one.judge))


def _apart(seen: list[Judge], milestone: Milestone | None) -> Apart:
    limits = [judge.floor if milestone is None else float(judge.thresholds[milestone]) for judge in seen]
    sources = [judge.rests_on[-1 if milestone is None else 0].baseline_source for judge in seen]
    own = tuple(Own(judge.vertical, limit, source) for judge, limit, source in zip(seen, limits, sources, strict=True))
    low, high = seen[0].score_range
    spread = max(limits) - min(limits)
    return Apart(seen[0].id, milestone, own, spread, spread / (high - low))


def _of_judges(files: RegistryFiles, within_days: int) -> Iterator[Due]:
    for cited in sourced(files, *BaselineSource):
        stated = cited.stated
        kind, since = LimitKind(cited.what), started(cited)
        day = stated.recalibration_due
        status = _status(overdue(stated, files.today) is not None, day, files.today, within_days)
        place = cited.parsed.document
        line, _ = place.at(cited.field("recalibration_due"))
        left = (day - files.today).days
        source = stated.baseline_source.value
        yield Due(kind, cited.vertical, cited.judge, source, since, day, left, status, place.file, line)


def _of_agreement(files: RegistryFiles, within_days: int) -> Iterator[Due]:
    for vertical, parsed in files.agreements.items():
        for category, stated in parsed.model.categories.items():
            day, since, source = stated.recalibration_due, stated.set_on, stated.baseline_source.value
            late = any(fault.demand is Demand.CURRENT for fault in faults(stated, False, files.today))
            status = _status(late, day, files.today, within_days)
            line, _ = parsed.document.at(("categories", category, "recalibration_due"))
            place, left = parsed.document.file, (day - files.today).days
            yield Due(LimitKind.AGREEMENT, vertical, category, source, since, day, left, status, place, line)


def _status(late: bool, day: date, today: date, within_days: int) -> Status:
    if late:
        return Status.OVERDUE
    return Status.SOON if (day - today).days <= within_days else Status.HOLDS
