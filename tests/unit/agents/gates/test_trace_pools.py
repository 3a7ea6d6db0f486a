"""Turns wait in pools to be drawn for a gate; the state that holds them is built from the topic alone."""

from __future__ import annotations

from typing import Any

from agents.keys import names_of, pool_place
from evalcore.scoring.sampling import PooledTurn, turn_hash
from schemas.outcomes import Kind
from streams.gates.traffic import Scope, Window, read_window
from tests.unit.agents.builders import NOW, trace, trace_id
from tests.unit.agents.join.world import World

HOUR_SECONDS = 3_600


def of_version(rid: str, version: str | None = "v1", **more: Any) -> dict[str, Any]:
    event = trace(rid, **more)
    if version is not None:
        event["metadata"]["agent_version"] = version
    return event


async def window(world: World, version: str | None = "v1", vertical: str | None = "shopping") -> Window:
    return await read_window(world.store, Scope("assistant", version, vertical), world.clock.ms, HOUR_SECONDS)


async def drawn(world: World, version: str | None = "v1", vertical: str | None = "shopping") -> list[PooledTurn]:
    return (await window(world, version, vertical)).drawable


async def test_each_version_and_vertical_has_its_own_pool() -> None:
    world = World()
    await world.tell(
        Kind.TRACE, of_version("a"), of_version("b", "v2"), of_version("c"), of_version("d", vertical="receipts")
    )
    assert {one.offset for one in await drawn(world)} == {0, 2}
    assert {one.offset for one in await drawn(world, "v2")} == {1}
    assert {one.offset for one in await drawn(world, vertical="receipts")} == {3}


async def test_a_place_says_where_the_turns_record_lies() -> None:
    world = World()
    await world.tell(Kind.TRACE, of_version("a"), partition=0)
    (one,) = await drawn(world)
    assert (one.trace.hex(), one.ended, one.partition) == (trace_id("a").replace("-", ""), NOW, 0)
    assert one.turn == turn_hash("a", names_of("assistant", "v1"))
    record = world.log.records[world.topics.of(Kind.TRACE), one.partition, one.offset]
    assert record.value is not None
    assert trace_id("a").encode() in record.value


async def test_a_trace_without_an_agent_version_can_be_no_ones_evidence() -> None:
    world = World()
    await world.tell(Kind.TRACE, of_version("a", None))
    assert not world.store.lowest
    assert (await window(world)).traffic.unnamed == 1, "and the account says so"


async def test_an_agent_has_a_pool_of_its_production_turns_whatever_their_version() -> None:
    """PC5 §5.5: what a candidate is run on, and what `scope: agent` judges, is production's."""
    world = World()
    events = [of_version("a"), of_version("b", "v2"), of_version("c"), of_version("d"), of_version("e", None)]
    for event, environment in zip(events, ("production", None, "shadow", "canary", "production"), strict=True):
        event["metadata"]["environment"] = environment
    await world.tell(Kind.TRACE, *events)
    assert {one.offset for one in await drawn(world, None)} == {0, 1}
    assert {one.offset for one in await drawn(world)} == {0, 2, 3}


async def test_redelivery_changes_nothing_and_a_lost_state_comes_back_the_same() -> None:
    """Promises 1 and 2."""
    world = World()
    await world.tell(Kind.TRACE, *(of_version(f"r{n}") for n in range(20)))
    before = dict(world.store.lowest)
    world.rewind(Kind.TRACE, by=20)
    await world.run(Kind.TRACE, doubtful=True)
    assert world.store.lowest == before
    world.lose_state()
    await world.drain()
    assert world.store.lowest == before


async def test_a_request_without_a_vertical_draws_from_all_of_them() -> None:
    world = World()
    await world.tell(Kind.TRACE, of_version("a"), of_version("d", vertical="receipts"), of_version("e", vertical=None))
    assert len(await drawn(world, vertical=None)) == 3


def test_no_two_texts_name_one_pool() -> None:
    keys = {pool_place(vertical, names, 1) for vertical in ("a", "=a", "*", "", None) for names in ("b", "bc")}
    assert len(keys) == 5 * 2
