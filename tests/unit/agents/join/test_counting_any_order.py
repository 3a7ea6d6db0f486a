"""Whatever the order, the batches and the redeliveries: the same scores, the same coverage, and every record in one
state. The expectation is counted again from the raw events (`recounting.recount`)."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from agents.join.counting import CONSUMED
from schemas.outcomes import Kind
from tests.unit.agents.builders import MINUTE, NOW, SECOND, change, reroll, thumb, trace
from tests.unit.agents.join.recounting import recount
from tests.unit.agents.join.world import World

RIDS = ("a", "b", "c", "d")
SESSIONS = {"a": "one", "b": "one", "c": "one", "d": "two"}
NAMED = st.sampled_from([None, "shopping", "games"])
"""What a signal's event says of its vertical."""


@st.composite
def histories(draw: st.DrawFn) -> list[tuple[Kind, dict[str, Any]]]:
    """Events of up to four turns, in any order, some of them twice.

    A turn's thumbs are all from the stream or all plain; its traces tell the same but for their judges' scores.
    """
    events: list[tuple[Kind, dict[str, Any]]] = []
    for number, rid in enumerate(RIDS):
        streamed = draw(st.booleans())
        rerolled_in = draw(NAMED)
        for version in draw(st.lists(st.integers(0, 300), max_size=4, unique=True)):
            value = draw(st.sampled_from(["up", "down", None]))
            if streamed:
                name = draw(st.sampled_from(["INSERT", "MODIFY", "REMOVE"]))
                at = NOW + draw(st.integers(0, 5)) * SECOND
                events.append((Kind.THUMBS, change(rid, value, version, at=at, eventName=name, vertical=draw(NAMED))))
            else:
                events.append((Kind.THUMBS, thumb(rid, value, at=NOW + version * SECOND, vertical=draw(NAMED))))
        for elapsed in draw(st.lists(st.sampled_from([0, 10, 300, 301, 4000]), max_size=2)):
            at = NOW + draw(st.integers(0, 5)) * SECOND
            events.append((Kind.REROLL, reroll(rid, elapsed=elapsed, at=at, vertical=rerolled_in)))
        said = draw(st.sampled_from(["hello", "bye"]))
        ended = NOW - 20 * MINUTE + number * draw(st.sampled_from([MINUTE, 4 * MINUTE, 6 * MINUTE]))
        for judges in draw(st.lists(st.sampled_from([(), ("quality",), ("user_signal_thumbs",)]), max_size=2)):
            vertical = "travel" if rid == "d" else "shopping"
            event = trace(rid, ended, judges=judges, vertical=vertical, session=SESSIONS[rid], said=said)
            events.append((Kind.TRACE, event))
    again = draw(st.lists(st.sampled_from(events), max_size=4)) if events else []
    return draw(st.permutations(events + again))


async def settled(world: World, events: list[tuple[Kind, dict[str, Any]]]) -> None:
    """The end must be what the oracle says, to the digit."""
    world.clock.ms += 10 * MINUTE
    await world.due()
    expected = recount(events)
    assert world.scores.held == expected.scores
    assert world.coverage() == dict(expected.coverage)
    assert world.unjudged() == expected.unjudged
    world.balance()
    for kind in Kind:
        count = sum(1 for of, _ in events if of is kind)
        assert world.conservation(kind).get(CONSUMED, 0) == count


def sent(events: list[tuple[Kind, dict[str, Any]]]) -> World:
    """All events in their logs, a turn's records of one kind in one partition, as keys see to it."""
    world = World()
    for kind, event in events:
        image = event.get("dynamodb", {})
        rid = event.get("response_id") or (image.get("NewImage") or image.get("OldImage"))["ResponseId"]["S"]
        world.send(kind, event, partition=RIDS.index(rid) % 2)
    return world


@settings(max_examples=250)
@given(events=histories(), data=st.data())
async def test_any_order_any_batches_any_redelivery(
    events: list[tuple[Kind, dict[str, Any]]], data: st.DataObject
) -> None:
    world = sent(events)
    while left := [at for at, log in world.logs.items() if world.committed.get(at, 0) < len(log)]:
        kind, partition = data.draw(st.sampled_from(left))
        await world.run(kind, partition, data.draw(st.integers(1, 4)))
        if data.draw(st.integers(0, 3)) == 0:
            world.rewind(kind, partition, data.draw(st.integers(1, 5)))
            await world.run(kind, partition, data.draw(st.integers(1, 8)), doubtful=data.draw(st.booleans()))
    await settled(world, events)


@settings(max_examples=60)
@given(events=histories(), data=st.data())
async def test_state_lost_in_mid_stream_and_read_again(
    events: list[tuple[Kind, dict[str, Any]]], data: st.DataObject
) -> None:
    """FLUSHALL after some batches: reading all again gives the same end, and Opik keeps nothing that was withdrawn."""
    world = sent(events)
    for at in data.draw(st.lists(st.sampled_from(sorted(world.logs)), max_size=6)) if world.logs else []:
        await world.run(*at, count=data.draw(st.integers(1, 3)))
    world.lose_state()
    while left := [at for at, log in world.logs.items() if world.committed.get(at, 0) < len(log)]:
        await world.run(*data.draw(st.sampled_from(left)), count=data.draw(st.integers(1, 4)))
    await settled(world, events)


@settings(max_examples=60)
@given(events=histories(), data=st.data())
async def test_the_flag_off_for_a_while_changes_nothing_in_the_end(
    events: list[tuple[Kind, dict[str, Any]]], data: st.DataObject
) -> None:
    world = sent(events)
    world.switch(write=False)
    on_at = data.draw(st.integers(0, 8))
    step = 0
    while left := [at for at, log in world.logs.items() if world.committed.get(at, 0) < len(log)]:
        if step == on_at:
            world.switch(write=True)
        elif step < on_at:
            assert not world.scores.log
        await world.run(*data.draw(st.sampled_from(left)), count=data.draw(st.integers(1, 4)))
        step += 1
    world.switch(write=True)
    await world.revisit(*[key[3:] for key in world.store.values if key.startswith("t2:")])
    await settled(world, events)
    assert "parked:withheld" not in world.conservation(Kind.THUMBS)


class Interleaved:
    """A port whose every call lets the others go first, for a number of turns of the loop that a seed decides."""

    def __init__(self, port: Any, random: Random) -> None:
        self._port, self._random = port, random

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._port, name)
        if not asyncio.iscoroutinefunction(call):
            return call

        async def slow(*args: Any) -> Any:
            for _ in range(self._random.randrange(4)):
                await asyncio.sleep(0)
            result = await call(*args)
            for _ in range(self._random.randrange(4)):
                await asyncio.sleep(0)
            return result

        return slow


def interleave(world: World, random: Random) -> None:
    ports = world.ports
    world.ports = type(ports)(
        *(
            Interleaved(port, random)
            for port in (ports.store, ports.scores, ports.dead_letters, ports.records, ports.traces)
        ),
        ports.clock,
        ports.newcomers,
    )


@settings(max_examples=150)
@given(events=histories(), seed=st.integers(0, 1 << 32))
async def test_all_agents_at_once(events: list[tuple[Kind, dict[str, Any]]], seed: int) -> None:
    """Every partition has a worker of its own, and they meet in the same turns at every instant."""
    world = sent(events)
    random = Random(seed)
    interleave(world, random)

    async def worker(kind: Kind, partition: int) -> None:
        while world.committed.get((kind, partition), 0) < len(world.logs[kind, partition]):
            await world.run(kind, partition, random.randint(1, 3))

    async def maintenance() -> None:
        for _ in range(5):
            await world.revisit(*[key[3:] for key in list(world.store.values) if key.startswith("t2:")])

    await asyncio.gather(*(worker(*at) for at in world.logs), maintenance())
    await settled(world, events)
