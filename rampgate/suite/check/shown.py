"""Shows what `rampgate suite check` found: on a terminal, as a page or Markdown, as JUnit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson
from rich.console import Console

from rampgate.ci_gate.report_texts import COLOURS, WIDE
from rampgate.console import plain
from rampgate.progress import duration
from rampgate.report.junit import Tested, junit
from rampgate.report.page import Cell, Report, Section, Value, write
from rampgate.suite.report.files import replace_report
from rampgate.tables import make_table
from schemas.counting import counted
from schemas.verdicts import VerdictLevel

GATES = ("Gate", "Plain rule", "As shipped", "95 %", "At most")
SLICES = ("Slice", "Cases", "Planted", "Found, plain", "Predicted", "Found, as shipped", "Predicted")
RUNS = ("Set", "Runs", "p50", "p95")
HITS = ("Kept before", "Share", "Of")


def show(told: Mapping[str, Any]) -> None:
    console = Console(highlight=False, soft_wrap=True)
    if not console.is_terminal:
        console.width = max(console.width, WIDE)
    for section in sections(told):
        if section.rows:
            table = make_table(section.title, section.heads[0], *(f">{head}" for head in section.heads[1:]))
            for row in section.rows:
                table.add_row(*(_words(value) for value in row))
            console.print(table)
        for note in section.notes:
            console.print(f"[dim]{plain(note, 500)}[/]")
    for one in told["findings"]:
        console.print(f"  {plain(one['message'], 600)}")
    colour = COLOURS[VerdictLevel(told["verdict"])]
    console.print(f"[{colour}]{told['verdict']}[/]: {summary(told)}")


def write_check(paths: Sequence[Path], told: Mapping[str, Any]) -> None:
    """Write each report by its name's ending. Raises Failure."""
    title = f"Check of the suite {told['suite']}"
    for path in paths:
        kind = path.suffix.lower()
        if kind == ".json":
            replace_report(path, orjson.dumps(told, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
        elif kind == ".xml":
            replace_report(path, junit(title, "suite check", _tests(told)))
        else:
            said = Section("Findings", notes=[one["message"] for one in told["findings"]])
            write(path, Report(title, summary(told), told["verdict"], [said, *sections(told)]))


def summary(told: Mapping[str, Any]) -> str:
    simulated, many = told["simulated"], len(told["findings"])
    drawn = f"{simulated['comparisons']:,} simulated comparisons" if simulated is not None else "nothing simulated"
    return f"{told['runs']['looked_at']:,} stored runs, {drawn}, {counted(many, 'finding')}"


def sections(told: Mapping[str, Any]) -> list[Section]:
    """The tables, as a page and a terminal have them."""
    out = []
    if (simulated := told["simulated"]) is not None:
        gates = [_gate(one) for one in simulated["gates"]]
        drop = f"a drop of {simulated['drop']:g} of the scale in each slice"
        slices = [_slice(one) for one in simulated["slices"]]
        out = [
            Section("Unchanged candidates that gates block, simulated", GATES, gates),
            Section(f"Planted drops that are found, {drop}", SLICES, slices),
        ]
    no_ops = told["stored_no_ops"]
    if no_ops is not None and (no_ops["pairs"] or no_ops["blocked_as_shipped"]["of"]):
        held = [f"{gate.replace('_', ' ')} {rate['found']}" for gate, rate in no_ops["gates"].items()]
        blocked = no_ops["blocked_as_shipped"]
        notes = [
            f"{counted(no_ops['pairs'], 'pair')} of stored runs of one configuration, drawn apart; tripped by the "
            f"plain rule: {', '.join(held)}",
            f"{blocked['found']} of {blocked['of']} runs that were held against their own configuration were blocked",
        ]
        out.append(Section("Unchanged candidates among stored runs", notes=notes))
    runs: list[list[Value]] = [
        [one["set"] + (f", {one['only']} alone" if one["only"] else ""), one["n"]]
        + [duration(one[name]) if one[name] >= 10 else f"{one[name]:.1f} s" for name in ("p50_seconds", "p95_seconds")]
        for one in told["turnaround"]
    ]
    hits: list[list[Value]] = [
        [name.replace("_", " "), _percent(one["ratio"]), one["of"]] for name, one in told["hits"].items()
    ]
    return [*out, Section("Turnaround of stored runs", RUNS, runs), Section("Answers kept before", HITS, hits)]


def _gate(one: Mapping[str, Any]) -> list[Value]:
    shipped = _percent(one["shipped"]["ratio"])
    low, high = one["shipped"]["ci95"]
    return [
        one["gate"].replace("_", " "), _percent(one["plain"]["ratio"]),
        Cell(shipped, "fail") if one["above"] else shipped, f"{low:.1%} to {high:.1%}", _percent(one["nominal"]),
    ]  # fmt: skip


def _slice(one: Mapping[str, Any]) -> list[Value]:
    shipped = _percent(one["shipped"]["ratio"])
    return [
        one["slice"], one["n"], f"{one['planted']:.3g}", _percent(one["plain"]["ratio"]), _percent(one["predicted"]),
        Cell(shipped, "fail") if one["missed"] else shipped, _percent(one["predicted_shipped"]),
    ]  # fmt: skip


def _tests(told: Mapping[str, Any]) -> list[Tested]:
    found = {(one["gate"], one["slice"]): one for one in told["findings"]}
    simulated = told["simulated"] or {"gates": [], "slices": []}
    names = [(one["gate"], None) for one in simulated["gates"]] + [(None, one["slice"]) for one in simulated["slices"]]
    tests = []
    for gate, name in dict.fromkeys([*names, *found]):
        one = found.get((gate, name))
        called = f"gate {gate}" if gate else f"slice {name}" if name else "stored runs"
        tests.append(Tested(called, "failure", one["code"], one["message"]) if one is not None else Tested(called))
    return tests


def _percent(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio:.1%}"


def _words(value: Value) -> str:
    if isinstance(value, Cell):
        return f"[red]{plain(value.words)}[/]" if value.tone == "fail" else plain(value.words)
    return f"{value:,}" if isinstance(value, int) else plain(str(value))
