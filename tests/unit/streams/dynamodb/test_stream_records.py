"""Stream records go out as AWS publishes them, whatever types boto3 hands over. Shards: parents before children,
whatever tree a stream has grown."""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from agents.policy import Attributes, Policy
from agents.thumbs import decode
from streams.dynamodb.records import message_of
from streams.dynamodb.shards import (
    HORIZON_MS,
    Place,
    Shard,
    decode_place,
    encode_place,
    readable,
    unlisted,
)
from tests.unit.agents.builders import NOW, Rec

NAMES = Attributes()


def record(**change: Any) -> dict[str, Any]:
    keys = {"MessageId": {"S": "m1"}}
    image = {**keys, "ResponseId": {"S": "resp"}, "Thumbs": {"S": "down"}}
    whole = {
        "Keys": keys,
        "NewImage": image,
        "SequenceNumber": "100",
        "ApproximateCreationDateTime": datetime.fromtimestamp(NOW / 1000, UTC),
    } | change
    return {"eventID": "e", "eventName": "MODIFY", "dynamodb": {k: v for k, v in whole.items() if v is not None}}


def published(value: dict[str, Any], limit: int = 1_000_000) -> dict[str, Any]:
    content = message_of(value, "arn:x", NAMES, limit)[1]
    assert content is not None
    return dict(json.loads(content))


def test_every_type_of_dynamodb_has_its_published_form() -> None:
    image = {
        "ResponseId": {"S": "resp"},
        "B": {"B": b"\x00\xff"},
        "BS": {"BS": [b"a", b"b"]},
        "NS": {"NS": {"1", "2"}},
        "D": {"N": Decimal("1.50")},
        "L": {"L": [{"BOOL": True}, {"NULL": True}, {"M": {"x": {"S": "é"}}}]},
    }
    out = published(record(NewImage=image))["dynamodb"]
    assert out["NewImage"]["B"] == {"B": "AP8="}
    assert out["NewImage"]["BS"] == {"BS": ["YQ==", "Yg=="]}
    assert out["NewImage"]["NS"] == {"NS": ["1", "2"]}
    assert out["NewImage"]["D"] == {"N": "1.50"}
    assert out["NewImage"]["L"] == image["L"]


def test_the_time_is_a_number_of_seconds() -> None:
    assert published(record())["dynamodb"]["ApproximateCreationDateTime"] == NOW // 1000


def test_a_ttl_identity_is_spelled_as_aws_publishes_it_and_our_codec_filters_it() -> None:
    image = {"MessageId": {"S": "m1"}, "ResponseId": {"S": "resp"}, "Thumbs": {"S": "up"}}
    value = record(NewImage=None, OldImage=image) | {"eventName": "REMOVE"}
    value["userIdentity"] = {"PrincipalId": "dynamodb.amazonaws.com", "Type": "Service"}
    out = published(value)
    assert out["userIdentity"] == {"principalId": "dynamodb.amazonaws.com", "type": "Service"}
    decoded = decode([Rec(json.dumps(out).encode())], NOW, Policy())
    assert [dropped.reason for dropped in decoded.dropped] == ["ttl_expiry"]


def test_the_key_is_the_response_id_of_the_newer_image_then_of_the_older_then_the_item_key() -> None:
    old = {"ResponseId": {"S": "older"}}
    assert message_of(record(OldImage=old), "a", NAMES, 10_000)[0] == b"resp"
    assert message_of(record(NewImage=None, OldImage=old), "a", NAMES, 10_000)[0] == b"older"
    assert message_of(record(NewImage=None), "a", NAMES, 10_000)[0] == b"m1"
    assert message_of(record(NewImage=None, Keys={"pk": {"N": "7"}}), "a", NAMES, 10_000)[0] == b'{"pk":{"N":"7"}}'


def test_what_is_published_is_what_the_codec_reads() -> None:
    decoded = decode([Rec(message_of(record(), "arn", NAMES, 10_000)[1])], NOW, Policy())
    assert [(item.response_id, item.value, item.time) for item in decoded.items] == [("resp", -1, NOW)]


def test_a_record_too_large_for_kafka_keeps_what_the_join_needs() -> None:
    image = {"MessageId": {"S": "m1"}, "ResponseId": {"S": "resp"}, "Thumbs": {"S": "up"}, "Text": {"S": "x" * 5000}}
    out = published(record(NewImage=image, OldImage=image), limit=2_000)
    assert "Text" not in out["dynamodb"]["NewImage"]
    assert out["dynamodb"]["OldImage"]["Thumbs"] == {"S": "up"}


def test_one_that_is_still_too_large_has_no_value() -> None:
    image = {"ResponseId": {"S": "r" * 5000}}
    assert message_of(record(NewImage=image), "arn", NAMES, 2_000)[1] is None


def names(shards: list[Shard]) -> list[str]:
    return [shard.shard_id for shard in shards]


def test_only_roots_may_be_read_at_first() -> None:
    tree = [Shard("a", None, "1", True), Shard("b", "a", "5"), Shard("c", "a", "6"), Shard("d", "gone", "3")]
    assert names(readable(tree, set())) == ["a", "d"]


def test_children_follow_once_their_parent_is_done() -> None:
    tree = [Shard("a", None, "1", True), Shard("b", "a", "5", True), Shard("c", "b", "9")]
    assert names(readable(tree, {"a"})) == ["b"]
    assert names(readable(tree, {"a", "b"})) == ["c"]


def test_the_oldest_comes_first_by_number_not_by_text() -> None:
    assert names(readable([Shard("b", None, "10"), Shard("a", None, "9")], set())) == ["a", "b"]


@pytest.mark.parametrize("seed", range(20))
def test_any_tree_is_read_whole_and_in_order(seed: int) -> None:
    """Shards split into any number of children; each is readable exactly after its parent."""
    dice = random.Random(seed)
    tree = [Shard("s0", None, "0", True)]
    for number in range(1, 40):
        parent = dice.choice([None, *names(tree)[-6:]])
        tree.append(Shard(f"s{number}", parent, str(number), dice.random() < 0.8))
    parents = {shard.shard_id: shard.parent for shard in tree}
    dice.shuffle(tree)
    done: list[str] = []
    while ready := readable(tree, set(done)):
        taken = dice.choice(ready).shard_id
        assert parents[taken] is None or parents[taken] in done
        done.append(taken)
    assert sorted(done) == sorted(parents)


def test_an_unread_shard_that_is_no_longer_listed_is_lost_and_a_read_one_is_forgotten() -> None:
    places = {"read": Place("9", 1, end=True), "unread": Place("4", 1), "listed": Place("2", 1)}
    assert unlisted(["listed"], places, read=False) == ["unread"]
    assert unlisted(["listed"], places, read=True) == ["read"]


def test_a_place_outlives_the_stream_after_a_day_and_an_unknown_one_never() -> None:
    assert Place("1", 1_000).outlived(1_001 + HORIZON_MS)
    assert not Place("1", 1_000).outlived(1_000 + HORIZON_MS)
    assert not Place().outlived(HORIZON_MS * 9)


def test_a_place_reads_back_as_it_was_written() -> None:
    for place in (Place(), Place("12", 5, tip=True), Place("1", 2, end=True)):
        assert decode_place(encode_place(place)) == place
