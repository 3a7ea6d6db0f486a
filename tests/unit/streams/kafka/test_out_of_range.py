"""Kafka no longer has a partition's next record, or has another log: the start is found anew, and nothing skipped."""

from __future__ import annotations

import asyncio

from aiokafka.errors import NoOffsetForPartitionError

from tests.unit.streams.kafka.consumer_rig import PLACE, Rig


async def four_records() -> Rig:
    """A group at the start of a partition that has offsets 0 to 3."""
    rig = Rig()
    rig.broker.append(0, 1, 2, 3)
    await rig.start()
    return rig


async def test_the_start_is_asked_for_anew_and_not_guessed() -> None:
    rig = await four_records()
    for message in await rig.fetch():
        rig.consumer.ack(message)
    rig.broker.append(10, 11)
    rig.broker.first[PLACE] = rig.starts[PLACE] = 10
    assert await rig.fetch() == []
    assert rig.asked == [(PLACE, None, None), (PLACE, None, 4)], "the caller itself has settled all below 4"
    (message,) = await rig.fetch()
    assert (message.value.base, message.offset) == (10, 11)
    rig.consumer.ack(message)
    assert await rig.commit() == {PLACE: 12}


async def test_batches_that_were_fetched_before_are_settled_first() -> None:
    """Else what Kafka has dropped meanwhile, and we hold, would be thrown away with them."""
    rig = await four_records()
    first, second = await rig.fetch()
    rig.broker.append(10, 11)
    rig.broker.first[PLACE] = rig.starts[PLACE] = 10
    rig.consumer.ack(second)
    assert await rig.fetch() == []
    assert rig.consumer.current(first.value)
    assert len(rig.asked) == 1
    rig.consumer.ack(first)
    assert await rig.fetch() == []
    assert len(rig.asked) == 2
    assert [message.value.base for message in await rig.fetch()] == [10]


async def test_a_partition_whose_start_is_unknown_is_left_to_who_looks_for_it() -> None:
    rig = await four_records()
    rig.broker.first[PLACE] = 10
    rig.consumer._next.pop(PLACE)
    assert await rig.fetch() == []
    assert len(rig.asked) == 1


async def test_a_partition_whose_start_is_being_found_is_waited_for() -> None:
    """Before its first seek a partition has no position, and Kafka may know of no commit."""
    rig = await four_records()

    async def unplaced() -> None:
        rig.broker.position[PLACE] = 0
        raise NoOffsetForPartitionError(PLACE)

    rig.broker.meanwhile = unplaced
    assert await asyncio.wait_for(rig.fetch(), 10) == []
    assert len(await rig.fetch()) == 2


async def test_in_a_new_log_nothing_is_settled_and_commits_begin_anew() -> None:
    """Else records below the old log's commit would count as handled before, and would never be committed."""
    rig = await four_records()
    for message in await rig.fetch():
        rig.consumer.ack(message)
    assert await rig.commit() == {PLACE: 4}
    rig.broker.logs.clear()
    rig.broker.append(0, 1)
    rig.app.start_offsets.new_logs.add(PLACE)
    rig.starts[PLACE] = 0
    await rig.consumer.return_to_state(PLACE)
    assert rig.app.start_offsets.new_logs == set()
    assert not rig.consumer.replaying()
    (message,) = await rig.fetch()
    assert (message.value.base, message.value.settled) == (0, 0)
    rig.consumer.ack(message)
    assert await rig.commit() == {PLACE: 2}
