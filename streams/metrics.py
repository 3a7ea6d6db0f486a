"""Moves the metrics by what was recorded, decided and found; `python -m streams.metrics` prints docs/metrics.md."""

from __future__ import annotations

import bisect
import time
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from functools import cache, partial

from prometheus_client import CollectorRegistry, Histogram

from agents.join.counting import CONSUMED, UNREADABLE
from agents.join.step_data import Report
from evalcore.framing import suspected
from evalcore.judges.evaluator import Prompt
from evalcore.registry.judge import Judge
from evalcore.scoring.answers import Answer, Scored
from schemas.judges import Milestone
from schemas.outcomes import State
from schemas.verdicts import Code, GateVerdict, Verdict, VerdictLevel
from schemas.verticals import UNREGISTERED
from schemas.wire_forms import ScoreEvent
from streams.declared_metrics import DeclaredMetrics
from streams.metric_set import (
    as_markdown,
)

OTHER = "other"


INVERSION_DAYS = 92
"""Judges are compared with people at least every quarter (PF-9 FR-10)."""


def _age(at: float) -> float:
    return time.time() - at


def _older(at: float, seconds: float) -> float:
    return float(_age(at) > seconds)


class Metrics(DeclaredMetrics):
    """A process's metrics, and what moves them."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        super().__init__(registry)
        self.sub_agents: Collection[str] = ()
        """The names that the registry knows, as turns keep them; any other is shown as `other`."""
        self.categories: Collection[str] = ()

    def observe_report(self, report: Report, registered: Collection[str]) -> None:
        """Move the counters by what a step recorded. `registered`: the verticals that are shown by their own name."""
        self.last_progress.set(time.time())
        for (kind, name), by in report.counts.items():
            state, _, reason = name.partition(":")
            if by <= 0 or state in (CONSUMED, UNREADABLE):
                continue
            if state == State.DEAD_LETTERED:
                self.dead_letters.labels(reason, kind).inc(by)
                reason = ""
            self.records.labels(kind, state, reason).inc(by)
        for (vertical, sub_agent, category, kind), by in report.written.items():
            label = vertical if vertical in registered else UNREGISTERED
            named = known_as(sub_agent, self.sub_agents), known_as(category, self.categories)
            self.records_written.labels(label, *named, kind).inc(by)
        for found, counter in ((report.unreadable, self.unreadable_traces), (report.forged, self.forged_traces)):
            for vertical, by in found.items():
                counter.labels(vertical if vertical in registered else UNREGISTERED).inc(by)
        for kind, lags in report.lags_ms.items():
            self._observe_many(self.pipeline_lag.labels(kind), lags)
        for kind, by in report.late.items():
            self.late_writes.labels(kind).inc(by)

    def observe_opik(self, operation: str, outcome: str) -> None:
        """Count a request to Opik."""
        self.opik_requests.labels(operation, outcome).inc()

    def _observe_many(self, histogram: Histogram, milliseconds: list[int]) -> None:
        """Observe many values at once: a batch has thousands, and one `observe` costs a microsecond."""
        ordered, last = sorted(milliseconds), 0
        for bound, bucket in zip(histogram._upper_bounds, histogram._buckets, strict=True):
            upto = bisect.bisect_right(ordered, bound * 1000)
            if upto > last:
                bucket.inc(upto - last)
                last = upto
        histogram._sum.inc(sum(ordered) / 1000)

    def observe_triage(self, states: Sequence[str], overdue: int) -> None:
        """`states`: of every triage item, the closed ones too."""
        for state in ("open", "owned"):
            self.triage_items.labels(state).set(states.count(state))
        self.triage_overdue.set(overdue)

    def observe_canary_passes(self, passed_at: Mapping[str, float], days: float) -> None:
        """`passed_at`: when each judge last passed its canaries, as a time of Unix."""
        self.canaries_age.clear()
        self.canaries_overdue.clear()
        for judge, at in passed_at.items():
            self.canaries_age.labels(judge).set_function(partial(_age, at))
            self.canaries_overdue.labels(judge).set_function(partial(_older, at, days * 86_400))

    def observe_inversion(self, inverted: Mapping[str, int], held_at: Mapping[str, float]) -> None:
        """`inverted`: judges by vertical; `held_at`: when each was last compared with people, as a time of Unix."""
        self.inverted_judges.clear()
        for vertical, judges in inverted.items():
            self.inverted_judges.labels(vertical).set(judges)
        self.inversion_overdue.clear()
        for judge, at in held_at.items():
            self.inversion_overdue.labels(judge).set_function(partial(_older, at, INVERSION_DAYS * 86_400))

    def observe_user_weeks(self, against: Mapping[tuple[str, str], int], overdue: bool) -> None:
        """`against`: weeks in a row of the judges that score against users, by judge and vertical."""
        self.weeks_against_users.clear()
        for (judge, vertical), weeks in against.items():
            self.weeks_against_users.labels(judge, vertical).set(weeks)
        self.user_weeks_overdue.set(overdue)


def known_as(name: str, registered: Collection[str]) -> str:
    """The label for a name that a trace brought: the name where the registry has it, else `other`; "" for none. What
    producers make up must not make series."""
    return name if not name or name in registered else OTHER


def gate_decided(metrics: Metrics, gate: GateVerdict, seconds: float) -> None:
    """Count a gate that ran."""
    undecided = gate.verdict is VerdictLevel.FAIL and any(
        reason.code in (Code.JUDGE_UNAVAILABLE, Code.UNREADABLE_ITEM) for reason in gate.reasons
    )
    metrics.gates_fired.labels(gate.milestone).inc()
    metrics.gate_verdicts.labels(gate.milestone, "error" if undecided else gate.verdict).inc()
    metrics.gate_duration.labels(gate.milestone).observe(seconds)
    if any(reason.code is Code.SAMPLE_INCOMPLETE for reason in gate.reasons):
        metrics.samples_incomplete.labels(gate.milestone).inc()


def scores_sent(metrics: Metrics, events: Sequence[ScoreEvent]) -> None:
    """Count scores that are durable on their topic."""
    for source, count in Counter(event["source"] for event in events).items():
        metrics.score_events.labels(source).inc(count)


def scores_given(metrics: Metrics, milestone: Milestone, answers: Mapping[str, Sequence[Answer]]) -> None:
    """Observe each score that judges gave at a gate; `answers` by judge, or judge.dimension. What is unscored or not
    applicable is no score."""
    for judge, given in answers.items():
        scores = metrics.judge_scores.labels(judge, milestone)
        for one in given:
            if isinstance(one, Scored):
                scores.observe(one.value)


def verdict_published(metrics: Metrics, verdict: Verdict) -> None:
    """Count a verdict and its gates."""
    for gate in verdict.gates:
        seconds = gate.duration_seconds
        gate_decided(metrics, gate, verdict.evidence.duration_seconds if seconds is None else seconds)
    # Refused before any gate decided. What nothing can decide, or a gate before forbids, is no error of a gate.
    codes = {reason.code for reason in verdict.reasons}
    if verdict.milestone is None or verdict.gates or not codes & {Code.DEADLINE_EXCEEDED, Code.JUDGE_UNAVAILABLE}:
        return
    metrics.gate_verdicts.labels(verdict.milestone, "error").inc()
    if Code.DEADLINE_EXCEEDED in codes:
        metrics.gates_fired.labels(verdict.milestone).inc()


class JudgeAnswers:
    """Counts what a `Scorer` observes: how each call ended, and the answers that needed no call."""

    def __init__(self, metrics: Metrics) -> None:
        self._calls = cache(metrics.judge_calls.labels)
        self._suspected = cache(metrics.injection_suspected.labels)
        self._cut = cache(metrics.judged_cut.labels)
        self._answered = {"ok": 0, "cached": 0}
        metrics.judge_cache_hits.set_function(self._hits)

    def __call__(self, outcome: str) -> None:
        self._calls(outcome).inc()
        if outcome in self._answered:
            self._answered[outcome] += 1

    def look(self, judge: Judge, asked: Prompt) -> None:
        """Count what imitates, in a question's turn, what judges are told, and turns of which not all is shown."""
        if asked.cut:
            self._cut(judge.id).inc()
        for kind in suspected(asked.turn):
            self._suspected(judge.id, kind).inc()

    def _hits(self) -> float:
        return self._answered["cached"] / max(sum(self._answered.values()), 1)


if __name__ == "__main__":
    import sys

    sys.stdout.write(as_markdown(Metrics().specs))
