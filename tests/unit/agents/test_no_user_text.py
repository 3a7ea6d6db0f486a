"""A dead letter's detail says what is wrong and quotes no one: it goes into headers, lists and logs."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agents import rerolls, thumbs, traces
from agents.policy import Policy
from tests.unit.agents.builders import NOW, Rec, change, reroll, thumb, trace

TEXT = "please refund my order, canary@example.org"
FIELDS = ("event_id", "value", "occurred_at", "sequence", "observed_at", "user_id", "response_id")


def bad_ones() -> list[tuple[str, Any, Any]]:
    """(what it is, its codec, the event): every field of every form as text, number, list or object around the text."""
    out: list[tuple[str, Any, Any]] = []
    for wrong in (TEXT, [TEXT], {"text": TEXT}, TEXT * 200):
        out += [(f"thumb {name}", thumbs, thumb("r") | {name: wrong}) for name in FIELDS]
        out += [(f"reroll {name}", rerolls, reroll("r") | {name: wrong}) for name in reroll("r")]
        out += [(f"trace {name}", traces, trace("r") | {name: wrong}) for name in trace("r")]
        out += [(f"change {name}", thumbs, change("r") | {name: wrong}) for name in change("r")]
        for name in change("r")["dynamodb"]:
            event = change("r")
            event["dynamodb"] = event["dynamodb"] | {name: wrong}
            out.append((f"change dynamodb.{name}", thumbs, event))
        for name in ("Thumbs", "ResponseId", "CreatedAt", "MessageId"):
            event = change("r")
            event["dynamodb"]["NewImage"][name] = {"S": wrong}
            out.append((f"item {name}", thumbs, event))
        out += [("no event", codec, wrong) for codec in (thumbs, rerolls, traces)]
        out += [("no known form", codec, {"text": wrong}) for codec in (thumbs, rerolls, traces)]
    return out


@pytest.mark.parametrize(
    "raw", [TEXT.encode(), b'{"text": "' + TEXT.encode(), json.dumps(TEXT).encode()[:-1], b"\xff" + TEXT.encode()]
)
def test_bytes_that_are_no_json_are_not_quoted(raw: bytes) -> None:
    for codec in (thumbs, rerolls, traces):
        (bad,) = codec.decode([Rec(raw)], NOW, Policy()).bad
        assert "canary" not in bad.detail
        assert "refund" not in bad.detail


def test_no_field_of_any_form_is_quoted() -> None:
    seen = 0
    for what, codec, event in bad_ones():
        for bad in codec.decode([Rec(json.dumps(event).encode())], NOW, Policy()).bad:
            seen += 1
            assert "canary" not in bad.detail, f"{what}: {bad.detail}"
            assert "refund" not in bad.detail, f"{what}: {bad.detail}"
    assert seen > 60


def named_badly() -> list[tuple[Any, Any]]:
    """(a codec, an event) with the text as the name of a field, at every level."""
    inner = change("r")
    inner["dynamodb"]["NewImage"] = {TEXT: {"S": "up"}, "Thumbs": {TEXT: "up"}}
    forms: list[tuple[Any, Any]] = [(thumbs, thumb("r")), (rerolls, reroll("r")), (traces, trace("r"))]
    out: list[tuple[Any, Any]] = [(thumbs, inner), (thumbs, change("r") | {"dynamodb": {TEXT: TEXT}})]
    for codec, event in [*forms, (thumbs, change("r"))]:
        out += [(codec, {TEXT: 1}), (codec, {TEXT: TEXT, f"{TEXT} 2": {}}), (codec, {TEXT: {TEXT: [TEXT]}})]
        out += [(codec, event | {name: {TEXT: TEXT}}) for name in event]
    return out


def test_no_name_of_a_field_is_quoted_since_a_name_can_be_a_users_words_too() -> None:
    seen = 0
    for codec, event in named_badly():
        for bad in codec.decode([Rec(json.dumps(event).encode())], NOW, Policy()).bad:
            seen += 1
            assert "canary" not in bad.detail, bad.detail
            assert "refund" not in bad.detail, bad.detail
    assert seen > 30


def test_names_of_our_own_forms_are_shown_and_others_counted() -> None:
    raw = json.dumps({"eventID": "1", "value": "up", TEXT: 1, "more": 2}).encode()
    (bad,) = thumbs.decode([Rec(raw)], NOW, Policy()).bad
    assert bad.detail.endswith("an object with eventID, value, 2 unknown")


def test_what_is_no_text_is_shown_for_the_person_who_mends_it() -> None:
    (bad,) = thumbs.decode(
        [Rec(json.dumps(thumb("r") | {"occurred_at": "2026-13-45T00:00:00Z"}).encode())], NOW, Policy()
    ).bad
    assert "2026-13-45T00:00:00Z" in bad.detail
