"""How long a user's signal takes to stand in Opik, from the last input that its score needs (PF-9 NFR-1, §5.4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from agents.ports import Refusal, Write
from schemas.dead_letters import Cause
from schemas.outcomes import Kind
from streams.metrics import Metrics
from tests.memory_ports import ManualClock, MemoryScores
from tests.unit.agents.builders import HOUR, MINUTE, NOW, SECOND, reroll, thumb, trace
from tests.unit.agents.join.world import World

LIMIT = 5 * MINUTE
"""PF-9 NFR-1."""


@dataclass
class SlowScores(MemoryScores):
    """Opik that confirms each call after a while."""

    clock: ManualClock | None = None
    takes_ms: int = 0

    async def write(self, writes: Sequence[Write]) -> list[Refusal | None]:
        assert self.clock is not None
        self.clock.ms += self.takes_ms
        return await super().write(writes)


def world_with(takes_ms: int = 0) -> World:
    clock = ManualClock(NOW)
    return World(clock=clock, scores=SlowScores(clock=clock, takes_ms=takes_ms))


@pytest.mark.parametrize("kind", [Kind.THUMBS, Kind.REROLL])
async def test_pf9_nfr1_the_lag_runs_from_the_users_signal_to_the_confirmed_write(kind: str) -> None:
    world = world_with(takes_ms=30 * SECOND)
    await world.tell(Kind.TRACE, trace("r", NOW - HOUR))
    world.wait(4 * MINUTE)
    report = await world.tell(kind, thumb("r", at=NOW) if kind == Kind.THUMBS else reroll("r", at=NOW))
    assert report.lags_ms == {kind: [4 * MINUTE + 30 * SECOND]}


async def test_pf9_nfr1_where_the_trace_comes_last_the_lag_runs_from_its_arrival() -> None:
    """The trace ended before the thumb and was sent an hour later; no one could have written before."""
    world = world_with(takes_ms=2 * SECOND)
    await world.tell(Kind.THUMBS, thumb("r", at=NOW))
    world.wait(10 * MINUTE)
    world.send(Kind.TRACE, trace("r", NOW - MINUTE))
    world.wait(3 * SECOND)
    report = await world.run(Kind.TRACE)
    assert report.lags_ms == {Kind.THUMBS: [5 * SECOND]}


async def test_a_trace_that_is_read_again_much_later_is_late_from_its_first_arrival() -> None:
    world = world_with()
    await world.tell(Kind.THUMBS, thumb("r", at=NOW))
    world.send(Kind.TRACE, trace("r", NOW - MINUTE))
    world.wait(HOUR)
    assert (await world.run(Kind.TRACE)).lags_ms == {Kind.THUMBS: [HOUR]}


async def test_a_signal_that_opik_refuses_has_no_lag() -> None:
    world = world_with()
    await world.tell(Kind.TRACE, trace("r"))
    world.scores.refuse = lambda write: Refusal(Cause.OPIK_REJECTED, "no")
    assert (await world.tell(Kind.THUMBS, thumb("r"))).lags_ms == {}


async def test_pf9_nfr1_95_percent_stand_in_opik_within_5_minutes_and_the_metric_says_so() -> None:
    """Two hundred turns, whatever comes first; one in twenty is brought late by its own producer."""
    world, metrics = world_with(takes_ms=20 * SECOND), Metrics()

    async def told(kind: str, *events: object) -> None:
        metrics.observe_report(await world.tell(kind, *events), registered=())

    for batch in range(10):
        names = [f"{batch}-{number}" for number in range(20)]
        at = world.clock.ms
        late, first, then = names[0], names[1:11], names[11:]
        await told(Kind.TRACE, *(trace(name, at) for name in first))
        signals = [thumb(name, at=at) for name in (*first, *then)]
        await told(Kind.THUMBS, *signals, thumb(late, at=at - HOUR))
        world.wait(MINUTE)
        await told(Kind.TRACE, *(trace(name, at) for name in then), trace(late, at - 2 * HOUR))
        world.wait(MINUTE)
        again = f"{batch}-again"
        await told(Kind.TRACE, trace(again, at))
        await told(Kind.THUMBS, thumb(again, at=at - (HOUR if batch == 0 else 0)))
    value = metrics.registry.get_sample_value
    whole = value("eval_correlation_pipeline_lag_seconds_count", {"signal": "thumbs"}) or 0.0
    labels = {"signal": "thumbs", "le": str(float(LIMIT // SECOND))}
    within = value("eval_correlation_pipeline_lag_seconds_bucket", labels) or 0.0
    assert whole == 210
    assert len([name for _, name in world.scores.held if name == "user_signal_thumbs"]) == 210
    assert within / whole >= 0.95
