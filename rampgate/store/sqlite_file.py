"""Keeps a store's values in one SQLite file, which several runs may use at once.

The file notes the day on which each value was last used, and forgets what was not used for so many days. Triggers note
it in a table beside the values: a release that does not know the table writes there, too.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

import orjson

from agents.ports import Unavailable
from rampgate.store.shelf import unusable

T = TypeVar("T")
FIND: Final = "SELECT key, CAST(value AS BLOB) FROM kept WHERE key IN (SELECT value FROM json_each(?))"
BEGINNING: Final = "SELECT key, CAST(value AS BLOB) FROM kept WHERE key >= ? AND key < ? ORDER BY key"
HELD: Final = "SELECT CAST(value AS BLOB) FROM kept WHERE key = ?"
USED: Final = (
    "CREATE TABLE IF NOT EXISTS used (key TEXT PRIMARY KEY, day INTEGER NOT NULL) WITHOUT ROWID",
    "CREATE TRIGGER IF NOT EXISTS kept_put AFTER INSERT ON kept BEGIN INSERT INTO used VALUES"
    " (new.key, strftime('%s', 'now') / 86400) ON CONFLICT (key) DO UPDATE SET day = excluded.day; END",
    "CREATE TRIGGER IF NOT EXISTS kept_taken AFTER DELETE ON kept BEGIN DELETE FROM used WHERE key = old.key; END",
)
"""By key the day on which a value was last used: of UTC, counted from 1970."""
NOT_TODAY: Final = (
    "SELECT key FROM kept LEFT JOIN used USING (key) WHERE key IN (SELECT value FROM json_each(?))"
    " AND coalesce(day, 0) < strftime('%s', 'now') / 86400"
)
USE: Final = (
    "INSERT INTO used SELECT key, strftime('%s', 'now') / 86400 FROM kept WHERE key IN"
    " (SELECT value FROM json_each(?)) ON CONFLICT (key) DO UPDATE SET day = excluded.day"
)
DATE: Final = (
    "INSERT OR IGNORE INTO used SELECT key, strftime('%s', 'now') / 86400 FROM kept"
    " WHERE key NOT IN (SELECT key FROM used)"
)
"""Values of a release that noted no day count as used today."""
UNUSED: Final = "SELECT key FROM used WHERE day < strftime('%s', 'now') / 86400 - ?"
FORGET: Final = "DELETE FROM kept WHERE key IN (SELECT key FROM used WHERE day < strftime('%s', 'now') / 86400 - ?)"
FREE: Final = "SELECT freelist_count * 2 >= page_count FROM pragma_freelist_count, pragma_page_count"
"""Whether half of the file is free room or more: then it is given back to the disk."""
DAYS: Final = 90
BUSY_SECONDS: Final = 30.0
"""How long another run may hold the file."""
STORE: Final = "store.db"
"""The file's name beside results."""


class FileShelf:
    """One SQLite file (see `Shelf`), read and written by a thread of its own.

    Raises Unavailable where it can't be opened. A value is there for good once `put` has returned, also if the process
    is killed right after. `days`: how long it keeps what is not used.
    """

    def __init__(self, file: Path, days: int = DAYS) -> None:
        self.file, self._days = file, days
        self._thread = ThreadPoolExecutor(1, "store")
        with self._told():
            self._database = self._thread.submit(self._opened).result()

    @property
    def shown(self) -> str:
        return str(self.file)

    def _opened(self) -> sqlite3.Connection:
        database = sqlite3.connect(self.file, timeout=BUSY_SECONDS, isolation_level=None)
        # A write-ahead log without a sync at each commit: a killed process loses nothing, a power cut the last values.
        for word in ("journal_mode = WAL", "synchronous = NORMAL"):
            database.execute(f"PRAGMA {word}")
        database.execute("CREATE TABLE IF NOT EXISTS kept (key TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID")
        with suppress(sqlite3.OperationalError):  # a file of before on a full disk is read all the same
            for word in USED:
                database.execute(word)
        return database

    async def read(self, names: Sequence[str]) -> list[bytes | None]:
        asked = orjson.dumps(list(names)).decode()

        def find(database: sqlite3.Connection) -> dict[str, bytes]:
            held = dict(database.execute(FIND, (asked,)).fetchall())
            self._use(database, list(held))
            return held

        held = await self._do(find)
        return [held.get(name) for name in names]

    async def put(self, name: str, value: bytes, wrong: bytes | None) -> bytes | None:
        def write(database: sqlite3.Connection) -> bytes | None:
            while database.execute("INSERT OR IGNORE INTO kept VALUES (?, ?)", (name, value)).rowcount == 0:
                row = database.execute(HELD, (name,)).fetchone()
                if row is None:
                    continue  # another run has taken it away meanwhile
                if row[0] != wrong:
                    self._use(database, [name])
                    return bytes(row[0])
                database.execute("DELETE FROM kept WHERE key = ? AND CAST(value AS BLOB) = ?", (name, wrong))
            return None

        return await self._do(write)

    async def beginning(self, start: str) -> list[tuple[str, bytes]]:
        return await self._do(lambda database: database.execute(BEGINNING, (start, f"{start}\U0010ffff")).fetchall())

    async def use(self, names: Sequence[str]) -> None:
        await self._do(lambda database: self._use(database, names))

    async def forget(self, needed: Callable[[], Awaitable[Sequence[str] | None]]) -> None:
        """All goes in one step: a file whose run was killed in it is whole. Its room is for later values, or the
        disk's."""

        def aged(database: sqlite3.Connection) -> bool:
            database.execute(DATE)
            return database.execute(UNUSED, (self._days,)).fetchone() is not None

        def take(database: sqlite3.Connection, stays: Sequence[str]) -> None:
            with database:
                database.execute("BEGIN IMMEDIATE")
                database.execute(USE, (orjson.dumps(stays).decode(),))
                database.execute(FORGET, (self._days,))
            with suppress(sqlite3.OperationalError):  # a busy file or a full disk: the room stays the file's
                if database.execute(FREE).fetchone()[0]:
                    database.execute("VACUUM")
                    database.execute("PRAGMA wal_checkpoint(TRUNCATE)")

        if await self._do(aged) and (stays := await needed()) is not None:
            await self._do(partial(take, stays=list(stays)))

    async def _do(self, work: Callable[[sqlite3.Connection], T]) -> T:
        with self._told():
            return await asyncio.get_running_loop().run_in_executor(self._thread, work, self._database)

    def _use(self, database: sqlite3.Connection, names: Sequence[str]) -> None:
        """Notes that these are used today. Writes once a day for each; a full disk keeps no one from reading."""
        with suppress(sqlite3.OperationalError):
            late = [key for (key,) in database.execute(NOT_TODAY, (orjson.dumps(list(names)).decode(),))]
            if late:
                database.execute(USE, (orjson.dumps(late).decode(),))

    def close(self) -> None:
        with self._told():
            self._thread.submit(self._database.close).result()
        self._thread.shutdown()

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise Unavailable(unusable(self.shown, error)) from error
