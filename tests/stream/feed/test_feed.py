"""The feed on DynamoDB Local, Kafka and Valkey: in order, over kills, over a lost Redis, one at a time."""

from __future__ import annotations

import json
import re
import signal
from typing import Any

import pytest

from tests.asking import HTTP
from tests.stream.feed.feed_rig import FeedRig


def by_item(events: list[dict[str, Any]]) -> dict[str, list[tuple[int, str]]]:
    found: dict[str, list[tuple[int, str]]] = {}
    for event in events:
        change = event["dynamodb"]
        found.setdefault(change["Keys"]["MessageId"]["S"], []).append(
            (int(change["SequenceNumber"]), event["eventName"])
        )
    return found


def test_changes_reach_the_topic_in_order_per_item_and_under_the_response_id(feed_rig: FeedRig) -> None:
    for name in "abc":
        feed_rig.put_item(name, "up", Photo={"B": b"\x00\xff"}, Tags={"SS": ["x", "y"]})
    for name in "abc":
        feed_rig.put_item(name, "down")
    feed_rig.delete_item("b")
    ran = feed_rig.run("feed", "dynamodb", "--once", "--json")
    assert ran.code == 0, ran.err
    assert ran.json["published"] == 7
    records = feed_rig.records("thumbs")
    names = {item: [name for _, name in changes] for item, changes in by_item(feed_rig.published()).items()}
    assert names["m-a"] == names["m-c"] == ["INSERT", "MODIFY"]
    assert names["m-b"] == ["INSERT", "MODIFY", "REMOVE"]
    assert {record.key for record in records} == {feed_rig.response_id(name).encode() for name in "abc"}
    first = json.loads(records[0].value or b"")
    assert isinstance(first["dynamodb"]["ApproximateCreationDateTime"], int | float)
    assert first["dynamodb"]["NewImage"]["Photo"] == {"B": "AP8="}
    again = feed_rig.run("feed", "dynamodb", "--once", "--json")
    assert again.json["published"] == 0, "it goes on where it was"


def test_sigkill_while_publishing_loses_nothing_and_keeps_the_order(feed_rig: FeedRig) -> None:
    items, changes = [f"i{number}" for number in range(50)], 0
    for number in range(2):
        feed = feed_rig.feed()
        feed_rig.wait("the feed to read", lambda: "feed_reads_shard" in feed_rig.feed_log(), 40)
        for name in items:
            feed_rig.put_item(name, "up" if number else "down")
            changes += 1
        feed.send_signal(signal.SIGKILL)  # a page is on its way, or its place is
        feed.wait()
    feed_rig.put_item("last")
    leases = f"{feed_rig.prefix}feed:*:lease:*"
    feed_rig.wait("the dead feed's lease to end", lambda: not list(feed_rig.state.scan_iter(leases)), 15)
    assert feed_rig.run("feed", "dynamodb", "--once").code == 0
    found = by_item(feed_rig.published())
    assert len({sequence for item in found.values() for sequence, _ in item}) == changes + 1
    for item in found.values():
        first_seen = list(dict.fromkeys(item))
        assert first_seen == sorted(first_seen)


def test_an_emptied_redis_is_harmless(feed_rig: FeedRig) -> None:
    feed = feed_rig.feed()
    feed_rig.put_item("before")
    feed_rig.wait("the first change", lambda: len(feed_rig.published()) == 1, 30)
    for key in feed_rig.state.scan_iter(f"{feed_rig.prefix}*"):
        feed_rig.state.delete(key)
    feed_rig.put_item("after")
    feed_rig.wait("the second change", lambda: len(feed_rig.published()) == 2, 30)
    assert feed_rig.end(feed) == 0
    for key in feed_rig.state.scan_iter(f"{feed_rig.prefix}*"):
        feed_rig.state.delete(key)
    assert feed_rig.run("feed", "dynamodb", "--once", "--json").json["published"] == 2, "from the oldest record again"
    assert len({event["eventID"] for event in feed_rig.published()}) == 2


def test_two_feeds_double_nothing_and_the_second_takes_over(feed_rig: FeedRig) -> None:
    first = feed_rig.feed()
    feed_rig.wait("the first to read", lambda: "feed_reads_shard" in feed_rig.feed_log(0), 30)
    second = feed_rig.feed()
    feed_rig.wait("the second to stand by", lambda: "feed_found_stream" in feed_rig.feed_log(1), 30)
    for number in range(20):
        feed_rig.put_item(f"i{number}")
    feed_rig.wait("all changes", lambda: len(feed_rig.published()) == 20, 30)
    assert feed_rig.end(first) == 0
    feed_rig.put_item("late")
    feed_rig.wait("the second to go on", lambda: len(feed_rig.published()) == 21, 30)
    assert feed_rig.end(second) == 0
    assert len(feed_rig.published()) == 21


def test_probes_and_metrics(feed_rig: FeedRig) -> None:
    feed = feed_rig.feed()
    feed_rig.put_item("a")
    feed_rig.wait("the change", lambda: len(feed_rig.published()) == 1, 30)
    found = re.search(r"http://127\.0\.0\.1:\d+", feed_rig.feed_log())
    assert found is not None

    def ask(path: str) -> str:
        return HTTP.get(found[0] + path).raise_for_status().text

    assert json.loads(ask("/livez"))["ok"]
    feed_rig.wait("readiness", lambda: json.loads(ask("/readyz"))["ok"], 10)
    assert json.loads(ask("/readyz"))["checks"]["gaps"]["detail"] == "none"
    assert 'rampgate_feed_records_total{outcome="published"} 1.0' in ask("/metrics")
    assert feed_rig.end(feed) == 0


def test_it_waits_for_the_table(feed_rig: FeedRig) -> None:
    feed_rig.db.delete_table(TableName=feed_rig.table)
    feed = feed_rig.feed()
    feed_rig.wait("it to wait", lambda: "waiting for the table" in feed_rig.feed_log(), 30)
    feed_rig.dynamodb.create_thumbs_table(feed_rig.table)
    feed_rig.put_item("a")
    feed_rig.wait("the change", lambda: len(feed_rig.published()) == 1, 30)
    assert feed_rig.end(feed) == 0


@pytest.mark.parametrize("view", ["KEYS_ONLY", "NEW_IMAGE", None])
def test_a_stream_that_cannot_serve_is_named_with_the_remedy(feed_rig: FeedRig, view: Any) -> None:
    feed_rig.db.delete_table(TableName=feed_rig.table)
    feed_rig.dynamodb.create_thumbs_table(feed_rig.table, view or "KEYS_ONLY")
    if view is None:
        feed_rig.db.update_table(TableName=feed_rig.table, StreamSpecification={"StreamEnabled": False})
    ran = feed_rig.run("feed", "dynamodb", "--once")
    assert ran.code == 2
    assert "enable it on table" in ran.err
    assert "NEW_AND_OLD_IMAGES" in ran.err
    assert "Traceback" not in ran.err


def test_a_stream_switched_off_and_on_is_read_to_its_end_and_reported(feed_rig: FeedRig) -> None:
    feed_rig.put_item("a")
    assert feed_rig.run("feed", "dynamodb", "--once", "--json").json["published"] == 1
    feed_rig.put_item("b")
    feed_rig.db.update_table(TableName=feed_rig.table, StreamSpecification={"StreamEnabled": False})
    feed_rig.put_item("in no stream")
    spec: Any = {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}
    feed_rig.db.update_table(TableName=feed_rig.table, StreamSpecification=spec)
    feed_rig.put_item("c")
    feed = feed_rig.feed()
    feed_rig.wait("both streams", lambda: len(feed_rig.published()) == 3, 30)
    assert "feed_gap" in feed_rig.feed_log()
    assert feed_rig.state.llen(f"{feed_rig.prefix}feed:{feed_rig.table}:gaps") == 1
    assert feed_rig.end(feed) == 0
