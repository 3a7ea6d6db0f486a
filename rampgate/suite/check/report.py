"""Says what the report of `rampgate suite check` has, from its document. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rampgate.progress import duration
from rampgate.report.model import Cell, Reason, Report, Section, Value
from schemas.counting import counted

GATES = ("Gate", "Plain rule", "As shipped", "95 %", "At most")
PLANTED = ("Broken cases", "Blocked", "Warned", "No regression", "95 %", "At most")
SLICES = ("Slice", "Cases", "Seen", "Of")
Told = Mapping[str, Any]


def check_report(told: Told) -> Report:
    simulated, many = told["simulated"], len(told["findings"])
    drawn = f"{simulated['comparisons']:,} comparisons of each kind" if simulated is not None else "nothing resampled"
    found = simulated or {"gates": [], "planted": []}
    tests = [*((one["gate"], None) for one in found["gates"]), *((None, one["broken"]) for one in found["planted"])]
    return Report(
        f"Check of the suite {told['suite']}",
        f"{told['runs']['looked_at']:,} stored runs, {drawn}, {counted(many, 'finding')}",
        told["verdict"],
        _sections(told),
        [Reason("error", one["message"], one["code"], _test(one["gate"], one["broken"])) for one in told["findings"]],
        [_test(*one) for one in tests],
    )


def _test(gate: str | None, broken: int | None) -> str:
    return f"gate {gate}" if gate else f"{broken} broken cases" if broken else "stored runs"


def _sections(told: Told) -> list[Section]:
    out = []
    if (simulated := told["simulated"]) is not None:
        gates = [_gate(one) for one in simulated["gates"]]
        planted = [_planted(one) for one in simulated["planted"]]
        slices: list[list[Value]] = [
            [one["slice"], one["n"], _percent(one["shipped"]["ratio"]), one["shipped"]["of"]]
            for one in simulated["slices"]
        ]
        out = [
            Section("Unchanged candidates that are blocked or warned of, resampled", GATES, gates),
            Section("Candidates with cases of a slice that fail for good, resampled", PLANTED, planted),
            Section("Such candidates that are blocked or warned of, by slice", SLICES, slices),
        ]
    if told["stored_no_ops"] is not None and (blocked := told["stored_no_ops"]["blocked_as_shipped"])["of"]:
        note = f"{blocked['found']} of {blocked['of']} runs compared with their own configuration were blocked"
        out.append(Section("Unchanged candidates among stored runs", notes=[note]))
    runs: list[list[Value]] = [
        [one["set"] + (f", {one['only']} alone" if one["only"] else ""), one["n"]]
        + [duration(one[name]) if one[name] >= 10 else f"{one[name]:.1f} s" for name in ("p50_seconds", "p95_seconds")]
        for one in told["turnaround"]
    ]
    hits: list[list[Value]] = [
        [name.replace("_", " "), _percent(one["ratio"]), one["of"]] for name, one in told["hits"].items()
    ]
    return [
        *out,
        Section("Turnaround of stored runs", ("Set", "Runs", "p50", "p95"), runs),
        Section("Answers kept before", ("Kept before", "Share", "Of"), hits),
    ]


def _gate(one: Told) -> list[Value]:
    shipped = _percent(one["shipped"]["ratio"])
    return [
        one["gate"].replace("_", " "), _percent(one["plain"]["ratio"]),
        Cell(shipped, "fail") if one["above"] else shipped, _interval(one["shipped"]), _percent(one["nominal"]),
    ]  # fmt: skip


def _planted(one: Told) -> list[Value]:
    unseen = _percent(one["unseen"]["ratio"])
    return [
        str(one["broken"]), _percent(one["blocked"]["ratio"]), _percent(one["warned"]["ratio"]),
        Cell(unseen, "fail") if one["missed"] else unseen, _interval(one["unseen"]), _percent(one["most_unseen"]),
    ]  # fmt: skip


def _interval(rate: Told) -> str:
    low, high = rate["ci95"]
    return f"{low:.1%} to {high:.1%}"


def _percent(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio:.1%}"
