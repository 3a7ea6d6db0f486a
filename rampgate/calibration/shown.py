"""Makes the reports of `rampgate calibrate` from its documents. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rampgate.report.model import Cell, Report, Section, Value

Told = Mapping[str, Any]


def limits_report(told: Told) -> Report:
    heads = ("Judge", "Scores", "Mean", "σ", "p5", "Limit", "Breached", "Sees a fall of", "Why not")
    names = ("judge_id", "n", "mean", "sigma", "p5")
    rows: list[list[Value]] = [
        [
            *(one[name] for name in names), one["threshold"] if "threshold" in one else one["floor"],
            one["breach_probability"], one["detectable_drop"], one["reason"] or one["warning"] or "",
        ]
        for one in told["judges"]
    ]  # fmt: skip
    daily = [[one["judge_id"], *days.values()] for one in told["judges"] if (days := one["daily_means"])]
    days = ("Judge", "Days", "Over days", "Mean", "σ", "p5", "Limit", "Breached")
    text = "".join(one["diff"] for one in told["changes"])
    if told["vertical"] is None:
        text = "".join(f"{one['judge_id']}\n{one['block']}" for one in told["judges"] if one["block"])
    missing = sum(not one["proposed"] for one in told["judges"])
    return Report(
        f"Limits, at a gate of {told['gate_items']} items",
        f"{missing} without a proposal" if missing else "proposed" if told["judges"] else "there is no score",
        "fail" if missing or not told["judges"] else "pass",
        [
            Section("Judges", heads, rows, _window(told.get("window"))),
            *([Section("By the means of days", days, daily)] if daily else []),
            Section("Rule files", notes=[_written(told)], text=text),
        ],
    )


def _window(window: Told | None) -> list[str]:
    if window is None:
        return []
    left = ", ".join(f"{many:,} {why}" for why, many in window["left_out"].items())
    read = f"{window['turns']:,} turns of {window['project']}, {window['since']} to before {window['until']}"
    return [f"{read}; left out: {left or 'none'}"]


def _written(told: Told) -> str:
    if told["vertical"] is None:
        return "Nothing was written; --vertical and --write do it."
    if not told["changes"]:
        return f"Nothing changes in the rule files of {told['vertical']}."
    if told["written"]:
        return f"written: {', '.join(one['file'] for one in told['changes'])}"
    return "Nothing was written; --write does it."


def round_report(told: Told) -> Report:
    """Of a round how far it came; of a file of scores its limits."""
    if "steps" not in told:
        return limits_report(told)
    tones = {"done": "pass", "refused": "fail"}
    rows: list[list[Value]] = [
        [name, Cell(step["state"], tones.get(step["state"], "warn")), step["told"]]
        for name, step in told["steps"].items()
    ]
    refused = any(step["state"] == "refused" for step in told["steps"].values())
    result = "done" if told["done"] else "a step was refused" if refused else "waits"
    took = f"{told['seconds']:,.0f} s without the time of people (PF-9 NFR-3: 4 hours)" if told["seconds"] else ""
    files = f"{told['folder']}: report.md, report.html, limits.diff" if told["done"] else told["folder"]
    return Report(
        f"Calibration of {told['vertical']}, {told['round']}",
        result,
        "fail" if refused else "pass" if told["done"] else "warn",
        [Section("Steps", ("Step", "State", ""), rows, [files, *([took] if took else [])])],
    )
