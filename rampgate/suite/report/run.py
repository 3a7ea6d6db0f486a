"""Says what the reports of `rampgate suite run` have: of a plan, of a file of answers, and of a run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from rampgate.report.model import Report, Section, Value
from rampgate.suite.report.comparison import Told, comparison_report
from rampgate.suite.report.outcome import stopped, warnings
from schemas.counting import counted

if TYPE_CHECKING:
    from rampgate.command import Document

HEADS = ("", "Asked", "Kept before", "Missing")
NO_COST = "unknown, since no earlier run says what calls cost"


def run_report(told: Document) -> Report:
    """The report of what the command did: a run alone has a verdict, and a file of answers its hash."""
    from rampgate.suite.run import Ran

    name = f"Suite {told['suite']}, {told['set']} set"
    if isinstance(told, Ran):
        if told["comparison"] is not None:
            return comparison_report(told["comparison"], name, told.traces, told, asked_section(told))
        from rampgate.suite.report.runs import runs_document, trend_report

        runs = runs_document([Path(told["results"])], told.score, told.scale)
        return trend_report(runs, name, told, asked_section(told))
    return _answers_report(told, name) if "sha256" in told else _plan_report(told, name)


def asked_section(told: Told) -> Section:
    """How much a run asked of the candidate and of judges, of how much it knew the answer, and what it is compared
    with."""
    rows: list[list[Value]] = [
        _answers(told),
        ["judges", told["judge_calls"], told["judge_answers"]["kept"], told["unscored"]],
    ]
    return Section(_cases(told), HEADS, rows, list(_notes(told)))


def _notes(told: Told) -> Iterator[str]:
    if told["unnamed_code"]:
        named = f"{told['unnamed_code']} is in no part of the candidate"
        yield f"no answer is kept: {named}; name it, as in `code: {{files: ['*.py']}}`"
    for judge, cut in told["judged_cut"].items():
        yield f"{judge} was shown a part alone of {counted(cut, 'answer')}: they are too long"
    if told["cost_usd"] is not None or told["tokens"]:
        yield _cost(told["cost_usd"], told["tokens"])
    yield f"results: {told['results']}"
    baseline = told["baseline"]
    if baseline is None:
        yield "no baseline yet: the run is compared with nothing; `--label main` makes it one"
    elif baseline["label"]:
        at = ", ".join(filter(None, (baseline["commit"][:12], f"{baseline['age']} ago")))
        yield f"baseline: {baseline['label']}'s run ({at})"
    if baseline is not None and baseline["judged_again"]:
        yield f"baseline: {baseline['judged_again']:,} answers judged again, by the judges of now"


def _plan_report(told: Told, name: str) -> Report:
    answers, calls = told["answers"], told["judge_calls"]
    rows: list[list[Value]] = [
        ["answers", answers["to_ask"], answers["kept"]],
        ["judges", calls["to_ask"], calls["kept"]],
    ]
    dollars, tokens = told["cost_usd"], told["tokens"]
    cost = f"about {_cost(dollars, tokens)}" if dollars is not None or tokens is not None else NO_COST
    section = Section("", ("", "To ask", "Kept before"), rows, [f"cost: {cost}"])
    return Report(name, f"{_cases(told)} to ask", "pass", [section], warnings(told))


def _answers_report(told: Told, name: str) -> Report:
    why = stopped(told)
    section = Section("", HEADS, [_answers(told)], [f"{told['file']}: sha256 {told['sha256']}"])
    result, tone = (why.words, "fail") if why is not None else (_cases(told), "pass")
    reasons = [*((why.reason,) if why is not None else ()), *warnings(told)]
    return Report(name, result, tone, [section], reasons)


def _cases(told: Told) -> str:
    return f"{counted(told['cases'], 'case')} × {counted(told['samples'], 'sample')}"


def _answers(told: Told) -> list[Value]:
    answers = told["answers"]
    return ["answers", answers["asked"], answers["kept"], answers["failed"]]


def _cost(dollars: float | None, tokens: int | None) -> str:
    known = [f"${dollars:,.4f}" if dollars is not None else "", f"{tokens:,} tokens" if tokens else ""]
    return ", ".join(filter(None, known)) or "nothing"
