"""Says what the report of a calibration round has: what was found, what changed since the round before, and what a
reviewer has to decide (PF-9 FR-3, FR-14)."""

from __future__ import annotations

from collections.abc import Iterator

from evalcore.calibration.floors import often_breached
from rampgate.report.checks import against_people
from rampgate.report.html import html
from rampgate.report.markdown import markdown
from rampgate.report.model import Cell, Report, Section
from schemas.calibration_cycle import Cycle

REPORT, PAGE = "report.md", "report.html"
INVERTED = {True: "yes", False: "no", None: "unknown"}
Figure = float | str | None


def report_files(cycle: Cycle, before: Cycle | None = None) -> dict[str, str]:
    """Returns the report's files by name: the same rounds, the same bytes. `before` is the vertical's last round."""
    made = report_of(cycle, before)
    return {REPORT: markdown(made), PAGE: html(made)}


def report_of(cycle: Cycle, before: Cycle | None = None) -> Report:
    decide = [f"{one.judge_id}: {one.reason}" for one in cycle.inversion if against_people(vars(one)).tone != "pass"]
    decide += [f"{one.judge_id}: no floor: {one.reason}" for one in cycle.floors if not one.proposed]
    breached = {one.judge_id: often_breached(one.floor, one.breach_probability) for one in cycle.floors if one.proposed}
    decide += [f"{judge}: {said}" for judge, said in breached.items() if said]
    inverted = any(one.inverted for one in cycle.inversion)
    result = f"{len(decide)} to decide" if decide else "limits to review"
    return Report(
        f"Calibration of {cycle.vertical}, {cycle.round}",
        result,
        "fail" if inverted else "warn" if decide else "pass",
        [
            _about(cycle),
            _agreement(cycle),
            _inversion(cycle),
            _floors(cycle),
            _drift(cycle),
            *([_since(cycle, before)] if before is not None else []),
            Section("To decide", notes=decide or ["Whether the limits in limits.diff are to hold."]),
        ],
    )


def _about(cycle: Cycle) -> Section:
    drawn = sum(one.drawn for one in cycle.draw)
    notes = [f"{drawn} turns of {cycle.day}; ticket {cycle.ticket}. Reference set {cycle.reference_version}."]
    heads = ("Category", "Turns", "Drawn", "Thumbs and judges disagree", "Drawn of these")
    rows = [(one.category, one.turns, one.drawn, one.disagreeing, one.disagreeing_drawn) for one in cycle.draw]
    return Section("Draw", heads, rows, notes)


def _agreement(cycle: Cycle) -> Section:
    heads = ("Category", "Judge", "Result", "Alpha", "95 %", "Threshold", "Items", "Pairs that agree", "Source")
    results = {True: Cell("clears", "pass"), False: Cell("quarantined", "fail")}
    rows = [
        (
            one.category, one.judge_id, results[one.passed], one.alpha, one.alpha_ci95, one.threshold, one.n_items,
            one.pairwise_agreement, str(one.baseline_source),
        )
        for one in cycle.agreement
    ]  # fmt: skip
    notes = [f"{one.category}, {one.judge_id}: {one.reason}" for one in cycle.agreement if not one.passed]
    return Section("Do people agree with one another", heads, rows, notes)


def _inversion(cycle: Cycle) -> Section:
    heads = ("Judge", "n", "Pearson", "95 %", "Spearman", "Result", "Detectable")
    rows = [
        (one.judge_id, one.n, one.pearson, one.pearson_ci95, one.spearman, against_people(vars(one)), one.detectable)
        for one in cycle.inversion
    ]
    return Section("Judges against people", heads, rows)


def _floors(cycle: Cycle) -> Section:
    heads = ("Judge", "Now", "New", "Acceptable from", "Accepted", "Unchanged breaches", "Sees a fall of", "Why not")
    rows = [
        (
            one.judge_id, one.old, one.floor, one.acceptable, one.n, one.breach_probability, one.detectable_drop,
            "" if one.proposed else one.reason,
        )
        for one in cycle.floors
    ]  # fmt: skip
    return Section("Floors", heads, rows)


def _drift(cycle: Cycle) -> Section:
    heads = ("Judge", "Version", "Turns", "Unscored", "Now", "New", "Why not")
    rows = [
        (one.judge_id, one.judge_version, one.items, one.unscored, one.old, one.kl_limit, one.reason)
        for one in cycle.drift
    ]
    return Section("Limits of drift", heads, rows)


def _since(cycle: Cycle, before: Cycle) -> Section:
    """What either round has, beside the other's: in the order of this one."""
    then, now = dict(_figures(before)), dict(_figures(cycle))
    rows = [
        (*of, then.get(of), now.get(of), _difference(then.get(of), now.get(of))) for of in dict.fromkeys([*now, *then])
    ]
    old, new = _judges(before), _judges(cycle)
    lists = (("new in this round", new - old), ("no longer in the round", old - new))
    notes = [f"{', '.join(sorted(names))}: {what}" for what, names in lists if names]
    return Section(f"Since {before.round}", ("What", "Of", "Then", "Now", "Difference"), rows, notes)


def _figures(cycle: Cycle) -> Iterator[tuple[tuple[str, str], Figure]]:
    """Each figure of a round: what it is, and of which judge, or category and judge."""
    for rated in cycle.agreement:
        yield ("Alpha", f"{rated.category}, {rated.judge_id}"), rated.alpha
    for held in cycle.inversion:
        yield ("Pearson with people", held.judge_id), held.pearson
        yield ("Inverted", held.judge_id), INVERTED[held.inverted]
    for floor in cycle.floors:
        yield ("Acceptable from", floor.judge_id), floor.acceptable
        yield ("Floor", floor.judge_id), floor.floor if floor.proposed else None
    for drift in cycle.drift:
        yield ("Version", drift.judge_id), drift.judge_version
        yield ("Limit of drift", drift.judge_id), drift.kl_limit


def _judges(cycle: Cycle) -> set[str]:
    every = (cycle.agreement, cycle.inversion, cycle.floors, cycle.drift)
    return {one.judge_id for found in every for one in found}


def _difference(old: Figure, new: Figure) -> float | None:
    return None if isinstance(new, str | None) or isinstance(old, str | None) else new - old
