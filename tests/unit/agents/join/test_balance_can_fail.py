"""Conservation is no tautology: `consumed` comes from offsets, so a record that ends in no state shows (promise 3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from agents import thumbs
from agents.codec import Decoded, SignalEvent
from agents.join.batches import Agent, Batch, MergeResult
from agents.join.step import StepContext
from agents.policy import Policy
from agents.ports import Ports
from schemas.answers import Balance
from schemas.dead_letters import Record
from schemas.outcomes import Kind
from streams.queries.conservation import conservation
from tests.unit.agents.builders import NOW, change, thumb
from tests.unit.agents.join.world import World

WRAPPER = {"Records": [change("wrapped-one"), change("wrapped-two")]}


async def handled(agent: Agent, *events: Any) -> tuple[Balance, bool]:
    """Thumbs' balance after a batch with these events, and whether all is balanced."""
    world = World()
    batch = Batch(world.topics.of(Kind.THUMBS), 0, 0, world.send(Kind.THUMBS, *events))
    world.start(batch)
    await world.handle(batch, agent)
    answer = await conservation(world.store, world.clock.now_ms(), 86_400, 0)
    return answer.signals[Kind.THUMBS], answer.balanced


def losing(index: int) -> Agent:
    """An agent whose codec says nothing about one record."""

    def decode(records: Sequence[Record], now: int, policy: Policy) -> Decoded[SignalEvent]:
        found = thumbs.decode(records, now, policy)
        return Decoded(
            [one for one in found.items if one.index != index],
            [one for one in found.bad if one.index != index],
            [one for one in found.dropped if one.index != index],
        )

    return replace(thumbs.AGENT, decode=decode)


@pytest.mark.parametrize("lost", range(4))
@pytest.mark.parametrize("wrapped", [False, True], ids=["plain records", "beside a wrapper that holds two changes"])
async def test_a_record_that_a_codec_drops_in_silence_puts_the_balance_out(lost: int, wrapped: bool) -> None:
    events = [thumb("a"), b"not JSON", thumb("old", at=NOW - 30 * 86_400_000), thumb("b")]
    balance, balanced = await handled(losing(lost), *events, *([WRAPPER] if wrapped else []))
    assert balance.consumed == len(events) + 2 * wrapped
    assert balance.difference == 1
    assert not balanced


async def test_an_event_that_a_merge_drops_puts_the_balance_out() -> None:
    async def merge(batch: Batch, items: Sequence[Any], context: StepContext, ports: Ports) -> list[MergeResult]:
        return (await thumbs.AGENT.merge(batch, items, context, ports))[:-1]

    balance, balanced = await handled(replace(thumbs.AGENT, merge=merge), thumb("a"), thumb("b"))
    assert balance.difference == 1
    assert not balanced


async def test_a_record_that_is_counted_twice_puts_the_balance_out() -> None:
    async def merge(batch: Batch, items: Sequence[Any], context: StepContext, ports: Ports) -> list[MergeResult]:
        found = await thumbs.AGENT.merge(batch, items, context, ports)
        return [*found, found[-1]]

    balance, balanced = await handled(replace(thumbs.AGENT, merge=merge), thumb("a"), thumb("b"))
    assert balance.difference == -1
    assert not balanced


async def test_each_change_of_a_wrapper_is_consumed_once_and_the_balance_holds() -> None:
    balance, balanced = await handled(thumbs.AGENT, thumb("a"), WRAPPER, b"not JSON", thumb("b"))
    assert balance.consumed == 5
    assert balance.difference == 0
    assert balanced


async def test_what_the_state_has_seen_is_consumed_no_second_time() -> None:
    world = World()
    records = world.send(Kind.THUMBS, *(thumb(name) for name in "abcd"))
    for known in (records[:3], records):
        batch = Batch(world.topics.of(Kind.THUMBS), 0, 0, known)
        world.start(batch)
        await world.handle(batch, thumbs.AGENT)
    answer = await conservation(world.store, world.clock.now_ms(), 86_400, 0)
    assert answer.signals[Kind.THUMBS].consumed == 4
    assert answer.balanced
