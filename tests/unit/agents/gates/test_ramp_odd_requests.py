"""Requests that are odd and yet requests: what is made of the judges they name and of the times they tell."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from evalcore.gates.verdict import as_json
from schemas.verdicts import Code, VerdictLevel
from tests.unit.agents.gates.ramp_answers_rig import SAFETY, Scripted, verdict


def judges(*names: str) -> set[str]:
    return set(verdict(eval_gates={"pre_ramp": list(names)}).per_judge_scores)


def test_a_judge_is_one_judge_however_often_and_in_whatever_spelling_it_is_named() -> None:
    assert judges("ux_quality", "ux-quality", "ux_quality") == {"ux_quality", *SAFETY}


def test_a_composite_stands_for_its_members() -> None:
    """As it does in a category: each member has its own threshold and floor to reach."""
    assert judges("dialogue", "safety") == {"conversation_flow", "greeting_quality", *SAFETY}


def test_many_judges_that_nobody_knows_make_a_verdict_that_fits_a_record() -> None:
    made = verdict(eval_gates={"pre_ramp": [f"{n}{'ü' * 500}" for n in range(100)]})
    assert {reason.code for reason in made.reasons} == {Code.INVALID_REQUEST}
    assert len(orjson.dumps(as_json(made))) < 500_000


@pytest.mark.parametrize("to_percent", [0.5, 5.5, 99.999])
def test_a_fraction_of_a_percent_is_a_step(to_percent: float) -> None:
    assert verdict(to_percent=to_percent).milestone == "pre_ramp"


@pytest.mark.parametrize("stays", [0, 50, 100])
def test_a_step_that_goes_nowhere_fires_no_gate(stays: float) -> None:
    made = verdict(from_percent=stays, to_percent=stays)
    assert (made.verdict, [reason.code for reason in made.reasons]) == (VerdictLevel.PASS, [Code.NO_GATE_AT_STEP])


def test_the_step_to_100_fires_its_gate_whatever_the_plan_says() -> None:
    assert verdict(from_percent=50, to_percent=100, ramp_steps=[1, 2]).milestone == "pre_full"


@pytest.mark.parametrize("missing", [{}, {"pre_full": ["ux_quality"]}, {"pre_ramp": []}])
def test_a_gate_without_a_list_of_judges_fails_and_names_the_field(missing: dict[str, Any]) -> None:
    made = verdict(eval_gates=missing)
    assert [reason.code for reason in made.reasons] == [Code.INVALID_REQUEST]
    assert made.reasons[0].message.startswith("eval_gates.pre_ramp: the list is empty")


def test_a_clock_that_runs_ahead_grants_no_more_time() -> None:
    """The deadline is the sender's patience: it waits no longer than that from when we begin."""
    for requested_at in ("2026-11-21T13:00:05Z", "9999-12-31T23:59:59Z"):
        made = verdict(Scripted(seconds=5.0), requested_at=requested_at, deadline_seconds=0.1)
        assert [reason.code for reason in made.reasons] == [Code.DEADLINE_EXCEEDED]


@pytest.mark.parametrize("requested_at", ["0001-01-01T00:00:00+23:59", "2026-11-21T11:00:00", 1_700_000_000])
def test_a_deadline_that_passed_long_ago_is_exceeded(requested_at: Any) -> None:
    made = verdict(requested_at=requested_at)
    assert [reason.code for reason in made.reasons] == [Code.DEADLINE_EXCEEDED]


def test_a_deadline_without_end_is_none() -> None:
    assert verdict(deadline_seconds=1e308).verdict is VerdictLevel.PASS
