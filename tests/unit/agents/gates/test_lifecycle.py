"""Which gate fires at which transition of a sub-agent's lifecycle (PC5 FR-1, §5.9, §9.4): dev, test, promote, rollback.

The states are PF1's; the gates between them, and inside promote, are ours. Nothing else fires one.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, date, datetime
from itertools import pairwise
from typing import Any

import pytest

from agents.gates.ports import GatePorts
from agents.ramp_steps import answer
from evalcore.gates.history import Stand
from evalcore.gates.overrides import plan
from evalcore.gates.requests import InvalidRequest, RampRequest, milestones, read
from schemas.judges import Milestone
from schemas.verdicts import Action, Code, Verdict, VerdictLevel
from tests.unit.streams.gates.gate_world import request as asking

PRE_MERGE, PRE_RAMP, PRE_FULL = Milestone
NOW = datetime(2026, 11, 21, 12, 0, 5, tzinfo=UTC)


class Nobody:
    """Ports of a gate, of which none may be asked for a sample, a score or a baseline. The gate before was passed."""

    async def stand(self, *_: Any) -> Stand:
        return Stand(passed="2026-11-20")


def answered(at: float, to: float, *ramp_steps: float) -> Verdict:
    gates = {"pre_ramp": ["ux_quality"], "pre_full": ["ux_quality"]}
    request = read(asking("r", from_percent=at, to_percent=to, ramp_steps=ramp_steps, eval_gates=gates))
    assert isinstance(request, (RampRequest, InvalidRequest))
    nobody: Any = Nobody()
    return asyncio.run(answer(request, None, GatePorts(nobody, nobody, nobody, nobody), NOW))


def test_pc5_fr1_from_test_to_promote_a_pull_request_fires_pre_merge() -> None:
    """PC5 §5.9: PR-driven, scoped to the dataset. Whatever changes an agent changes a file that fires it."""
    for file in ("prompts/a.xml", "src/consumer_agent/agent/a.py", "src/consumer_agent/api/a.py", "something/new.py"):
        assert PRE_MERGE in plan([file], today=date(2026, 11, 21)).gates


def test_pc5_fr1_from_dev_to_test_nothing_fires() -> None:
    """PC5 §5.9: developer-driven. What a developer does in tests and documents triggers no gate, and an agent that has
    no traffic yet, and asks for none, is asked nothing."""
    assert plan(["tests/unit/test_a.py", "docs/a.md"], today=date(2026, 11, 21)).gates == ()
    assert milestones(0, 0) == ()


@pytest.mark.parametrize("steps", [(0, 5, 25, 50, 100), (0, 1, 100), (0, 0.5, 99.5, 100), (0, 50, 50, 100)])
def test_pc5_fr1_inside_promote_the_first_step_fires_pre_ramp_and_the_last_pre_full(steps: tuple[float, ...]) -> None:
    """PC5 §5.9: PC6-driven, each once in a ramp; the steps between fire none and pass."""
    fired = [milestones(at, to) for at, to in pairwise(steps)]
    assert fired[0] == (PRE_RAMP,)
    assert fired[-1] == (PRE_FULL,)
    assert not any(fired[1:-1])
    for at, to in pairwise(steps[1:-1]):
        found = answered(at, to, *steps[1:])
        assert (found.verdict, found.milestone, found.action) == (VerdictLevel.PASS, None, Action.PROCEED)
        assert [reason.code for reason in found.reasons] == [Code.NO_GATE_AT_STEP]


@pytest.mark.parametrize(("at", "to"), [(100, 0), (50, 10), (5, 0), (100, 50)])
def test_pc5_fr1_a_rollback_from_anywhere_fires_no_gate_and_passes(at: float, to: float) -> None:
    """PC5 §5.9: operator-driven, by §5.7. A step down needs no gate; a controller that asks for one gets its leave, and
    no judge is asked."""
    assert milestones(at, to) == ()
    found = answered(at, to)
    assert (found.verdict, found.action, found.halt_at_percent) == (VerdictLevel.PASS, Action.PROCEED, None)
    assert (found.milestone, found.gates) == (None, [])
    assert [reason.code for reason in found.reasons] == [Code.NO_GATE_AT_STEP]
