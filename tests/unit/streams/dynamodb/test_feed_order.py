"""The feed over a stream in memory: everything once and in order, over restarts and reshards."""

from __future__ import annotations

import asyncio

from streams.dynamodb.client import Busy
from streams.dynamodb.shards import Place, Shard, decode_place, encode_place
from tests.unit.streams.dynamodb.fake_stream import NOW, FakeKafka, FakeLedger, FakeStream, change, feed
from tests.waiting import come


async def test_a_shard_is_published_in_order_and_its_place_kept() -> None:
    stream, kafka, ledger = FakeStream(), FakeKafka(), FakeLedger()
    stream.shard("s", [1, 2, 3, 4, 5])
    await feed(stream, kafka, ledger).run()
    assert kafka.sequences == [1, 2, 3, 4, 5]
    assert decode_place(ledger.raw["s"]).seq == "5"
    assert ledger.held == {}, "a feed that ends gives up its leases"


async def test_a_place_moves_only_after_kafka_has_the_records() -> None:
    stream, ledger = FakeStream(), FakeLedger()
    kafka = FakeKafka(ledger=ledger)
    stream.shard("s", [1, 2, 3, 4])
    await feed(stream, kafka, ledger).run()
    seen = [decode_place(raw).seq if raw else None for raw in kafka.ledgers_seen]
    assert seen == [None, "2"], "when page two was sent, only page one counted as published"


async def test_kafka_out_of_reach_delays_and_loses_nothing() -> None:
    stream, ledger, kafka = FakeStream(), FakeLedger(), FakeKafka(down=2)
    stream.shard("s", [1, 2, 3])
    job = feed(stream, kafka, ledger)
    await job.run()
    assert kafka.sequences == [1, 2, 3]
    assert job.metrics.feed_records.labels("failed")._value.get() == 4


async def test_a_feed_goes_on_where_the_last_one_was() -> None:
    stream, ledger = FakeStream(), FakeLedger()
    stream.shard("s", [1, 2, 3])
    await feed(stream, FakeKafka(), ledger).run()
    stream.log["s"] += [change(4), change(5)]
    kafka = FakeKafka()
    await feed(stream, kafka, ledger).run()
    assert kafka.sequences == [4, 5]
    assert stream.opened[-1] == ("s", "3")


async def test_without_its_places_a_feed_starts_at_the_oldest_record_again() -> None:
    stream, ledger = FakeStream(), FakeLedger()
    stream.shard("s", [1, 2, 3])
    await feed(stream, FakeKafka(), ledger).run()
    kafka = FakeKafka()
    job = feed(stream, kafka, FakeLedger())
    await job.run()
    assert kafka.sequences == [1, 2, 3]
    assert job.gaps.count == 0


async def test_children_wait_for_their_parent_even_if_listed_first() -> None:
    stream, kafka, ledger = FakeStream(), FakeKafka(), FakeLedger()
    stream.shard("c1", [7, 9], parent="p")
    stream.shard("c2", [8, 10], parent="p")
    stream.shard("g", [11], parent="c1")
    stream.shards["c1"] = Shard("c1", "p", "7", True)
    stream.shard("p", [1, 2, 3, 4, 5], closed=True)
    await feed(stream, kafka, ledger).run()
    order = kafka.sequences
    assert sorted(order) == [1, 2, 3, 4, 5, 7, 8, 9, 10, 11]
    assert order[:5] == [1, 2, 3, 4, 5]
    assert order.index(9) < order.index(11)
    assert decode_place(ledger.raw["p"]).end


async def test_a_reshard_while_the_feed_runs_is_followed() -> None:
    stream, kafka, ledger = FakeStream(), FakeKafka(), FakeLedger()
    stream.shard("p", [1, 2])
    job = feed(stream, kafka, ledger, once=False)
    running = asyncio.create_task(job.run())
    await come(lambda: len(kafka.sent) == 2)
    stream.shard("c", [3, 4], parent="p")
    stream.shards["p"] = Shard("p", None, "1", True)
    await come(lambda: len(kafka.sent) == 4)
    job.stop()
    await asyncio.wait_for(running, 30)
    assert kafka.sequences == [1, 2, 3, 4]


async def test_more_closed_shards_than_are_polled_at_once_are_all_read() -> None:
    stream, kafka, ledger = FakeStream(), FakeKafka(), FakeLedger()
    for number in range(6):
        stream.shard(f"s{number}", [number * 10 + 1, number * 10 + 2], closed=True)
    job = feed(stream, kafka, ledger, polls=2)
    await job.run()
    assert len(kafka.sent) == 12
    assert all(decode_place(raw).end for raw in ledger.raw.values())


async def test_read_shards_that_the_stream_forgot_are_forgotten() -> None:
    stream, ledger = FakeStream(), FakeLedger()
    ledger.raw["old"] = encode_place(Place("1", NOW, end=True))
    stream.shard("s", [1])
    job = feed(stream, FakeKafka(), ledger)
    await job.run()
    assert "old" not in ledger.raw
    assert job.gaps.count == 0


async def test_throttling_is_waited_out() -> None:
    stream, kafka, ledger = FakeStream(), FakeKafka(), FakeLedger()
    stream.shard("s", [1, 2, 3])
    stream.errors = [Busy("LimitExceededException")] * 4
    await asyncio.wait_for(feed(stream, kafka, ledger).run(), 30)
    assert kafka.sequences == [1, 2, 3]


async def test_two_feeds_double_nothing_and_the_second_takes_over() -> None:
    stream, kafka, first = FakeStream(), FakeKafka(), FakeLedger("a")
    stream.shard("s", [1, 2, 3])
    one = feed(stream, kafka, first, once=False)
    two = feed(stream, kafka, FakeLedger("b", first), once=False)
    running = [asyncio.create_task(one.run()), asyncio.create_task(two.run())]
    await come(lambda: len(kafka.sent) == 3 and bool(two.held_elsewhere | one.held_elsewhere))
    holder, other = (one, two) if one.readers else (two, one)
    assert not other.readers
    holder.stop()
    stream.log["s"].append(change(4))
    await come(lambda: len(kafka.sent) == 4)
    other.stop()
    await asyncio.wait_for(asyncio.gather(*running), 30)
    assert kafka.sequences == [1, 2, 3, 4]


async def test_a_feed_that_lost_its_lease_stops_publishing() -> None:
    stream, kafka, ledger = FakeStream(), FakeKafka(), FakeLedger("a", lease_ms=30)
    stream.shard("s", [1])
    job = feed(stream, kafka, ledger, once=False)
    running = asyncio.create_task(job.run())
    await come(lambda: len(kafka.sent) == 1)
    ledger.held["s"] = "another"
    await come(lambda: not job.readers)
    stream.log["s"].append(change(2))
    await asyncio.sleep(0.05)
    assert kafka.sequences == [1]
    job.stop()
    await asyncio.wait_for(running, 30)


async def test_a_feed_that_was_away_does_not_move_a_place_back() -> None:
    """A place moved by another since fails the check, even where no lease stands any more."""
    ledger = FakeLedger("a")
    lease = await ledger.claim("arn", "s")
    assert lease is not None
    await lease.keep(Place("1", NOW))
    ledger.held.clear()
    ledger.raw["s"] = encode_place(Place("9", NOW))
    assert await ledger.hold("arn", "s", encode_place(Place("1", NOW)), encode_place(Place("2", NOW))) is None
