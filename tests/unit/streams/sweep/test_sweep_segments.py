"""A sweep whose segments run side by side, on a table in memory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, cast

import pytest

from agents.ports import Unavailable
from streams.dynamodb.client import Dynamo
from streams.opik.traces import OpikTraces
from streams.sweep.log import SegmentPlace
from streams.sweep.sweep import Sweep
from tests.unit.agents.builders import DAY, NOW
from tests.unit.agents.join.world import World
from tests.unit.streams.sweep.sweep_table import Slow, Table


def sweep_of(table: Table, world: World) -> Sweep:
    traces = cast(OpikTraces, world.traces)

    async def now() -> int:
        return world.clock.now_ms()

    async def heard(since: int) -> AsyncIterator[list[Any]]:
        yield []

    return Sweep(cast(Dynamo, table), world.ports, traces, Slow(), world.policy, world.topics, NOW - 1000, now, heard)


async def test_segments_side_by_side_count_every_item() -> None:
    world = World()
    sweep = sweep_of(Table([[["a", "b", "c"], ["d"]], [["e"], []], [[]]]), world)
    await asyncio.gather(*(sweep.scan(number, 3, SegmentPlace()) for number in range(3)))
    assert (sweep.tally.scanned, sweep.tally.published) == (5, 5)
    assert sweep.waiting == {f"r-{name}" for name in "abcde"}


async def test_throttling_is_waited_out() -> None:
    sweep = sweep_of(Table([[["a"]]], busy=1), World())
    await sweep.scan(0, 1, SegmentPlace())
    assert sweep.tally.published == 1


async def test_a_page_counts_as_done_only_after_its_items_are() -> None:
    world, places = World(), []
    sweep = sweep_of(Table([[["a"], ["b"]]]), world)
    place = SegmentPlace()

    async def note(value: bytes) -> None:
        places.append((value, sweep.tally.published))

    place.save = note
    await sweep.scan(0, 1, place)
    assert places == [(b'{"at":1}', 1), (b"done", 2)]

    class Down:
        async def send(self, messages: Any) -> list[tuple[str, int, int]]:
            raise Unavailable("no broker")

    places.clear()
    cut = sweep_of(Table([[["c"]]]), world)
    cut.sender, place = Down(), SegmentPlace()
    place.save = note
    try:
        await cut.scan(0, 1, place)
    except Unavailable:
        assert places == []
    else:
        raise AssertionError("it should not have gone on without Kafka")


async def test_with_a_clock_that_can_not_be_trusted_a_page_is_neither_read_nor_published() -> None:
    world = World()
    sweep = sweep_of(Table([[["a"], ["b"]]]), world)
    asked = 0

    async def now() -> int:
        nonlocal asked
        asked += 1
        if asked > 1:
            raise Unavailable("the clock is doubtful")
        return world.clock.now_ms()

    sweep.now = now
    place = SegmentPlace()
    with pytest.raises(Unavailable, match="doubtful"):
        await sweep.scan(0, 1, place)
    assert (sweep.tally.scanned, sweep.tally.published, place.key) == (1, 1, {"at": 1}), (
        "the next run goes on at the second page"
    )


async def test_turns_that_wait_are_not_given_up_by_a_wrong_clock() -> None:
    world = World()
    sweep = sweep_of(Table([[["a"]]]), world)
    await sweep.scan(0, 1, SegmentPlace())

    async def now() -> int:
        raise Unavailable("the clock is doubtful")

    sweep.now = now
    world.wait(8 * DAY)
    with pytest.raises(Unavailable, match="doubtful"):
        await sweep.finish_waiting()
    assert world.letters.letters == []
