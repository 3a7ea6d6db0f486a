"""Compares two versions of an agent's answers in three tiers: correctness, path and cost (AgentCI Step 4). Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

import orjson

from evalcore.specs.cost import exact_figures
from evalcore.trajectory.metrics import loops, sequence_lcs, tool_precision, tool_recall
from evalcore.trajectory.record import Trajectory

Measure = Callable[[Trajectory], float | None]
UNKNOWN: Final = "unknown"


class DiffType(StrEnum):
    """What differs: TOOLS_CHANGED and ROUTING_CHANGED are of the path, COST_CHANGED of the cost, OUTPUT_CHANGED of
    correctness."""

    TOOLS_CHANGED = "tools_changed"
    COST_CHANGED = "cost_changed"
    OUTPUT_CHANGED = "output_changed"
    ROUTING_CHANGED = "routing_changed"


@dataclass(frozen=True)
class Change:
    """A figure in both versions, the mean of repeats; None is unknown. `noise`: the second is within what the first's
    own repeats span. `better` is -1 where less is better, 1 where more is."""

    words: str
    before: float | None
    after: float | None
    noise: bool
    better: int
    form: str

    @property
    def changed(self) -> bool:
        return self.before != self.after and not self.noise

    @property
    def share(self) -> float | None:
        """The change as a share of the first, None of zero or where one is unknown."""
        if self.before is None or self.after is None or self.before == 0:
            return None
        return (self.after - self.before) / abs(self.before)

    @property
    def worse(self) -> bool:
        if self.before is None or self.after is None or not self.changed:
            return False
        return (self.after - self.before) * self.better < 0

    def text(self) -> str:
        """The figures with the change: `4,200 → 180  (▼ 95.7%)`."""
        return f"{self._shown(self.before)} → {self._shown(self.after)}{self._mark()}"

    def told(self) -> dict[str, Any]:
        share = self.share
        return {
            "before": self.before,
            "after": self.after,
            "change": None if share is None else round(share, 4),
            "noise": self.noise,
        }

    def _shown(self, value: float | None) -> str:
        return UNKNOWN if value is None else self.form.format(value)

    def _mark(self) -> str:
        if self.before is None or self.after is None:
            return ""
        if self.before == self.after:
            return "  (unchanged)"
        arrow = "▲" if self.after > self.before else "▼"
        share = self.share
        percent = f"{abs(share) * 100:.1f}".removesuffix(".0") if share is not None else ""
        whole = f"{arrow} {percent}%" if percent and self.form != RATIO else arrow
        noise = ", within the baseline's own spread" if self.noise else ""
        return f"  ({whole}{noise})"


COUNT, RATIO, DOLLARS, MILLISECONDS = "{:,.10g}", "{:.2f}", "${:.4f}", "{:,.0f}ms"


@dataclass(frozen=True)
class QueryDiff:
    """What differs in a query. `verdicts` are the correctness of both as they were kept."""

    id: str
    query: str
    verdicts: tuple[str, str]
    path: dict[str, Change]
    cost: dict[str, Change]
    types: list[DiffType]

    @property
    def regressed(self) -> bool:
        """Says whether the answer was correct and is not."""
        return self.verdicts[0] in ("pass", "skip") and self.verdicts[1] == "fail"

    def told(self) -> dict[str, Any]:
        """The query's part of the document."""
        before, after = self.verdicts
        return {
            "id": self.id,
            "query": self.query,
            "types": [one.name for one in self.types],
            "correctness": {"before": before, "after": after, "changed": before != after},
            "path": {name: one.told() for name, one in self.path.items()},
            "cost": {name: one.told() for name, one in self.cost.items()},
        }


@dataclass(frozen=True)
class Side:
    """One version of a query's answers: its kept verdict, and a trajectory for each repeat."""

    verdict: str
    answers: Sequence[Trajectory]


def query_diff(
    name: str, query: str, before: Side, after: Side, expected: Sequence[str] | None, reference: Trajectory | None
) -> QueryDiff:
    """Returns what differs. Recall and precision need `expected` tools. Sequences are compared with the `reference`,
    the pinned baseline's answer, else with the second version's own."""
    of = reference or after.answers[0]
    path: dict[str, Measure] = {"tool_calls": lambda one: _of(one.tools, len)}
    if expected is not None:
        path["tool_precision"] = lambda one: _of(one.tools, lambda tools: tool_precision(tools, expected))
        path["tool_recall"] = lambda one: _of(one.tools, lambda tools: tool_recall(tools, expected))
    path["sequence_lcs"] = lambda one: _of(
        one.tools, lambda tools: None if of.tools is None else sequence_lcs(tools, of.tools)
    )
    path["loops_detected"] = lambda one: _of(one.tools, loops)
    paths = {
        key: _change(key, *([measure(one) for one in side.answers] for side in (before, after)))
        for key, measure in path.items()
    }
    first, second = ([exact_figures(one) for one in side.answers] for side in (before, after))
    costs = {key: _change(key, [one[key] for one in first], [one[key] for one in second]) for key in first[0]}
    types = [*_types(before, after, costs)]
    return QueryDiff(name, query, (_verdict(before), _verdict(after)), paths, costs, types)


WORDS: Final = {
    "tool_calls": ("Tool calls", -1, COUNT),
    "tool_precision": ("Tool precision", 1, RATIO),
    "tool_recall": ("Tool recall", 1, RATIO),
    "sequence_lcs": ("Sequence LCS", 1, RATIO),
    "loops_detected": ("Loops detected", -1, COUNT),
    "cost_usd": ("Total cost", -1, DOLLARS),
    "total_tokens": ("Total tokens", -1, COUNT),
    "llm_calls": ("LLM calls", -1, COUNT),
    "latency_ms": ("Latency", -1, MILLISECONDS),
}
"""How a figure is called, which way is better, and how it is written."""


def _change(key: str, first: Sequence[float | None], second: Sequence[float | None]) -> Change:
    spread = [value for value in first if value is not None]
    mean = _mean(second)
    noise = len(spread) > 1 and mean is not None and min(spread) <= mean <= max(spread)
    words, better, form = WORDS[key]
    return Change(words, _mean(first), mean, noise and _mean(first) != mean, better, form)


def _types(before: Side, after: Side, costs: dict[str, Change]) -> Iterator[DiffType]:
    """What repeats of the first version did too is no change; nor is what is unknown. Latency alone is none, since it
    is never twice the same."""
    if _differ(before, after, lambda one: one.tools):
        yield DiffType.TOOLS_CHANGED
    if any(one.changed and one.before is not None and one.after is not None and name != "latency_ms"
           for name, one in costs.items()):  # fmt: skip
        yield DiffType.COST_CHANGED
    if _verdict(before) != _verdict(after) or _differ(before, after, lambda one: one.output):
        yield DiffType.OUTPUT_CHANGED
    if _differ(before, after, lambda one: one.handoffs):
        yield DiffType.ROUTING_CHANGED


def _differ(before: Side, after: Side, part: Callable[[Trajectory], Any]) -> bool:
    first, second = (
        {orjson.dumps(found, default=str, option=orjson.OPT_SORT_KEYS) for found in map(part, side.answers)
         if found is not None} for side in (before, after)
    )  # fmt: skip
    return bool(first) and not second <= first


def _verdict(side: Side) -> str:
    return UNKNOWN if side.verdict == "infra" else side.verdict


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if len(known) == len(values) and known else None


def _of(tools: list[str] | None, measure: Callable[[list[str]], float | None]) -> float | None:
    return None if tools is None else measure(tools)
