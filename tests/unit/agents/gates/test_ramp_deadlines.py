"""A request's deadline: when it has passed, how long judges may take, what is published late (PC5 §5.8)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta

import pytest

from agents.gates.ports import AskingGate, Item
from agents.ramp_steps import in_time
from evalcore.gates.requests import RampRequest, read
from evalcore.registry.registry import Judge
from evalcore.scoring.answers import Answer
from schemas.verdicts import Code, VerdictLevel
from tests.unit.agents.gates.ramp_answers_rig import NOW, REQUEST, Scripted, codes, verdict

SINCE_REQUEST = 5.0
"""Seconds from the request to when deciding begins."""


@dataclass
class Timed(Scripted):
    """Notes how long the judges were given."""

    given: list[float] = field(default_factory=list)

    async def score(
        self, gate: AskingGate, judges: Sequence[Judge], items: Sequence[Item], within: float | None = None
    ) -> dict[str, list[Answer]]:
        assert within is not None
        self.given.append(within)
        return await super().score(gate, judges, items, within)


def test_a_request_whose_time_is_over_when_deciding_begins_asks_no_judge() -> None:
    scripted = Scripted()
    found = verdict(scripted, deadline_seconds=SINCE_REQUEST)
    assert (found.verdict, codes(found)) == (VerdictLevel.FAIL, {Code.DEADLINE_EXCEEDED})
    assert "had passed when deciding began" in found.reasons[0].message
    assert scripted.asked == []


@pytest.mark.parametrize(("left", "kept"), [(600.0, 0.5), (5.0, 0.5), (0.5, 0.05)])
def test_judges_leave_time_to_decide_and_publish_half_a_second_or_a_tenth(left: float, kept: float) -> None:
    timed = Timed()
    verdict(timed, deadline_seconds=SINCE_REQUEST + left)
    (given,) = timed.given
    assert left - kept - 1.0 < given <= left - kept
    assert given > 0


def test_a_request_with_a_time_in_the_future_was_sent_now() -> None:
    timed = Timed()
    requested = (NOW + timedelta(hours=1)).isoformat()
    verdict(timed, requested_at=requested, deadline_seconds=10)
    assert timed.given[0] <= 9.5


@pytest.mark.parametrize(("milliseconds", "in_vain"), [(-1, False), (0, True), (1, True)])
def test_a_verdict_that_is_published_at_its_deadline_comes_too_late(milliseconds: int, in_vain: bool) -> None:
    found = verdict()
    assert found.verdict is VerdictLevel.PASS
    request = read(json.dumps(REQUEST).encode())
    assert isinstance(request, RampRequest)
    at = request.step.requested_at + timedelta(seconds=REQUEST["deadline_seconds"], milliseconds=milliseconds)
    published = in_time(request, found, at)
    assert (published.verdict is VerdictLevel.FAIL) is in_vain
    assert (codes(published) == {Code.DEADLINE_EXCEEDED}) is in_vain
