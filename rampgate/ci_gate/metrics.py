"""Metrics of a command that ends, left in a file for a textfile collector (contracts §6).

What gates and judges did, as metrics: of a worker, which lives on, and of a command, which ends (PC5 §10.2).
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from prometheus_client import write_to_textfile

from rampgate.settings import SettingsError
from schemas.verdicts import Code, GateVerdict, Verdict, VerdictLevel
from streams.metrics import Metrics


def gate_decided(metrics: Metrics, gate: GateVerdict, seconds: float) -> None:
    """A gate that ran. What a judge came to is left out where too much of it could not be scored to know."""
    undecided = gate.verdict is VerdictLevel.FAIL and any(one.code is Code.JUDGE_UNAVAILABLE for one in gate.reasons)
    metrics.gates_fired.labels(gate.milestone).inc()
    metrics.gate_verdicts.labels(gate.milestone, "error" if undecided else gate.verdict).inc()
    metrics.gate_duration.labels(gate.milestone).observe(seconds)
    for judge, found in gate.per_judge_scores.items():
        if found.score is not None and found.rule is not Code.JUDGE_UNAVAILABLE:
            metrics.judge_scores.labels(judge, gate.milestone).observe(found.score)


def verdict_published(metrics: Metrics, verdict: Verdict) -> None:
    for gate in verdict.gates:
        gate_decided(metrics, gate, verdict.evidence.duration_seconds)
    # Refused before its gate came to a verdict. A request that asks for nothing decidable is no gate's error.
    refused = not verdict.gates and any(one.code is not Code.INVALID_REQUEST for one in verdict.reasons)
    if verdict.milestone is not None and refused:
        metrics.gate_verdicts.labels(verdict.milestone, "error").inc()


class JudgeAnswers:
    """What a `Scorer` observes: the end of a call, or an answer without one."""

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


_PARTS = ("", "_bucket", "_sum", "_count")


def leave(metrics: Metrics, path: Path, *names: str) -> None:
    """Only the named ones: the zeros of all others would stand beside a worker's own figures. Raises SettingsError."""
    told = metrics.registry.restricted_registry([f"{name}{part}" for name in names for part in _PARTS])
    try:
        write_to_textfile(str(path), told)
    except OSError as error:
        raise SettingsError(f"--metrics-file {path}: can't be written: {error.strerror or error}") from error
