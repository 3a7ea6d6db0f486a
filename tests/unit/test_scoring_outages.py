"""A judges' model that is down is found out once, and asked again by one call (PC5 §9.5)."""

from __future__ import annotations

import asyncio
from typing import Any

from scoring_rig import GOOD, Model, down, many, scorer, tasks

from evalcore.gates.answers import Scored, Unscored
from evalcore.scoring import CallLimits, Failure, Spend


async def test_a_model_that_is_down_is_soon_not_asked_any_more_and_asked_again_later() -> None:
    """PC5 §9.5: an outage fails the gate closed, and soon: not item by item, each with all its tries."""
    clock = [1_000.0]
    limits = CallLimits(at_once=4, tries=3, first_pause=0.0, jitter=0.0, outage_seconds=30.0)

    def dead(_: str, __: int) -> Any:
        clock[0] += 4.0
        return down(Failure.UNREACHABLE)

    model = Model(dead)
    ours = scorer(model, limits=limits, now=lambda: clock[0])
    found = await ours.score("g", many(200))
    assert all(isinstance(one.answer, Unscored) for one in found)
    assert len(model.calls) < 20
    assert found[-1].failure is Failure.DOWN
    model.answers, clock[0] = GOOD, clock[0] + 60.0
    healed = await ours.score("g", many(200, "later"))
    assert [one.answer for one in healed] == [Scored(4.0)] * 200, "one call finds out, and the others wait for it"


async def test_half_of_the_calls_failing_is_no_outage() -> None:
    count = iter(range(10_000))
    model = Model(lambda *_: down() if next(count) % 2 else GOOD)
    limits = CallLimits(at_once=4, tries=12, first_pause=0.0, jitter=0.0, outage_seconds=0.0)
    found = await scorer(model, limits=limits).score("g", many(60))
    assert [one.answer for one in found] == [Scored(4.0)] * 60


async def test_a_probe_that_is_cut_short_or_may_not_be_paid_keeps_nobody_waiting() -> None:
    clock = [1_000.0]
    limits = CallLimits(at_once=2, tries=1, outage_seconds=1.0)

    def dead(_: str, __: int) -> Any:
        clock[0] += 4.0
        return down(Failure.UNREACHABLE)

    model = Model(dead)
    ours = scorer(model, limits=limits, now=lambda: clock[0])
    await ours.score("g", many(20))
    clock[0] += 60.0
    (broke,) = await ours.score("poor", tasks("x"), spend=Spend(calls=0))
    assert broke.failure is Failure.OVER_LIMIT
    model.answers, model.seconds = GOOD, 60.0
    probing = asyncio.create_task(ours.score("probing", tasks("y")))
    await asyncio.sleep(0.01)
    waiting = asyncio.create_task(ours.score("waiting", tasks("z"), spend=Spend(calls=1)))
    await asyncio.sleep(0.01)
    probing.cancel()
    (found,) = await asyncio.wait_for(waiting, 2)
    assert found.failure is Failure.DOWN
    model.seconds, clock[0] = 0.0, clock[0] + 60.0
    assert [one.answer for one in await ours.score("later", many(5, "later"))] == [Scored(4.0)] * 5
