"""A step asks for the standing pass of the gate before it, by the history and not by where the request says it stands
(PC5 §5.5; contracts §3, "The gate before")."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import pytest

from evalcore.gates.history import Stand
from evalcore.registry.registry import Registry
from schemas.judges import Milestone
from schemas.verdicts import Action, Code, VerdictLevel
from tests.unit.agents.gates.ramp_answers_rig import Scripted, codes, registry, verdict

NEVER = Stand()
PRE_MERGE, PRE_RAMP, PRE_FULL = Milestone
Enforced = Literal["off", "warn", "block"]


def enforced(word: Enforced) -> Registry:
    return replace(registry(), gates=registry().gates.model_copy(update={"preceding_gate": word}))


@pytest.mark.parametrize(("at", "to"), [(5, 50), (1, 99.999), (0.001, 0.002), (50, 100), (99, 100)])
def test_a_later_step_asks_for_a_standing_pass_of_pre_ramp(at: float, to: float) -> None:
    scripted = Scripted(stands=NEVER)
    found = verdict(scripted, from_percent=at, to_percent=to)
    assert scripted.before[0] is PRE_RAMP
    assert (found.verdict, found.action) == (VerdictLevel.WARN, Action.PROCEED)
    assert found.milestone is (PRE_FULL if to == 100 else None)
    assert codes(found) == {Code.GATE_MISSING} | (set() if to == 100 else {Code.NO_GATE_AT_STEP})
    assert found.reasons[0].code is Code.GATE_MISSING
    for told in ("pre_ramp", "abc123", "receipts-agent", "has no verdict"):
        assert told in found.reasons[0].message


@pytest.mark.parametrize("to", [5, 100])
def test_the_first_step_asks_for_a_standing_pass_of_pre_merge(to: float) -> None:
    """Also where it jumps to 100 %, which fires pre_ramp itself."""
    scripted = Scripted(stands=NEVER)
    found = verdict(scripted, to_percent=to)
    assert scripted.before[0] is PRE_MERGE
    assert (found.verdict, codes(found)) == (VerdictLevel.WARN, {Code.GATE_MISSING})
    assert [gate.verdict for gate in found.gates] == [VerdictLevel.PASS] * len(found.gates), "what gates say stays"
    assert len(found.gates) == (1 if to == 5 else 2)


@pytest.mark.parametrize(("at", "to"), [(0, 5), (0, 100), (5, 50), (50, 100)])
def test_with_a_standing_pass_nothing_is_missing(at: float, to: float) -> None:
    found = verdict(from_percent=at, to_percent=to)
    assert (found.verdict, Code.GATE_MISSING in codes(found)) == (VerdictLevel.PASS, False)


@pytest.mark.parametrize(("at", "to"), [(0, 0), (5, 5), (100, 100)])
def test_a_step_that_goes_nowhere_misses_no_gate(at: float, to: float) -> None:
    assert verdict(Scripted(stands=NEVER), from_percent=at, to_percent=to).verdict is VerdictLevel.PASS


@pytest.mark.parametrize(("at", "to"), [(0, 5), (0, 100), (5, 50), (50, 100)])
def test_where_the_manifest_blocks_a_version_that_never_passed_goes_to_0_and_no_judge_is_asked(
    at: float, to: float
) -> None:
    scripted = Scripted(stands=NEVER)
    found = verdict(scripted, enforced("block"), from_percent=at, to_percent=to)
    assert (found.verdict, found.action, found.halt_at_percent) == (VerdictLevel.FAIL, Action.HALT, 0.0)
    assert Code.GATE_MISSING in codes(found)
    assert (scripted.asked, found.gates) == ([], [])


def test_where_the_manifest_says_off_nothing_is_missing() -> None:
    found = verdict(Scripted(stands=NEVER), enforced("off"), from_percent=5, to_percent=50)
    assert (found.verdict, codes(found)) == (VerdictLevel.PASS, {Code.NO_GATE_AT_STEP})


def test_a_missing_gate_that_only_warns_is_no_reason_of_a_failure() -> None:
    """It decided nothing; what failed is told alone, as where nothing is missing."""
    found = verdict(Scripted(stands=NEVER, scores={"ux_quality": 0.1}), from_percent=50, to_percent=100)
    assert (found.verdict, found.halt_at_percent) == (VerdictLevel.FAIL, 0.0), "pre_ramp never passed"
    assert codes(found) == {Code.FLOOR_BREACH}
    down = verdict(Scripted(stands=NEVER, down=True))
    assert (down.verdict, codes(down)) == (VerdictLevel.FAIL, {Code.JUDGE_UNAVAILABLE})


def test_shipped_is_a_warning_also_while_no_registry_is_loaded() -> None:
    assert registry().gates.preceding_gate == "warn"
    found = verdict(Scripted(stands=NEVER), from_percent=5, to_percent=50)
    assert found.verdict is VerdictLevel.WARN
