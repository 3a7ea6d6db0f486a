"""Says what the reports of `rampgate suite run` have: of a plan, of a file of answers, and of a run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rampgate.report.model import Report, Section, Value
from rampgate.suite.report.comparison import Told, comparison_report
from rampgate.suite.report.outcome import HEADS, answers_of, cases_of, cost_of, stopped, warnings

if TYPE_CHECKING:
    from rampgate.command import Document

NO_COST = "unknown, since no earlier run says what calls cost"


def run_report(told: Document) -> Report:
    """The report of what the command did: a run alone has a verdict, and a file of answers its hash."""
    from rampgate.suite.run import Ran

    name = f"Suite {told['suite']}, {told['set']} set"
    if isinstance(told, Ran):
        if told["comparison"] is not None:
            return comparison_report(told["comparison"], name, told.traces, told)
        from rampgate.suite.report.runs import runs_document, trend_report

        runs = runs_document([Path(told["results"])], told.score, told.scale)
        return trend_report(runs, name, told)
    return _answers_report(told, name) if "sha256" in told else _plan_report(told, name)


def _plan_report(told: Told, name: str) -> Report:
    answers, calls = told["answers"], told["judge_calls"]
    rows: list[list[Value]] = [
        ["answers", answers["to_ask"], answers["kept"]],
        ["judges", calls["to_ask"], calls["kept"]],
    ]
    dollars, tokens = told["cost_usd"], told["tokens"]
    cost = f"about {cost_of(dollars, tokens)}" if dollars is not None or tokens is not None else NO_COST
    section = Section("", ("", "To ask", "Kept before"), rows, [f"cost: {cost}"])
    return Report(name, f"{cases_of(told)} to ask", "pass", [section], warnings(told))


def _answers_report(told: Told, name: str) -> Report:
    why = stopped(told)
    section = Section("", HEADS, [answers_of(told)], [f"{told['file']}: sha256 {told['sha256']}"])
    result, tone = (why.words, "fail") if why is not None else (cases_of(told), "pass")
    reasons = [*((why.reason,) if why is not None else ()), *warnings(told)]
    return Report(name, result, tone, [section], reasons)
