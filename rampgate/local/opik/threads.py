"""Threads: what is derived from the traces that share a thread id, and whether the thread is closed.

Opik takes scores only for closed threads; here open ones are taken too.
"""

from __future__ import annotations

from typing import Any
from uuid import NAMESPACE_URL, uuid5

import orjson
from aiohttp import web

from rampgate.local.opik import filters, scores
from rampgate.local.opik.projects import USER, project_for_reading
from rampgate.local.opik.store import Store
from rampgate.local.opik.wire import (
    STORE,
    Handler,
    Routes,
    answer,
    body,
    coded,
    done,
    lines,
    page_of,
    paged,
    required_text,
    stream_limit,
)

_COLUMNS = (
    *("id", "project_id", "start_time", "end_time", "traces", "created_at", "last_updated_at"),
    *("status", "first_message", "last_message"),
)
_FILTERABLE = (*_COLUMNS, "number_of_messages", "duration", "tags")
_VIEW = """(
  SELECT thread_id AS id, project_id, min(start_time) AS start_time, max(end_time) AS end_time, count(*) AS traces,
    2 * count(*) AS number_of_messages, min(created_at) AS created_at, max(last_updated_at) AS last_updated_at,
    (max(julianday(end_time)) - min(julianday(start_time))) * 86400000 AS duration, '[]' AS tags,
    iif(EXISTS (SELECT 1 FROM closed_threads c WHERE c.project_id = t.project_id AND c.thread_id = t.thread_id),
      'inactive', 'active') AS status,
    (SELECT input FROM traces f WHERE f.project_id = t.project_id AND f.thread_id = t.thread_id
      ORDER BY f.start_time LIMIT 1) AS first_message,
    (SELECT output FROM traces f WHERE f.project_id = t.project_id AND f.thread_id = t.thread_id
      ORDER BY f.start_time DESC LIMIT 1) AS last_message
  FROM traces t WHERE thread_id IS NOT NULL GROUP BY project_id, thread_id)"""


def _model_id(project: str, thread: str) -> str:
    """A stable UUID for the thread; as a version 5 one it can't be taken for a trace's id."""
    return str(uuid5(NAMESPACE_URL, f"{project}/{thread}"))


def _public(store: Store, project: str, rows: list[tuple[Any, ...]]) -> list[dict[str, Any]]:
    given = scores.of_entities(store, "thread", [row[0] for row in rows], project)
    content = []
    for row in rows:
        value = dict(zip(_COLUMNS, row, strict=True))
        for name in ("first_message", "last_message"):
            value[name] = orjson.Fragment(value[name] or "null")
        value |= {"thread_model_id": _model_id(project, row[0]), "number_of_messages": 2 * value.pop("traces")}
        value |= {"created_by": USER, "last_updated_by": USER, "feedback_scores": given.get(row[0], [])}
        content.append(value)
    return content


def _where(project: str, wanted: Any) -> filters.Condition:
    sql, parameters = filters.conditions(filters.parse(wanted), "thread", project, _FILTERABLE, {})
    return f"t.project_id = ? AND {sql}", [project, *parameters]


async def find(request: web.Request) -> web.Response:
    store, (page, size), query = request.app[STORE], page_of(request), request.query
    project = project_for_reading(store, query.get("project_name"), query.get("project_id"))
    where, values = _where(project, query.get("filters"))
    total = store.value(f"SELECT count(*) FROM {_VIEW} t WHERE {where}", values)
    rows = store.rows(
        f"SELECT {', '.join(_COLUMNS)} FROM {_VIEW} t WHERE {where} ORDER BY t.last_updated_at DESC LIMIT ? OFFSET ?",
        [*values, size, (page - 1) * size],
    )
    return paged(page, total, _public(store, project, rows))


async def search(request: web.Request) -> web.Response:
    """One page holds all up to the limit: the cursor is accepted and answers with nothing more."""
    store, value = request.app[STORE], await body(request)
    project = project_for_reading(store, value.get("project_name"), value.get("project_id"))
    where, values = _where(project, value.get("filters"))
    limit = 0 if value.get("last_retrieved_thread_model_id") else stream_limit(value, "limit")
    rows = store.rows(
        f"SELECT {', '.join(_COLUMNS)} FROM {_VIEW} t WHERE {where} ORDER BY t.last_updated_at DESC LIMIT ?",
        [*values, limit],
    )
    return lines(_public(store, project, rows))


async def retrieve(request: web.Request) -> web.Response:
    store, value = request.app[STORE], await body(request)
    project = project_for_reading(store, value.get("project_name"), value.get("project_id"))
    thread = required_text(value, "thread_id")
    where = "t.project_id = ? AND t.id = ?"
    rows = store.rows(f"SELECT {', '.join(_COLUMNS)} FROM {_VIEW} t WHERE {where}", (project, thread))
    if not rows:
        raise coded(404, f"Thread id: {thread} not found")
    return answer(_public(store, project, rows)[0])


def state(statement: str) -> Handler:
    async def handle(request: web.Request) -> web.Response:
        store, value = request.app[STORE], await body(request)
        project = project_for_reading(store, value.get("project_name"), value.get("project_id"))
        several = value.get("thread_ids")
        threads = several if isinstance(several, list) else [required_text(value, "thread_id")]
        store.write_many(statement, [(project, thread) for thread in threads])
        return done()

    return handle


_BASE = "/v1/private/traces/threads"
ROUTES: Routes = [
    ("GET", _BASE, find),
    ("POST", f"{_BASE}/search", search),
    ("POST", f"{_BASE}/retrieve", retrieve),
    ("PUT", f"{_BASE}/close", state("INSERT OR IGNORE INTO closed_threads VALUES (?, ?)")),
    ("PUT", f"{_BASE}/open", state("DELETE FROM closed_threads WHERE project_id = ? AND thread_id = ?")),
]
