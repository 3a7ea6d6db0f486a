"""Which judges score a live trace, and what each of their scores weighs (PC5 §5.2, FR-11). Pure.

A turn that a user voted down is scored by all its judges, whatever their sampling rates. It came into the scores for
certain and the others with the chance of the rate; so a score weighs the inverse of its chance, and means over live
scores stay those of the whole traffic.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from evalcore.gates.applicability import scores
from evalcore.registry import Judge, Registry
from evalcore.unknown import UnknownCategory

CERTAIN = 0.0
"""The share of a trace that every rate above 0 takes."""


def judges_of(registry: Registry, trace: Mapping[str, Any]) -> tuple[Judge, ...]:
    """Those of its category, as its vertical sees them; where it names none that is known, all that fire: a judge
    without a filter fires on every trace (PC5 §5.2)."""
    metadata = trace.get("metadata")
    said = metadata if isinstance(metadata, Mapping) else {}
    vertical, category = said.get("vertical"), said.get("category")
    seen = vertical if isinstance(vertical, str) else None
    if isinstance(category, str):
        try:
            return registry.category(category, seen)
        except UnknownCategory:
            pass
    return tuple(judge for judge in registry.all(seen) if judge.fires)


def chosen(judges: Iterable[Judge], trace: Mapping[str, Any], share: float, voted_down: bool) -> list[Judge]:
    """Of `judges` those that score this trace. A rate of 0 keeps a judge from live traces altogether: its scores of
    voted-down turns alone would stand for nothing."""
    return [judge for judge in judges if scores(judge, trace, CERTAIN if voted_down else share)]


def chance(judge: Judge, voted_down: bool) -> float:
    """With which a trace that is this judge's to score was scored. `voted_down`: whether it was judged for that, or
    would have been."""
    return 1.0 if voted_down or judge.safety else float(judge.rule.sampling_rate)


def weight(judge: Judge, voted_down: bool) -> float:
    """Of a score that was given."""
    return 1.0 / chance(judge, voted_down)
