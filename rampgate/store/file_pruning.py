"""Takes values away from a store's file, and gives their room back to the disk.

What was used since a day stays, also if a run uses it while others are taken away: each step looks at the day itself. A
step is whole or not done, so that a store whose pruning was killed holds what the next one finds.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import orjson

from rampgate.store.sqlite_file import FileShelf

AT_ONCE: Final = 500
"""Values taken away in one step: other runs write between two."""
UNUSED: Final = "SELECT key FROM kept JOIN used USING (key) WHERE day < ? ORDER BY key"
UNDATED: Final = "SELECT count(*) FROM kept WHERE key NOT IN (SELECT key FROM used)"
DATE: Final = (
    "INSERT OR IGNORE INTO used SELECT key, strftime('%s', 'now') / 86400 FROM kept"
    " WHERE key NOT IN (SELECT key FROM used)"
)
NAMES: Final = "SELECT key FROM kept WHERE key >= ? AND key < ? ORDER BY key"
PAGES: Final = "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size"
SIZE: Final = (
    "SELECT coalesce(sum(length(key) + length(value)), 0) FROM kept WHERE key IN (SELECT value FROM json_each(?))"
)
WHOLE: Final = "SELECT coalesce(sum(length(key) + length(value)), 0) FROM kept"
TAKE: Final = "DELETE FROM kept WHERE key IN (SELECT value FROM json_each(?))"
TAKE_UNUSED: Final = (
    "DELETE FROM kept WHERE key IN (SELECT value FROM json_each(?))"
    " AND (SELECT day FROM used WHERE used.key = kept.key) < ?"
)


class FilePruning(FileShelf):
    """A store's file whose values may be taken away. To look at one is not to use it."""

    def __init__(self, file: Path) -> None:
        super().__init__(file, looking=True)

    async def date(self, *, note: bool) -> int:
        """How many values are of a release that noted no day. Noted, they count as used today."""

        def dated(database: sqlite3.Connection) -> int:
            if note:
                return database.execute(DATE).rowcount
            return int(database.execute(UNDATED).fetchone()[0])

        return await self._do(dated)

    async def names(self, kind: str) -> list[str]:
        """The names of all values of a kind."""
        found = await self._do(lambda database: database.execute(NAMES, (f"{kind}:", f"{kind};")).fetchall())
        return [name for (name,) in found]

    async def unused(self, before: int) -> list[str]:
        """The names of the values that nobody has used on that day or since."""
        found = await self._do(lambda database: database.execute(UNUSED, (before,)).fetchall())
        return [name for (name,) in found]

    async def share_of(self, names: Sequence[str]) -> float:
        """How much of all that is held these values are, by their bytes."""

        def summed(database: sqlite3.Connection, some: Sequence[str]) -> int:
            return int(database.execute(SIZE, (orjson.dumps(some).decode(),)).fetchone()[0])

        found = sum([await self._do(partial(summed, some=some)) for some in _steps(names)])
        whole = await self._do(lambda database: int(database.execute(WHOLE).fetchone()[0]))
        return found / whole if whole else 0.0

    async def take(self, names: Sequence[str], before: int | None = None) -> int:
        """Takes these away, but those that were used on that day or since. Returns how many went."""

        def taken(database: sqlite3.Connection, some: Sequence[str]) -> int:
            told = orjson.dumps(some).decode()
            done = database.execute(TAKE, (told,)) if before is None else database.execute(TAKE_UNUSED, (told, before))
            return done.rowcount

        return sum([await self._do(partial(taken, some=some)) for some in _steps(names)])

    async def size(self) -> int:
        """The file's bytes, its free room among them."""

        def pages(database: sqlite3.Connection) -> int:
            return int(database.execute(PAGES).fetchone()[0])

        return await self._do(pages)

    async def shrink(self) -> str | None:
        """Gives the file's free room back to the disk, also what an earlier pruning left. Returns why that can't be
        done: values go on being put into the free room."""

        def shrunk(database: sqlite3.Connection) -> str | None:
            try:
                if database.execute("PRAGMA freelist_count").fetchone()[0]:
                    database.execute("VACUUM")
                    database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            except sqlite3.OperationalError as error:
                return str(error)
            return None

        return await self._do(shrunk)


def _steps(names: Sequence[str]) -> Iterator[Sequence[str]]:
    return (names[first : first + AT_ONCE] for first in range(0, len(names), AT_ONCE))
