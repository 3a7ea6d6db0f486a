"""What a worker counts of its gates (PC5 §10.2; contracts §6)."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from agents.gates.ports import AskingGate
from evalcore.gates.requests import RampRequest, read
from evalcore.gates.verdict import Moment, of_gates, refused
from evalcore.scoring.answers import Answer, NotApplicable, Scored, Unscored
from schemas.judges import Enforcement, Milestone
from schemas.publish.examples import RAMP_STEP
from schemas.verdicts import Code, GateVerdict, JudgeScore, Reason, VerdictLevel
from streams.metrics import Metrics, scores_given, verdict_published
from tests.unit.agents.gates.ramp_answers_rig import Scripted, verdict


def gate(
    milestone: Milestone, word: VerdictLevel, *codes: Code, score: float | None = 0.8, seconds: float = 0.5
) -> GateVerdict:
    scores = {"ux_quality": JudgeScore(score, 0.7, not codes, Enforcement.BLOCK, n=100, rule=next(iter(codes), None))}
    return GateVerdict(
        scores, word, ["ux_quality"] if codes else [], milestone, [Reason(code, "why") for code in codes],
        duration_seconds=seconds,
    )  # fmt: skip


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
        [
            gate(Milestone.PRE_RAMP, VerdictLevel.PASS, seconds=0.5),
            gate(Milestone.PRE_FULL, VerdictLevel.FAIL, Code.BELOW_THRESHOLD, seconds=1.5),
        ]
    )
    for line in (
        'eval_gate_fired_total{milestone="pre_ramp"} 1.0',
        'eval_gate_fired_total{milestone="pre_full"} 1.0',
        'eval_gate_verdict_total{milestone="pre_ramp",verdict="pass"} 1.0',
        'eval_gate_verdict_total{milestone="pre_full",verdict="fail"} 1.0',
        'eval_gate_duration_seconds_sum{milestone="pre_ramp"} 0.5',
        'eval_gate_duration_seconds_sum{milestone="pre_full"} 1.5',
    ):
        assert line in text


def test_pc5_10_2_a_gate_that_nobody_could_decide_counts_as_error_and_not_as_fail() -> None:
    text = counted([gate(Milestone.PRE_RAMP, VerdictLevel.FAIL, Code.JUDGE_UNAVAILABLE, score=0.0)])
    assert 'eval_gate_verdict_total{milestone="pre_ramp",verdict="error"} 1.0' in text
    assert 'verdict="fail"} 1.0' not in text


def test_pc5_10_2_of_a_jump_each_gate_has_the_time_that_it_took_itself() -> None:
    """Together they are no more than the step's."""

    class Slow(Scripted):
        async def score(self, gate: AskingGate, *more: Any) -> dict[str, list[Answer]]:
            await asyncio.sleep(0.3)
            return await super().score(gate, *more)

    found = verdict(Slow(), to_percent=100)
    took = [one.duration_seconds or 0.0 for one in found.gates]
    assert min(took) >= 0.3
    assert sum(took) <= found.evidence.duration_seconds + 0.002
    assert found.verdict_id == verdict(Scripted(), to_percent=100).verdict_id, "time is no evidence"


@pytest.mark.parametrize(
    ("code", "count"), [(Code.DEADLINE_EXCEEDED, "1.0"), (Code.JUDGE_UNAVAILABLE, "0.0"), (Code.GATE_FAILED, "0.0")]
)
@pytest.mark.parametrize(("at", "to", "milestone"), [(0, 5, "pre_ramp"), (50, 100, "pre_full"), (0, 100, "pre_ramp")])
def test_pc5_10_2_a_gate_whose_request_came_late_has_fired(
    at: float, to: float, milestone: str, code: Code, count: str
) -> None:
    assert f'eval_gate_fired_total{{milestone="{milestone}"}} {count}' in counted([], code, at=at, to=to)


@pytest.mark.parametrize(
    ("code", "count"),
    [
        (Code.DEADLINE_EXCEEDED, "1.0"),
        (Code.JUDGE_UNAVAILABLE, "1.0"),
        (Code.INVALID_REQUEST, "0.0"),
        (Code.GATE_FAILED, "0.0"),
        (Code.GATE_MISSING, "0.0"),
    ],
)
def test_pc5_10_2_a_gate_that_came_to_no_verdict_in_time_counts_as_error(code: Code, count: str) -> None:
    """Else the alert on errors would not see workers that are too slow."""
    assert f'eval_gate_verdict_total{{milestone="pre_ramp",verdict="error"}} {count}' in counted([], code)


def test_pc5_10_2_a_step_without_a_gate_counts_none() -> None:
    text = counted([], at=5, to=25)
    assert not re.search(r"^eval_(gate|judge)_\w+?(_total|_count)\{[^}]*\} [1-9]", text, re.MULTILINE)


def test_pc5_10_2_each_score_that_a_judge_gave_is_observed_and_not_one_mean_a_gate() -> None:
    """A mean of 0.7 hides that a half of the answers has 0.4. What is missing at its worst value is no one's score."""
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
