"""Ramp-step requests: what is read of them, and what is answered to those that ask for nothing (contracts §5)."""

from __future__ import annotations

import json
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalcore.gates.requests import InvalidRequest, RampRequest, Request, UnreadableRequest, body_hash, read
from evalcore.gates.verdict import Moment, as_json, invalid, refused
from schemas.verdicts import Code, Reason
from tests.unit.agents.gates.ramp_answers_rig import REQUEST

GOOD: dict[str, Any] = {
    **REQUEST,
    "ramp_steps": [0, 5, 25, 100],
    "eval_gates": {"pre_ramp": ["ux_quality"], "pre_full": ["ux_quality", "response-quality"]},
}


def raw(**changes: Any) -> bytes:
    return json.dumps({**GOOD, **changes}).encode()


def without(name: str) -> bytes:
    return json.dumps({key: value for key, value in GOOD.items() if key != name}).encode()


def test_a_sound_request_is_read() -> None:
    asked = read(raw())
    assert isinstance(asked, RampRequest)
    assert (asked.request_id, asked.step.from_percent, asked.milestones) == ("r-1", 0.0, ("pre_ramp",))


def test_unknown_fields_are_tolerated_and_optional_ones_may_be_missing() -> None:
    assert isinstance(read(raw(new_field={"a": 1})), RampRequest)
    for name in ("vertical", "ramp_steps", "deadline_seconds"):
        assert isinstance(read(without(name)), RampRequest)


@pytest.mark.parametrize(
    ("bad", "field"),
    [
        (raw(to_percent=101), "to_percent"),
        (raw(from_percent=-1), "from_percent"),
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
        (raw(to_percent=float("nan")), "to_percent"),
        (raw().replace(b'"to_percent": 5', b'"to_percent": 1' + b"0" * 5000), "to_percent"),
        (raw().replace(b'"to_percent": 5', b'"to_percent": 1e400'), "to_percent"),
        (raw(deadline_seconds=float("nan")), "deadline_seconds"),
        (raw(deadline_seconds=float("inf")), "deadline_seconds"),
        (raw(eval_gates=None), "eval_gates"),
        (raw(requested_at=-1e300), "requested_at"),
        (raw(experiment_id="e\ud800"), "experiment_id"),
        (raw(vertical="v\udfff", to_percent=101), "vertical"),
        (raw()[:-1] + b', "from_percent": 5}', "from_percent"),
        (raw().replace(b'"pre_full":', b'"pre_ramp": [], "pre_full":'), "eval_gates.pre_ramp"),
    ],
)
def test_a_malformed_request_whose_id_can_be_read_is_answered_with_the_field(bad: bytes, field: str) -> None:
    request = read(bad)
    assert isinstance(request, InvalidRequest)
    assert request.request_id == "r-1"
    assert any(why.startswith(f"{field}:") for why in request.why), request.why
    published(request)


def published(request: Request) -> bytes:
    """As a record: its key and its value."""
    assert isinstance(request, RampRequest | InvalidRequest)
    verdict = refused(request, [Reason(Code.INVALID_REQUEST, "why")], Moment("now", 0.0))
    if isinstance(request, InvalidRequest):
        verdict = invalid(request, Moment("now", 0.0))
    (verdict.experiment_id or "").encode()
    verdict.request_id.encode()
    value = orjson.dumps(as_json(verdict))
    assert len(value) < 500_000
    return value


def test_a_whole_number_as_an_id_is_an_id_that_can_be_read() -> None:
    request = read(raw(request_id=7))
    assert isinstance(request, InvalidRequest)
    assert (request.request_id, request.why[0].partition(":")[0]) == ("7", "request_id")


def test_however_much_is_wrong_the_verdict_fits_a_record() -> None:
    request = read(raw(ramp_steps=["x"] * 1000, eval_gates={"pre_ramp": [{}] * 90}))
    assert isinstance(request, InvalidRequest)
    assert request.why[-1] == "1070 more fields are wrong"
    published(request)


def test_nesting_that_no_answer_could_be_made_of_is_told_and_raises_nothing() -> None:
    for depth in (500, *range(900, 1010), 100_000):
        for nested in (b"[" * depth + b"]" * depth, b'{"a":' * depth + b"1" + b"}" * depth):
            one = read(b'{"request_id":"r","x":' + nested + b"}")
            assert isinstance(one, InvalidRequest | UnreadableRequest)
            if isinstance(one, InvalidRequest):
                published(one)


@pytest.mark.parametrize("coding", ["utf-8-sig", "utf-16", "utf-32"])
def test_a_byte_order_mark_and_wide_letters_hide_no_request(coding: str) -> None:
    assert isinstance(read(raw().decode().encode(coding)), RampRequest)


@pytest.mark.parametrize(
    "tolerated",
    [
        raw(to_percent=5.5), raw(to_percent=0), raw(from_percent=100, to_percent=100), raw(from_percent=-0.0),
        raw(from_percent=50, to_percent=100, ramp_steps=[1, 2]), raw(deadline_seconds=0), raw(deadline_seconds=1e308),
        raw(requested_at="9999-12-31T23:59:59Z"), raw(requested_at="2026-01-01T00:00:00"), raw(requested_at=1700000000),
        raw(requested_at="0001-01-01T00:00:00+23:59"), raw(request_id="a\x00b\x1b[31m"), raw(request_id="  "),
        raw(other="half a pair: \ud800"), raw(other=float("nan")), raw(other="x" * 900_000),
    ],
)  # fmt: skip
def test_what_is_odd_and_sound_is_a_request(tolerated: bytes) -> None:
    request = read(tolerated)
    assert isinstance(request, RampRequest)
    published(request)


def test_ids_that_differ_in_anything_are_different() -> None:
    ids = ["r", "R", " r", "r ", "r\u200b", "\u0072\u0301"]
    assert len({request.request_id for request in map(read, (raw(request_id=one) for one in ids))}) == len(ids)


DOWN = {"from_percent": 50, "to_percent": 0}
NO_JUDGES = {"pre_ramp": [], "pre_full": ["no such judge"]}


@pytest.mark.parametrize(
    "down",
    [
        raw(**DOWN), raw(**DOWN, eval_gates=NO_JUDGES), raw(**DOWN, eval_gates=None), raw(**DOWN, ramp_steps=[500]),
        raw(**DOWN, requested_at="yesterday"), raw(**DOWN, deadline_seconds=-1), raw(**DOWN, vertical=7),
        raw(**DOWN, request_id=7), raw(from_percent=100, to_percent=99.999), raw(from_percent=0.001, to_percent=0),
    ],
)  # fmt: skip
def test_a_step_down_is_one_for_all_whose_ids_and_percentages_can_be_read(down: bytes) -> None:
    request = read(down)
    assert not isinstance(request, UnreadableRequest)
    assert request.goes_down


@pytest.mark.parametrize(
    "other",
    [
        raw(from_percent=50, to_percent=50), raw(from_percent=50, to_percent=51), raw(**DOWN, agent_id=""),
        raw(**DOWN, agent_version=None), raw(**DOWN, experiment_id="e\ud800"), raw(from_percent=101, to_percent=0),
        raw(from_percent=50, to_percent=-1), raw(from_percent="50", to_percent=0), raw(from_percent=True, to_percent=0),
        raw(from_percent=50, to_percent=None), raw(**DOWN)[:-1] + b', "from_percent": 5}',
        raw(**DOWN)[:-1] + b', "agent_id": "other"}',
    ],
)  # fmt: skip
def test_what_can_not_be_read_as_one_is_no_step_down(other: bytes) -> None:
    request = read(other)
    assert not isinstance(request, UnreadableRequest)
    assert not request.goes_down


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from([10**400, -(10**400), 101, -1, 0])
    | st.floats()
    | st.text(st.characters(), max_size=20)
    | st.sampled_from(["\ud800", "x" * 600, "ux_quality", "2026-11-21T12:00:00Z", "10"]),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=10), inner, max_size=5),
    max_leaves=10,
)


@given(st.dictionaries(st.sampled_from([*GOOD, "other"]), VALUES))
def test_whatever_stands_in_the_fields_it_is_one_verdict_or_one_dead_letter(changes: dict[str, Any]) -> None:
    request = read(raw(**changes))
    if "request_id" not in changes:
        assert not isinstance(request, UnreadableRequest)
    if not isinstance(request, UnreadableRequest):
        published(request)


def test_all_that_is_wrong_is_told_at_once() -> None:
    request = read(raw(to_percent=101, agent_id=""))
    assert isinstance(request, InvalidRequest)
    assert len(request.why) == 2


@pytest.mark.parametrize(
    "bad",
    [
        None, b"", b"null", b"[]", b"{", b"\xff\xfe", b'{"request_id": NaN}', b"[" * 100_000, without("request_id"),
        raw(request_id=""), raw(request_id=7.5), raw(request_id=True), raw(request_id=["r"]), raw(request_id="x" * 513),
        raw(request_id="x" * 10_000), raw(request_id="half a pair: \ud800"), raw()[:-1] + b', "request_id": "r-2"}',
        raw(agent_id="?").replace(b"?", b"\xe9"), b" ", b"\x00",
    ],
)  # fmt: skip
def test_what_has_no_id_can_be_answered_by_nobody(bad: bytes | None) -> None:
    assert isinstance(read(bad), UnreadableRequest)


@given(st.binary(max_size=200))
def test_reading_never_raises(data: bytes) -> None:
    read(data)


def test_the_same_body_in_another_order_is_the_same_and_another_body_is_not() -> None:
    assert body_hash(GOOD) == body_hash(dict(reversed(GOOD.items())))
    assert body_hash(GOOD) != body_hash({**GOOD, "to_percent": 6})


def test_the_same_number_in_another_spelling_is_the_same_body() -> None:
    spellings = (b"5", b"5.0", b"50e-1")
    read_ = [read(raw().replace(b'"to_percent": 5', b'"to_percent": ' + number)) for number in spellings]
    bodies = [request.body for request in read_ if isinstance(request, RampRequest)]
    assert (len(bodies), len({*bodies})) == (3, 1)


def test_what_a_wrong_request_asked_for_is_told_as_far_as_it_can_be_read() -> None:
    request = read(raw(from_percent=50, to_percent=75, agent_id=""))
    assert isinstance(request, InvalidRequest)
    assert (request.stands, request.wanted) == (50.0, 75.0)
    assert (request.known["agent_version"], "agent_id" in request.known) == ("abc123", False)
    off = read(raw(from_percent=5, to_percent=101))
    assert isinstance(off, InvalidRequest)
    assert (off.stands, off.wanted) == (5.0, None)
    assert off.why == ("to_percent: Input should be less than or equal to 100, not 101",)
