"""What a step did, as metrics: the same for a worker, which lives on, and for a sweep, which ends."""

from __future__ import annotations

import time

from agents.join.step import Report
from rampgate.wiring import Parts
from schemas.outcomes import Kind, State


def observe(parts: Parts, report: Report) -> None:
    """Move the process's counters by what a step recorded."""
    metrics = parts.metrics
    metrics.last_progress.set(time.time())
    for (kind, name), by in report.counts.items():
        state, _, reason = name.partition(":")
        if by <= 0 or state == "consumed":
            continue
        if state == State.DEAD_LETTERED:
            metrics.dead_letters.labels(reason, kind).inc(by)
            reason = ""
        metrics.records.labels(kind, state, reason).inc(by)
    for (vertical, sub_agent, category, signal_name), by in report.written.items():
        kind = Kind.REROLL if signal_name.endswith("reroll") else Kind.THUMBS
        label = vertical if vertical in parts.verticals else "unregistered"
        metrics.records_written.labels(label, sub_agent, category, kind).inc(by)
    if report.lags_ms:
        metrics.observe_many(metrics.pipeline_lag.labels(Kind.THUMBS), report.lags_ms)
