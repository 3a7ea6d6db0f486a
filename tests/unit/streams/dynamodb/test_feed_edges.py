"""The feed where it might stop too early, publish beside another feed, or cry wolf; and what DynamoDB's errors mean."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
from botocore.exceptions import ClientError, ReadTimeoutError, SSLError

from agents.policy import Attributes
from streams.dynamodb import client
from streams.dynamodb.client import Busy, Dynamo, Expired, Gone, Misconfigured, Trimmed
from streams.dynamodb.feed import Gaps
from streams.dynamodb.ledger import LeaseLost
from streams.dynamodb.shard_reader import ShardReader
from streams.dynamodb.shards import Place, Shard, encode_place
from streams.metrics import Metrics
from tests.memory_ports import ManualClock
from tests.unit.streams.dynamodb.fake_stream import ARN, NOW, FakeKafka, FakeLedger, FakeStream, feed


async def reader(stream: FakeStream, kafka: FakeKafka, ledger: FakeLedger) -> tuple[ShardReader, list[str]]:
    """A reader of shard `s`, and the reasons of the gaps that it reports."""
    gaps: list[str] = []

    async def gap(arn: str, shard: str, reason: str, since: int, sequence: str | None) -> None:
        gaps.append(reason)

    lease = await ledger.claim(ARN, "s")
    assert lease is not None
    made = ShardReader(
        lease, stream, kafka, "thumbs", Attributes(), ManualClock(NOW), Metrics(), gap,
        stopping=asyncio.Event(), max_bytes=1_000_000, polls=asyncio.Semaphore(), idle=0.0,
    )  # fmt: skip
    return made, gaps


async def test_one_empty_page_is_not_the_end_of_what_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """DynamoDB hands out empty pages in the middle of a shard; after the third in a row it is at the end, for now."""
    stream, kafka, ledger = FakeStream(), FakeKafka(), FakeLedger()
    stream.shard("s", [1, 2])
    ours, _ = await reader(stream, kafka, ledger)
    seen: list[bool] = []
    read = stream.records

    async def watched(iterator: str) -> tuple[list[Any], str | None]:
        seen.append(ours.at_tip)
        if len(seen) == 6:
            ours.stopping.set()
        return await read(iterator)

    monkeypatch.setattr(stream, "records", watched)
    await ours.run()
    assert kafka.sequences == [1, 2]
    assert seen == [False, False, False, False, True, True], "a page with records, then empty ones"


async def test_a_feed_that_was_away_does_not_publish_beside_the_one_that_took_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stream, kafka, ledger = FakeStream(), FakeKafka(), FakeLedger(lease_ms=10)
    stream.shard("s", [1, 2])
    ours, _ = await reader(stream, kafka, ledger)
    read = stream.records

    async def slow(iterator: str) -> tuple[list[Any], str | None]:
        time.sleep(0.02)  # noqa: ASYNC251 - the whole process is held up
        ledger.held["s"] = "another feed"
        return await read(iterator)

    monkeypatch.setattr(stream, "records", slow)
    with pytest.raises(LeaseLost):
        await ours.run()
    assert kafka.sent == []


async def test_a_feed_to_the_end_waits_for_a_lease_that_a_dead_one_left_behind() -> None:
    stream, kafka, ledger = FakeStream(), FakeKafka(), FakeLedger()
    stream.shard("s", [1, 2])
    ledger.held["s"] = "a dead feed"
    run = asyncio.create_task(feed(stream, kafka, ledger).run())
    await asyncio.sleep(0.1)
    assert not run.done()
    del ledger.held["s"]
    await asyncio.wait_for(run, 30.0)
    assert kafka.sequences == [1, 2]


async def test_a_feed_to_the_end_leaves_a_shard_to_one_that_keeps_it() -> None:
    stream, kafka, ledger = FakeStream(), FakeKafka(), FakeLedger(lease_ms=100)
    stream.shard("s", [1, 2])
    ledger.held["s"] = "another feed"
    await asyncio.wait_for(feed(stream, kafka, ledger).run(), 30.0)
    assert kafka.sent == []


async def test_a_shard_that_one_listing_lacks_is_no_gap_until_the_next_one_lacks_it_too() -> None:
    """A reshard may tear a listing."""
    ledger = FakeLedger()
    ledger.raw["torn"] = encode_place(Place("2", NOW))
    gaps = Gaps(ledger, ManualClock(NOW), Metrics())
    other, torn = Shard("other", None, "5", False), Shard("torn", None, "1", False)
    for listed in ([other], [other, torn], [other]):
        await gaps.account_for(ARN, listed, set(), sure=False)
        assert gaps.count == 0
    await gaps.account_for(ARN, [other], set(), sure=False)
    assert [gap["shard"] for gap in ledger.found] == ["torn"]
    assert "torn" not in ledger.raw


async def test_a_shard_that_is_being_read_is_no_gap_though_no_listing_has_it() -> None:
    ledger = FakeLedger()
    ledger.raw["read"] = encode_place(Place("2", NOW))
    gaps = Gaps(ledger, ManualClock(NOW), Metrics())
    for _ in range(3):
        await gaps.account_for(ARN, [Shard("other", None, "5", False)], {"read"}, sure=False)
    assert gaps.count == 0


@pytest.mark.parametrize(
    ("operation", "code", "status", "meaning"),
    [
        ("GetRecords", "ExpiredIteratorException", 400, Expired),
        ("GetRecords", "ValidationException", 400, Expired),
        ("GetRecords", "TrimmedDataAccessException", 400, Trimmed),
        ("GetShardIterator", "TrimmedDataAccessException", 400, Trimmed),
        ("GetShardIterator", "ValidationException", 400, Trimmed),
        ("DescribeTable", "ValidationException", 400, Misconfigured),
        ("DescribeTable", "ResourceNotFoundException", 400, Gone),
        ("GetRecords", "ThrottlingException", 400, Busy),
        ("GetRecords", "LimitExceededException", 400, Busy),
        ("GetRecords", "NeverHeardOf", 503, Busy),
        ("GetRecords", "NeverHeardOf", 500, Busy),
        ("GetRecords", "NeverHeardOf", 429, Busy),
        ("GetRecords", "AccessDeniedException", 400, Misconfigured),
    ],
)
async def test_what_an_error_of_dynamodb_means(
    monkeypatch: pytest.MonkeyPatch, operation: str, code: str, status: int, meaning: type[Exception]
) -> None:
    """A new iterator mends an expired one; a trimmed place is a gap; what is busy is tried again; the rest is ours."""
    monkeypatch.setattr(client.Dynamo, "_clients", lambda self: (None, None))
    dynamo = Dynamo("thumbs", "us-east-1", None, threads=1)

    def refused(*_: object) -> None:
        answer: Any = {"Error": {"Code": code, "Message": "no"}, "ResponseMetadata": {"HTTPStatusCode": status}}
        raise ClientError(answer, operation)

    def silent(*_: object) -> None:
        raise ReadTimeoutError(endpoint_url="http://127.0.0.1:1")

    with pytest.raises(meaning):
        await dynamo.call(refused)
    with pytest.raises(Busy):
        await dynamo.call(silent)
    dynamo.close()


async def test_a_dynamodb_that_takes_no_connection_is_out_of_reach_and_tried_again(
    monkeypatch: pytest.MonkeyPatch, unused_tcp_port: int
) -> None:
    """The real client; an outage ends no feed, which would wait for a person then."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "made-up")
    dynamo = Dynamo("thumbs", "us-east-1", f"http://127.0.0.1:{unused_tcp_port}", threads=1)
    with pytest.raises(Busy):
        await dynamo.latest_stream()
    dynamo.close()


async def test_a_certificate_that_is_not_trusted_is_for_a_person_to_mend(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client.Dynamo, "_clients", lambda self: (None, None))
    dynamo = Dynamo("thumbs", "us-east-1", None, threads=1)

    def untrusted(*_: object) -> None:
        raise SSLError(endpoint_url="https://127.0.0.1:1", error="certificate verify failed")

    with pytest.raises(Misconfigured, match="can't be asked"):
        await dynamo.call(untrusted)
    dynamo.close()
