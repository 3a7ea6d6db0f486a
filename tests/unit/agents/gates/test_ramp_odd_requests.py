"""Requests that are odd and yet requests: what is made of the judges they name and of the times they tell."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import orjson
import pytest

from evalcore.gates.verdict import as_json
from evalcore.registry.registry import Registry
from schemas.verdicts import Code, VerdictLevel
from tests.unit.agents.gates.ramp_answers_rig import SAFETY, Scripted, codes, registry, verdict


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


def switched_off(name: str) -> Registry:
    off = {
        key: replace(judge, rule=judge.rule.model_copy(update={"enabled": False})) if judge.id == name else judge
        for key, judge in registry().judges.items()
    }
    return replace(registry(), judges=off)


@pytest.mark.parametrize("score", [0.1, 1.0])
def test_a_judge_of_quality_that_is_switched_off_and_listed_decides_nothing_and_warns(score: float) -> None:
    """As the linter says, which lets it pass with a warning."""
    found = verdict(Scripted(scores={"ux_quality": score}), switched_off("ux_quality"))
    assert (found.verdict, codes(found)) == (VerdictLevel.WARN, {Code.JUDGE_SUSPENDED})
    assert "enabled: false" in found.reasons[0].message


@pytest.mark.parametrize("listed", [["ux_quality", "jailbreaking"], ["ux_quality"]])
def test_a_safety_judge_that_is_switched_off_fails_the_gate_listed_or_inherited(listed: list[str]) -> None:
    found = verdict(Scripted(), switched_off("jailbreaking"), eval_gates={"pre_ramp": listed})
    assert (found.verdict, codes(found)) == (VerdictLevel.FAIL, {Code.JUDGE_SUSPENDED})


def test_a_vertical_that_is_not_registered_is_named_beside_the_sample_that_is_too_small() -> None:
    """Its traces may be there all the same, as its signals are joined: then it is none of a reason."""
    found = verdict(Scripted(size=20), vertical="reciepts")
    assert Code.INSUFFICIENT_SAMPLE in codes(found)
    (message,) = [one.message for one in found.reasons if one.code is Code.INSUFFICIENT_SAMPLE]
    assert "'reciepts'" in message
    assert "did you mean 'receipts'" in message
    assert verdict(Scripted(), vertical="reciepts").verdict is VerdictLevel.PASS
    known = [one.message for one in verdict(Scripted(size=20)).reasons]
    assert not any("vertical" in message for message in known)
