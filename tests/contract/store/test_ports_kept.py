"""What every store of suites promises, in a file and on S3 through boto3: one suite for both."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
import redis

from rampgate.store.place import Place
from rampgate.store.sealed import Kept, SealedStore
from schemas.seals import Seal
from tests.contract.store.store_rigs import PLACES, Rig, rig_of


@pytest.fixture(params=PLACES)
def rig(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Rig]:
    with rig_of(request.param, tmp_path, monkeypatch.setenv) as made:
        yield made


@pytest.fixture
def store(rig: Rig) -> Iterator[SealedStore]:
    with closing(rig.place().opened()) as opened:
        yield opened


def get(kept: Kept, *keys: str) -> list[bytes | None]:
    """In an event loop of its own, as each part of a command has."""
    return asyncio.run(kept.get_many(keys))


def put(kept: Kept, key: str, value: bytes) -> bytes | None:
    return asyncio.run(kept.put(key, value))


def test_the_first_value_stands_and_is_told_to_who_comes_later(store: SealedStore) -> None:
    scores = store.kind("scores", 100)
    assert put(scores, "a", b"one") is None
    assert put(scores, "a", b"two") == b"one"
    assert get(scores, "a", "b", "a") == [b"one", None, b"one"]
    assert get(scores) == []


def test_values_are_bytes_of_any_kind_and_kinds_are_apart(store: SealedStore) -> None:
    value = bytes(range(256))
    put(store.kind("scores", 300), "a", value)
    assert get(store.kind("scores", 300), "a") == [value]
    assert get(store.kind("traces", 300), "a") == [None]


def test_more_than_the_kind_may_have_is_not_kept(store: SealedStore) -> None:
    few = store.kind("scores", 3)
    assert put(few, "a", b"four") is None
    assert put(few, "b", b"thr") is None
    assert get(few, "a", "b") == [None, b"thr"]


def test_hundreds_are_kept_and_found_at_once(store: SealedStore) -> None:
    scores = store.kind("scores", 100)
    keys = [f"{number}" for number in range(250)]

    async def both() -> list[bytes | None]:
        await asyncio.gather(*(scores.put(key, f"v{key}".encode()) for key in keys))
        return await scores.get_many([*keys, "nobody's"])

    assert asyncio.run(both()) == [*(f"v{key}".encode() for key in keys), None]


@pytest.mark.parametrize("wrong", [b"", b"garbage", b"x" * 16 + b"five"])
def test_what_has_no_valid_seal_is_missing_counted_and_replaced(rig: Rig, store: SealedStore, wrong: bytes) -> None:
    scores = store.kind("scores", 100)
    put(scores, "a", b"one")
    rig.plant("scores", "a", wrong)
    assert get(scores, "a") == [None]
    assert store.refused == 1
    assert put(scores, "a", b"two") is None
    assert store.refused == 2
    assert put(scores, "a", b"three") == b"two", "and again the first one stands"


def test_what_a_job_without_the_secret_put_is_missing_to_one_that_has_it(rig: Rig, store: SealedStore) -> None:
    with closing(rig.place(b"").opened()) as stranger:
        put(stranger.kind("scores", 100), "a", b"forged")
    scores = store.kind("scores", 100)
    assert get(scores, "a") == [None]
    assert put(scores, "a", b"one") is None
    assert get(scores, "a") == [b"one"]


def test_a_value_of_another_key_or_kind_is_missing(rig: Rig, store: SealedStore) -> None:
    """Also one that we sealed ourselves."""
    scores = store.kind("scores", 100)
    for kind, key in (("scores", "good"), ("answers", "bad")):
        ours = Seal(b"secret", f"rampgate suite {kind}\0".encode()).sealed(f"{kind}:{key}", b"5")
        rig.plant("scores", "good", ours)
        assert get(scores, "good") == ([b"5"] if kind == "scores" else [None])
        rig.plant("scores", "bad", ours)
        assert get(scores, "bad") == [None]


def test_of_two_runs_at_once_both_go_by_one_value(rig: Rig) -> None:
    """Also where both find one without a valid seal."""

    async def both(one: Kept, other: Kept) -> None:
        for key in map(str, range(40)):
            told = await asyncio.gather(one.put(key, b"first"), other.put(key, b"second"))
            held = await one.get_many([key])
            assert (told, held) in (([None, b"first"], [b"first"]), ([b"second", None], [b"second"]))

    with closing(rig.place().opened()) as first, closing(rig.place().opened()) as second:
        for number in range(0, 40, 2):
            rig.plant("scores", f"{number}", b"x" * 20)
        asyncio.run(both(first.kind("scores", 100), second.kind("scores", 100)))


def test_values_are_listed_in_the_order_of_their_keys(rig: Rig, store: SealedStore) -> None:
    runs = store.kind("runs", 100)
    keys = [f"desk:{number:03d}" for number in range(230)]
    for key in reversed([*keys, "desk-2:001", "desk", "other:1"]):
        put(runs, key, key.encode())
    rig.plant("runs", "desk:007", b"x" * 20)
    rig.take("runs", "desk:100")
    found = asyncio.run(runs.under("desk:"))
    assert list(found.items()) == [(key, key.encode()) for key in keys if key not in ("desk:007", "desk:100")]
    assert store.refused == 1
    assert asyncio.run(runs.under("nobody:")) == {}


def test_a_value_that_was_taken_away_may_be_put_again(rig: Rig, store: SealedStore) -> None:
    scores = store.kind("scores", 100)
    put(scores, "a", b"one")
    rig.take("scores", "a")
    assert get(scores, "a") == [None]
    assert put(scores, "a", b"two") is None
    assert get(scores, "a") == [b"two"]


def test_nothing_of_this_is_a_failure(rig: Rig) -> None:
    with closing(rig.place().opened()) as store:
        put(store.kind("scores", 100), "a", b"one")
    assert store.failures == []


def test_what_redis_held_is_there_after_the_copy_that_the_page_describes(
    store: SealedStore, rig: Rig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, redis_url: str
) -> None:
    """An earlier release's Redis has each value under `rg:suite:<kind>:<key>`, with the seal that other places have."""
    kinds = [store.kind("scores", 100), store.kind("runs", 100)]
    put(kinds[0], "a", b"one")
    put(kinds[1], "desk:1", b"two")
    shelf = rig.place()._shelf()
    with redis.Redis.from_url(redis_url) as server, closing(shelf):
        for name in ("scores:a", "runs:desk:1"):
            (value,) = asyncio.run(shelf.read([name]))
            server.set(f"rg:suite:{name}", value or b"")
    page = Path("docs/suite.md").read_text()
    snippet = page[page.index("import asyncio\n") :].partition("```")[0]
    monkeypatch.chdir(tmp_path)
    snippet = snippet.replace("redis://127.0.0.1:6379/0", redis_url).replace("store.db", "copied.db")
    subprocess.run([sys.executable, "-c", snippet], check=True)
    with redis.Redis.from_url(redis_url) as server:  # no key of an earlier release is left for other tests
        server.delete("rg:suite:scores:a", "rg:suite:runs:desk:1")
    with closing(Place(str(tmp_path / "copied.db"), b"secret").opened()) as copied:
        assert get(copied.kind("scores", 100), "a") == [b"one"]
        assert asyncio.run(copied.kind("runs", 100).under("desk")) == {"desk:1": b"two"}
        assert copied.refused == 0
