"""Each kind of bad input of the issue's list: a cause from the closed list, and a detail that names what is wrong.
Whatever a producer sends, a codec never raises, and every record is accounted for exactly once."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents import rerolls, thumbs, traces
from agents.codec import Decoded
from agents.own_calls import SIGNATURE, own_key, signature
from agents.policy import Policy
from schemas.outcomes import Cause
from tests.unit.agents.arbitrary_json import JSON
from tests.unit.agents.builders import DAY, NOW, Rec, change, reroll, thumb, trace

DECODE = {"thumbs": thumbs.decode, "changes": thumbs.decode, "rerolls": rerolls.decode, "traces": traces.decode}
GOOD = {"thumbs": thumb("r"), "changes": change("r"), "rerolls": reroll("r"), "traces": trace("r")}
TIME_FIELD = {
    "thumbs": "occurred_at",
    "changes": "dynamodb.ApproximateCreationDateTime",
    "rerolls": "occurred_at",
    "traces": "ended_at",
}


def decode(codec: str, *values: Any, policy: Policy | None = None) -> Decoded[Any]:
    raw = [v if v is None or isinstance(v, bytes) else json.dumps(v).encode() for v in values]
    out: Decoded[Any] = DECODE[codec]([Rec(v, offset=n) for n, v in enumerate(raw)], NOW, policy or Policy())
    return out


def only_bad(codec: str, value: Any, policy: Policy | None = None) -> tuple[Cause, str]:
    """Cause and detail of a bad record between two good ones, which must come through."""
    good = GOOD[codec]
    out = decode(codec, good, value, good, policy=policy)
    assert [item.index for item in out.items] == [0, 2]
    assert not out.dropped
    assert [bad.index for bad in out.bad] == [1]
    return out.bad[0].cause, out.bad[0].detail


def with_field(codec: str, path: str, value: Any) -> dict[str, Any]:
    event = json.loads(json.dumps(GOOD[codec]))
    at = event
    *parents, last = path.split(".")
    for parent in parents:
        at = at[parent]
    if value is ...:
        del at[last]
    else:
        at[last] = value
    return event


@pytest.mark.parametrize("codec", DECODE)
@pytest.mark.parametrize(
    ("value", "says"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b'{"response_id": "r",}', "not JSON"),
        (b"{'response_id': 'r'}", "not JSON"),
        (b'{"response_id": "\xff\xfe"}', "not JSON"),
        (b'{"response_id": "\\ud800", }', "not JSON"),
        (b'{"response_id": "\\ud800", "a": NaN}', "not JSON"),
        (b'{"response_id": "a\x00b"}', "not JSON"),
        (b'{"response_id": NaN}', "not JSON"),
        (b'{"response_id": Infinity}', "not JSON"),
        (b'{"response_id": 1e999}', "not JSON"),
        (b"[" * 10_000 + b"]" * 10_000, "not JSON"),
        (b'{"a":' * 10_000 + b"1" + b"}" * 10_000, "not JSON"),
        (b"\xef\xbb\xbf{}", "not JSON"),
        (None, "null"),
    ],
)
def test_what_is_no_json_is_malformed_and_says_so(codec: str, value: bytes | None, says: str) -> None:
    cause, detail = only_bad(codec, value)
    assert cause is Cause.MALFORMED
    assert says in detail


@pytest.mark.parametrize("codec", DECODE)
@pytest.mark.parametrize(
    "value",
    [
        {},
        [],
        "text",
        7,
        True,
        b"null",
        {"hello": "world"},
        [[1]],
        {"detail": {"x": 1}},
        b"[" * 1_000 + b"]" * 1_000,
        b'{"detail":' * 1_000 + b"1" + b"}" * 1_000,
    ],
)
def test_json_of_another_shape_is_an_unknown_schema(codec: str, value: Any) -> None:
    assert only_bad(codec, value)[0] is Cause.UNKNOWN_SCHEMA


@pytest.mark.parametrize("codec", DECODE)
def test_a_record_over_the_limit_is_too_large_whatever_is_in_it(codec: str) -> None:
    policy = Policy(max_record_bytes=10_000)
    assert only_bad(codec, b"x" * 10_001, policy)[0] is Cause.TOO_LARGE
    assert only_bad(codec, {**GOOD[codec], "extra": "x" * 5_000_000})[0] is Cause.TOO_LARGE
    fits = {**GOOD[codec], "extra": "x" * 5_000}
    assert len(decode(codec, fits, policy=policy).items) == 1


@pytest.mark.parametrize(
    ("codec", "field"),
    [
        *[("thumbs", field) for field in ("event_id", "value", "occurred_at")],
        *[("changes", field) for field in ("eventID", "eventName", "dynamodb.Keys", "dynamodb.SequenceNumber")],
        *[("rerolls", field) for field in ("event_id", "response_id", "new_response_id", "elapsed_seconds")],
        *[("traces", f) for f in ("event_id", "trace_id", "response_id", "project_name", "ended_at", "metadata")],
    ],
)
def test_a_missing_key_is_named(codec: str, field: str) -> None:
    cause, detail = only_bad(codec, with_field(codec, field, ...))
    assert cause is Cause.MALFORMED
    assert field in detail


@pytest.mark.parametrize(
    ("codec", "field", "value"),
    [
        ("thumbs", "response_id", 7),
        ("thumbs", "response_id", ""),
        ("thumbs", "response_id", None),
        ("thumbs", "response_id", "x" * 513),
        ("thumbs", "value", "sideways"),
        ("thumbs", "value", 1),
        ("thumbs", "value", ["up"]),
        ("thumbs", "occurred_at", True),
        ("thumbs", "occurred_at", None),
        ("thumbs", "occurred_at", "1800000000"),
        ("thumbs", "occurred_at", "yesterday"),
        ("thumbs", "sequence", -1),
        ("thumbs", "sequence", 1.5),
        ("thumbs", "sequence", True),
        ("thumbs", "sequence", "12a"),
        ("thumbs", "sequence", "٣"),
        ("thumbs", "sequence", "9" * 61),
        ("thumbs", "observed_at", "no time"),
        ("changes", "eventName", "UPSERT"),
        ("changes", "dynamodb.SequenceNumber", 12),
        ("changes", "dynamodb.SequenceNumber", "-5"),
        ("changes", "dynamodb.NewImage.Thumbs", {"S": "sideways"}),
        ("changes", "dynamodb.NewImage.Thumbs", {"N": "2"}),
        ("changes", "dynamodb.NewImage.Thumbs", {"S": "1"}),
        ("changes", "dynamodb.NewImage.Thumbs", {"BOOL": True}),
        ("changes", "dynamodb.NewImage.Thumbs", "up"),
        ("changes", "dynamodb.NewImage", "an image"),
        ("changes", "userIdentity", "me"),
        ("rerolls", "elapsed_seconds", "10"),
        ("rerolls", "elapsed_seconds", -1),
        ("rerolls", "elapsed_seconds", 1e308),
        ("rerolls", "elapsed_seconds", True),
        ("rerolls", "new_response_id", "r"),
        ("rerolls", "vertical", 5),
        ("traces", "trace_id", "not-a-uuid"),
        ("traces", "trace_id", 5),
        ("traces", "metadata", []),
        ("traces", "metadata.vertical", 5),
        ("traces", "metadata.vertical", "v" * 129),
        ("traces", "feedback_scores", [{"value": 1}]),
        ("traces", "feedback_scores", {"quality": 1}),
        ("traces", "started_at", {}),
    ],
)
def test_a_wrong_type_or_value_is_named_by_its_field(codec: str, field: str, value: Any) -> None:
    cause, detail = only_bad(codec, with_field(codec, field, value))
    assert cause is Cause.MALFORMED
    assert field in detail


@pytest.mark.parametrize("codec", DECODE)
@pytest.mark.parametrize(
    "moment",
    [
        "0001-01-01T00:00:00+23:59",
        "0001-01-01",
        "9999-12-31T23:59:59-23:59",
        "1970-01-01T00:00:00Z",
        0,
        -1,
        NOW,  # milliseconds where seconds belong
        1e308,
        -1e308,
        (NOW + 2 * DAY) / 1000,
    ],
)
def test_an_absurd_time_is_named_by_its_field(codec: str, moment: Any) -> None:
    cause, detail = only_bad(codec, with_field(codec, TIME_FIELD[codec], moment))
    assert cause is Cause.MALFORMED
    assert TIME_FIELD[codec] in detail


@pytest.mark.parametrize("codec", DECODE)
@pytest.mark.parametrize(
    "moment", ["2027-01-15T08:00:00Z", "2027-01-15T10:00:00+02:00", "2027-01-15T08:00:00", NOW / 1000]
)
def test_iso_text_with_or_without_a_zone_and_seconds_are_the_same_time(codec: str, moment: Any) -> None:
    out = decode(codec, with_field(codec, TIME_FIELD[codec], moment))
    assert [getattr(item, "ended", None) or getattr(item, "time", None) for item in out.items] == [NOW]


def test_of_a_key_that_stands_twice_the_last_one_counts() -> None:
    value = json.dumps(thumb("r", "up")).encode()[:-1] + b', "value": "down"}'
    assert [item.value for item in decode("thumbs", value).items] == [-1]


def test_nul_characters_and_unknown_fields_are_no_fault() -> None:
    event = thumb("r\x00\x00", unknown={"deep": [1, 2]})
    assert [item.response_id for item in decode("thumbs", event).items] == ["r\x00\x00"]


@pytest.mark.parametrize("depth", [100, 300, 900])
def test_a_trace_whose_input_is_nested_deep_is_still_joined(depth: int) -> None:
    value = json.dumps(trace("r")).encode()[:-1] + b',"input":' + b"[" * depth + b"]" * depth + b"}"
    assert [item.response_id for item in decode("traces", value).items] == ["r"]


def test_a_detail_carries_no_control_characters_and_stays_short() -> None:
    _, detail = only_bad("thumbs", {"\x1b[31m\nred": 1, **{f"k{n}" * 100: 1 for n in range(20)}})
    assert detail.isprintable()
    assert len(detail) <= 500


def test_a_thousand_bad_records_do_not_touch_the_one_good_one() -> None:
    out = decode("thumbs", *[{"response_id": n} for n in range(500)], thumb("r"), *[b"{" for _ in range(500)])
    assert [item.index for item in out.items] == [500]
    assert sorted(bad.index for bad in out.bad) == [n for n in range(1001) if n != 500]


def test_older_than_the_lookback_is_filtered_and_not_bad() -> None:
    old = NOW - 8 * DAY
    for codec, event in (
        ("thumbs", thumb("r", at=old)),
        ("changes", change("r", at=old)),
        ("rerolls", reroll("r", at=old)),
        ("traces", trace("r", at=old)),
    ):
        out = decode(codec, event)
        assert [dropped.reason.value for dropped in out.dropped] == ["out_of_window"]
        assert not out.items
        assert not out.bad


def test_our_own_judges_traces_are_filtered_as_own_traffic_by_their_signature() -> None:
    claimed = with_field("traces", "metadata.agent_id", "rampgate-judge")
    key = own_key("seal")
    made = {SIGNATURE: signature(key, uuid.UUID(claimed["trace_id"]).bytes)}
    signed = claimed | {"metadata": claimed["metadata"] | made}
    out = decode("traces", signed, claimed, policy=Policy(own_key=key))
    assert [(dropped.index, dropped.reason.value) for dropped in out.dropped] == [(0, "own_traffic")]
    assert [item.index for item in out.items] == [1], "a name alone escapes nothing"
    assert decode("traces", signed).dropped == [], "without a key no one can know"


@pytest.mark.parametrize(
    ("scores", "judged"),
    [
        ([], False),
        ([{"name": "response_quality", "value": 0.8}], True),
        ([{"name": "user_signal_thumbs", "value": 1.0}, {"name": "thumbs", "value": 1}, {"name": "reroll"}], False),
        ([{"name": "user_signal_annotation_severity", "value": 2}], False),
        ([{"name": "response_quality", "value": 0.8, "source": "ui"}], False),
    ],
)
def test_only_judges_scores_make_a_trace_judged(scores: list[Any], judged: bool) -> None:
    (item,) = decode("traces", trace("r", feedback_scores=scores)).items
    assert item.judged is judged


Decode = Callable[[Sequence[Rec], int, Policy], Decoded[Any]]
CODECS: dict[str, tuple[Decode, list[dict[str, Any]]]] = {
    "plain thumbs": (thumbs.decode, [thumb("r", sequence=1)]),
    "stream thumbs": (thumbs.decode, [change("r"), {"Records": [change("r"), change("q")]}]),
    "debezium thumbs": (
        thumbs.decode,
        [{"payload": {"op": "u", "before": None, "after": {"ResponseId": "r", "Thumbs": "up"}, "ts_ms": NOW}}],
    ),
    "rerolls": (rerolls.decode, [reroll("r")]),
    "traces": (traces.decode, [trace("r", judges=["quality"], said={"a": [1]}, session="s")]),
}


def accounted(decode: Decode, values: list[bytes | None]) -> Decoded[Any]:
    out = decode([Rec(value, offset=n) for n, value in enumerate(values)], NOW, Policy())
    bad = [one.index for one in out.bad]
    dropped = [one.index for one in out.dropped]
    items = {item.index for item in out.items}
    for index, value in enumerate(values):
        places = (index in bad) + (index in dropped) + (index in items)
        wrapper = value is not None and any(word in value for word in (b"Records", b"records", b"detail", b"[{"))
        assert places == 1 or (wrapper and places > 1), f"record {index} ends in {places} places: {value!r}"
    assert all(one.detail and one.detail.isprintable() and len(one.detail) <= 500 for one in out.bad)
    return out


@pytest.mark.parametrize("name", CODECS)
@settings(max_examples=150)
@given(values=st.lists(st.none() | st.binary(max_size=80), max_size=6))
def test_arbitrary_bytes_never_raise(name: str, values: list[bytes | None]) -> None:
    accounted(CODECS[name][0], values)


@pytest.mark.parametrize("name", CODECS)
@settings(max_examples=200)
@given(events=st.lists(JSON, max_size=5))
def test_arbitrary_json_never_raises(name: str, events: list[Any]) -> None:
    accounted(CODECS[name][0], [json.dumps(event).encode() for event in events])


REMOVED = object()


def mutate(event: Any, path: list[int], value: Any) -> Any:
    """The event with something else at a place deep inside it, or a key removed where `value` is REMOVED."""
    if not path or not isinstance(event, (dict, list)) or not event:
        return None if value is REMOVED else value
    if isinstance(event, list):
        at = path[0] % len(event)
        return [mutate(x, path[1:], value) if n == at else x for n, x in enumerate(event)]
    at_key = sorted(event)[path[0] % len(event)]
    if len(path) == 1 and value is REMOVED:
        return {key: x for key, x in event.items() if key != at_key}
    return {key: mutate(x, path[1:], value) if key == at_key else x for key, x in event.items()}


@pytest.mark.parametrize("name", CODECS)
@settings(max_examples=100)
@given(
    which=st.integers(0, 1),
    path=st.lists(st.integers(0, 12), min_size=1, max_size=4),
    value=JSON | st.just(REMOVED),
)
def test_a_right_event_with_one_thing_wrong_in_it_never_raises_nor_harms_its_neighbours(
    name: str, which: int, path: list[int], value: Any
) -> None:
    decode, events = CODECS[name]
    event = events[which % len(events)]
    broken = mutate(event, path, value)
    good = json.dumps(event).encode()
    out = accounted(decode, [good, json.dumps(broken).encode(), good])
    alone = len(accounted(decode, [good]).items)
    assert [item.index for item in out.items if item.index != 1] == [0] * alone + [2] * alone
    assert not [one for one in (*out.bad, *out.dropped) if one.index != 1]
