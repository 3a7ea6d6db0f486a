"""What a worker counts of its gates (PC5 §10.2; contracts §6)."""

from __future__ import annotations

import json
import re

import pytest

from evalcore.gates.requests import RampRequest, read
from evalcore.gates.verdict import Moment, of_gates, refused
from schemas.judges import Enforcement, Milestone
from schemas.publish.examples import RAMP_STEP
from schemas.verdicts import Code, GateVerdict, JudgeScore, Reason, VerdictLevel
from streams.metrics import Metrics, verdict_published


def gate(milestone: Milestone, word: VerdictLevel, *codes: Code, score: float | None = 0.8) -> GateVerdict:
    scores = {"ux_quality": JudgeScore(score, 0.7, not codes, Enforcement.BLOCK, n=100, rule=next(iter(codes), None))}
    return GateVerdict(
        scores, word, ["ux_quality"] if codes else [], milestone, [Reason(code, "why") for code in codes]
    )


def counted(fired: list[GateVerdict], *refusal: Code, at: float = 0, to: float = 100) -> str:
    metrics = Metrics()
    asked = read(json.dumps({**RAMP_STEP, "from_percent": at, "to_percent": to}).encode())
    assert isinstance(asked, RampRequest)
    moment = Moment("2026-11-21T12:00:00Z", 2.0)
    reasons = [Reason(code, "why") for code in refusal]
    verdict_published(metrics, refused(asked, reasons, moment) if reasons else of_gates(asked, fired, moment))
    return metrics.exposition().decode()


def test_pc5_10_2_a_jump_to_full_counts_both_gates_with_their_verdicts_duration_and_scores() -> None:
    text = counted(
        [gate(Milestone.PRE_RAMP, VerdictLevel.PASS), gate(Milestone.PRE_FULL, VerdictLevel.FAIL, Code.BELOW_THRESHOLD)]
    )
    for line in (
        'eval_gate_fired_total{milestone="pre_ramp"} 1.0',
        'eval_gate_fired_total{milestone="pre_full"} 1.0',
        'eval_gate_verdict_total{milestone="pre_ramp",verdict="pass"} 1.0',
        'eval_gate_verdict_total{milestone="pre_full",verdict="fail"} 1.0',
        'eval_gate_duration_seconds_sum{milestone="pre_full"} 2.0',
        'eval_judge_score_distribution_sum{judge_id="ux_quality",milestone="pre_ramp"} 0.8',
    ):
        assert line in text


def test_pc5_10_2_a_gate_that_nobody_could_decide_counts_as_error_and_not_as_fail() -> None:
    """Its judges' worst values are nobody's scores."""
    text = counted([gate(Milestone.PRE_RAMP, VerdictLevel.FAIL, Code.JUDGE_UNAVAILABLE, score=0.0)])
    assert 'eval_gate_verdict_total{milestone="pre_ramp",verdict="error"} 1.0' in text
    assert 'verdict="fail"} 1.0' not in text
    assert 'eval_judge_score_distribution_count{judge_id="ux_quality"' not in text


@pytest.mark.parametrize(
    ("code", "count"), [(Code.DEADLINE_EXCEEDED, "1.0"), (Code.JUDGE_UNAVAILABLE, "1.0"), (Code.INVALID_REQUEST, "0.0")]
)
def test_pc5_10_2_a_gate_that_came_to_no_verdict_in_time_counts_as_error(code: Code, count: str) -> None:
    """Else the alert on errors would not see workers that are too slow."""
    assert f'eval_gate_verdict_total{{milestone="pre_ramp",verdict="error"}} {count}' in counted([], code)


def test_pc5_10_2_a_step_without_a_gate_counts_none() -> None:
    text = counted([], at=5, to=25)
    assert not re.search(r"^eval_(gate|judge)_\w+?(_total|_count)\{[^}]*\} [1-9]", text, re.MULTILINE)
