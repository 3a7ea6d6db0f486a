"""An Opik that applies writes without an answer late, around a world of agents."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from agents.ports import UNSURE, Outcome, Refusal, Unavailable, Write
from schemas.outcomes import Cause
from tests.unit.agents.builders import MINUTE
from tests.unit.agents.join.world import World

DOUBT = 4 * MINUTE


class Died(BaseException):
    """The process is gone: no one may catch this."""


@dataclass
class LateOpik:
    """The world's scores. Each write takes the next of `fates` ("ok" where there is none):

    - "again": the first try gets no answer and is under way; it is sent again and stored.
    - "refused": no try gets an answer, and all give up.
    - "dies": the worker dies with the write under way, and with nothing known to it.
    - "dies stored": the same, but it is stored by then.
    - "away": the write is under way, and the step is given up as unavailable.

    `under_way`: writes that come when `land` lets them, at the latest half of the doubt's time after they were sent.
    """

    world: World
    fates: list[str] = field(default_factory=list)
    under_way: list[tuple[int, Write]] = field(default_factory=list)
    calls: int = 0

    async def write(self, writes: Sequence[Write]) -> Sequence[Outcome]:
        self.calls += 1
        fate = self.fates.pop(0) if self.fates else "ok"
        if fate not in ("ok", "dies stored"):
            latest = self.world.clock.ms + DOUBT // 2
            self.under_way += [(latest, write) for write in writes]
        if fate == "dies":
            raise Died
        if fate == "away":
            raise Unavailable("late")
        if fate == "refused":
            return [Refusal(Cause.OPIK_UNAVAILABLE, "no answer", True)] * len(writes)
        stored = await self.world.scores.write(writes)
        if fate == "dies stored":
            raise Died
        return stored if fate == "ok" else [UNSURE] * len(writes)

    async def land(self, which: Callable[[int, Write], bool] = lambda latest, write: True) -> None:
        """Apply these of the writes under way."""
        landing = [one for one in self.under_way if which(*one)]
        self.under_way = [one for one in self.under_way if one not in landing]
        await self.world.scores.write([write for _, write in landing])

    async def wait(self, ms: int) -> None:
        """Let time pass; what is under way comes at the latest when it must."""
        until = self.world.clock.ms + ms
        while due := sorted(latest for latest, _ in self.under_way if latest <= until):
            self.world.clock.ms = max(due[0], self.world.clock.ms)
            await self.land(lambda latest, _: latest <= self.world.clock.ms)
        self.world.clock.ms = until


def late_world() -> tuple[World, LateOpik]:
    """A world whose scores may be applied late."""
    world = World()
    world.switch(doubt=DOUBT)
    opik = LateOpik(world)
    world.ports = replace(world.ports, scores=opik)
    return world, opik
