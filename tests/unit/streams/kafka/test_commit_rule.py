"""Which offset is committed, and which records are handed on: none is passed by, whatever order things come in
(promise 1). A commit of `n` says that every record below `n` is settled."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from faust.types import TP

from agents.ports import Unavailable
from tests.unit.streams.kafka.consumer_rig import PLACE, TOPIC, Broker, Rig


@pytest.fixture
async def rig() -> Rig:
    """Ten records in batches of two, the group at the partition's start."""
    made = Rig()
    made.broker.append(*range(10))
    await made.start()
    return made


def places(messages: list[Any]) -> list[tuple[int, int]]:
    """The batches' (first, last) offsets."""
    return [(message.value.base, message.offset) for message in messages]


async def test_batches_follow_one_another_without_a_gap(rig: Rig) -> None:
    first = await rig.fetch()
    rig.broker.append(10, 11, 12)
    assert places(first + await rig.fetch()) == [(0, 1), (2, 3), (4, 5), (6, 7), (8, 9), (10, 11), (12, 12)]


# The commit.


async def test_what_is_settled_in_order_is_committed_up_to_the_record_after_it(rig: Rig) -> None:
    for settled, message in enumerate(await rig.fetch(), 1):
        rig.consumer.ack(message)
        assert await rig.commit() == {PLACE: 2 * settled}


@pytest.mark.parametrize("missing", range(5))
async def test_no_commit_passes_the_oldest_batch_that_is_not_settled(rig: Rig, missing: int) -> None:
    messages = await rig.fetch()
    late = messages.pop(missing)
    for message in reversed(messages):
        rig.consumer.ack(message)
        await rig.commit()
        assert rig.broker.committed.get(PLACE, 0) <= late.value.base
    assert rig.broker.committed[PLACE] == late.value.base, "all before it is settled"
    assert rig.consumer.unsettled_from(PLACE) == late.value.base
    rig.consumer.ack(late)
    assert await rig.commit() == {PLACE: 10}
    assert rig.consumer.unsettled_from(PLACE) == 10


async def test_a_commit_that_failed_is_made_again_though_nothing_new_comes(rig: Rig) -> None:
    for message in await rig.fetch():
        rig.consumer.ack(message)
    rig.broker.accepts = False
    assert await rig.commit() == {}
    assert rig.consumer.committed(PLACE) is None
    rig.broker.accepts = True
    assert await rig.commit() == {PLACE: 10}
    assert rig.consumer.committed(PLACE) == 10
    await rig.commit()
    assert len(rig.broker.commits) == 2, "what is committed is not committed again"


@pytest.mark.parametrize(("member", "joining"), [("", False), ("", True), ("member", True)])
async def test_no_commit_is_sent_while_we_are_no_member_of_the_group(rig: Rig, member: str, joining: bool) -> None:
    for message in await rig.fetch():
        rig.consumer.ack(message)
    coordinator = rig.broker._coordinator
    coordinator.member_id, coordinator._performed_join_prepare = member, joining
    assert await rig.commit() == {}
    assert rig.broker.commits == []
    coordinator.member_id, coordinator._performed_join_prepare = "member", False
    assert await rig.commit() == {PLACE: 10}


async def test_each_partition_has_a_commit_of_its_own() -> None:
    other = TP(TOPIC, 1)
    rig = Rig(Broker([PLACE, other]))
    rig.broker.append(0, 1, 2)
    rig.broker.append(0, 1, 2, 3, tp=other)
    await rig.start()
    for message in await rig.fetch():
        if message.tp == other or message.offset > 1:
            rig.consumer.ack(message)
    assert await rig.commit() == {PLACE: 0, other: 4}


# Holes and rewinds.


async def test_a_hole_that_compaction_left_is_passed(rig: Rig) -> None:
    for message in await rig.fetch():
        rig.consumer.ack(message)
    rig.broker.append(17, 18, 25)
    messages = await rig.fetch()
    assert places(messages) == [(10, 18), (19, 25)]
    rig.consumer.ack(messages[1])
    assert await rig.commit() == {PLACE: 10}
    rig.consumer.ack(messages[0])
    assert await rig.commit() == {PLACE: 26}


async def test_after_a_rewind_records_come_again_from_there_and_the_batches_before_are_not_current(rig: Rig) -> None:
    before = await rig.fetch()
    await rig.consumer.rewind(PLACE, 4)
    assert not any(rig.consumer.current(message.value) for message in before)
    again = await rig.fetch()
    assert places(again) == [(4, 5), (6, 7), (8, 9)]
    assert all(rig.consumer.current(message.value) for message in again)
    for message in again:
        rig.consumer.ack(message)
    assert await rig.commit() == {PLACE: 10}, "the batches before the rewind hold nothing up"


async def test_a_partition_that_a_rebalance_takes_during_the_seek_ends_no_worker(rig: Rig) -> None:
    """Kafka's client knows of the revocation before the consumer is told. The partition comes back as it was left."""
    (before, *_) = await rig.fetch()
    start_at = rig.consumer.start_at

    async def taken_meanwhile(tp: TP, committed: int | None, settled: int | None) -> int:
        rig.broker.held.discard(tp)
        return 4

    rig.consumer.start_at = taken_meanwhile
    await rig.consumer.return_to_state(PLACE)
    assert not rig.consumer.current(before.value)
    await rig.consumer.on_partitions_revoked({PLACE})
    assert rig.consumer.stands(PLACE) is None
    rig.broker.held = {PLACE}
    rig.consumer.start_at = start_at
    rig.consumer._set_active_tps({PLACE})
    await rig.start()
    assert places(await rig.fetch()) == [(0, 1), (2, 3), (4, 5), (6, 7), (8, 9)]


@pytest.mark.parametrize("flowing", [True, False], ids=["within the rebalance", "in a fetch beside it"])
async def test_a_partition_that_goes_while_committed_offsets_are_asked_for_ends_no_worker(flowing: bool) -> None:
    """Seen when brokers changed leaders: the session was over while offsets were asked for, and the worker ended."""
    made = Rig()
    made.broker.append(0, 1)

    async def rebalanced() -> None:
        made.broker.held.discard(PLACE)

    if flowing:
        made.broker.meanwhile = rebalanced
        await made.start()
    else:

        async def stopped() -> None:
            made.consumer.flow_active = False
            made.broker.meanwhile = rebalanced

        made.broker.meanwhile = stopped
        assert await made.fetch() == []
    await made.start()
    assert made.asked == [], "without a partition there is nothing to seek"
    made.broker.held.add(PLACE)
    made.consumer.flow_active = True
    await made.start()
    assert places(await made.fetch()) == [(0, 1)]


@pytest.mark.parametrize("rewound", [False, True], ids=["found before", "being found"])
async def test_a_seek_to_committed_offsets_passes_no_record_by_whose_start_another_seek_has_found(
    rig: Rig, rewound: bool
) -> None:
    """Seen when a worker that had stood still came back: the seek of one rebalance was under way when the next one's
    began, and 143 records that were to be read again were passed by."""
    rig.broker.committed[PLACE], rig.starts[PLACE] = 6, 0
    await rig.start()
    handed, others = list[Any](), list[asyncio.Task[None]]()

    async def rewind() -> None:
        others.append(asyncio.create_task(rig.consumer.rewind(PLACE, 0)))
        await asyncio.sleep(0)

    async def start_at(tp: TP, committed: int | None, settled: int | None) -> int:
        handed.extend(await rig.fetch())
        return 0

    rig.consumer.start_at = start_at
    if rewound:
        rig.broker.meanwhile = rewind
    await rig.start()
    await asyncio.gather(*others)
    assert [message.value.base for message in handed] == [message.value.records[0].offset for message in handed]
    assert places(await rig.fetch()) == [(0, 1), (2, 3), (4, 5), (6, 7), (8, 9)]


async def test_batches_are_not_current_while_the_rewind_is_under_way(rig: Rig) -> None:
    """They must not be recorded behind it."""
    (before, *_) = await rig.fetch()
    seen = []
    seek = rig.broker.seek

    def look(tp: TP, offset: int) -> None:
        seen.append(rig.consumer.current(before.value))
        seek(tp, offset)

    rig.broker.seek = look
    await rig.consumer.rewind(PLACE, 4)
    assert seen == [False]


@pytest.mark.parametrize("to", [2, 8])
async def test_a_fetch_from_before_a_rewind_is_not_handed_on(rig: Rig, to: int) -> None:
    """Its records lie above or below where the partition is read from now."""
    await rig.consumer.rewind(PLACE, 6)
    rig.broker.meanwhile = lambda: rig.consumer.rewind(PLACE, to)
    assert await rig.fetch() == []
    assert places(await rig.fetch()) == [(at, at + 1) for at in range(to, 10, 2)]


async def test_a_fetch_begun_while_the_rewind_seeks_is_not_handed_on(rig: Rig) -> None:
    """It may have been sent before the seek took effect."""
    fetched: list[Any] = []
    await rig.fetch()
    rig.broker.append(10, 11)
    seek = rig.broker.seek

    def during(tp: TP, offset: int) -> None:
        rig.consumer._fetched_under = dict(rig.consumer._generation)
        fetched.append(offset)
        seek(tp, offset)

    rig.broker.seek = during
    await rig.consumer.rewind(PLACE, 4)
    under = dict(rig.consumer._fetched_under)
    rig.broker.position[PLACE] = 10

    async def as_it_was() -> None:
        rig.consumer._fetched_under = under

    rig.broker.meanwhile = as_it_was
    assert await rig.fetch() == []
    assert fetched == [4, 4], "the consumer is sent back to where the partition is read from"
    assert places(await rig.fetch())[0] == (4, 5)


async def test_a_rewind_between_two_batches_of_a_fetch_ends_it(rig: Rig) -> None:
    handed = []
    async for _, message in rig.consumer.getmany(0.0):
        handed.append(message)
        if len(handed) == 2:
            await rig.consumer.rewind(PLACE, 0)
    assert places(handed) == [(0, 1), (2, 3)]
    assert places(await rig.fetch())[0] == (0, 1)


async def test_a_rewind_to_what_is_settled_commits_that_though_its_commit_had_failed(rig: Rig) -> None:
    """Nothing else would commit it on a quiet partition."""
    for message in await rig.fetch():
        rig.consumer.ack(message)
    rig.broker.accepts = False
    await rig.commit()
    await rig.consumer.rewind(PLACE, 10)
    rig.broker.accepts = True
    assert await rig.commit() == {PLACE: 10}


async def test_records_that_are_read_again_say_up_to_where_they_were_settled(rig: Rig) -> None:
    messages = await rig.fetch()
    assert {message.value.settled for message in messages} == {0}
    for message in messages[:3]:
        rig.consumer.ack(message)
    await rig.commit()
    assert not rig.consumer.replaying()
    await rig.consumer.rewind(PLACE, 0)
    assert rig.consumer.replaying(), "until what was settled was read again"
    again = []
    async for _, message in rig.consumer.getmany(0.0):
        again.append((message.value.settled, rig.consumer.replaying()))
    assert again == [(6, True), (6, True), (6, False), (6, False), (6, False)]


async def test_a_batch_that_is_abandoned_holds_up_no_rebalance_and_no_other_batch(rig: Rig) -> None:
    messages = await rig.fetch()
    rig.consumer.abandon(messages[1].value)
    assert set(rig.consumer.unacked) == {*messages} - {messages[1]}
    assert rig.consumer.unsettled_from(PLACE) == 0, "its records are not settled"


# Where the partition starts, and its end.


async def test_a_partition_is_read_from_where_the_state_left_off() -> None:
    rig = Rig()
    rig.broker.append(*range(10))
    rig.broker.committed[PLACE], rig.starts[PLACE] = 8, 6
    assert rig.consumer.stands(PLACE) is None
    await rig.start()
    assert rig.asked == [(PLACE, 8, None)], "it has just become ours"
    assert rig.consumer.stands(PLACE) == 6
    assert places(await rig.fetch()) == [(6, 7), (8, 9)]


async def test_the_state_is_waited_for_while_the_partition_is_ours(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    tries = []

    async def start(tp: TP, committed: int | None, settled: int | None) -> int:
        tries.append(settled)
        if len(tries) < 3:
            raise Unavailable("Redis is away")
        return 2

    async def no_pause(seconds: float) -> None:
        assert seconds == 1.0

    monkeypatch.setattr(rig.consumer, "start_at", start)
    monkeypatch.setattr(rig.consumer, "sleep", no_pause)
    for message in (await rig.fetch())[:2]:
        rig.consumer.ack(message)
    await rig.commit()
    await rig.consumer.return_to_state(PLACE)
    assert tries == [4, 4, 4]
    assert rig.consumer.stands(PLACE) == 2


async def test_a_partition_that_went_and_came_back_starts_anew(rig: Rig) -> None:
    """What was in flight when it went is settled by whoever has it then; nothing of it is left here."""
    messages = await rig.fetch()
    rig.consumer.ack(messages[0])
    await rig.commit()
    await rig.consumer.rewind(PLACE, 0)
    late = await rig.fetch()
    await rig.consumer.on_partitions_revoked({PLACE})
    assert not any(rig.consumer.current(message.value) for message in late)
    assert rig.consumer.stands(PLACE) is None
    assert rig.consumer.unsettled_from(PLACE) is None
    assert not rig.consumer.replaying()
    rig.broker.committed[PLACE] = rig.starts[PLACE] = 10
    rig.broker.append(10, 11)
    rig.consumer._set_active_tps({PLACE})
    await rig.start()
    assert rig.asked[-1] == (PLACE, 10, None)
    for message in await rig.fetch():
        assert message.value.settled == 10
        rig.consumer.ack(message)
    assert await rig.commit() == {PLACE: 12}


async def test_records_of_a_partition_whose_start_is_unknown_are_left_where_they_are(rig: Rig) -> None:
    rig.consumer._next.pop(PLACE)
    assert await rig.fetch() == []


# A partition that is halted.


async def test_a_halted_partition_is_not_fetched_and_read_again_once_it_is_rewound() -> None:
    other = TP(TOPIC, 1)
    made = Rig(Broker([PLACE, other]))
    made.broker.append(0, 1)
    made.broker.append(0, 1, tp=other)
    await made.start()
    taken = await made.fetch()
    assert len(taken) == 2
    made.consumer.halt(PLACE)
    made.broker.append(2, 3)
    made.broker.append(2, 3, tp=other)
    (message,) = await made.fetch()
    assert (message.tp, message.value.base) == (other, 2)
    for one in (*taken, message):
        if one.tp == other:
            made.consumer.ack(one)
    assert await made.commit() == {other: 4}, "no commit passes what was not settled"
    await made.consumer.rewind(PLACE, 0)
    assert [message.value.base for message in await made.fetch()] == [0, 2]


async def test_with_all_partitions_halted_nothing_is_fetched(rig: Rig) -> None:
    rig.consumer.halt(PLACE)
    assert await rig.fetch() == []
    assert rig.broker.position[PLACE] == 0


async def test_a_partition_that_is_assigned_anew_is_not_halted(rig: Rig) -> None:
    rig.consumer.halt(PLACE)
    await rig.consumer.on_partitions_revoked({PLACE})
    assert not rig.consumer._halted


# What is no record: the marks of transactions, and what was aborted.


async def test_offsets_without_records_at_the_end_do_not_wait_and_are_not_committed(rig: Rig) -> None:
    for message in await rig.fetch():
        rig.consumer.ack(message)
    rig.broker.position[PLACE] = 13  # three offsets without a record
    assert await rig.fetch() == []
    assert (rig.consumer.read_to(PLACE), rig.consumer.unsettled_from(PLACE)) == (13, 10)
    assert await rig.commit() == {PLACE: 10}
    rig.broker.append(13)
    (message,) = await rig.fetch()
    assert message.value.base == 10, "the batch that comes next begins where the last one ended"
    assert rig.consumer.read_to(PLACE) == 10
    rig.consumer.ack(message)
    assert await rig.commit() == {PLACE: 14}


async def test_while_a_batch_is_not_settled_nothing_beyond_it_counts_as_read(rig: Rig) -> None:
    messages = await rig.fetch()
    rig.broker.position[PLACE] = 13
    await rig.fetch()
    for message in messages[1:]:
        rig.consumer.ack(message)
    assert rig.consumer.read_to(PLACE) == 0


async def test_after_a_rewind_nothing_beyond_it_counts_as_read(rig: Rig) -> None:
    for message in await rig.fetch():
        rig.consumer.ack(message)
    rig.broker.position[PLACE] = 13
    await rig.fetch()
    await rig.consumer.rewind(PLACE, 4)
    assert rig.consumer.read_to(PLACE) == 4
