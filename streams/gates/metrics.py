"""What gates and their judges did, as metrics of a worker or of a command that ends (PC5 §10.2)."""

from __future__ import annotations

from functools import cache

from schemas.verdicts import Code, GateVerdict, Verdict, VerdictLevel
from streams.metrics import Metrics


def gate_decided(metrics: Metrics, gate: GateVerdict, seconds: float) -> None:
    """Count a gate that ran. A judge's score is left out where it could not score enough for its score to be known."""
    undecided = gate.verdict is VerdictLevel.FAIL and any(one.code is Code.JUDGE_UNAVAILABLE for one in gate.reasons)
    metrics.gates_fired.labels(gate.milestone).inc()
    metrics.gate_verdicts.labels(gate.milestone, "error" if undecided else gate.verdict).inc()
    metrics.gate_duration.labels(gate.milestone).observe(seconds)
    for judge, found in gate.per_judge_scores.items():
        if found.score is not None and found.rule is not Code.JUDGE_UNAVAILABLE:
            metrics.judge_scores.labels(judge, gate.milestone).observe(found.score)


def verdict_published(metrics: Metrics, verdict: Verdict) -> None:
    """Count a verdict and its gates."""
    for gate in verdict.gates:
        gate_decided(metrics, gate, verdict.evidence.duration_seconds)
    # Refused before any gate had decided. A request that nothing could decide is no error of a gate.
    refused = not verdict.gates and any(one.code is not Code.INVALID_REQUEST for one in verdict.reasons)
    if verdict.milestone is not None and refused:
        metrics.gate_verdicts.labels(verdict.milestone, "error").inc()


class JudgeAnswers:
    """Counts what a `Scorer` observes: the end of each call, and each answer that needed none."""

    def __init__(self, metrics: Metrics) -> None:
        self._calls = cache(metrics.judge_calls.labels)
        self._answered = {"ok": 0, "cached": 0}
        metrics.judge_cache_hits.set_function(self._hits)

    def __call__(self, outcome: str) -> None:
        self._calls(outcome).inc()
        if outcome in self._answered:
            self._answered[outcome] += 1

    def _hits(self) -> float:
        return self._answered["cached"] / max(sum(self._answered.values()), 1)
