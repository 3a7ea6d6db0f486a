"""A store's file notes when a value was last used, and forgets only what was not used for as many days as it keeps."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from agents.ports import Unavailable
from rampgate.store import sqlite_file
from rampgate.store.sqlite_file import FileShelf

NAMES = ["scores:a", "scores:b"]


@pytest.fixture
def shelf(tmp_path: Path) -> Iterator[FileShelf]:
    """Both values were used 31 days ago, and the file keeps them for 30."""
    with closing(FileShelf(tmp_path / "store.db", 30)) as made:
        for name in NAMES:
            asyncio.run(made.put(name, b"one", None))
        execute(made.file, "UPDATE used SET day = day - 31")
        yield made


def execute(file: Path, word: str) -> list[tuple[str]]:
    with sqlite3.connect(file) as database:
        found = database.execute(word).fetchall()
    database.close()
    return found


def needed(*names: str) -> Callable[[], Awaitable[Sequence[str] | None]]:
    async def told() -> Sequence[str]:
        return names

    return told


def left(shelf: FileShelf, *needs: str) -> list[str]:
    """What is there, and has a day, after the file has forgotten."""
    asyncio.run(shelf.forget(needed(*needs)))
    held = execute(shelf.file, "SELECT key FROM kept ORDER BY key")
    assert held == execute(shelf.file, "SELECT key FROM used ORDER BY key")
    return [name for (name,) in held]


def test_what_was_not_used_for_so_long_goes(shelf: FileShelf) -> None:
    assert left(shelf) == []


def test_what_was_used_on_the_last_of_these_days_stays(shelf: FileShelf) -> None:
    execute(shelf.file, "UPDATE used SET day = day + 1")
    assert left(shelf) == NAMES


@pytest.mark.parametrize(
    "use",
    [
        lambda shelf: shelf.read(["scores:a", "scores:c"]),
        lambda shelf: shelf.put("scores:a", b"two", None),
        lambda shelf: shelf.put("scores:a", b"two", b"one"),
        lambda shelf: shelf.use(["scores:a"]),
    ],
    ids=["read", "put again", "replaced", "used"],
)
def test_what_is_used_stays(shelf: FileShelf, use: Callable[[FileShelf], Awaitable[object]]) -> None:
    async def used() -> None:
        await use(shelf)

    asyncio.run(used())
    assert left(shelf) == ["scores:a"]


def test_what_is_needed_stays_and_counts_as_used(shelf: FileShelf) -> None:
    assert left(shelf, "scores:a", "scores:gone") == ["scores:a"]
    assert left(shelf) == ["scores:a"]


def test_nobody_is_asked_where_nothing_is_old_and_all_stays_where_nobody_can_tell(shelf: FileShelf) -> None:
    async def unknown() -> None:
        return None

    async def asked() -> None:
        raise AssertionError

    asyncio.run(shelf.forget(unknown))
    assert asyncio.run(shelf.read(NAMES)) == [b"one", b"one"]
    asyncio.run(shelf.forget(asked))


def test_what_another_run_uses_meanwhile_stays(shelf: FileShelf) -> None:
    async def meanwhile() -> Sequence[str]:
        with closing(FileShelf(shelf.file)) as other:
            await other.read(["scores:b"])
        return []

    asyncio.run(shelf.forget(meanwhile))
    assert asyncio.run(shelf.read(NAMES)) == [None, b"one"]


def test_the_disk_has_its_room_back_though_a_run_has_the_file_open(shelf: FileShelf) -> None:
    for number in range(200):
        asyncio.run(shelf.put(f"traces:{number}", b"x" * 10_000, None))
    execute(shelf.file, "UPDATE used SET day = day - 31")
    with sqlite3.connect(shelf.file) as other:
        other.execute("SELECT count(*) FROM kept").fetchall()
        assert left(shelf, "scores:a") == ["scores:a"]
    other.close()
    assert sum(one.stat().st_size for one in shelf.file.parent.glob("store.db*")) < 200_000


def test_a_disk_without_room_for_a_day_keeps_nobody_from_reading_and_forgets_nothing(shelf: FileShelf) -> None:
    asyncio.run(shelf._do(lambda database: database.execute("PRAGMA query_only = ON").fetchall()))
    assert asyncio.run(shelf.read(["scores:a"])) == [b"one"]
    with pytest.raises(Unavailable):
        asyncio.run(shelf.forget(needed("scores:a")))
    assert execute(shelf.file, "SELECT count(*) FROM kept") == [(2,)]


def test_a_file_of_an_earlier_release_counts_as_used_today(shelf: FileShelf) -> None:
    for word in ("TABLE used", "TRIGGER kept_put", "TRIGGER kept_taken"):
        execute(shelf.file, f"DROP {word}")
    with closing(FileShelf(shelf.file, 1)) as again:
        assert left(again) == NAMES
        execute(shelf.file, "UPDATE used SET day = day - 2")
        assert left(again) == []


def test_a_file_of_an_earlier_release_is_read_where_no_table_can_be_made(
    shelf: FileShelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    for word in ("TABLE used", "TRIGGER kept_put", "TRIGGER kept_taken"):
        execute(shelf.file, f"DROP {word}")
    monkeypatch.setattr(sqlite_file, "USED", ("CREATE TABLE full.used (key)",))
    with closing(FileShelf(shelf.file)) as again:
        assert asyncio.run(again.read(["scores:a"])) == [b"one"]
        assert asyncio.run(again.put("scores:c", b"two", None)) is None
