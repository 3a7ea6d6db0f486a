"""A store that is away, refuses, or loses an answer costs calls, and says so without its password."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import closing

import pytest

from agents.ports import Unavailable
from rampgate.store.place import Place
from rampgate.store.s3_objects import TRIES
from rampgate.store.sealed import SealedStore
from tests.s3_stand_in import BUCKET, StandIn, s3_stand_in


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[StandIn]:
    with s3_stand_in() as made:
        for name, value in made.environment().items():
            monkeypatch.setenv(name, value)
        yield made


@pytest.fixture
def on_s3(s3: StandIn) -> Iterator[SealedStore]:
    with closing(Place(f"s3://{BUCKET}").opened()) as opened:
        s3.calls.clear()
        yield opened


def fails(store: SealedStore, key: str = "a") -> str:
    with pytest.raises(Unavailable) as told:
        asyncio.run(store.kind("scores", 100).put(key, b"one"))
    return str(told.value)


def test_a_bucket_that_is_not_there_is_told(s3: StandIn) -> None:
    with pytest.raises(Unavailable, match=r"the store s3://nobody/x can't be used: .*NoSuchBucket"):
        Place("s3://nobody/x").opened()


def test_an_s3_that_is_out_of_reach_is_told(s3: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    with pytest.raises(Unavailable, match=r"the store s3://suites can't be used: .*127\.0\.0\.1:1"):
        Place(f"s3://{BUCKET}").opened()


def test_no_credentials_are_told(s3: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    with pytest.raises(Unavailable, match="credentials"):
        Place(f"s3://{BUCKET}").opened()


def test_an_s3_that_is_overloaded_is_tried_again_a_few_times_and_then_left_alone(
    s3: StandIn, on_s3: SealedStore
) -> None:
    s3.status = 503
    assert "SlowDown" in fails(on_s3)
    assert s3.calls["PUT"] == TRIES
    assert "SlowDown" in fails(on_s3, "b")
    assert s3.calls.total() == TRIES


def test_an_s3_that_refuses_a_call_is_asked_for_the_next_one(s3: StandIn, on_s3: SealedStore) -> None:
    s3.status = 403
    assert "AccessDenied" in fails(on_s3)
    s3.status = None
    assert asyncio.run(on_s3.kind("scores", 100).put("a", b"one")) is None
    assert len(on_s3.failures) == 1


def test_a_put_whose_answer_is_lost_finds_its_own_value(s3: StandIn, on_s3: SealedStore) -> None:
    scores = on_s3.kind("scores", 100)
    s3.mute = 1
    assert asyncio.run(scores.put("a", b"one")) in (None, b"one")
    assert asyncio.run(scores.get_many(["a"])) == [b"one"]
