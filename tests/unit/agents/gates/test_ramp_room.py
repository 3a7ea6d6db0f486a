"""Many gates at once: so many have their sample in hand, the others wait in line, and their deadlines pass."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import Any

from agents.gates.ports import GatePorts, Sample
from agents.ramp_steps import answer
from evalcore.gates.requests import RampRequest, read
from evalcore.registry.registry import Registry
from schemas.judges import Milestone
from schemas.verdicts import Code, Verdict, VerdictLevel
from tests.unit.agents.gates.ramp_answers_rig import NOW, REQUEST, Coverage, Scripted, registry


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
