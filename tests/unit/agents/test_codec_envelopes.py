"""A DynamoDB change means the same, bare or in any envelope it travels in."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agents.codec import Decoded, SignalEvent
from agents.policy import Attributes, Policy
from agents.thumbs import decode
from schemas.outcomes import Cause, FilterReason, Kind
from tests.unit.agents.builders import NOW, Rec, change, thumb, trace
from tests.unit.agents.join.world import World

TTL = {"userIdentity": {"type": "Service", "principalId": "dynamodb.amazonaws.com"}}


def read(*events: Any, policy: Policy | None = None) -> Decoded[SignalEvent]:
    return decode([Rec(json.dumps(e).encode(), offset=n) for n, e in enumerate(events)], NOW, policy or Policy())


def facts(out: Decoded[SignalEvent]) -> list[tuple[str, int, bytes]]:
    assert not out.bad, out.bad
    return [(item.response_id, item.value, item.seq) for item in out.items]


def debezium(op: str, before: Any, after: Any, sequence: int = 1) -> dict[str, Any]:
    return {"op": op, "before": before, "after": after, "source": {"ts_ms": NOW, "sequence": str(sequence)}}


IMAGE = {"MessageId": {"S": "m"}, "ResponseId": {"S": "r"}, "Thumbs": {"S": "down"}}
PLAIN_IMAGE = {"MessageId": "m", "ResponseId": "r", "Thumbs": "down", "CreatedAt": None, "Count": 3}


@pytest.mark.parametrize(
    "event",
    [
        change("r", "down", 1),
        {"Records": [change("r", "down", 1)]},
        [change("r", "down", 1)],
        {"version": "0", "detail-type": "x", "detail": change("r", "down", 1)},
        [{"detail": change("r", "down", 1)}],
        debezium("c", None, IMAGE),
        debezium("r", None, IMAGE),
        debezium("u", IMAGE, IMAGE),
        {"schema": {"type": "struct"}, "payload": debezium("c", None, IMAGE)},
        {"payload": debezium("c", None, PLAIN_IMAGE)},
        {"payload": debezium("u", None, {**PLAIN_IMAGE, "Thumbs": -1})},
    ],
)
def test_a_change_is_the_same_in_every_envelope(event: Any) -> None:
    assert facts(read(event)) == [("r", -1, b"\x01")]
    assert read(event).items[0].time == NOW


def test_a_wrapper_of_several_changes_gives_several_items_in_their_order() -> None:
    three = [change("a", "up", 1), change("b", "down", 2), change("a", None, 3)]
    want = [("a", 1, b"\x01"), ("b", -1, b"\x02"), ("a", 0, b"\x03")]
    assert facts(read({"Records": three})) == want
    assert facts(read(three)) == want
    assert [item.index for item in read(thumb("x"), {"Records": three}).items] == [0, 1, 1, 1]


@pytest.mark.parametrize("name", ["INSERT", "MODIFY"])
@pytest.mark.parametrize(("given", "value"), [("up", 1), ("down", -1), (1, 1), (-1, -1), (0, 0), (None, 0)])
def test_insert_and_modify_set_what_the_attribute_says_and_a_cleared_one_withdraws(
    name: str, given: str | int | None, value: int
) -> None:
    assert facts(read(change("r", given, 1, eventName=name))) == [("r", value, b"\x01")]


def test_an_attribute_set_to_null_is_a_withdrawal() -> None:
    event = change("r", "up", 1)
    event["dynamodb"]["NewImage"]["Thumbs"] = {"NULL": True}
    assert facts(read(event)) == [("r", 0, b"\x01")]


def test_removal_by_a_user_withdraws_and_removal_by_expiry_changes_nothing() -> None:
    assert facts(read(change("r", "up", 9, eventName="REMOVE"))) == [("r", 0, b"\x09")]
    assert facts(read(debezium("d", IMAGE, None))) == [("r", 0, b"\x01")]
    out = read(change("r", "up", 9, eventName="REMOVE", **TTL))
    assert [dropped.reason for dropped in out.dropped] == [FilterReason.TTL_EXPIRY]
    assert not out.items


def test_expiry_is_recognised_as_boto3_spells_it_too() -> None:
    identity = {"userIdentity": {"Type": "Service", "PrincipalId": "dynamodb.amazonaws.com"}}
    assert [d.reason for d in read(change("r", "up", 9, eventName="REMOVE", **identity)).dropped] == ["ttl_expiry"]


@pytest.mark.parametrize("identity", [None, {}, {"principalId": "AROA:someone", "type": "User"}])
def test_another_remover_is_a_user(identity: Any) -> None:
    assert facts(read(change("r", "up", 9, eventName="REMOVE", userIdentity=identity))) == [("r", 0, b"\x09")]


@pytest.mark.parametrize(("name", "side"), [("INSERT", "NewImage"), ("MODIFY", "NewImage"), ("REMOVE", "OldImage")])
def test_a_stream_of_keys_only_is_bad_and_says_what_to_set(name: str, side: str) -> None:
    event = change("r", "up", 1, eventName=name)
    del event["dynamodb"][side]
    (bad,) = read(event).bad
    assert bad.cause is Cause.MALFORMED
    assert side in bad.detail
    assert "NEW_AND_OLD_IMAGES" in bad.detail


def test_an_image_without_a_response_id_is_bad_and_names_the_attribute() -> None:
    event = change("r", "up", 1)
    del event["dynamodb"]["NewImage"]["ResponseId"]
    assert "ResponseId" in read(event).bad[0].detail


def test_attribute_names_are_the_operators() -> None:
    policy = Policy(attributes=Attributes(response_id="turn", thumbs="vote"))
    event = change("r", "up", 1)
    event["dynamodb"]["NewImage"] = {"turn": {"S": "t"}, "vote": {"N": "-1"}}
    assert facts(read(event, policy=policy)) == [("t", -1, b"\x01")]


@pytest.mark.parametrize("created", [{"S": "2027-01-15T08:00:00Z"}, {"N": str(NOW // 1000)}])
def test_without_a_stream_time_the_items_own_time_counts(created: Any) -> None:
    event = change("r", "up", 1)
    del event["dynamodb"]["ApproximateCreationDateTime"]
    event["dynamodb"]["NewImage"]["CreatedAt"] = created
    assert read(event).items[0].time == NOW


def test_without_any_time_the_record_is_bad_and_names_the_attribute() -> None:
    event = change("r", "up", 1)
    del event["dynamodb"]["ApproximateCreationDateTime"]
    assert "CreatedAt" in read(event).bad[0].detail


def test_a_wrapper_that_holds_a_stranger_is_refused_whole() -> None:
    out = read([change("r"), {"hello": 1}])
    assert [bad.cause for bad in out.bad] == [Cause.UNKNOWN_SCHEMA]
    assert not out.items
    assert [bad.cause for bad in read({"Records": []}).bad] == [Cause.UNKNOWN_SCHEMA]


async def test_a_wrapper_with_bad_changes_joins_its_good_ones_and_lies_in_the_dead_letters_once() -> None:
    world = World()
    await world.tell(Kind.TRACE, trace("a"))
    wrapper = {
        "Records": [
            change("b", "sideways"),
            change("a", "up"),
            change("c", "sideways"),
            change("d", "up", eventName="REMOVE", **TTL),
        ]
    }
    (sent,) = world.send(Kind.THUMBS, wrapper)
    await world.run(Kind.THUMBS)
    assert world.score("a") == 1.0
    assert [letter.record for letter in world.letters.letters] == [sent]
    assert world.conservation(Kind.THUMBS) == {
        "consumed": 4,
        "done": 1,
        "dead_lettered:malformed": 2,
        "filtered:ttl_expiry": 1,
    }, "a wrapper counts once for each change in it"
