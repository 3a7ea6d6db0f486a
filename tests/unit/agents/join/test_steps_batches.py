"""What a batch demands of the state before it, and what it leaves behind."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from agents.join.batches import Batch
from agents.join.counting import CONSUMED
from agents.keys import FOREVER
from agents.ports import StateLost, Unavailable
from schemas.outcomes import Kind
from tests.unit.agents.builders import DAY, NOW, change, thumb, trace
from tests.unit.agents.join.world import AGENTS, World

KEY = "w2:rampgate.thumbs:0"


def batch(world: World, first: int, last: int) -> Batch:
    return Batch("rampgate.thumbs", 0, first, world.logs[Kind.THUMBS, 0][first:last])


async def settle(world: World, one: Batch, **more: Any) -> None:
    await world.handle(one, AGENTS[Kind.THUMBS], **more)
    world.committed[Kind.THUMBS, 0] = max(world.committed.get((Kind.THUMBS, 0), 0), one.end)


def mark(world: World, offset: int | None) -> None:
    if offset is None:
        world.store.values.pop(KEY, None)
    else:
        world.store.values[KEY] = (str(offset).encode(), FOREVER)


async def filled() -> World:
    world = World()
    await world.tell(Kind.TRACE, *[trace(rid) for rid in "abcdef"])
    world.send(Kind.THUMBS, *[thumb(rid, "up") for rid in "abcdef"])
    return world


@pytest.mark.parametrize("held", [None, 0, 1])
async def test_a_watermark_that_is_missing_or_behind_the_batch_means_that_the_state_is_lost(held: int | None) -> None:
    world = await filled()
    mark(world, held)
    with pytest.raises(StateLost) as lost:
        await settle(world, batch(world, 2, 4))
    assert (lost.value.topic, lost.value.partition, lost.value.resume_at) == ("rampgate.thumbs", 0, held)
    assert not world.scores.log
    assert not world.letters.letters
    assert world.conservation(Kind.THUMBS) == {}


@pytest.mark.parametrize("held", [2, 3, 4, 6])
async def test_a_watermark_at_or_beyond_the_batch_is_fine_and_only_what_is_new_counts(held: int) -> None:
    world = await filled()
    mark(world, held)
    await settle(world, batch(world, 2, 4))
    new = max(4 - held, 0)
    assert world.conservation(Kind.THUMBS) == ({CONSUMED: new, "done": new} if new else {})
    assert world.store.values[KEY][0] == str(max(held, 4)).encode()
    assert len(world.scores.log) == 2 * new, "what the state has is not written again"


async def test_the_watermark_moves_to_the_end_of_the_batch_also_over_gaps_in_the_offsets() -> None:
    """Compaction and transaction markers leave offsets that no record has."""
    world = await filled()
    mark(world, 0)
    records = [r for r in world.logs[Kind.THUMBS, 0] if r.offset in (1, 4)]
    await settle(world, Batch("rampgate.thumbs", 0, 0, records))
    assert world.store.values[KEY][0] == b"5"
    assert world.conservation(Kind.THUMBS) == {CONSUMED: 2, "done": 2}


async def test_a_second_batch_in_flight_waits_its_turn_and_needs_the_state_only_from_the_first_ones_base() -> None:
    world = await filled()
    mark(world, 0)
    first_done = asyncio.Event()

    async def turn() -> None:
        await first_done.wait()

    second = asyncio.create_task(settle(world, batch(world, 3, 6), floor=0, earlier_recorded=turn))
    for _ in range(10):
        await asyncio.sleep(0)
    assert world.store.values[KEY][0] == b"0"
    assert len(world.scores.log) == 6, "writing does not wait"
    await settle(world, batch(world, 0, 3), floor=0)
    first_done.set()
    await second
    assert world.store.values[KEY][0] == b"6"
    assert len(world.scores.log) == 12
    world.balance()


async def test_two_batches_in_flight_that_meet_in_a_turn_end_at_the_newer_version() -> None:
    world = World()
    await world.tell(Kind.TRACE, trace("r"))
    world.send(Kind.THUMBS, change("r", "up", 1), change("r", "down", 2))
    mark(world, 0)
    first_done = asyncio.Event()

    async def turn() -> None:
        await first_done.wait()

    second = asyncio.create_task(settle(world, batch(world, 1, 2), floor=0, earlier_recorded=turn))
    for _ in range(10):
        await asyncio.sleep(0)
    assert world.score("r") == -1.0
    await settle(world, batch(world, 0, 1), floor=0)
    assert world.score("r") == 1.0, "the older one landed on top"
    first_done.set()
    await second
    assert world.signals("r") == (-1.0, 0.0)
    world.balance()


async def test_when_the_turn_before_fails_nothing_of_ours_is_recorded() -> None:
    world = await filled()
    mark(world, 0)

    async def turn() -> None:
        raise RuntimeError("the batch before us was abandoned")

    with pytest.raises(RuntimeError):
        await settle(world, batch(world, 3, 6), floor=0, earlier_recorded=turn)
    assert world.conservation(Kind.THUMBS) == {}
    assert world.store.values[KEY][0] == b"0"


async def test_records_that_were_settled_before_a_rebuild_send_no_second_letter_for_bad_ones() -> None:
    world = World()
    world.send(Kind.THUMBS, b"{", b"{", b"{")
    mark(world, 0)
    await settle(world, batch(world, 0, 3), settled=2)
    assert [letter.record.offset for letter in world.letters.letters] == [2]
    assert world.conservation(Kind.THUMBS) == {CONSUMED: 3, "dead_lettered:malformed": 3}


async def test_while_a_rebuild_reads_settled_records_writes_wait_until_the_turn_is_due() -> None:
    """A later record may overrule an earlier one: nothing is written from half the story."""
    world = World()
    await world.tell(Kind.TRACE, trace("r"))
    world.send(Kind.THUMBS, change("r", "up", 1), change("r", "down", 2))
    mark(world, 0)
    await settle(world, batch(world, 0, 1), settled=2)
    assert not world.scores.log
    await settle(world, batch(world, 1, 2), settled=2)
    assert not world.scores.log
    world.wait(DAY // 24)
    await world.due()
    assert [w.value for w in world.scores.log] == [-1.0, 0.0]
    assert world.conservation(Kind.THUMBS) == {CONSUMED: 2, "superseded": 1, "done": 1}
    world.balance()


@pytest.mark.parametrize("port", ["store", "scores", "dead_letters"])
async def test_a_part_out_of_reach_raises_and_acknowledges_nothing_and_a_repetition_is_harmless(port: str) -> None:
    world = await filled()
    world.send(Kind.THUMBS, b"{")
    method = {"store": "apply", "scores": "write", "dead_letters": "put"}[port]
    real = getattr(world.ports, port)

    async def unreachable(*args: object) -> None:
        raise Unavailable("no route")

    kept = getattr(real, method)
    setattr(real, method, unreachable)
    with pytest.raises(Unavailable):
        await world.run(Kind.THUMBS)
    assert world.committed.get((Kind.THUMBS, 0)) is None
    assert world.conservation(Kind.THUMBS) == {}
    setattr(real, method, kept)
    await world.run(Kind.THUMBS, doubtful=True)
    assert world.conservation(Kind.THUMBS) == {CONSUMED: 7, "done": 6, "dead_lettered:malformed": 1}
    assert len(world.replay_ids()) == 1
    world.balance()


async def test_every_record_of_a_mixed_batch_ends_in_one_state() -> None:
    world = World()
    await world.tell(Kind.TRACE, trace("a"), trace("old", NOW - 9 * DAY), {"x": 1}, None)
    gone = change("a", "up", 3, eventName="REMOVE", userIdentity={"principalId": "dynamodb.amazonaws.com"})
    await world.tell(Kind.THUMBS, thumb("a"), thumb("a"), thumb("b"), thumb("c", at=NOW - 9 * DAY), gone, b"", None)
    assert world.conservation(Kind.TRACE) == {
        CONSUMED: 4,
        "done": 1,
        "filtered:out_of_window": 1,
        "dead_lettered:unknown_schema": 1,
        "dead_lettered:malformed": 1,
        "unreadable": 2,
    }
    assert world.conservation(Kind.THUMBS) == {
        CONSUMED: 7,
        "done": 1,
        "superseded": 1,
        "parked:no_trace": 1,
        "filtered:out_of_window": 1,
        "filtered:ttl_expiry": 1,
        "dead_lettered:malformed": 2,
    }
    world.balance()


async def test_the_report_says_what_the_state_recorded() -> None:
    world = World()
    await world.tell(Kind.TRACE, trace("a"), trace("b"))
    report = await world.tell(Kind.THUMBS, thumb("a"), thumb("a"), b"{")
    assert {name: by for (kind, name), by in report.counts.items() if kind == Kind.THUMBS} == world.conservation(
        Kind.THUMBS
    )
    assert report.written == {
        ("shopping", "search", "faq", "thumbs"): 1,
        ("shopping", "search", "faq", "reroll"): 1,
    }
    assert len(report.lags_ms[Kind.THUMBS]) == 1
