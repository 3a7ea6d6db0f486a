"""Whether the join state is whole shows to every worker, by the watermarks in it (promise 1, promise 4)."""

from __future__ import annotations

import pytest
from faust.types import TP

from agents.ports import Change, Unavailable
from schemas.settings import KafkaAccess
from streams.gates.traffic import StateCompleteness
from tests.memory_ports import ManualClock, MemoryStore

TOPIC, FAR = "traces", 4_102_444_800_000


class World:
    """Two partitions: what the group committed, what the topic holds, and the marks in the state."""

    def __init__(self) -> None:
        self.store = MemoryStore(ManualClock())
        self.offsets, self.held = {(TOPIC, 0): 100, (TOPIC, 1): 7}, {TP(TOPIC, 0): 120, TP(TOPIC, 1): 7}
        self.state = StateCompleteness(self.store, KafkaAccess(("127.0.0.1:1",)), "group", [TOPIC])
        self.state._committed.committed = self.committed
        self.state._offsets.ends = self.ends

    async def committed(self) -> dict[tuple[str, int], int]:
        return dict(self.offsets)

    async def ends(self, tps: object) -> dict[TP, int]:
        return self.held

    async def mark(self, **marks: int) -> None:
        keys = {
            f"w2:{TOPIC}:{name[1:]}": (str(mark).encode() if mark >= 0 else b"", FAR) for name, mark in marks.items()
        }
        assert not await self.store.apply(Change(sets=keys))


@pytest.fixture
async def world() -> World:
    made = World()
    await made.mark(p0=110, p1=7)
    return made


async def test_a_state_that_has_all_that_was_committed_is_whole(world: World) -> None:
    async with world.state.guard():
        await world.mark(p0=115)


async def test_nothing_committed_yet_is_whole(world: World) -> None:
    world.offsets.clear()
    async with world.state.guard():
        pass


@pytest.mark.parametrize("mark", [-1, 0, 99])
async def test_marks_that_are_gone_or_not_where_they_were_yet_are_of_a_state_made_anew(world: World, mark: int) -> None:
    """Gone: a moment after the flush, when no one has noticed. Lower: while records are read again."""
    await world.mark(p0=mark)
    with pytest.raises(Unavailable):
        async with world.state.guard():
            pytest.fail("nothing must be read")


async def test_a_state_that_is_lost_while_it_is_read_is_noticed(world: World) -> None:
    read = []

    async def look() -> None:
        async with world.state.guard():
            await world.mark(p1=-1)
            read.append("half of it")

    with pytest.raises(Unavailable):
        await look()
    assert read


async def test_a_topic_made_anew_is_whole_when_it_was_read_to_its_end(world: World) -> None:
    """Its group has committed more than it holds."""
    world.offsets[TOPIC, 1] = 5_000
    async with world.state.guard():
        pass
