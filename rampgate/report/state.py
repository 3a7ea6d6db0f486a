"""Says what the reports of `coverage` and `conservation` have, which `rampgate demo` and the page of a worker show too.
Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rampgate.report.model import Cell, Reason, Report, Section, Value

if TYPE_CHECKING:
    from datetime import datetime

    from schemas.answers import Conservation, CoverageAnswer, Health

STATES = ("done", "superseded", "dead_lettered", "parked", "filtered")


def coverage_section(answer: CoverageAnswer) -> Section:
    """The join's coverage, a row a vertical (PF-9 FR-11)."""
    heads = ("Vertical", "Both present", "Missing signal", "Missing trace", "Coverage")
    rows: list[list[Value]] = [
        [
            one.vertical, one.both_present, one.missing_signal, one.missing_trace,
            "no turns" if one.rate is None else f"{one.rate:.1%}",
        ]
        for one in answer.verticals
    ]  # fmt: skip
    said = "of the turns with a user signal or a judged trace, the share with a signal and a trace"
    return Section(f"Join coverage, last {answer.window_seconds:,} s", heads, rows, [said])


def coverage_report(answer: CoverageAnswer) -> Report:
    many = sum(one.both_present + one.missing_signal + one.missing_trace for one in answer.verticals)
    return Report("Coverage", f"{many:,} turns", "pass", [coverage_section(answer)])


def conservation_section(answer: Conservation) -> Section:
    """The states that consumed records ended in, a row a signal; below it the reasons, gaps and samples."""
    heads = ("Signal", "Consumed", *(state.replace("_lettered", " letters").capitalize() for state in STATES))
    rows: list[list[Value]] = [
        [
            signal, one.consumed, *(getattr(one, state) for state in STATES),
            Cell(f"{one.difference:,}", "fail" if one.difference else "pass"),
        ]
        for signal, one in answer.signals.items()
    ]  # fmt: skip
    title = f"Conservation, last {answer.window_seconds:,} s"
    return Section(title, (*heads, "Difference"), rows)


def conservation_report(answer: Conservation) -> Report:
    reasons = [
        f"{signal}: {records:,} {state.replace('_', ' ')}, {reason}"
        for signal, one in answer.signals.items()
        for state in STATES
        for reason, records in one.reasons.get(state, {}).items()
    ]
    gaps = [
        f"{signal}: {one.gap:,} offsets lost by Kafka before they were read, in {one.gaps:,} gaps"
        for signal, one in answer.signals.items()
        if one.gaps
    ]
    turns = answer.samples
    samples = (
        f"samples: {turns.pooled:,} turns pooled, {turns.record_not_come:,} whose record has not come, "
        f"{turns.dead_lettered:,} dead-lettered, {turns.running:,} running; pools differ by {turns.difference:,}"
    )
    result, tone = "balanced: every record is in exactly one state", "pass"
    if not answer.balanced:
        result, tone = "out of balance: a difference is a bug or a loss; the worker's log may say which", "fail"
    notes = Section("By reason", notes=[*reasons, *gaps, samples])
    return Report("Conservation", result, tone, [conservation_section(answer), notes])


def worker_report(
    ready: Health, figures: tuple[CoverageAnswer, Conservation] | str, now: datetime, *, writing: bool
) -> Report:
    """A worker's state on one page. In place of the figures the reason why there are none."""
    reasons = [Reason("error", why) for why in ready.reasons]
    sections: list[Section] = []
    if isinstance(figures, str):
        reasons.append(Reason("error", f"no figures: {figures}"))
    else:
        covered, balance = figures
        conservation = conservation_report(balance)
        sections = [coverage_section(covered), *conservation.sections]
        reasons += [] if balance.balanced else [Reason("error", conservation.result)]
    result = f"{'ready' if ready.ok else 'not ready'}, {'writing scores' if writing else 'scores withheld'}"
    tone = "fail" if reasons or not ready.ok else "pass" if writing else "warn"
    more = "more at /coverage, /conservation, /dead-letters, /metrics, /readyz"
    return Report("Rampgate", result, tone, sections, reasons, facts=f"{now:%Y-%m-%d %H:%M:%S} UTC; {more}")
