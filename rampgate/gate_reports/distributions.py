"""How a judge's scores are spread over its scale, as counts in bins. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from evalcore.gates.answers import NotApplicable, Scored
from evalcore.registry import Judge
from rampgate.gate_run import Outcome
from schemas.judges import ScoreType

FLOAT_BINS = 20
WIDEST = 40
"""Values of an INTEGER scale that have a bin each."""
BLOCKS = "▁▂▃▄▅▆▇█"


@dataclass(frozen=True)
class Low:
    """One of a judge's lowest scores; `reason` are the judge's words."""

    item: str
    score: float
    reason: str


@dataclass(frozen=True)
class Distribution:
    """`edges` are one more than `counts`; a bin of whole values lies half a step to both sides of its value."""

    judge: Judge
    edges: tuple[float, ...]
    labels: tuple[str, ...]
    counts: tuple[int, ...]
    unscored: int
    not_applicable: int
    lowest: tuple[Low, ...]

    @property
    def drawn(self) -> str:
        """A bar a bin, in block letters; a dot where a bin is empty."""
        most = max(self.counts, default=0)
        return "".join(BLOCKS[(count * 8 - 1) // most] if count else "·" for count in self.counts) if most else ""


def distributions(outcome: Outcome, lowest: int = 5) -> dict[str, Distribution]:
    """By judge id."""
    values: dict[str, list[Low]] = {}
    missing: dict[str, list[int]] = {}
    judges: dict[str, Judge] = {}
    for (judge, item), found in zip(outcome.ran.pairs, outcome.ran.found, strict=True):
        judges[judge.id] = judge
        values.setdefault(judge.id, [])
        counted = missing.setdefault(judge.id, [0, 0])
        if isinstance(found.answer, Scored):
            values[judge.id].append(Low(item.id, found.answer.value, found.reason))
        else:
            counted[isinstance(found.answer, NotApplicable)] += 1
    return {name: _spread(judge, values[name], missing[name], lowest) for name, judge in judges.items()}


def _spread(judge: Judge, found: Sequence[Low], missing: Sequence[int], lowest: int) -> Distribution:
    low, high = judge.score_range
    edges: tuple[float, ...]
    labels: tuple[str, ...]
    if judge.score_type is ScoreType.BOOLEAN:
        edges, labels = (-0.5, 0.5, 1.5), ("false", "true")
    elif judge.score_type is ScoreType.INTEGER and high - low < WIDEST:
        whole = range(round(low), round(high) + 1)
        edges, labels = (*(value - 0.5 for value in whole), high + 0.5), tuple(map(str, whole))
    else:
        edges = tuple(low + (high - low) * step / FLOAT_BINS for step in range(FLOAT_BINS + 1))
        labels = tuple(f"{from_:g} to {to:g}" for from_, to in pairwise(edges))
    counts = [0] * len(labels)
    for one in found:
        share = (one.score - edges[0]) / (edges[-1] - edges[0])
        counts[min(max(int(share * len(counts) + 1e-9), 0), len(counts) - 1)] += 1
    worst = tuple(sorted(found, key=lambda one: (one.score, one.item))[:lowest])
    unscored, not_applicable = missing
    return Distribution(judge, edges, labels, tuple(counts), unscored, not_applicable, worst)
