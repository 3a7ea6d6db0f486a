"""One judge's number against its limits: floor, threshold, and baseline less tolerance (PC5 §5.2). Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from schemas.judges import Enforcement, Milestone, Score
from schemas.verdicts import Code, Word

ROLLING = 3
"""Runs that make a baseline."""


@dataclass(frozen=True)
class Limits:
    """What holds for a judge at one milestone. `baseline` is None where there is no run under the same judge version,
    dataset version and milestone: then nothing can have regressed, unless runs of the version `outdated` are all there
    is, which nobody has said no longer apply (PC5 FR-12)."""

    threshold: float
    floor: float
    tolerance: float
    enforcement: Enforcement
    baseline: float | None = None
    baseline_runs: int = 0
    outdated: str = ""

    @classmethod
    def of(
        cls,
        threshold: Score,
        floor: Score,
        tolerance: float,
        enforcement: Enforcement,
        history: Sequence[float] = (),
        outdated: str = "",
    ) -> Limits:
        """`history`: aggregates of earlier runs, oldest first; the last three count."""
        runs = [value for value in history if math.isfinite(value)][-ROLLING:]
        baseline = math.fsum(runs) / len(runs) if runs else None
        return cls(float(threshold), float(floor), float(tolerance), enforcement, baseline, len(runs), outdated)


@dataclass(frozen=True)
class Standing:
    """`word` is what the judge alone would make of the gate; `code` and `message` mean something where it did not
    pass."""

    word: Word
    code: Code = Code.BELOW_THRESHOLD
    message: str = ""

    @property
    def passed(self) -> bool:
        return self.word is Word.PASS


def stands(name: str, score: float, limits: Limits, milestone: Milestone) -> Standing:
    """A judge passes with score >= threshold, >= floor and >= baseline - tolerance. Below the floor always blocks; else
    a failing judge blocks or warns as its enforcement says."""
    shown = f"{name} scored {figure(score)}"
    if _below(score, limits.floor):
        return Standing(Word.FAIL, Code.FLOOR_BREACH, f"{shown}, below its floor of {figure(limits.floor)}")
    failing = Word.FAIL if limits.enforcement is Enforcement.BLOCK else Word.WARN
    if _below(score, limits.threshold):
        message = f"{shown}, below its threshold of {figure(limits.threshold)} at {milestone}"
        return Standing(failing, Code.BELOW_THRESHOLD, message)
    if limits.baseline is not None and _below(score, limits.baseline - limits.tolerance):
        runs = f"its last {limits.baseline_runs} run{'s' if limits.baseline_runs != 1 else ''}"
        least = f"{figure(limits.baseline)} - {figure(limits.tolerance)}"
        message = f"{shown}, below its baseline less tolerance of {least} ({runs})"
        return Standing(failing, Code.REGRESSED, message)
    if limits.baseline is None and limits.outdated:
        message = f"{shown}, and main's baseline is of its version {limits.outdated}: nobody knows whether it regressed"
        return Standing(failing, Code.REGRESSED, f"{message}; make the baseline anew, or accept the shift")
    return Standing(Word.PASS)


def figure(value: float) -> str:
    """Six digits: as much as tells a score from the limit that it misses."""
    return f"{value:.6g}"


def _below(score: float, limit: float) -> bool:
    """By more than rounding: a mean of equal values does not miss a limit that it equals."""
    return score < limit and not math.isclose(score, limit, rel_tol=1e-9)
