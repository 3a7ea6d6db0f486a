"""Annotation queues: a name, a project, a scope, and the ids of the traces or threads in it."""

from __future__ import annotations

from typing import Any

from aiohttp import web

from rampgate.local.opik import filters
from rampgate.local.opik.documents import Documents, project_names
from rampgate.local.opik.identifiers import ID_PATH, parsed_id
from rampgate.local.opik.store import Store
from rampgate.local.opik.wire import (
    STORE,
    Handler,
    Routes,
    answer,
    batch,
    body,
    created,
    done,
    ids,
    invalid,
    page_of,
    paged,
    required_text,
    unreadable,
)

_QUEUES = Documents("queue", "Annotation queue")


def _insert(store: Store, value: dict[str, Any]) -> str:
    name = required_text(value, "name")
    if value.get("project_id") is None:
        raise invalid("project_id must not be null")
    if value.get("scope") not in ("trace", "thread"):
        raise unreadable(f"scope: {value.get('scope')!r} is none of trace, thread")
    queue = {"comments_enabled": False, "feedback_definition_names": []}
    queue |= {key: item for key, item in value.items() if item is not None}
    return _QUEUES.insert(store, name, [parsed_id(value["project_id"], "project_id")], queue)


def _public(store: Store, value: dict[str, Any]) -> dict[str, Any]:
    for project in project_names(store, value.pop("project_ids")):
        value |= project
    value["items_count"] = store.value("SELECT count(*) FROM queue_items WHERE queue_id = ?", (value["id"],))
    return value


async def find(request: web.Request) -> web.Response:
    store, (page, size) = request.app[STORE], page_of(request)
    project = next(
        (f.get("value") for f in filters.parse(request.query.get("filters")) if f.get("field") == "project_id"), None
    )
    total, content = _QUEUES.find(store, request.query.get("name", ""), project, page, size)
    return paged(page, total, [_public(store, value) for value in content])


async def create(request: web.Request) -> web.Response:
    return created(request, _insert(request.app[STORE], await body(request)))


async def create_batch(request: web.Request) -> web.Response:
    store, values = request.app[STORE], batch(await body(request), "annotation_queues")
    with store.transaction():
        for value in values:
            _insert(store, value)
    return done()


async def get(request: web.Request) -> web.Response:
    store = request.app[STORE]
    return answer(_public(store, _QUEUES.get(store, request.match_info["id"].lower())))


async def update(request: web.Request) -> web.Response:
    _QUEUES.update(request.app[STORE], request.match_info["id"].lower(), await body(request))
    return done()


async def delete(request: web.Request) -> web.Response:
    store, doomed = request.app[STORE], ids(await body(request))
    _QUEUES.delete(store, doomed)
    store.write_many("DELETE FROM queue_items WHERE queue_id = ?", [(queue,) for queue in doomed])
    return done()


def items(statement: str) -> Handler:
    """Adds or takes away items; 404 for an unknown queue."""

    async def handle(request: web.Request) -> web.Response:
        store, queue = request.app[STORE], request.match_info["id"].lower()
        members = ids(await body(request))
        _QUEUES.get(store, queue)
        with store.transaction():
            store.write_many(statement, [(queue, member) for member in members])
        return done()

    return handle


_BASE = "/v1/private/annotation-queues"
_ADD = items("INSERT OR IGNORE INTO queue_items VALUES (?, ?)")
_REMOVE = items("DELETE FROM queue_items WHERE queue_id = ? AND item_id = ?")
ROUTES: Routes = [
    ("GET", _BASE, find),
    ("POST", _BASE, create),
    ("POST", f"{_BASE}/batch", create_batch),
    ("POST", f"{_BASE}/delete", delete),
    ("GET", f"{_BASE}/{ID_PATH}", get),
    ("PATCH", f"{_BASE}/{ID_PATH}", update),
    ("POST", f"{_BASE}/{ID_PATH}/items/add", _ADD),
    ("POST", f"{_BASE}/{ID_PATH}/items/delete", _REMOVE),
]
