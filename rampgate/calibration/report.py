"""Writes the report of a calibration round: what was found, and what a reviewer has to decide (PF-9 FR-3, FR-14)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from schemas.calibration_cycle import Cycle

REPORT = "report.md"
RESULTS = {True: "**inverted**", False: "not inverted", None: "nobody can tell"}


def report_files(cycle: Cycle) -> dict[str, str]:
    """Returns the report's files by name: the same round, the same bytes."""
    return {REPORT: "\n".join(_lines(cycle))}


def _lines(cycle: Cycle) -> Iterable[str]:
    yield f"# Calibration of {_cell(cycle.vertical)}, {_cell(cycle.round)}\n"
    drawn = sum(one.drawn for one in cycle.draw)
    yield f"{drawn} turns of {cycle.day}; ticket {_cell(cycle.ticket)}. Reference set {cycle.reference_version}.\n"
    yield "## Draw\n"
    yield from _table(
        ("Category", "Turns", "Drawn", "Thumbs and judges disagree", "Drawn of these"),
        [(one.category, one.turns, one.drawn, one.disagreeing, one.disagreeing_drawn) for one in cycle.draw],
    )
    yield "## Do people agree with one another\n"
    yield from _table(
        ("Category", "Judge", "Alpha", "95 %", "Items", "Pairs that agree", "Threshold", "Source", "Result"),
        [
            (one.category, one.judge_id, one.alpha, one.alpha_ci95, one.n_items, one.pairwise_agreement, one.threshold,
             one.baseline_source, "clears" if one.passed else f"quarantined: {one.reason}")
            for one in cycle.agreement
        ],
    )  # fmt: skip
    yield "## Judges against people\n"
    yield from _table(
        ("Judge", "n", "Pearson", "95 %", "Spearman", "Detectable", "Result"),
        [
            (one.judge_id, one.n, one.pearson, one.pearson_ci95, one.spearman, one.detectable, RESULTS[one.inverted])
            for one in cycle.inversion
        ],
    )
    yield "## Floors\n"
    yield from _table(
        ("Judge", "Now", "New", "Acceptable from", "Accepted", "Unchanged breaches", "Sees a fall of", "Why not"),
        [
            (one.judge_id, one.old, one.floor, one.acceptable, one.n, one.breach_probability, one.detectable_drop,
             "" if one.proposed else one.reason)
            for one in cycle.floors
        ],
    )  # fmt: skip
    yield "## Limits of drift\n"
    yield from _table(
        ("Judge", "Version", "Turns", "Unscored", "Now", "New", "Why not"),
        [
            (one.judge_id, one.judge_version, one.items, one.unscored, one.old, one.kl_limit, one.reason)
            for one in cycle.drift
        ],
    )
    yield "## To decide\n"
    decide = [f"- {_cell(one.judge_id)}: {_cell(one.reason)}" for one in cycle.inversion if one.inverted is not False]
    decide += [f"- {_cell(one.judge_id)}: no floor: {_cell(one.reason)}" for one in cycle.floors if not one.proposed]
    yield from decide or ["- Whether the limits in `limits.diff` are to hold."]
    yield ""


def _table(heads: Sequence[str], rows: Sequence[Sequence[object]]) -> Iterable[str]:
    yield f"| {' | '.join(heads)} |"
    yield f"|{' --- |' * len(heads)}"
    for row in rows:
        yield f"| {' | '.join(map(_cell, row))} |"
    yield ""


def _cell(value: object) -> str:
    """A value that begins no markup of its own."""
    if value is None:
        return ""
    if isinstance(value, tuple):
        return " to ".join(map(_cell, value))
    if isinstance(value, float):
        return f"{value:.4g}"
    text = " ".join(str(value).split())
    return text if text.startswith("**") else re.sub(r"([\\`*_{}\[\]<>#|!])", r"\\\1", text)
