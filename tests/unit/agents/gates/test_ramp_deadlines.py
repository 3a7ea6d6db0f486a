"""A request's deadline: when it has passed, how long judges may take, what is published late (PC5 §5.8). Many gates at
once: so many have their sample in hand, the others wait in line, and their deadlines pass."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from agents.gates.ports import AskingGate, GatePorts, Item, OutOfTime, Sample
from agents.ramp_steps import RampAnswers, answer
from evalcore.gates.history import Stand
from evalcore.gates.requests import InvalidRequest, RampRequest, read
from evalcore.registry.registry import Judge, Registry
from evalcore.scoring.answers import Answer
from schemas.judges import Milestone
from schemas.verdicts import Action, Code, Verdict, VerdictLevel
from tests.unit.agents.gates.ramp_answers_rig import (
    NOW,
    PASSED,
    REQUEST,
    Coverage,
    Scripted,
    codes,
    ports_of,
    registry,
    requested,
    verdict,
)

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


class Slowing(Scripted):
    """Answers the first gate, and is too slow for the second."""

    async def score(
        self, gate: AskingGate, judges: Sequence[Judge], items: Sequence[Item], within: float | None = None
    ) -> dict[str, list[Answer]]:
        if gate.milestone is Milestone.PRE_FULL:
            raise OutOfTime
        return await super().score(gate, judges, items, within)


@pytest.mark.parametrize("failed", [True, False])
def test_a_gate_that_failed_stands_also_where_the_next_one_runs_out_of_time(failed: bool) -> None:
    slowing = Slowing(scores={"ux_quality": 0.0} if failed else {})
    found = verdict(slowing, from_percent=0, to_percent=100, deadline_seconds=600)
    assert found.verdict is VerdictLevel.FAIL
    assert [gate.milestone for gate in found.gates] == ([Milestone.PRE_RAMP] if failed else [])
    assert (Code.DEADLINE_EXCEEDED in codes(found)) is not failed


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
    verdict(timed, requested_at=(NOW + timedelta(hours=1)).isoformat(), deadline_seconds=10)
    assert timed.given[0] <= 9.5


def sent(ahead: timedelta, record: timedelta) -> RampRequest:
    """A request of which requested_at lies so far ahead of NOW, and its record so far back; it has 60 s."""
    request = requested(requested_at=(NOW + ahead).isoformat(), deadline_seconds=60)
    assert isinstance(request, RampRequest)
    return replace(request, sent_by=NOW - record)


@pytest.mark.parametrize("ahead", [timedelta(minutes=1), timedelta(hours=1), timedelta(days=9)])
def test_a_request_that_is_read_again_after_its_deadline_has_no_second_one(ahead: timedelta) -> None:
    """However far its requested_at lies ahead, its record was on the topic a minute ago: also once the time that it
    states has come."""
    for late in (timedelta(), ahead):
        found = asyncio.run(answer(sent(ahead, timedelta(minutes=1)), registry(), ports_of(Scripted()), NOW + late))
        assert codes(found) == {Code.DEADLINE_EXCEEDED}
        assert (NOW + ahead).isoformat() in found.reasons[0].message, "it says what the request states"
        assert (NOW - timedelta(minutes=1)).isoformat() in found.reasons[0].message, "and from when it counts"
        assert "ahead" in found.reasons[0].message


def test_a_deadline_counts_from_the_record_where_requested_at_is_ahead_of_it() -> None:
    timed = Timed()
    asyncio.run(answer(sent(timedelta(hours=1), timedelta(seconds=50)), registry(), ports_of(timed), NOW))
    assert 9 < timed.given[0] <= 9.5


def test_a_deadline_counts_from_requested_at_where_that_was_before_the_record() -> None:
    timed = Timed()
    asyncio.run(answer(sent(-timedelta(seconds=50), timedelta(seconds=1)), registry(), ports_of(timed), NOW))
    assert 9 < timed.given[0] <= 9.5


def published(
    request: RampRequest | InvalidRequest, made: Verdict, now: datetime, scripted: Scripted | None = None
) -> Verdict:
    answers = RampAnswers(registry, ports_of(scripted or Scripted()))
    return asyncio.run(answers.last(request, made, now))


@pytest.mark.parametrize(("milliseconds", "in_vain"), [(-1, False), (0, True), (1, True)])
@pytest.mark.parametrize(("stands", "halt"), [(PASSED, 50.0), (Stand(), 0.0)])
def test_a_verdict_that_is_published_at_its_deadline_comes_too_late(
    milliseconds: int, in_vain: bool, stands: Stand, halt: float
) -> None:
    step = {"from_percent": 50, "to_percent": 100}
    found = verdict(Scripted(stands=stands), **step)
    assert found.action is Action.PROCEED
    request = requested(**step)
    assert isinstance(request, RampRequest)
    at = request.step.requested_at + timedelta(seconds=REQUEST["deadline_seconds"], milliseconds=milliseconds)
    last = published(request, found, at, Scripted(stands=stands))
    assert (last.verdict is VerdictLevel.FAIL) is in_vain
    assert (codes(last) == {Code.DEADLINE_EXCEEDED}) is in_vain
    assert last.halt_at_percent == (halt if in_vain else None)


def test_a_step_down_is_published_however_late() -> None:
    step = {"from_percent": 50, "to_percent": 0}
    assert published(requested(**step), verdict(**step), NOW + timedelta(days=1)).action is Action.PROCEED


@pytest.mark.parametrize(("step", "halt"), [((0, 5), 0.0), ((50, 60), 0.0), ((50, 100), 0.0), ((100, 100), 0.0)])
def test_a_gate_that_failed_while_a_step_was_decided_halts_it_when_it_is_published(
    step: tuple[float, float], halt: float
) -> None:
    """A gate takes minutes, and another experiment of the same version may fail meanwhile."""
    percents = {"from_percent": step[0], "to_percent": step[1]}
    failed = Scripted(stands=Stand(passed="2026-11-20", failed="2026-11-21"))
    last = published(requested(**percents), verdict(**percents), NOW, failed)
    assert (last.verdict, codes(last), last.halt_at_percent) == (VerdictLevel.FAIL, {Code.GATE_FAILED}, halt)


@dataclass
class Counted(Scripted):
    """`most`: samples that were in hand at once."""

    held: int = 0
    most: int = 0

    async def frozen(self, asked: RampRequest, milestone: Milestone, registry: Registry) -> Sample:
        self.held += 1
        self.most = max(self.most, self.held)
        return await super().frozen(asked, milestone, registry)

    async def suspended(self, judge: str, version: str) -> str:
        return ""

    async def score(self, *args: Any, **more: Any) -> Any:
        try:
            return await super().score(*args, **more)
        finally:
            self.held -= 1


def ports(scripted: Scripted, room: int) -> GatePorts:
    return GatePorts(scripted, scripted, scripted, Coverage(scripted), asyncio.Semaphore(room))


async def asked(ports: GatePorts, **changes: Any) -> Verdict:
    request = read(json.dumps({**REQUEST, **changes}).encode())
    assert isinstance(request, RampRequest)
    return await answer(request, registry(), ports, NOW)


async def test_no_more_samples_are_in_hand_than_there_is_room_for() -> None:
    scripted = Counted(seconds=0.01)
    room = ports(scripted, 3)
    made = await asyncio.gather(*(asked(room, request_id=f"r{n}") for n in range(12)))
    assert ({one.verdict for one in made}, scripted.most) == ({VerdictLevel.PASS}, 3)


async def test_a_gate_in_line_is_late_when_its_deadline_passes_and_a_step_without_a_gate_waits_in_no_line() -> None:
    room = ports(Scripted(seconds=3600.0), 1)
    long = asyncio.create_task(asked(room))
    await asyncio.sleep(0)
    assert (await asked(room, request_id="between", from_percent=5, to_percent=25)).verdict is VerdictLevel.PASS
    late = await asked(room, request_id="late", deadline_seconds=5.2)
    assert [reason.code for reason in late.reasons] == [Code.DEADLINE_EXCEEDED]
    long.cancel()
