"""Reports runs, the oldest first, with each slice's trend; and a run without a baseline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import orjson

from evalcore.suite.results import NoScore, Run, chosen, scale_of
from evalcore.suite.sides import facts_of
from evalcore.suite.trend import SliceTrend, trend
from rampgate.ci_gate.inputs import BadFile
from rampgate.console import Failure
from rampgate.report.drawing import Course
from rampgate.report.files import write
from rampgate.report.junit import Tested, junit
from rampgate.report.model import Report, Section
from rampgate.store.place import Place
from rampgate.suite.report.files import replace_report, write_reports
from rampgate.suite.report.outcome import Stopped, stopped
from rampgate.suite.result_files import read_run
from schemas.counting import counted

WHOLE = "all cases"


def runs_document(
    paths: Sequence[Path], score: str | None = None, scale: tuple[float, float] | None = None
) -> dict[str, Any]:
    """The JSON document of stored runs. Raises Failure."""
    try:
        runs = [read_run(path) for path in paths]
        named = chosen(runs, score, [str(path) for path in paths])
        fits = scale_of(runs, named, scale)
    except (BadFile, NoScore) as error:
        raise Failure(str(error)) from error
    found = trend(runs, named, fits)
    return {
        "score": named,
        "scale": [fits.low, fits.high],
        "runs": [_facts(path, run) for path, run in zip(paths, runs, strict=True)],
        "slices": [_slice(name, one) for name, one in found.items()],
    }


def name_of(told: Mapping[str, Any]) -> str:
    """What a run of a suite is called, by its document."""
    return f"Suite {told['suite']}, {told['set']} set"


def write_run_reports(
    paths: Sequence[Path],
    told: Mapping[str, Any],
    results: Path,
    place: Place,
    score: str,
    scale: tuple[float, float],
) -> None:
    """Write the reports of `suite run`: of its comparison, or without a baseline of the run itself. Raises Failure."""
    if told["comparison"] is not None:
        write_reports(paths, told["comparison"], name_of(told), place, told)
    else:
        write_trend(paths, runs_document([results], score, scale), name_of(told), told)


def write_trend(paths: Sequence[Path], told: Mapping[str, Any], name: str = "Runs", whole: Any = None) -> None:
    """Write each report by its name's ending; `whole` is the document of the run, where it is of one. Raises
    Failure."""
    why = stopped(whole or {})
    for path in paths:
        kind = path.suffix.lower()
        if kind == ".json":
            replace_report(path, orjson.dumps(whole or told, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
        elif kind == ".xml":
            tests = [Tested(one["slice"] or WHOLE) for one in told["slices"]]
            replace_report(path, junit(name, "suite", [why.tested(), *tests] if why is not None else tests))
        else:
            write(path, trend_report(told, name, why))


def trend_report(told: Mapping[str, Any], name: str, why: Stopped | None = None) -> Report:
    """The page; `why` the run does not pass, where it is of one."""
    heads = ("", "Trend", "First", "Last", "95 %", "Change", "Cases")
    rows = [
        [
            one["slice"] or WHOLE, Course(one["means"]), one["means"][0], one["means"][-1], one["ci95"],
            one["change"], one["n"][-1],
        ]
        for one in told["slices"]
    ]  # fmt: skip
    about = ("Run", told["score"], "Cases", "Answers", "Failed", "Cost in USD", "Latency p50 in ms", "p95 in ms")
    means = told["slices"][0]["means"]
    facts = ("cases", "samples", "failed", "cost_usd", "latency_p50_ms", "latency_p95_ms")
    runs = [[one["run"], mean, *(one[fact] for fact in facts)] for one, mean in zip(told["runs"], means, strict=True)]
    many = counted(len(runs), "run")
    sections = [Section(f"{told['score']} by slice", heads, rows), Section("Runs", about, runs)]
    if why is not None:
        return Report(name, why.words, "fail", [why.section(), *sections])
    return Report(name, many, "pass", sections)


def _facts(path: Path, run: Run) -> dict[str, Any]:
    facts = asdict(facts_of(run))
    del facts["counts"]
    return {"run": path.name, "cases": len(run), **facts}


def _slice(name: str | None, one: SliceTrend) -> dict[str, Any]:
    return {
        "slice": name,
        "n": list(one.n),
        "means": list(one.means),
        "ci95": list(one.ci95) if one.ci95 is not None else None,
        "change": one.change,
    }
