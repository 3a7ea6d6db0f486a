"""Reports runs, the oldest first, with each slice's trend; and a run without a baseline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from evalcore.suite.results import NoScore, Run, chosen, scale_of
from evalcore.suite.sides import facts_of
from evalcore.suite.trend import SliceTrend, trend
from rampgate.console import Failure
from rampgate.report.drawing import Course
from rampgate.report.model import Report, Section
from rampgate.suite.report.comparison import WHOLE, Told
from rampgate.suite.report.outcome import RUN, asked_section, stopped, warnings
from rampgate.suite.result_files import read_run
from schemas.counting import counted


def runs_document(
    paths: Sequence[Path], score: str | None = None, scale: tuple[float, float] | None = None
) -> dict[str, Any]:
    """The JSON document of stored runs. Raises Failure."""
    try:
        runs = [read_run(path) for path in paths]
        named = chosen(runs, score, [str(path) for path in paths])
        fits = scale_of(runs, named, scale)
    except NoScore as error:
        raise Failure(str(error)) from error
    found = trend(runs, named, fits)
    return {
        "score": named,
        "scale": [fits.low, fits.high],
        "runs": [_facts(path, run) for path, run in zip(paths, runs, strict=True)],
        "slices": [_slice(name, one) for name, one in found.items()],
    }


def trend_report(told: Told, name: str = "Runs", whole: Told | None = None) -> Report:
    """The trend of runs; `whole` is the document of the run, where it is of one."""
    why = stopped(whole or {})
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
    sections += [asked_section(whole)] if whole is not None else []
    tests = [one["slice"] or WHOLE for one in told["slices"]]
    if why is not None:
        return Report(name, why.words, "fail", sections, [why.reason, *warnings(whole or {})], [RUN, *tests])
    return Report(name, f"{told['score']} over {many}", "pass", sections, warnings(whole or {}), tests)


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
