"""Keeps what a suite must not pay for twice in an SQLite file: judges' answers, candidates' answers, traces.

Each value is sealed: with the secret of trusted jobs, so that a pull request's job can't put answers into the store
that they read; without a secret a seal finds damage alone. What has no valid seal counts as missing, is counted, and is
replaced. The first value of a key stands, so that two runs at once use one answer.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TypeVar

import orjson

from agents.ports import Unavailable
from streams.redis.score_cache import AnswerSeal

T = TypeVar("T")
FIND: Final = "SELECT key, CAST(value AS BLOB) FROM kept WHERE key IN (SELECT value FROM json_each(?))"
BEGINNING: Final = "SELECT key, CAST(value AS BLOB) FROM kept WHERE key >= ? AND key < ? ORDER BY key"
BUSY_SECONDS: Final = 30.0
"""How long another run may hold the file."""
STORE: Final = "store.db"
"""The file's name beside results."""
UNSIGNED: Final = b"rampgate suite without a secret"


class KeptFile:
    """One SQLite file, read and written by a thread of its own. Another run may use it at the same time.

    Raises Unavailable where it can't be opened. A value is there for good once `put` has returned, also if the process
    is killed right after.
    """

    def __init__(self, file: Path, secret: bytes = b"") -> None:
        self.file, self._secret = file, secret or UNSIGNED
        self._thread = ThreadPoolExecutor(1, "suite-store")
        self.refused = 0
        """Values without a valid seal that were met."""
        self.failures: list[str] = []
        """Why something could not be read or kept."""
        with self._told():
            self._database = self._thread.submit(self._opened).result()

    def _opened(self) -> sqlite3.Connection:
        database = sqlite3.connect(self.file, timeout=BUSY_SECONDS, isolation_level=None)
        # A write-ahead log without a sync at each commit: a killed process loses nothing, a power cut the last values.
        for word in ("journal_mode = WAL", "synchronous = NORMAL"):
            database.execute(f"PRAGMA {word}")
        database.execute("CREATE TABLE IF NOT EXISTS kept (key TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID")
        return database

    def kind(self, name: str, largest: int) -> Kept:
        """Returns the values of one kind, each of `largest` bytes at most."""
        return Kept(self, name, AnswerSeal(self._secret, b"rampgate suite " + name.encode() + b"\0"), largest)

    async def do(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Raises Unavailable."""
        with self._told():
            return await asyncio.get_running_loop().run_in_executor(self._thread, work, self._database)

    def close(self) -> None:
        """Returns once all that was put is in the file."""
        with self._told():
            self._thread.submit(self._database.close).result()
        self._thread.shutdown()

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            self.failures.append(f"the suite's store {self.file} can't be used: {error}")
            raise Unavailable(self.failures[-1]) from error


class Kept:
    """Values of one kind in a file (evalcore.scoring's `ScoreCache`, among others)."""

    def __init__(self, file: KeptFile, name: str, seal: AnswerSeal, largest: int) -> None:
        self._file, self._name, self._seal, self._largest = file, name, seal, largest

    async def get_many(self, keys: Sequence[str]) -> list[bytes | None]:
        """The values in the order of the keys, None for what is not kept. Raises Unavailable."""
        names = [self._key(key) for key in keys]

        def read(database: sqlite3.Connection) -> dict[str, bytes]:
            return dict(database.execute(FIND, (orjson.dumps(names).decode(),)))

        held = await self._file.do(read)
        return [self._opened(name, held.get(name)) for name in names]

    async def put(self, key: str, value: bytes) -> bytes | None:
        """Keeps the value unless the key has one; returns the earlier one, None where there was none. What is too
        large is not kept. Raises Unavailable."""
        if len(value) > self._largest:
            return None
        name = self._key(key)
        ours = self._seal.sealed(name, value)

        def write(database: sqlite3.Connection) -> bytes | None:
            while database.execute("INSERT OR IGNORE INTO kept VALUES (?, ?)", (name, ours)).rowcount == 0:
                row = database.execute("SELECT CAST(value AS BLOB) FROM kept WHERE key = ?", (name,)).fetchone()
                if row is None:
                    continue
                if (earlier := self._opened(name, row[0])) is not None:
                    return earlier
                database.execute("DELETE FROM kept WHERE key = ? AND CAST(value AS BLOB) = ?", (name, row[0]))
            return None

        return await self._file.do(write)

    async def under(self, start: str) -> dict[str, bytes]:
        """The values whose key begins so, by key, in the keys' order. Raises Unavailable."""
        first = self._key(start)

        def read(database: sqlite3.Connection) -> list[tuple[str, bytes]]:
            return database.execute(BEGINNING, (first, f"{first}\U0010ffff")).fetchall()

        opened = [(name, self._opened(name, value)) for name, value in await self._file.do(read)]
        return {name[len(self._name) + 1 :]: value for name, value in opened if value is not None}

    def _key(self, key: str) -> str:
        return f"{self._name}:{key}"

    def _opened(self, name: str, value: bytes | None) -> bytes | None:
        if value is None:
            return None
        opened = self._seal.opened(name, value)
        if opened is None:
            self._file.refused += 1
        return opened
