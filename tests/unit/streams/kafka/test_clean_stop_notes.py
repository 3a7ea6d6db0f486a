"""Of which partitions a worker notes, when it leaves them, that it had nothing under way there."""

from __future__ import annotations

import pytest
from faust.types import TP

from streams.kafka.clean_stops import NOTE
from tests.unit.streams.kafka.consumer_rig import PLACE, Rig


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
