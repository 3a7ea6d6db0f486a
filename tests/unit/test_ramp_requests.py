"""Ramp-step requests: what is read of them, and what is answered to those that ask for nothing (issue: bad input)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalcore.gates.requests import Asked, Invalid, Unreadable, body_hash, read

GOOD: dict[str, Any] = {
    "request_id": "r-1",
    "experiment_id": "e-1",
    "agent_id": "receipts-agent",
    "agent_version": "abc123",
    "vertical": "receipts",
    "from_percent": 0,
    "to_percent": 5,
    "ramp_steps": [0, 5, 25, 100],
    "eval_gates": {"pre_ramp": ["ux_quality"], "pre_full": ["ux_quality", "response-quality"]},
    "requested_at": "2026-11-21T12:00:00Z",
    "deadline_seconds": 600,
}


def raw(**changes: Any) -> bytes:
    return json.dumps({**GOOD, **changes}).encode()


def without(name: str) -> bytes:
    return json.dumps({key: value for key, value in GOOD.items() if key != name}).encode()


def test_a_sound_request_is_read() -> None:
    asked = read(raw())
    assert isinstance(asked, Asked)
    assert (asked.request_id, asked.step.from_percent, asked.milestones) == ("r-1", 0.0, ("pre_ramp",))


def test_unknown_fields_are_tolerated_and_optional_ones_may_be_missing() -> None:
    assert isinstance(read(raw(new_field={"a": 1})), Asked)
    for name in ("vertical", "ramp_steps", "deadline_seconds"):
        assert isinstance(read(without(name)), Asked)


@pytest.mark.parametrize(
    ("bad", "field"),
    [
        (raw(to_percent=101), "to_percent"),
        (raw(from_percent=-1), "from_percent"),
        (raw(from_percent=50, to_percent=25), "from_percent"),
        (raw(to_percent="5"), "to_percent"),
        (raw(to_percent=True), "to_percent"),
        (raw(to_percent=None), "to_percent"),
        (raw(eval_gates={"pre_ramp": "ux_quality"}), "eval_gates.pre_ramp"),
        (raw(eval_gates={"pre_ramp": [1]}), "eval_gates.pre_ramp.0"),
        (raw(requested_at="yesterday"), "requested_at"),
        (raw(deadline_seconds=-1), "deadline_seconds"),
        (raw(agent_id=""), "agent_id"),
        (raw(agent_id={"a": 1}), "agent_id"),
        (without("agent_version"), "agent_version"),
        (without("experiment_id"), "experiment_id"),
        (raw(ramp_steps=[0, 500]), "ramp_steps.1"),
    ],
)
def test_a_malformed_request_whose_id_can_be_read_is_answered_with_the_field(bad: bytes, field: str) -> None:
    request = read(bad)
    assert isinstance(request, Invalid)
    assert request.request_id == "r-1"
    assert any(why.startswith(f"{field}:") for why in request.why), request.why


def test_all_that_is_wrong_is_told_at_once() -> None:
    request = read(raw(to_percent=101, agent_id=""))
    assert isinstance(request, Invalid)
    assert len(request.why) == 2


@pytest.mark.parametrize(
    "bad",
    [
        None, b"", b"null", b"[]", b"{", b"\xff\xfe", b'{"request_id": NaN}', b"[" * 100_000, without("request_id"),
        raw(request_id=""), raw(request_id=7), raw(request_id="x" * 513),
    ],
)  # fmt: skip
def test_what_has_no_id_can_be_answered_by_nobody(bad: bytes | None) -> None:
    assert isinstance(read(bad), Unreadable)


@given(st.binary(max_size=200))
def test_reading_never_raises(data: bytes) -> None:
    read(data)


def test_the_same_body_in_another_order_is_the_same_and_another_body_is_not() -> None:
    assert body_hash(GOOD) == body_hash(dict(reversed(GOOD.items())))
    assert body_hash(GOOD) != body_hash({**GOOD, "to_percent": 6})
