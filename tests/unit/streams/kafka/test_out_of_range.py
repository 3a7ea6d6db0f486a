"""Kafka no longer has a partition's next record, or has another log: the start is found again, and nothing skipped. Of
which partitions a worker notes, when it leaves them, that it had nothing under way there."""

from __future__ import annotations

import asyncio

import pytest
from aiokafka.errors import NoOffsetForPartitionError
from faust.types import TP

from streams.kafka.clean_stops import NOTE
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


@pytest.fixture
async def rig() -> Rig:
    """Six records in batches of two, the first batch settled, the others handed on and not begun."""
    made = Rig()
    made.broker.append(*range(6))
    await made.start()
    first, *_ = await made.fetch()
    made.consumer.ack(first)
    return made


async def left(rig: Rig) -> dict[TP, tuple[int, str]]:
    """Committed offsets and their notes once the partition was left."""
    await rig.consumer.leave_cleanly([PLACE])
    await rig.commit()
    return {tp: (offset, rig.broker.noted[tp]) for tp, offset in rig.broker.committed.items()}


async def test_where_nothing_beyond_the_settled_was_begun_the_commit_says_so(rig: Rig) -> None:
    assert await left(rig) == {PLACE: (2, NOTE)}


async def test_a_note_is_left_once(rig: Rig) -> None:
    """A worker that stops leaves its notes, and then the group, which takes its partitions."""
    await rig.consumer.leave_cleanly([PLACE])
    commits = len(rig.broker.commits)
    await rig.consumer.leave_cleanly([PLACE])
    assert len(rig.broker.commits) == commits


async def test_what_was_begun_and_not_settled_leaves_no_note(rig: Rig) -> None:
    rig.begun[PLACE] = 4
    assert await left(rig) == {PLACE: (2, "")}


async def test_while_an_earlier_holder_s_records_are_in_doubt_there_is_no_note(rig: Rig) -> None:
    """A worker that was stopped by the system and goes on may still be writing them."""
    rig.app.start_offsets.doubts[PLACE] = (0, 3)
    assert await left(rig) == {PLACE: (2, "")}


async def test_a_partition_that_is_read_again_gets_no_note(rig: Rig) -> None:
    await rig.commit()
    await rig.consumer.rewind(PLACE, 0)
    assert await left(rig) == {PLACE: (2, "")}


async def test_outside_of_the_group_no_note_is_left(rig: Rig) -> None:
    rig.broker._coordinator.member_id = ""
    assert await left(rig) == {}


async def test_a_note_that_kafka_refuses_ends_nobody(rig: Rig) -> None:
    rig.broker.refuses = 1
    assert await left(rig) == {PLACE: (2, "")}


async def test_who_takes_the_partition_over_learns_of_the_note_and_takes_it_away(rig: Rig) -> None:
    await left(rig)
    other = Rig(rig.broker)
    await other.start()
    assert (rig.broker.committed[PLACE], rig.broker.noted[PLACE]) == (2, "")
    assert other.clean_at_start == {PLACE: 2}


async def test_nothing_is_begun_before_the_note_is_gone(rig: Rig) -> None:
    await left(rig)
    rig.broker.refuses = 3
    other = Rig(rig.broker)
    await other.start()
    assert rig.broker.refuses == 0
    assert rig.broker.noted[PLACE] == ""
    assert other.clean_at_start == {PLACE: 2}


async def test_the_note_no_longer_counts_once_a_batch_was_handed_on(rig: Rig) -> None:
    await left(rig)
    other = Rig(rig.broker)
    await other.start()
    assert other.app.start_offsets.clean == {PLACE: 2}
    assert await other.fetch()
    assert other.app.start_offsets.clean == {}


async def test_a_note_that_was_learnt_and_not_used_is_forgotten_with_the_partition(rig: Rig) -> None:
    await left(rig)
    other = Rig(rig.broker)
    await other.start()
    await other.consumer.on_partitions_revoked({PLACE})
    assert other.app.start_offsets.clean == {}
