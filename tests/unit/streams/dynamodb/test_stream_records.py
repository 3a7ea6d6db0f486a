"""Stream records go out as AWS publishes them, whatever types boto3 hands over."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from agents.policy import Attributes, Policy
from agents.thumbs import decode
from streams.dynamodb.records import message_of
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
