"""What a report says of a judge fits what the gate came to (PC5 §5.5; PF-9 AC-9; contracts §3)."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from evalcore.gates.decision import Evidence, Judged, decide
from evalcore.gates.evaluate import ScoredGate
from evalcore.gates.limits import Limits
from evalcore.scoring.answers import Answer, Scored, Unscored, collect
from rampgate.ci_gate.report_rows import rows
from rampgate.ci_gate.report_texts import commands, junit, markdown
from rampgate.ci_gate.run import GateRequest, GateRun
from schemas.judges import Enforcement, Milestone
from schemas.verdicts import VerdictLevel
from tests.unit.evalcore.registry.registry_disk import built
from tests.unit.evalcore.registry.registry_files import TODAY

REGISTRY = built()
SCALE = (1.0, 5.0)


def judged(*answers: Answer, enforcement: Enforcement = Enforcement.WARN, floor: float = 1.0) -> Judged:
    return Judged(collect(answers, SCALE), Limits.of(4.0, floor, 0.25, enforcement), SCALE)


def decided(milestone: Milestone, **judges: Judged) -> GateRun:
    verdict = decide(milestone, judges, Evidence(size=100, minimum=20))
    return GateRun(ScoredGate(verdict), GateRequest(REGISTRY, TODAY, milestone), "2026-11-21T00:00:00.000+00:00", 1.0)


def counted(outcome: GateRun) -> tuple[int, int, str]:
    """JUnit's failures and errors, and the level of the first annotation."""
    (found,) = re.findall(rb'failures="(\d+)" errors="(\d+)"', junit(outcome))
    return int(found[0]), int(found[1]), commands(outcome)[0].split(" ", 1)[0]


@pytest.mark.parametrize("enforcement", list(Enforcement))
@pytest.mark.parametrize("milestone", list(Milestone))
def test_pf9_ac9_a_late_seed_is_told_as_what_it_does_at_the_milestone(
    milestone: Milestone, enforcement: Enforcement
) -> None:
    late = replace(judged(Scored(5.0), enforcement=enforcement), overdue_days=3)
    outcome = decided(milestone, helpfulness=late)
    warns = milestone is Milestone.PRE_MERGE
    word = VerdictLevel.WARN if warns else VerdictLevel.FAIL
    assert [row.word for row in rows(outcome)] == [outcome.verdict.verdict] == [word]
    assert counted(outcome) == ((0, 0, "::warning") if warns else (1, 0, "::error"))
    assert f"| {'⚠️' if warns else '❌'} {word} |" in markdown(outcome)


@pytest.mark.parametrize("late", [0, 3])
def test_a_late_seed_that_only_warns_does_not_hide_what_blocks(late: int) -> None:
    below = replace(judged(Scored(3.0), enforcement=Enforcement.BLOCK), overdue_days=late)
    assert [row.word for row in rows(decided(Milestone.PRE_MERGE, helpfulness=below))] == [VerdictLevel.FAIL]


def test_a_judge_that_could_score_nothing_is_told_no_worse_than_the_gate_came_to() -> None:
    """contracts §3: another judge warns anyway, so the verdict is known, and the exit code is 0."""
    outcome = decided(Milestone.PRE_MERGE, brevity=judged(Scored(3.0)), helpfulness=judged(Unscored("model is down")))
    assert outcome.verdict.verdict is VerdictLevel.WARN
    assert {row.judge: (row.score.rule, row.word) for row in rows(outcome)} == {
        "brevity": ("below_threshold", VerdictLevel.WARN),
        "helpfulness": ("judge_unavailable", VerdictLevel.WARN),
    }
    assert counted(outcome) == (0, 0, "::warning")
    assert "::error" not in "".join(commands(outcome))


def test_a_judge_that_could_score_nothing_is_an_error_where_nobody_knows_the_verdict() -> None:
    outcome = decided(Milestone.PRE_MERGE, helpfulness=judged(Unscored("model is down")))
    assert counted(outcome) == (0, 1, "::error")
