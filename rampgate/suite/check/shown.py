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
from rampgate.report.files import write
from rampgate.report.junit import Tested, junit
from rampgate.report.model import Cell, Report, Section, Value
from rampgate.suite.report.files import replace_report
from rampgate.tables import make_table
from schemas.counting import counted
from schemas.verdicts import VerdictLevel

GATES = ("Gate", "Plain rule", "As shipped", "95 %", "At most")
PLANTED = ("Broken cases", "Blocked", "Warned", "No regression", "95 %", "At most")
SLICES = ("Slice", "Cases", "Seen", "Of")
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
    drawn = f"{simulated['comparisons']:,} comparisons of each kind" if simulated is not None else "nothing resampled"
    return f"{told['runs']['looked_at']:,} stored runs, {drawn}, {counted(many, 'finding')}"


def sections(told: Mapping[str, Any]) -> list[Section]:
    """The tables, as a page and a terminal have them."""
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
    return [
        one["gate"].replace("_", " "), _percent(one["plain"]["ratio"]),
        Cell(shipped, "fail") if one["above"] else shipped, _interval(one["shipped"]), _percent(one["nominal"]),
    ]  # fmt: skip


def _planted(one: Mapping[str, Any]) -> list[Value]:
    unseen = _percent(one["unseen"]["ratio"])
    return [
        str(one["broken"]), _percent(one["blocked"]["ratio"]), _percent(one["warned"]["ratio"]),
        Cell(unseen, "fail") if one["missed"] else unseen, _interval(one["unseen"]), _percent(one["most_unseen"]),
    ]  # fmt: skip


def _tests(told: Mapping[str, Any]) -> list[Tested]:
    found = {(one["gate"], one["broken"]): one for one in told["findings"]}
    simulated = told["simulated"] or {"gates": [], "planted": []}
    names = [(one["gate"], None) for one in simulated["gates"]]
    names += [(None, one["broken"]) for one in simulated["planted"]]
    tests = []
    for gate, broken in dict.fromkeys([*names, *found]):
        one = found.get((gate, broken))
        called = f"gate {gate}" if gate else f"{broken} broken cases" if broken else "stored runs"
        tests.append(Tested(called, "failure", one["code"], one["message"]) if one is not None else Tested(called))
    return tests


def _interval(rate: Mapping[str, Any]) -> str:
    low, high = rate["ci95"]
    return f"{low:.1%} to {high:.1%}"


def _percent(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio:.1%}"


def _words(value: Value) -> str:
    if isinstance(value, Cell):
        return f"[red]{plain(value.words)}[/]" if value.tone == "fail" else plain(value.words)
    return f"{value:,}" if isinstance(value, int) else plain(str(value))
