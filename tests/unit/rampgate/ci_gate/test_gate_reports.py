"""A gate's outcome in the forms that CI shows, with the score distributions drawn (PC5 §5.5; PF-9 AC-9; contracts §3,
§5)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from evalcore.gates.decision import Evidence, Judged, decide
from evalcore.gates.evaluate import ScoredGate
from evalcore.gates.golden import CandidateAnswer, GoldenSet
from evalcore.gates.limits import Limits
from evalcore.judges.evaluator import Prompt
from evalcore.scoring.answers import Answer, Scored, Unscored, collect
from evalcore.scoring.cache import MemoryScoreCache
from evalcore.scoring.calls import Reply
from evalcore.scoring.items import Failed
from evalcore.scoring.runner import Scorer
from rampgate.ci_gate.run import GateAnswer, GateRequest, GateRun, run
from rampgate.gate.report import distributions, gate_report, levels
from rampgate.report.github import workflow_commands
from rampgate.report.html import html
from rampgate.report.junit import junit
from rampgate.report.markdown import markdown
from rampgate.report.model import Report
from schemas.judges import Enforcement, Milestone
from schemas.verdicts import Code, Reason, VerdictLevel
from tests.browser import opened, overflow
from tests.unit.evalcore.registry.registry_disk import built
from tests.unit.evalcore.registry.registry_files import TODAY
from tests.unit.rampgate.ci_gate.gate_rig import ITEMS, answer, item
from tests.unit.rampgate.junit_files import junit_suite

HOSTILE = "<script>alert(1)</script> | [x](http://evil) @team \x1b[31m ::error::x"
REGISTRY = built({"evaluation_manifest.yaml": f"{{dataset: {{items: {ITEMS}}}}}"})
SCALE = (1.0, 5.0)


class Model:
    def source(self, model: str) -> str:
        return "test"

    def __init__(self, says: Callable[[str, str], Any]) -> None:
        self.says = says

    async def complete(self, asked: Prompt) -> Reply:
        kinds = [one["type"] for one in asked.schema["properties"]["score"]["anyOf"]]
        kind = next(kind for kind in ("boolean", "integer", "number") if kind in kinds)
        return Reply(json.dumps({"score": self.says(kind, asked.output), "reason": HOSTILE}))


def mixed(kind: str, output: str) -> Any:
    number = int(re.findall(r"so (\d+)", output)[0])
    return {"boolean": True, "integer": 2 + number % 4, "number": 1.0}[kind]


async def outcome(says: Callable[[str, str], Any] = mixed, failed: int = 0) -> GateRun:
    items = [{**item(n), "metadata": {**item(n)["metadata"], "id": f"<i{n}>"}} for n in range(ITEMS)]
    answers: dict[str, CandidateAnswer] = {
        f"<i{n}>": answer(n) if n >= failed else Failed(HOSTILE) for n in range(ITEMS)
    }

    async def dataset() -> GoldenSet:
        return GoldenSet(items, HOSTILE)

    return await run(GateRequest(REGISTRY, TODAY), dataset, lambda _: answers, Scorer(Model(says), MemoryScoreCache()))


def reported(made: GateRun) -> Report:
    return gate_report(GateAnswer(made))


async def test_scores_are_counted_in_the_bins_of_their_scale() -> None:
    found = {name: spread for name, (_, spread) in distributions(await outcome(failed=1)).items()}
    whole = found["helpfulness"]
    assert (whole.labels, whole.sides[0][1]) == (("1", "2", "3", "4", "5"), [0, 4, 5, 5, 5])
    assert whole.words() == "·▇███"
    assert (found["honesty"].labels, found["honesty"].sides[0][1]) == (("false", "true"), [0, ITEMS - 1])
    assert found["refusal"].sides[0][1] == [*[0] * 19, ITEMS - 1]
    lowest = reported(await outcome(failed=1)).sections[-1].rows
    assert [row[2] for row in lowest if row[0] == "helpfulness"] == [2.0, 2.0, 2.0]


async def test_junit_has_a_test_for_each_judge_and_a_failure_for_what_blocks() -> None:
    suite = junit_suite(junit(reported(await outcome())))
    assert {case.get("name") for case in suite} >= {"helpfulness", "brevity", "refusal", "honesty"}
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("5", "0", "0")
    assert "below_threshold" in (suite.findtext("testcase[@name='helpfulness']/system-out") or "")
    dishonest = await outcome(lambda kind, _: {"boolean": False, "integer": 5, "number": 1.0}[kind])
    bad = junit_suite(junit(reported(dishonest)))
    failure = bad.find("testcase[@name='honesty']/failure")
    assert failure is not None
    assert (failure.get("type"), bad.get("failures")) == ("floor_breach", "1")
    unknown = junit_suite(junit(reported(await outcome(failed=ITEMS))))
    assert unknown.get("errors") == "4"


def test_a_report_that_fails_without_an_error_passes_no_test_of_its_own_name() -> None:
    suite = junit_suite(junit(Report("check", "1 drifted", "fail", tests=["one"])))
    assert suite.find("testcase[@name='check']/failure") is not None
    assert suite.get("failures") == "1"


class Seen(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.links += [value or "" for name, value in attrs if name in ("src", "href", "onload", "onclick")]


async def test_the_page_draws_a_distribution_for_each_judge_and_needs_nothing_else(tmp_path: Path) -> None:
    made = await outcome(failed=1)
    text, seen = html(reported(made)), Seen()
    seen.feed(text)
    assert seen.tags.count("svg") == 4
    counts = [count for _, spread in distributions(made).values() for count in spread.sides[0][1]]
    assert seen.tags.count("rect") == sum(map(bool, counts))
    assert not {"script", "link", "img", "iframe"} & set(seen.tags)
    assert seen.links == []
    assert "url(" not in text
    assert "default-src 'none'" in text
    assert "threshold 4" in text
    assert "\x1b" not in text
    page = tmp_path / "gate.html"
    page.write_text(text)
    shown = opened(page, tmp_path)
    assert (shown.said, shown.asked) == ("", [])
    for width in (1100, 500):
        assert overflow(page, tmp_path, width) <= 0, f"wider than {width} pixels"


async def test_markdown_shows_text_from_outside_as_text() -> None:
    text = markdown(reported(await outcome(failed=1)))
    assert "<script>" not in text
    assert "@team" not in text
    assert "](http" not in text
    assert "▇███" in text
    for table in text.split("\n\n"):
        rows = [len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines() if line.startswith("| ")]
        assert len(set(rows)) <= 1, "no text ends a cell"


async def test_annotations_begin_no_command_of_their_own() -> None:
    found = workflow_commands(reported(await outcome(failed=ITEMS)))
    assert all("\n" not in line and "\r" not in line for line in found)
    assert {line.split(" ", 1)[0] for line in found} == {"::error", "::notice"}


def judged(*answers: Answer, enforcement: Enforcement = Enforcement.WARN, floor: float = 1.0) -> Judged:
    return Judged(collect(answers, SCALE), Limits.of(4.0, floor, 0.25, enforcement), SCALE)


def decided(milestone: Milestone, **judges: Judged) -> GateRun:
    verdict = decide(milestone, judges, Evidence(size=100, minimum=20))
    return GateRun(ScoredGate(verdict), GateRequest(REGISTRY, TODAY, milestone), "2026-11-21T00:00:00.000+00:00", 1.0)


def counted(outcome: GateRun) -> tuple[int, int, str]:
    """JUnit's failures and errors, and the level of the first annotation."""
    report = reported(outcome)
    (found,) = re.findall(rb'failures="(\d+)" errors="(\d+)"', junit(report))
    return int(found[0]), int(found[1]), workflow_commands(report)[0].split(" ", 1)[0]


@pytest.mark.parametrize("enforcement", list(Enforcement))
@pytest.mark.parametrize("milestone", list(Milestone))
def test_pf9_ac9_a_late_seed_is_told_as_what_it_does_at_the_milestone(
    milestone: Milestone, enforcement: Enforcement
) -> None:
    late = replace(judged(Scored(5.0), enforcement=enforcement), overdue_days=3)
    outcome = decided(milestone, helpfulness=late)
    warns = milestone is Milestone.PRE_MERGE
    word = VerdictLevel.WARN if warns else VerdictLevel.FAIL
    assert levels(outcome) == {"helpfulness": outcome.verdict.verdict} == {"helpfulness": word}
    assert counted(outcome) == ((0, 0, "::warning") if warns else (1, 0, "::error"))
    assert f"| {'⚠️' if warns else '❌'} {word} |" in markdown(reported(outcome))


@pytest.mark.parametrize("late", [0, 3])
def test_a_late_seed_that_only_warns_does_not_hide_what_blocks(late: int) -> None:
    below = replace(judged(Scored(3.0), enforcement=Enforcement.BLOCK), overdue_days=late)
    assert levels(decided(Milestone.PRE_MERGE, helpfulness=below)) == {"helpfulness": VerdictLevel.FAIL}


def test_a_judge_that_could_score_nothing_is_told_no_worse_than_the_gate_came_to() -> None:
    """contracts §3: another judge warns anyway, so the verdict is known, and the exit code is 0."""
    outcome = decided(Milestone.PRE_MERGE, brevity=judged(Scored(3.0)), helpfulness=judged(Unscored("model is down")))
    assert outcome.verdict.verdict is VerdictLevel.WARN
    assert levels(outcome) == {"brevity": VerdictLevel.WARN, "helpfulness": VerdictLevel.WARN}
    assert outcome.verdict.per_judge_scores["helpfulness"].rule == "judge_unavailable"
    assert counted(outcome) == (0, 0, "::warning")
    assert "::error" not in "".join(workflow_commands(reported(outcome)))


def test_a_judge_that_could_score_nothing_is_an_error_where_nobody_knows_the_verdict() -> None:
    outcome = decided(Milestone.PRE_MERGE, helpfulness=judged(Unscored("model is down")))
    assert counted(outcome) == (0, 1, "::error")


def test_a_gate_that_warns_because_it_was_skipped_fails_no_test() -> None:
    made = decided(Milestone.PRE_RAMP, honesty=judged(Scored(5.0)))
    skipped = [Reason(Code.GATE_SKIPPED, "by override o1")]
    scored = ScoredGate(replace(made.verdict, verdict=VerdictLevel.WARN, reasons=skipped))
    assert counted(replace(made, scored=scored)) == (0, 0, "::warning")
