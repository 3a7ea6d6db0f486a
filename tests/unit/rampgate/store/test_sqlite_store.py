"""A store in a file, beside what every store promises (tests/contract/store): what was put is there after a kill. A
store that did not answer is left alone for a while, and then asked again."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agents.ports import Unavailable
from rampgate.store.s3_objects import AWAY_SECONDS, Reach
from rampgate.store.sealed import Kept, SealedStore
from rampgate.store.sqlite_file import FileShelf


def opened(file: Path, secret: bytes = b"") -> SealedStore:
    return SealedStore(FileShelf(file), secret)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SealedStore]:
    held = opened(tmp_path / "suite.db", b"secret")
    yield held
    held.close()


def get(kept: Kept, *keys: str) -> list[bytes | None]:
    return asyncio.run(kept.get_many(keys))


def put(kept: Kept, key: str, value: bytes) -> bytes | None:
    return asyncio.run(kept.put(key, value))


def test_a_thousand_keys_are_found_at_once(store: SealedStore) -> None:
    scores = store.kind("scores", 100)

    async def both() -> list[bytes | None]:
        await asyncio.gather(*(scores.put(f"{number}", f"v{number}".encode()) for number in range(1_200)))
        return await scores.get_many([f"{number}" for number in range(1_200)])

    assert asyncio.run(both()) == [f"v{number}".encode() for number in range(1_200)]


@pytest.mark.parametrize("wrong", ["a text", 5])
def test_what_has_no_valid_seal_is_missing_counted_and_replaced(
    store: SealedStore, tmp_path: Path, wrong: object
) -> None:
    scores = store.kind("scores", 100)
    put(scores, "a", b"one")
    with sqlite3.connect(tmp_path / "suite.db") as other:
        other.execute("UPDATE kept SET value = ?", (wrong,))
    other.close()
    assert get(scores, "a") == [None]
    assert store.refused == 1
    assert put(scores, "a", b"two") is None
    assert get(scores, "a") == [b"two"]


def test_a_value_that_became_a_text_that_is_none_is_missing_and_replaced(store: SealedStore, tmp_path: Path) -> None:
    """SQLite tells such a column as an error, which must not take the values beside it along."""
    scores = store.kind("scores", 100)
    put(scores, "a", b"\xff\xfe")
    put(scores, "b", b"two")
    with sqlite3.connect(tmp_path / "suite.db") as other:
        other.execute("UPDATE kept SET value = 'x' || value WHERE key = 'scores:a'")
    other.close()
    assert get(scores, "a", "b") == [None, b"two"]
    assert put(scores, "a", b"one") is None
    assert get(scores, "a") == [b"one"]


def test_what_was_put_is_there_after_a_kill(tmp_path: Path) -> None:
    program = """
import asyncio, os, signal, sys
from pathlib import Path
from rampgate.store.sealed import SealedStore
from rampgate.store.sqlite_file import FileShelf

async def main():
    kept = SealedStore(FileShelf(Path(sys.argv[1]))).kind("scores", 100)
    for number in range(50):
        await kept.put(f"{number}", b"value")
    os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""
    subprocess.run([sys.executable, "-c", program, str(tmp_path / "suite.db")], check=False)
    store = opened(tmp_path / "suite.db")
    assert get(store.kind("scores", 100), *(f"{number}" for number in range(50))) == [b"value"] * 50
    store.close()


def test_two_runs_at_once_agree_on_one_value_for_each_key(tmp_path: Path) -> None:
    first, second = opened(tmp_path / "suite.db"), opened(tmp_path / "suite.db")

    async def both() -> None:
        for number in range(50):
            one, other = await asyncio.gather(
                first.kind("scores", 100).put(f"{number}", b"first"),
                second.kind("scores", 100).put(f"{number}", b"second"),
            )
            assert {one, other} in ({None, b"first"}, {None, b"second"})

    asyncio.run(both())
    first.close()
    second.close()


def test_a_file_that_is_no_store_is_told(tmp_path: Path) -> None:
    (tmp_path / "suite.db").write_text("something else, and long enough to be read as a header of a database " * 20)
    with pytest.raises(Unavailable, match=r"suite\.db can't be used: file is not a database"):
        opened(tmp_path / "suite.db")


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="unable to open database file"):
        opened(tmp_path / "none" / "suite.db")


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_it_is_asked_again_when_the_time_is_over() -> None:
    clock = Clock()
    reach = Reach("redis://here", clock)
    reach.check()
    assert str(reach.lost("no answer")) == "the store redis://here can't be used: no answer"
    clock.now += AWAY_SECONDS - 0.1
    with pytest.raises(Unavailable, match="no answer"):
        reach.check()
    clock.now += 0.2
    reach.check()


def test_another_loss_begins_the_time_anew() -> None:
    clock = Clock()
    reach = Reach("redis://here", clock)
    reach.lost("no answer")
    clock.now += AWAY_SECONDS
    reach.lost("none again")
    clock.now += AWAY_SECONDS - 0.1
    with pytest.raises(Unavailable, match="none again"):
        reach.check()
