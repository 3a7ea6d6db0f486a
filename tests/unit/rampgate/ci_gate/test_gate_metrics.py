"""What a worker counts of its gates (PC5 §10.2; contracts §6)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

import pytest

from evalcore.gates.requests import RampRequest, read
from evalcore.gates.verdict import Moment, of_gates, refused
from evalcore.scoring.answers import Answer, NotApplicable, Scored, Unscored
from schemas.judges import Enforcement, Milestone
from schemas.publish.examples import RAMP_STEP
from schemas.verdicts import Code, GateVerdict, JudgeScore, Reason, VerdictLevel
from streams.metrics import Metrics, scores_given, verdict_published
from tests.unit.agents.gates.ramp_answers_rig import Scripted, verdict


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


def test_pc5_10_2_a_jump_to_full_counts_both_gates_with_their_verdicts_and_duration() -> None:
    text = counted(
        [gate(Milestone.PRE_RAMP, VerdictLevel.PASS), gate(Milestone.PRE_FULL, VerdictLevel.FAIL, Code.BELOW_THRESHOLD)]
    )
    for line in (
        'eval_gate_fired_total{milestone="pre_ramp"} 1.0',
        'eval_gate_fired_total{milestone="pre_full"} 1.0',
        'eval_gate_verdict_total{milestone="pre_ramp",verdict="pass"} 1.0',
        'eval_gate_verdict_total{milestone="pre_full",verdict="fail"} 1.0',
        'eval_gate_duration_seconds_sum{milestone="pre_full"} 2.0',
    ):
        assert line in text


def test_pc5_10_2_a_gate_that_nobody_could_decide_counts_as_error_and_not_as_fail() -> None:
    text = counted([gate(Milestone.PRE_RAMP, VerdictLevel.FAIL, Code.JUDGE_UNAVAILABLE, score=0.0)])
    assert 'eval_gate_verdict_total{milestone="pre_ramp",verdict="error"} 1.0' in text
    assert 'verdict="fail"} 1.0' not in text


@pytest.mark.parametrize(
    ("code", "count"), [(Code.DEADLINE_EXCEEDED, "1.0"), (Code.JUDGE_UNAVAILABLE, "1.0"), (Code.INVALID_REQUEST, "0.0")]
)
def test_pc5_10_2_a_gate_that_came_to_no_verdict_in_time_counts_as_error(code: Code, count: str) -> None:
    """Else the alert on errors would not see workers that are too slow."""
    assert f'eval_gate_verdict_total{{milestone="pre_ramp",verdict="error"}} {count}' in counted([], code)


def test_pc5_10_2_a_step_without_a_gate_counts_none() -> None:
    text = counted([], at=5, to=25)
    assert not re.search(r"^eval_(gate|judge)_\w+?(_total|_count)\{[^}]*\} [1-9]", text, re.MULTILINE)


def test_pc5_10_2_each_score_that_a_judge_gave_is_observed_and_not_one_mean_a_gate() -> None:
    """A mean of 0.7 hides that a half of the answers has 0.4. What is missing at its worst value is nobody's score."""
    metrics = Metrics()
    given = [Scored(0.4), Scored(1.0), Scored(1.0), Unscored("no answer"), NotApplicable()]
    scores_given(metrics, Milestone.PRE_RAMP, {"ux_quality": given, "response_quality.accuracy": [Scored(3.0)]})
    text = metrics.exposition().decode()
    about = '{judge_id="ux_quality",milestone="pre_ramp"}'
    assert f"eval_judge_score_distribution_count{about} 3.0" in text
    assert f"eval_judge_score_distribution_sum{about} 2.4" in text
    assert 'bucket{judge_id="ux_quality",le="0.5",milestone="pre_ramp"} 1.0' in text
    assert 'sum{judge_id="response_quality.accuracy",milestone="pre_ramp"} 3.0' in text


def test_the_stream_tells_the_scores_of_each_gate_that_it_decides() -> None:
    told: list[tuple[Milestone, int]] = []

    def scores(milestone: Milestone, answers: Mapping[str, Sequence[Answer]]) -> None:
        told.append((milestone, len(answers["ux_quality"])))

    verdict(Scripted(size=400), scores=scores, to_percent=100)
    assert told == [(Milestone.PRE_RAMP, 400), (Milestone.PRE_FULL, 400)]
