"""A store's file notes when a value was last used, and gives away only what nobody has used since."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from rampgate.store import sqlite_file
from rampgate.store.file_pruning import FilePruning
from rampgate.store.sqlite_file import FileShelf

OLD = 1_000
"""A day long ago."""
TODAY = int(time.time() // 86_400)


@pytest.fixture
def shelf(tmp_path: Path) -> Iterator[FileShelf]:
    with closing(FileShelf(tmp_path / "store.db")) as made:
        for name in ("scores:a", "scores:b"):
            asyncio.run(made.put(name, b"one", None, lasting=False))
        execute(made.file, "UPDATE used SET day = 1000")
        yield made


@pytest.fixture
def pruning(shelf: FileShelf) -> Iterator[FilePruning]:
    with closing(FilePruning(shelf.file)) as made:
        yield made


def execute(file: Path, word: str) -> list[tuple[str, int]]:
    with sqlite3.connect(file) as database:
        found = database.execute(word).fetchall()
    database.close()
    return found


def days(shelf: FileShelf) -> dict[str, int]:
    """By key when it was last used; a midnight since this file was loaded makes no other day of today."""
    return {key: min(day, TODAY) for key, day in execute(shelf.file, "SELECT key, day FROM used")}


def test_who_reads_a_value_uses_it_and_who_looks_does_not(shelf: FileShelf, pruning: FilePruning) -> None:
    assert asyncio.run(pruning.read(["scores:a", "scores:b"])) == [b"one", b"one"]
    assert days(shelf) == {"scores:a": OLD, "scores:b": OLD}
    assert asyncio.run(shelf.read(["scores:a", "scores:c"])) == [b"one", None]
    assert days(shelf) == {"scores:a": TODAY, "scores:b": OLD}


def test_who_puts_what_is_there_uses_it(shelf: FileShelf) -> None:
    assert asyncio.run(shelf.put("scores:b", b"two", None, lasting=False)) == b"one"
    assert days(shelf) == {"scores:a": OLD, "scores:b": TODAY}


def test_who_replaces_a_value_uses_it(shelf: FileShelf) -> None:
    asyncio.run(shelf.put("scores:a", b"two", b"one", lasting=False))
    assert days(shelf) == {"scores:a": TODAY, "scores:b": OLD}


def test_what_somebody_uses_meanwhile_stays(shelf: FileShelf, pruning: FilePruning) -> None:
    names = asyncio.run(pruning.unused(TODAY))
    assert names == ["scores:a", "scores:b"]
    asyncio.run(shelf.read(["scores:b"]))
    assert asyncio.run(pruning.take(names, TODAY)) == 1
    assert asyncio.run(shelf.read(names)) == [None, b"one"]
    assert days(shelf) == {"scores:b": TODAY}, "and no day of what went stays"


def test_a_disk_without_room_for_a_day_keeps_nobody_from_reading(
    shelf: FileShelf,
) -> None:
    asyncio.run(shelf._do(lambda database: database.execute("PRAGMA query_only = ON").fetchall()))
    assert asyncio.run(shelf.read(["scores:a"])) == [b"one"]
    assert days(shelf) == {"scores:a": OLD, "scores:b": OLD}


def test_a_file_of_an_earlier_release_is_read_where_no_table_can_be_made(
    shelf: FileShelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    for word in ("TABLE used", "TRIGGER kept_put", "TRIGGER kept_taken"):
        execute(shelf.file, f"DROP {word}")
    monkeypatch.setattr(sqlite_file, "USED", ("CREATE TABLE full.used (key)",))
    with closing(FileShelf(shelf.file)) as again:
        assert asyncio.run(again.read(["scores:a"])) == [b"one"]
        assert asyncio.run(again.put("scores:c", b"two", None, lasting=False)) is None
