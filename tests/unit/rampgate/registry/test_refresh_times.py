"""A served registry as time goes on: read at the start, when asked, by time and beside questions (PC5 FR-10)."""

from __future__ import annotations

import asyncio
from datetime import date, timedelta
from pathlib import Path

import pytest

from tests.unit.rampgate.registry.serving_rig import TODAY, World, folder, reads, registry, serving


@pytest.fixture
async def world(tmp_path: Path) -> World:
    return await serving(folder(tmp_path))


async def test_it_loads_at_start_and_is_not_ready_before(tmp_path: Path) -> None:
    world = World(folder(tmp_path), registry())
    assert not world.served.check().ok
    keeping = asyncio.create_task(world.served.run(0))
    await reads(world, 1)
    await world.served.refresh("http")
    assert world.served.check().ok
    assert world.files.reads == 2
    keeping.cancel()
    await asyncio.gather(keeping, return_exceptions=True)


async def test_it_refreshes_when_asked_and_by_time(world: World) -> None:
    by_hand = asyncio.create_task(world.served.run(0))
    await reads(world, 1)
    await asyncio.sleep(0.05)
    assert world.files.reads == 1, "0 means never by time"
    world.served.ask()
    await reads(world, 2)
    by_hand.cancel()
    by_time = asyncio.create_task(world.served.run(0.01))
    world.files.next = RuntimeError("at every look")
    await reads(world, 4)
    by_time.cancel()
    await asyncio.gather(by_hand, by_time, return_exceptions=True)


async def test_questions_are_answered_while_a_refresh_is_under_way(world: World) -> None:
    world.files.hold.clear()
    world.files.next = registry(thresholds={})
    under_way = asyncio.create_task(world.served.refresh("http"))
    async with world.client() as client:
        await reads(world, 2)
        answer = await asyncio.wait_for(client.get("/eval-config?category=general_qa"), 30)
        assert (await answer.json())["config_hash"] == registry().config_hash
        assert not under_way.done()
        world.files.hold.set()
        await under_way
        shown = await (await client.get("/eval-config?category=general_qa")).json()
    assert shown["config_hash"] == registry(thresholds={}).config_hash
    lookups = world.value("eval_judge_registry_lookup_latency_seconds_count")
    assert lookups == 2


async def test_overdue_judges_are_a_gauge_that_follows_the_days(world: World) -> None:
    name = "eval_calibration_recalibration_overdue"
    assert world.value(name, judge_id="ux_quality") == 0, "due today is not overdue"
    world.day = TODAY + timedelta(days=1)
    await world.served.refresh("time")
    assert world.value(name, judge_id="ux_quality") == 1
    world.files.next = registry(due=date(2027, 1, 1))
    await world.served.refresh("time")
    assert world.value(name, judge_id="ux_quality") == 0
    world.day = date(2026, 9, 1)
    await world.served.refresh("time")
    assert world.value(name, judge_id="response_quality") == 1, "receipts' own calibration was due on 22 August"
    assert world.value(name, judge_id="ux_quality") == 0
