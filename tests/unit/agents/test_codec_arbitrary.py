"""Whatever a producer sends, a codec never raises, and every record is accounted for exactly once."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents import rerolls, thumbs, traces
from agents.codec import Decoded
from agents.policy import Policy
from tests.unit.agents.arbitrary_json import JSON
from tests.unit.agents.builders import NOW, Rec, change, reroll, thumb, trace

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
@settings(max_examples=300)
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
