"""Reports of a spec's run (AgentCI Step 3): console, annotations, JUnit, Prometheus."""

from __future__ import annotations

import io
import json
import re

from prometheus_client.parser import text_string_to_metric_families
from rich.console import Console

from evalcore.specs.results import FieldPath
from rampgate.report.console import show
from rampgate.report.github import workflow_commands
from rampgate.report.html import html
from rampgate.report.junit import junit
from rampgate.spec.exposition import METRICS, exposition
from rampgate.spec.outcomes import Outcome, outcome_of
from rampgate.spec.report import console_report, page_report
from tests.root import ROOT
from tests.unit.rampgate.junit_files import junit_suite
from tests.unit.rampgate.spec.spec_results import AWAY, FAILED, FORBIDDEN, PASSED, WARNED, layer, result

LINES: dict[FieldPath, int] = {("path", "max_tool_calls"): 12, ("correctness", "expected_in_answer", 0): 7}


def place(name: str, field: FieldPath) -> tuple[str, int]:
    return "demos/agentci_spec.yaml", LINES.get(field, 3)


def outcomes(*results: object) -> list[Outcome]:
    return [outcome_of([one]) for one in results]  # type: ignore[list-item]


def console(*results: object) -> list[str]:
    out = io.StringIO()
    show(console_report(outcomes(*results)), Console(file=out, highlight=False, soft_wrap=True))
    return out.getvalue().splitlines()


def annotations(*results: object) -> list[str]:
    return workflow_commands(page_report("rag", outcomes(*results), place))


# AgentCI Step 3 box 1.
def test_console_has_each_query_with_three_layers() -> None:
    found = console(PASSED, WARNED, FAILED)
    start = found.index("=" * 60)
    assert found[start + 1 : start + 6] == [
        "Query: How do I install it?",
        "✅ Correctness: PASS",
        "   All correctness checks passed",
        "📈 Path: SKIP",
        "💰 Cost: SKIP",
    ]
    assert "   Tool calls: 11 > max 0" in found
    assert "❌ Correctness: FAIL" in found
    assert found[-2:] == ["=" * 60, "Results: 2/3 passed, 1 warnings, 1 failures"]


# AgentCI Step 6 box 4.
def test_console_says_infra_and_counts_it_beside_failures() -> None:
    found = console(AWAY)
    assert "[INFRA] the candidate gave no answer in 60 s" in found
    assert found[-1] == "Results: 0/1 passed, 0 warnings, 0 failures, 1 undecided [INFRA]"


# AgentCI Step 3 box 5.
def test_annotations_stand_at_the_assertions_line() -> None:
    """`::error file=F,line=N::[CORRECTNESS FAIL] {query[:60]}: msg`, and so on by layer."""
    assert annotations(WARNED) == [
        "::warning file=demos/agentci_spec.yaml,line=12::[PATH] What's the weather?: Tool calls: 11 > max 0",
        "::warning file=demos/agentci_spec.yaml,line=3::[COST] What's the weather?: Tokens: 4200 > max 500",
    ]
    assert annotations(FAILED) == [
        "::error file=demos/agentci_spec.yaml,line=7::"
        f"[CORRECTNESS FAIL] {'x' * 60}: Expected 'pip' not found in answer"
    ]
    assert annotations(FORBIDDEN) == [
        "::error file=demos/agentci_spec.yaml,line=3::[PATH FAIL] What's the weather?: Forbidden tools used: web_search"
    ]
    assert annotations(AWAY) == [
        "::error file=demos/agentci_spec.yaml,line=3::[INFRA] What's the weather?: the candidate gave no answer in 60 s"
    ]
    assert annotations(PASSED) == []


def test_no_text_begins_a_workflow_command() -> None:
    """An answer, or a query, is a stranger's text."""
    wild = result("w", "q\n::error::mine", correctness=layer("fail", "line\n::set-output name=x::y\r%0A::warning::z"))
    (command,) = annotations(wild)
    assert command.count("\n") == 0
    assert "%0A::set-output" in command
    assert not [line for line in console(wild) if line.startswith("::") or "##[" in line]


# AgentCI Step 3 box 5.
def test_github_shows_ten_of_a_level_and_says_how_many_are_left() -> None:
    many = [result(str(n), correctness=layer("fail", "no")) for n in range(14)]
    found = annotations(*many)
    assert len(found) == 10
    assert "5 more errors" in found[-1]


def test_junit_has_a_test_for_each_query() -> None:
    suite = junit_suite(junit(page_report("rag", outcomes(PASSED, WARNED, FAILED, AWAY), place)))
    cases = {case.get("name"): case for case in suite}
    assert cases["ok: How do I install it?"].find("failure") is None
    assert cases["warned: What's the weather?"].find("failure") is None
    assert cases[f"failed: {'x' * 60}"].find("failure") is not None
    assert cases["away: What's the weather?"].find("error") is not None
    assert (suite.get("failures"), suite.get("errors")) == ("1", "1")


def test_no_line_of_junit_begins_a_workflow_command() -> None:
    words = "the agent failed: x\n::error::y\n  ::stop-commands::z\n##[error]w"
    failed = result("bad", correctness=layer("fail", words))
    written = junit(page_report("rag", outcomes(failed), place))
    assert not re.search(rb"(?m)^\s*::|##\[", written)
    found = junit_suite(written).find("./testcase/failure")
    assert found is not None
    assert "::error::y\n  ::stop-commands::z\n##[error]w" in str(found.text)


def test_page_shows_figures() -> None:
    page = html(page_report("rag", outcomes(WARNED), place))
    assert "4,200" in page
    assert "[PATH]" in page


def test_repeats_say_how_many_answers_passed() -> None:
    out = io.StringIO()
    show(console_report([outcome_of([PASSED, FAILED])]), Console(file=out, highlight=False, soft_wrap=True))
    assert "1 of 2 answers passed; the worst:" in out.getvalue()
    assert "pass^2: 0.00" in out.getvalue()


def series(*results: object) -> dict[str, dict[str, float]]:
    text = exposition("rag", results)  # type: ignore[arg-type]
    return {
        family.name: {sample.labels["id"]: sample.value for sample in family.samples}
        for family in text_string_to_metric_families(text)
    }


# AgentCI Step 3 box 1.
def test_prometheus_has_the_documents_metrics() -> None:
    """A series a query; what is skipped or unknown has none, where the document writes 0."""
    found = series(PASSED, WARNED, FAILED, FORBIDDEN, AWAY)
    assert found["agentci_correctness_pass"] == {"ok": 1, "warned": 1, "failed": 0}
    assert found["agentci_tool_recall"] == {"warned": 0.5}
    assert found["agentci_tool_precision"] == {"warned": 0.25}
    assert found["agentci_cost_usd"] == {"warned": 0.008}
    assert found["agentci_latency_ms"] == {"warned": 8200}
    assert found["agentci_total_tokens"] == {"warned": 4200}


def test_queries_with_one_beginning_are_two_series() -> None:
    """AgentCI cuts the label at 40 characters; backslash, quote and newline are escaped."""
    texts = [f'a "quote" \\ and\na newline {"x" * 60} {n}' for n in range(2)]
    found = series(*(result(str(n), text, correctness=layer("pass")) for n, text in enumerate(texts)))
    assert found["agentci_correctness_pass"] == {"0": 1, "1": 1}


def test_the_dashboard_draws_the_documents_metrics() -> None:
    panels = json.loads((ROOT / "configs/grafana/dashboards/specs.json").read_text())["panels"]
    drawn = {name for one in panels for name in re.findall(r"agentci_\w+", one["targets"][0]["expr"])}
    assert drawn == {*METRICS}
    assert len({one["id"] for one in panels}) == len(panels)
