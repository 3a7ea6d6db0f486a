"""Gaps: whenever records may be lost, the feed says so in three places and goes on; else it says nothing."""

from __future__ import annotations

import pytest

from streams.dynamodb.client import Misconfigured
from streams.dynamodb.shards import HORIZON_MS, Place, Shard, decode_place, encode_place
from tests.unit.streams.dynamodb.fake_stream import ARN, NOW, FakeKafka, FakeLedger, FakeStream, feed

HOUR = 3_600_000


async def resumed(place: Place, *, trimmed: int) -> tuple[FakeStream, FakeKafka, FakeLedger, int]:
    """A feed that left off at `place`, on a shard of ten whose first `trimmed` records are forgotten."""
    stream, kafka, ledger = FakeStream(), FakeKafka(), FakeLedger()
    stream.shard("s", range(1, 11))
    stream.trimmed["s"] = trimmed
    ledger.raw["s"] = encode_place(place)
    job = feed(stream, kafka, ledger)
    await job.run()
    assert job.gaps.count == len(ledger.found) == job.metrics.feed_gaps._value.get()
    return stream, kafka, ledger, job.gaps.count


async def test_a_trimmed_place_is_a_gap_and_reading_goes_on_at_the_oldest_record() -> None:
    _, kafka, ledger, gaps = await resumed(Place("3", NOW - HOUR), trimmed=6)
    assert kafka.sequences == [7, 8, 9, 10]
    assert gaps == 1
    assert ledger.found[0] | {"at_ms": 0} == {
        "at_ms": 0, "stream": "one", "shard": "s", "reason": "trimmed", "since_ms": NOW - HOUR, "sequence": "3",
    }  # fmt: skip


async def test_a_trimmed_place_is_none_if_all_was_published_within_the_horizon() -> None:
    """An idle shard: the last record is long forgotten, and nothing came after it."""
    _, kafka, _, gaps = await resumed(Place("3", NOW - HOUR, tip=True), trimmed=6)
    assert gaps == 0
    assert kafka.sequences == [7, 8, 9, 10]


async def test_a_place_older_than_the_horizon_is_a_gap_even_if_the_stream_still_has_it() -> None:
    _, kafka, ledger, gaps = await resumed(Place("3", NOW - HORIZON_MS - 1, tip=True), trimmed=0)
    assert gaps == 1
    assert ledger.found[0]["reason"] == "older than 24 hours"
    assert kafka.sequences == list(range(1, 11)), "from the oldest record on; consumers drop what they know"


async def test_trimming_while_reading_is_a_gap() -> None:
    stream, kafka, ledger = FakeStream(), FakeKafka(), FakeLedger()
    stream.shard("s", range(1, 11))
    job = feed(stream, kafka, ledger)
    reads = stream.records

    async def trim_after_one(iterator: str) -> object:
        if len(stream.reads) == 1:
            stream.trimmed["s"] = 6
        return await reads(iterator)

    stream.records = trim_after_one
    await job.run()
    assert job.gaps.count == 1
    assert kafka.sequences == [1, 2, 7, 8, 9, 10]


async def test_an_expired_iterator_is_no_gap_and_goes_on_after_the_last_record() -> None:
    stream, kafka, ledger = FakeStream(), FakeKafka(), FakeLedger()
    stream.shard("s", [1, 2, 3, 4])
    stream.expired = {"s|2"}
    job = feed(stream, kafka, ledger)
    await job.run()
    assert kafka.sequences == [1, 2, 3, 4]
    assert stream.opened == [("s", None), ("s", "2")]
    assert job.gaps.count == 0


async def test_an_unread_shard_that_vanished_is_a_gap_after_a_second_look() -> None:
    stream, ledger = FakeStream(), FakeLedger()
    stream.shard("child", [5], parent="lost")
    ledger.raw["lost"] = encode_place(Place("2", NOW - HOUR))
    kafka = FakeKafka()
    job = feed(stream, kafka, ledger)
    await job.run()
    assert kafka.sequences == [5]
    assert [gap["reason"] for gap in ledger.found] == ["the shard is gone"]
    assert "lost" not in ledger.raw


async def test_a_replaced_stream_is_a_gap() -> None:
    stream, ledger, kafka = FakeStream(), FakeLedger(), FakeKafka()
    stream.shard("s", [1])
    ledger.known.append("arn:aws:dynamodb:x:0:table/thumbs/stream/zero")
    job = feed(stream, kafka, ledger)
    await job.run()
    assert kafka.sequences == [1]
    assert ledger.found[0]["reason"] == "the stream was replaced by one"
    assert ledger.known[-1] == ARN


async def test_a_record_too_large_for_kafka_is_reported_and_the_next_one_is_published() -> None:
    stream, ledger, kafka = FakeStream(), FakeLedger(), FakeKafka()
    stream.shard("s", [1, 2])
    stream.log["s"][0]["dynamodb"]["NewImage"]["ResponseId"] = {"S": "r" * 3000}
    job = feed(stream, kafka, ledger)
    job.max_bytes = 2000
    await job.run()
    assert kafka.sequences == [2]
    assert job.metrics.feed_records.labels("skipped")._value.get() == 1
    assert "too large" in ledger.found[0]["reason"]


async def test_what_only_a_person_can_mend_ends_the_feed() -> None:
    stream = FakeStream(errors=[Misconfigured("no stream: enable it")])
    with pytest.raises(Misconfigured, match="enable it"):
        await feed(stream, FakeKafka(), FakeLedger()).run()


async def test_the_end_of_a_closed_shard_is_remembered_so_that_it_is_never_read_again() -> None:
    stream, ledger = FakeStream(), FakeLedger()
    stream.shard("s", [1, 2], closed=True)
    await feed(stream, FakeKafka(), ledger).run()
    assert decode_place(ledger.raw["s"]) == Place("2", NOW, end=True)
    kafka = FakeKafka()
    stream.shards["s"] = Shard("s", None, "1", True)
    await feed(stream, kafka, ledger).run()
    assert kafka.sent == []
