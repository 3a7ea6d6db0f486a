"""Serves feedback definitions and annotation queues: what people fill in, and of which traces.

A queue that is made again under its id replaces the one before, as in Opik, and an item counts once.
"""

from __future__ import annotations

from typing import Any

import orjson
from aiohttp import web

from rampgate.local.opik import wire
from rampgate.local.opik.projects import USER
from rampgate.local.opik.store import Store
from rampgate.local.opik.wire import ID_PATH, STORE, Routes

_KINDS = {"numerical": ("min", "max"), "categorical": ("categories",), "boolean": ("trueLabel", "falseLabel")}
_SCOPES = ("trace", "thread")
_COLUMNS = "id, name, doc, created_at"


async def define(request: web.Request) -> web.Response:
    store, value = request.app[STORE], await wire.body(request)
    name, kind, details = wire.required_text(value, "name"), value.get("type"), value.get("details")
    if kind not in _KINDS:
        raise wire.unreadable(f"type: {kind!r} is none of {', '.join(_KINDS)}")
    if not isinstance(details, dict):
        raise wire.invalid("details must not be null")
    for part in _KINDS[kind]:
        if details.get(part) is None:
            raise wire.invalid(f"details.{part} must not be null")
    if store.value("SELECT 1 FROM feedback_definitions WHERE name = ?", (name,)):
        raise wire.taken("Feedback")
    identifier = wire.new_id()
    doc = orjson.dumps({"type": kind, "details": details, "description": value.get("description")}).decode()
    store.write("INSERT INTO feedback_definitions VALUES (?, ?, ?, ?)", (identifier, name, doc, wire.now()))
    return wire.created(request, identifier)


async def definitions(request: web.Request) -> web.Response:
    (page, size), part = wire.page_of(request), request.query.get("name", "")
    source = "feedback_definitions WHERE instr(lower(name), lower(?)) > 0"
    total, rows = request.app[STORE].page(page, size, _COLUMNS, source, [part])
    return wire.paged(page, total, [_loaded(row) for row in rows])


async def create(request: web.Request) -> web.Response:
    store, value = request.app[STORE], await wire.body(request)
    name, project = wire.required_text(value, "name"), wire.parsed_id(value.get("project_id"), "project_id")
    if value.get("scope") not in _SCOPES:
        raise wire.unreadable(f"scope: {value.get('scope')!r} is none of {', '.join(_SCOPES)}")
    identifier = wire.version_7(value["id"], "AnnotationQueue") if value.get("id") else wire.new_id()
    doc = orjson.dumps({**value, "id": identifier, "project_id": project}).decode()
    store.write("INSERT OR REPLACE INTO queues VALUES (?, ?, ?, ?)", (identifier, name, doc, wire.now()))
    return wire.created(request, identifier)


async def find(request: web.Request) -> web.Response:
    store, (page, size), part = request.app[STORE], wire.page_of(request), request.query.get("name", "")
    total, rows = store.page(page, size, _COLUMNS, "queues WHERE instr(lower(name), lower(?)) > 0", [part])
    return wire.paged(page, total, [_public(store, row) for row in rows])


async def get(request: web.Request) -> web.Response:
    store, identifier = request.app[STORE], wire.path_id(request)
    row = store.row(f"SELECT {_COLUMNS} FROM queues WHERE id = ?", (identifier,))
    if row is None:
        raise wire.not_found("Annotation queue", identifier)
    return wire.answer(_public(store, row))


async def add(request: web.Request) -> web.Response:
    store, queue = request.app[STORE], wire.path_id(request)
    items = [wire.version_7(one, "AnnotationQueue item") for one in wire.ids(await wire.body(request))]
    if store.value("SELECT 1 FROM queues WHERE id = ?", (queue,)) is None:
        raise wire.not_found("Annotation queue", queue)
    store.write_many("INSERT OR IGNORE INTO queue_items VALUES (?, ?)", [(queue, item) for item in items])
    return wire.done()


def _loaded(row: tuple[Any, ...]) -> dict[str, Any]:
    identifier, name, doc, created_at = row
    return {**orjson.loads(doc), "id": identifier, "name": name, "created_at": created_at, "created_by": USER}


def _public(store: Store, row: tuple[Any, ...]) -> dict[str, Any]:
    queue = _loaded(row)
    queue["project_name"] = store.value("SELECT name FROM projects WHERE id = ?", (queue["project_id"],))
    queue["items_count"] = store.value("SELECT count(*) FROM queue_items WHERE queue_id = ?", (queue["id"],))
    return queue


_QUEUES, _DEFINITIONS = "/v1/private/annotation-queues", "/v1/private/feedback-definitions"
ROUTES: Routes = [
    ("GET", _DEFINITIONS, definitions),
    ("POST", _DEFINITIONS, define),
    ("GET", _QUEUES, find),
    ("POST", _QUEUES, create),
    ("GET", f"{_QUEUES}/{ID_PATH}", get),
    ("POST", f"{_QUEUES}/{ID_PATH}/items/add", add),
]
