"""Layer 3: what an answer cost (AgentCI 2.0, Step 2). What is exceeded warns. Pure.

A figure that the answer does not say is unknown, which is neither 0 nor within a limit: it warns once.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from evalcore.specs.results import Findings, LayerResult, Status
from evalcore.trajectory.record import Trajectory
from schemas.specs import CostLimits

LAYER: Final = "cost"
WELL: Final = "Cost within bounds"
ROUNDING: Final = 1e-9
"""A product of two figures that is above the limit by this part of it is not above it."""
FIGURES: Final = {
    "max_cost_multiplier": "cost_usd",
    "max_total_tokens": "total_tokens",
    "max_llm_calls": "llm_calls",
    "max_latency_ms": "latency_ms",
    "max_cost_usd": "cost_usd",
}
"""Limits, and the figure that each bounds."""


def judge_cost(
    made: Trajectory, limits: CostLimits | None, baseline: Trajectory | None = None, blocking: Collection[str] = ()
) -> LayerResult:
    """Returns what the cost's assertions find; SKIP without any. `baseline` is the trajectory that the query is
    compared with; `blocking` are the limits that fail where others warn."""
    stated = asserted(limits)
    if not stated:
        return LayerResult(Status.SKIP)
    found, actual = Findings(LAYER, blocking), exact_figures(made)
    found.details["actual"] = figures_of(made)
    missing = dict.fromkeys(FIGURES[name] for name in stated if actual[FIGURES[name]] is None)
    for figure in missing:
        found.unknown(f"the answer has no {figure}", [name for name in stated if FIGURES[name] == figure])
    known = {
        name: value for name, figure in FIGURES.items() if name in stated and (value := actual[figure]) is not None
    }
    if "max_cost_multiplier" in known:
        _compare(found, known.pop("max_cost_multiplier"), stated["max_cost_multiplier"], baseline)
    for name, value in known.items():
        _bound(found, name, value, stated[name])
    return found.layer_result(WELL)


def asserted(limits: CostLimits | None) -> dict[str, float]:
    """Returns the limits that are asserted, by their names."""
    stated = {name: getattr(limits, name) for name in FIGURES} if limits is not None else {}
    return {name: value for name, value in stated.items() if value is not None}


def figures_of(made: Trajectory) -> dict[str, float | None]:
    """Returns what an answer cost, by the document's names: US dollars to six digits, milliseconds; None is unknown."""
    return {name: None if value is None else round(value, 6) for name, value in exact_figures(made).items()}


def exact_figures(made: Trajectory) -> dict[str, float | None]:
    """Returns the figures as they are compared, None where one is unknown: rounded ones would move the ratio of two
    small costs."""
    usage: Mapping[str, float] = made.usage or {}
    return {
        "cost_usd": usage.get("cost_usd"),
        "total_tokens": usage.get("total_tokens"),
        "llm_calls": None if made.llm_calls is None else len(made.llm_calls),
        "latency_ms": made.latency_ms,
    }


def _bound(found: Findings, name: str, value: float, most: float) -> None:
    ratio = {"max_total_tokens": "token_ratio", "max_latency_ms": "latency_ratio"}.get(name)
    if ratio is not None and most > 0:
        found.details[ratio] = round(value / most, 2)
    if value > most:
        words = {
            "max_total_tokens": f"Tokens: {_count(value)} > max {most}",
            "max_llm_calls": f"LLM calls: {_count(value)} > max {most}",
            "max_latency_ms": f"Latency: {_count(value)}ms > max {most}ms",
            "max_cost_usd": f"Cost: {_dollars(value)} > max {_dollars(most)}",
        }
        found.wrong(name, words[name])


def _compare(found: Findings, cost: float, most: float, baseline: Trajectory | None) -> None:
    """Compares the cost with the baseline's. Beside a baseline that cost nothing any cost is too much."""
    before = exact_figures(baseline)["cost_usd"] if baseline is not None else None
    if before is None:
        why = "there is no baseline" if baseline is None else "the baseline has no cost_usd"
        found.unknown(why, ["max_cost_multiplier"])
        return
    if before > 0:
        found.details["cost_multiplier"] = round(cost / before, 2)
    if cost > most * before * (1 + ROUNDING):
        times = f"{cost / before:.1f}x" if before > 0 else "above a free"
        words = f"Cost {times} baseline (max {most}x): {_dollars(cost)} vs {_dollars(before)}"
        found.wrong("max_cost_multiplier", words)


def _count(value: float) -> str:
    return f"{value:.0f}" if float(value).is_integer() else f"{value:.1f}"


def _dollars(value: float) -> str:
    """Four digits, as the document has them, or six where these say more."""
    return f"${value:.4f}" if round(value, 4) == round(value, 6) else f"${value:.6f}"
