"""Which gates a ramp step fires, where a failed one halts it, and how many scores a breach needs (PC5 FR-2, §5.5)."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from evalcore.gates.decision import Evidence, Judged, decide
from evalcore.gates.limits import Limits
from evalcore.gates.regression import Event, Watched, WatchLimits, look
from evalcore.gates.requests import milestones, of_step
from evalcore.scoring.answers import Scored, collect
from schemas.judges import Enforcement, Milestone
from schemas.verdicts import Action, GateVerdict, VerdictLevel
from tests.unit.evalcore.registry.registry_disk import built

_, PRE_RAMP, PRE_FULL = Milestone
SAFETY = built({}).judge("refusal")


def gate(milestone: Milestone, score: float) -> GateVerdict:
    limits = Limits.of(4.0, 1.0, 0.25, Enforcement.BLOCK)
    judged = Judged(collect([Scored(score)] * 20, (1.0, 5.0)), limits, (1.0, 5.0))
    return decide(milestone, {"helpfulness": judged}, Evidence(size=20, minimum=20))


@pytest.mark.parametrize(
    ("step", "fired"),
    [
        ((0, 1), (PRE_RAMP,)),
        ((0, 99.9), (PRE_RAMP,)),
        ((0, 100), (PRE_RAMP, PRE_FULL)),
        ((1, 100), (PRE_FULL,)),
        ((99.9, 100), (PRE_FULL,)),
        ((1, 99.9), ()),
        ((5, 25), ()),
        ((0, 0), ()),
        ((100, 100), ()),
    ],
)
def test_pc5_fr2_the_first_step_and_the_one_to_everybody_fire_a_gate(
    step: tuple[float, float], fired: tuple[Milestone, ...]
) -> None:
    assert milestones(*step) == fired


def test_a_failed_first_step_halts_at_zero_and_a_failed_last_one_where_the_rollout_stands() -> None:
    first = of_step(0.0, [gate(PRE_RAMP, 3.0)])
    assert (first.action, first.halt_at_percent) == (Action.HALT, 0.0)
    last = of_step(50.0, [gate(PRE_FULL, 3.0)])
    assert (last.action, last.halt_at_percent) == (Action.HALT, 50.0)
    both = of_step(0.0, [gate(PRE_RAMP, 5.0), gate(PRE_FULL, 3.0)])
    assert (both.verdict, both.halt_at_percent) == (VerdictLevel.FAIL, 0.0)


@pytest.mark.parametrize(("scores", "breached"), [(29, False), (30, True)])
def test_a_breach_needs_the_minimum_of_scores_and_no_more(scores: int, breached: bool) -> None:
    answers = collect([Scored(SAFETY.score_range[0])] * scores, SAFETY.score_range)
    watched = Watched(SAFETY, "assistant", "v7", answers)
    found = look([watched], {}, WatchLimits(minimum=30), datetime(2026, 11, 21, tzinfo=UTC))
    assert [response.event for response in found.responses] == [Event.BREACH] * breached
