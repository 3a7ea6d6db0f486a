"""The database: one SQLite connection, used on the event loop.

It has no thread because `sqlite3` releases and retakes the interpreter lock for every row, so that a thread beside a
busy loop may wait for the lock once a row (measured: 1000 scores took 1.7 s instead of 2 ms). Statements here are short
(a page of 2000 traces is the longest), and `python -m rampgate.local.opik` has its loop to itself.

It needs no durability: WAL with synchronous=OFF survives the process but not the machine.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import resources
from typing import Any

Parameters = Sequence[Any] | Mapping[str, Any]


class Store:
    """SQL in, rows out. `score_writes` counts score rows written per (entity id, name) while faults are on."""

    def __init__(self, database: str) -> None:
        self._connection = sqlite3.connect(database, isolation_level=None, cached_statements=256)
        for pragma in ("journal_mode=WAL", "synchronous=OFF", "temp_store=MEMORY", "cache_size=-65536"):
            self._connection.execute(f"PRAGMA {pragma}")
        self._connection.executescript(resources.files(__package__).joinpath("schema.sql").read_text())
        self.score_writes: Counter[tuple[str, str]] | None = None

    def rows(self, sql: str, parameters: Parameters = ()) -> list[tuple[Any, ...]]:
        return self._connection.execute(sql, parameters).fetchall()

    def row(self, sql: str, parameters: Parameters = ()) -> tuple[Any, ...] | None:
        found: tuple[Any, ...] | None = self._connection.execute(sql, parameters).fetchone()
        return found

    def page(
        self, page: int, size: int, columns: str, source: str, parameters: Sequence[Any], order: str = "id DESC"
    ) -> tuple[int, list[tuple[Any, ...]]]:
        """The number of rows in `source` (the SQL behind FROM), and the rows of one page, counted from 1."""
        rows = f"SELECT {columns} FROM {source} ORDER BY {order} LIMIT ? OFFSET ?"
        total = self.value(f"SELECT count(*) FROM {source}", parameters)
        return int(total), self.rows(rows, [*parameters, size, (page - 1) * size])

    def value(self, sql: str, parameters: Parameters = ()) -> Any:
        found = self.row(sql, parameters)
        return None if found is None else found[0]

    def write(self, sql: str, parameters: Parameters = ()) -> int:
        return self._connection.execute(sql, parameters).rowcount

    def write_many(self, sql: str, rows: Iterable[Parameters]) -> None:
        self._connection.executemany(sql, rows)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Commit all or nothing. Don't await inside, because requests share the connection."""
        self._connection.execute("BEGIN")
        try:
            yield
        except BaseException:
            self._connection.execute("ROLLBACK")
            raise
        self._connection.execute("COMMIT")

    def close(self) -> None:
        self._connection.close()
