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
from typing import Any

Parameters = Sequence[Any] | Mapping[str, Any]
SCHEMA = """
-- Traces and spans hold JSON values as JSON text, times as sortable text, ids in lower case.
CREATE TABLE IF NOT EXISTS projects (
  id TEXT PRIMARY KEY, name TEXT NOT NULL UNIQUE COLLATE NOCASE, description TEXT, created_at TEXT, last_updated_at TEXT
);
CREATE TABLE IF NOT EXISTS traces (
  id TEXT PRIMARY KEY, project_id TEXT NOT NULL, name TEXT, start_time TEXT, end_time TEXT, input TEXT, output TEXT,
  metadata TEXT, tags TEXT, error_info TEXT, thread_id TEXT, ttft REAL, source TEXT, environment TEXT, duration REAL,
  created_at TEXT, last_updated_at TEXT, partial INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS traces_by_project ON traces (project_id, id);
CREATE INDEX IF NOT EXISTS traces_by_response ON traces (lower(json_extract(metadata, '$.response_id')));
CREATE TABLE IF NOT EXISTS spans (
  id TEXT PRIMARY KEY, project_id TEXT NOT NULL, trace_id TEXT, parent_span_id TEXT, type TEXT, name TEXT,
  start_time TEXT, end_time TEXT, input TEXT, output TEXT, metadata TEXT, model TEXT, provider TEXT, tags TEXT,
  usage TEXT, error_info TEXT, total_estimated_cost REAL, ttft REAL, source TEXT, environment TEXT, duration REAL,
  created_at TEXT, last_updated_at TEXT, partial INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS spans_by_project ON spans (project_id, id);
CREATE INDEX IF NOT EXISTS spans_by_trace ON spans (trace_id);
-- A score may precede its trace, or never meet it. The project is part of the key: a score under the wrong project is
-- another row, seen in a trace's detail and not in its project's table. kind is trace or span.
CREATE TABLE IF NOT EXISTS scores (
  kind TEXT, entity_id TEXT, name TEXT, author TEXT, project_id TEXT, value REAL, category_name TEXT, reason TEXT,
  source TEXT, created_at TEXT, last_updated_at TEXT, PRIMARY KEY (kind, entity_id, name, author, project_id)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS scores_by_name ON scores (kind, project_id, name COLLATE NOCASE, entity_id, value);
CREATE TABLE IF NOT EXISTS datasets (
  id TEXT PRIMARY KEY, name TEXT NOT NULL, project_id TEXT, type TEXT, description TEXT, tags TEXT, created_at TEXT,
  last_updated_at TEXT
);
CREATE TABLE IF NOT EXISTS dataset_versions (
  dataset_id TEXT, number INTEGER, id TEXT, hash TEXT, batch_group_id TEXT, added INTEGER, modified INTEGER,
  deleted INTEGER, created_at TEXT, PRIMARY KEY (dataset_id, number)
);
-- An item's row holds from version `since` up to, not including, version `until` (null: still).
CREATE TABLE IF NOT EXISTS dataset_items (
  dataset_id TEXT, id TEXT, since INTEGER, until INTEGER, doc TEXT, created_at TEXT, last_updated_at TEXT,
  PRIMARY KEY (dataset_id, id, since)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS dataset_items_by_id ON dataset_items (id);
CREATE TABLE IF NOT EXISTS rules (
  id TEXT PRIMARY KEY, name TEXT, project_ids TEXT, doc TEXT, created_at TEXT, last_updated_at TEXT
);
CREATE TABLE IF NOT EXISTS feedback_definitions (id TEXT PRIMARY KEY, name TEXT UNIQUE, doc TEXT, created_at TEXT);
CREATE TABLE IF NOT EXISTS queues (id TEXT PRIMARY KEY, name TEXT, doc TEXT, created_at TEXT);
CREATE TABLE IF NOT EXISTS queue_items (queue_id TEXT, item_id TEXT, PRIMARY KEY (queue_id, item_id)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS experiments (id TEXT PRIMARY KEY, dataset_id TEXT, doc TEXT, created_at TEXT);
CREATE TABLE IF NOT EXISTS experiment_items (
  id TEXT PRIMARY KEY, experiment_id TEXT, dataset_item_id TEXT, trace_id TEXT, created_at TEXT
);
CREATE INDEX IF NOT EXISTS experiment_items_by_experiment ON experiment_items (experiment_id);
"""


class Store:
    """SQL in, rows out. `score_writes` counts score rows written per (entity id, name) while faults are on."""

    def __init__(self, database: str) -> None:
        self._connection = sqlite3.connect(database, isolation_level=None, cached_statements=256)
        for pragma in ("journal_mode=WAL", "synchronous=OFF", "temp_store=MEMORY", "cache_size=-65536"):
            self._connection.execute(f"PRAGMA {pragma}")
        self._connection.executescript(SCHEMA)
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
