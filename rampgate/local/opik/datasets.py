"""Serves datasets, their items and their versions.

A name is unique within its project, or within the workspace for a dataset without one. A write of items with a new
`batch_group_id` makes the next version; one without changes the latest. An item's row is valid for a span of versions,
so that reading an older version is a range test and copies nothing.
"""

from __future__ import annotations

import hashlib
from typing import Any

import orjson
from aiohttp import web

from rampgate.local.opik import filters, wire
from rampgate.local.opik.projects import USER, project_for_writing
from rampgate.local.opik.store import Store
from rampgate.local.opik.wire import ID_PATH, STORE, Routes

_COLUMNS = "id, name, project_id, type, description, tags, created_at, last_updated_at"
_VERSION = "number, id, hash, added, modified, deleted, created_at"
_SOURCES = ("manual", "trace", "span", "sdk")
_FIELDS = ("trace_id", "span_id", "source", "data", "description", "tags", "evaluators", "execution_policy")
_ITEM_COLUMNS = "id, doc, created_at, last_updated_at, dataset_id"
_FILTERABLE = ("id", "data", "full_data", "source", "trace_id", "tags", "created_at", "last_updated_at")
_VIEW = (
    "(SELECT *, json_extract(doc, '$.data') AS data, json_extract(doc, '$.tags') AS tags,"
    " json_extract(doc, '$.source') AS source, json_extract(doc, '$.trace_id') AS trace_id,"
    " json_extract(doc, '$.data') AS full_data FROM dataset_items)"
)


def find_by_name(store: Store, name: str, project_name: str | None) -> str | None:
    """The id of a dataset of this name: the project's if it has one, else any of the workspace."""
    found = store.row(
        "SELECT d.id FROM datasets d LEFT JOIN projects p ON p.id = d.project_id WHERE d.name = ?"
        " ORDER BY coalesce(p.name = ? COLLATE NOCASE, 0) DESC, d.id DESC LIMIT 1",
        (name, project_name),
    )
    return None if found is None else str(found[0])


def insert(store: Store, name: str, value: dict[str, Any]) -> str:
    """Create a dataset and return its id. Refusal 409 for a name that exists."""
    project = None
    if value.get("project_name") or value.get("project_id"):
        given_id = value.get("project_id")
        project = project_for_writing(store, None if given_id else value.get("project_name"), given_id)
    if store.value("SELECT 1 FROM datasets WHERE name = ? AND project_id IS ?", (name, project)):
        raise wire.taken("Dataset")
    identifier = wire.parsed_id(value["id"], "id") if value.get("id") else wire.new_id()
    moment, tags = wire.now(), orjson.dumps(value.get("tags") or []).decode()
    row = (identifier, name, project, value.get("type") or "dataset", value.get("description"), tags, moment, moment)
    store.write(f"INSERT INTO datasets ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
    return identifier


def live_count(store: Store, dataset: str, version: int | None = None) -> int:
    """The number of items in a version; None: in the latest."""
    return int(
        store.value(
            "SELECT count(*) FROM dataset_items WHERE dataset_id = ? AND since <= coalesce(?, since)"
            " AND (until IS NULL OR until > ?)",
            (dataset, version, version),
        )
    )


def _version(store: Store, dataset: str, row: tuple[Any, ...]) -> dict[str, Any]:
    number, identifier, version_hash, added, modified, deleted, created_at = row
    latest = store.value("SELECT max(number) FROM dataset_versions WHERE dataset_id = ?", (dataset,))
    return {
        "id": identifier,
        "dataset_id": dataset,
        "version_hash": version_hash,
        "version_name": f"v{number}",
        "tags": ["latest"] if number == latest else [],
        "is_latest": number == latest,
        "items_total": live_count(store, dataset, number),
        "items_added": added,
        "items_modified": modified,
        "items_deleted": deleted,
        "created_at": created_at,
        "created_by": USER,
        "last_updated_at": created_at,
        "last_updated_by": USER,
    }


def _public(store: Store, row: tuple[Any, ...]) -> dict[str, Any]:
    value = dict(zip(_COLUMNS.split(", "), row, strict=True))
    value |= {"tags": orjson.loads(value["tags"]), "visibility": "private", "created_by": USER, "last_updated_by": USER}
    value |= {"dataset_items_count": live_count(store, value["id"]), "experiment_count": 0, "optimization_count": 0}
    latest = store.row(
        f"SELECT {_VERSION} FROM dataset_versions WHERE dataset_id = ? ORDER BY number DESC LIMIT 1", (value["id"],)
    )
    if latest is not None:
        version = _version(store, value["id"], latest)
        value["latest_version"] = {key: version[key] for key in ("id", "version_hash", "version_name", "tags")}
    return value


def _by_id(store: Store, identifier: str) -> dict[str, Any]:
    row = store.row(f"SELECT {_COLUMNS} FROM datasets WHERE id = ?", (identifier,))
    if row is None:
        raise wire.not_found("Dataset", identifier)
    return _public(store, row)


async def find(request: web.Request) -> web.Response:
    store, (page, size) = request.app[STORE], wire.page_of(request)
    project, part = request.query.get("project_id"), f"%{request.query.get('name', '')}%"
    source = "datasets WHERE name LIKE ? AND (? IS NULL OR project_id = ?)"
    total, rows = store.page(page, size, _COLUMNS, source, [part, project, project])
    return wire.paged(page, total, [_public(store, row) for row in rows])


async def create(request: web.Request) -> web.Response:
    value = await wire.body(request)
    name = wire.required_text(value, "name")
    if len(value.get("description") or "") > 255:
        raise wire.invalid("description cannot exceed 255 characters")
    if value.get("type") not in (None, "dataset", "evaluation_suite"):
        raise wire.unreadable(f"type: {value['type']!r} is none of dataset, evaluation_suite")
    return wire.created(request, insert(request.app[STORE], name, value))


async def get(request: web.Request) -> web.Response:
    return wire.answer(_by_id(request.app[STORE], wire.path_id(request)))


async def retrieve(request: web.Request) -> web.Response:
    store, value = request.app[STORE], await wire.body(request)
    name = wire.required_text(value, "dataset_name")
    found = find_by_name(store, name, value.get("project_name"))
    if found is None:
        raise wire.coded(404, f"Dataset name: {name} not found")
    return wire.answer(_by_id(store, found))


async def versions(request: web.Request) -> web.Response:
    store, (page, size), dataset = request.app[STORE], wire.page_of(request), wire.path_id(request)
    source = "dataset_versions WHERE dataset_id = ?"
    total, rows = store.page(page, size, _VERSION, source, [dataset], "number DESC")
    return wire.paged(page, total, [_version(store, dataset, row) for row in rows])


async def version(request: web.Request) -> web.Response:
    store, dataset = request.app[STORE], wire.path_id(request)
    name = wire.required_text(await wire.body(request), "version_name")
    row = store.row(
        f"SELECT {_VERSION} FROM dataset_versions WHERE dataset_id = ? AND 'v' || number = ?", (dataset, name)
    )
    if row is None:
        raise wire.coded(404, f"Dataset version name: {name} not found")
    return wire.answer(_version(store, dataset, row))


def _writable_version(store: Store, dataset: str, group: str | None) -> int:
    """The number of the version that this write belongs to; makes the version where it is new."""
    latest = store.row(
        "SELECT number, batch_group_id FROM dataset_versions WHERE dataset_id = ? ORDER BY number DESC LIMIT 1",
        (dataset,),
    )
    if latest is not None and (group is None or latest[1] == group):
        return int(latest[0])
    number = latest[0] + 1 if latest else 1
    identifier = wire.new_id()
    version_hash = hashlib.sha256(identifier.encode()).hexdigest()[:16]
    store.write(
        "INSERT INTO dataset_versions VALUES (?, ?, ?, ?, ?, 0, 0, 0, ?)",
        (dataset, number, identifier, version_hash, group, wire.now()),
    )
    return int(number)


def _retire(store: Store, dataset: str, item: str, version: int) -> str | None:
    """End the item's current row at this version. Return when the item was created, None for a new item."""
    live = store.row(
        "SELECT since, created_at FROM dataset_items WHERE dataset_id = ? AND id = ? AND until IS NULL", (dataset, item)
    )
    if live is None:
        return None
    where = "WHERE dataset_id = ? AND id = ? AND since = ?"
    if live[0] == version:
        store.write(f"DELETE FROM dataset_items {where}", (dataset, item, version))
    else:
        store.write(f"UPDATE dataset_items SET until = ? {where}", (version, dataset, item, live[0]))
    return str(live[1])


def _count(store: Store, dataset: str, version: int, column: str) -> None:
    store.write(
        f"UPDATE dataset_versions SET {column} = {column} + 1 WHERE dataset_id = ? AND number = ?", (dataset, version)
    )


def _checked(item: dict[str, Any], where: str) -> dict[str, Any]:
    if not isinstance(item.get("data"), dict) or not item["data"]:
        raise wire.invalid(f"{where}data must not be empty")
    if item.get("source") is None:
        raise wire.invalid(f"{where}source must not be null")
    if item["source"] not in _SOURCES:
        raise wire.unreadable(f"{where}source: {item['source']!r} is none of {', '.join(_SOURCES)}")
    return {name: item[name] for name in _FIELDS if item.get(name) is not None}


def _dataset_of(store: Store, value: dict[str, Any], create: bool) -> str:
    """The id by dataset_id or dataset_name. An unknown name makes a dataset with `create`, else Refusal 404."""
    if value.get("dataset_id"):
        identifier = wire.parsed_id(value["dataset_id"], "dataset_id")
        if store.value("SELECT 1 FROM datasets WHERE id = ?", (identifier,)) is None:
            raise wire.not_found("Dataset", identifier)
        return identifier
    name = value.get("dataset_name")
    if not isinstance(name, str) or not name.strip():
        raise wire.invalid("dataset_name must not be blank")
    found = find_by_name(store, name, value.get("project_name"))
    if found is None and not create:
        raise wire.coded(404, f"Dataset name: {name} not found")
    return found or insert(store, name, {"project_name": value.get("project_name")})


async def put_items(request: web.Request) -> web.Response:
    store, value = request.app[STORE], await wire.body(request)
    items = [(item.get("id"), _checked(item, f"items[{n}].")) for n, item in enumerate(wire.batch(value, "items"))]
    with store.transaction():
        dataset, moment = _dataset_of(store, value, create=True), wire.now()
        version = _writable_version(store, dataset, value.get("batch_group_id"))
        for given, doc in items:
            item = wire.parsed_id(given, "id") if given else wire.new_id()
            before = _retire(store, dataset, item, version)
            _count(store, dataset, version, "modified" if before else "added")
            row = (dataset, item, version, None, orjson.dumps(doc).decode(), before or moment, moment)
            store.write("INSERT INTO dataset_items VALUES (?, ?, ?, ?, ?, ?, ?)", row)
    return wire.done()


def _items_where(store: Store, dataset: str, version: str | None, wanted: Any) -> filters.Condition:
    """The condition for the items of a version, by its hash or name ("latest" or none: the latest), and the filters."""
    sql, parameters = filters.conditions(filters.parse(wanted), "item", "", _FILTERABLE)
    if not version or version == "latest":
        return f"t.dataset_id = ? AND t.until IS NULL AND {sql}", [dataset, *parameters]
    number = store.value(
        "SELECT number FROM dataset_versions WHERE dataset_id = ? AND (hash = ? OR 'v' || number = ?)",
        (dataset, version, version),
    )
    if number is None:
        raise wire.coded(404, f"Dataset version: {version} not found")
    held = "t.dataset_id = ? AND t.since <= ? AND (t.until IS NULL OR t.until > ?)"
    return f"{held} AND {sql}", [dataset, number, number, *parameters]


def _public_item(row: tuple[Any, ...]) -> dict[str, Any]:
    identifier, doc, created_at, updated_at, dataset = row
    moments = {"created_at": created_at, "last_updated_at": updated_at, "created_by": USER, "last_updated_by": USER}
    value: dict[str, Any] = orjson.loads(doc)
    return {"id": identifier, "dataset_item_id": identifier, "dataset_id": dataset} | value | moments


async def find_items(request: web.Request) -> web.Response:
    store, (page, size), dataset = request.app[STORE], wire.page_of(request), wire.path_id(request)
    where, values = _items_where(store, dataset, request.query.get("version"), request.query.get("filters"))
    total, rows = store.page(page, size, _ITEM_COLUMNS, f"{_VIEW} t WHERE {where}", values, "t.id DESC")
    return wire.paged(page, total, [_public_item(row) for row in rows])


async def stream_items(request: web.Request) -> web.Response:
    store, value = request.app[STORE], await wire.body(request)
    limit = wire.stream_limit(value, "steam_limit")  # Opik's own spelling
    dataset = _dataset_of(store, value, create=False)
    where, values = _items_where(store, dataset, value.get("dataset_version"), value.get("filters"))
    if value.get("last_retrieved_id"):
        where += " AND t.id < ?"
        values.append(wire.parsed_id(value["last_retrieved_id"], "last_retrieved_id"))
    rows = store.rows(
        f"SELECT {_ITEM_COLUMNS} FROM {_VIEW} t WHERE {where} ORDER BY t.id DESC LIMIT ?", [*values, limit]
    )
    return wire.lines(_public_item(row) for row in rows)


_BASE = "/v1/private/datasets"
ROUTES: Routes = [
    ("PUT", f"{_BASE}/items", put_items),
    ("POST", f"{_BASE}/items/stream", stream_items),
    ("GET", f"{_BASE}/{ID_PATH}/items", find_items),
    ("GET", _BASE, find),
    ("POST", _BASE, create),
    ("POST", f"{_BASE}/retrieve", retrieve),
    ("GET", f"{_BASE}/{ID_PATH}", get),
    ("GET", f"{_BASE}/{ID_PATH}/versions", versions),
    ("POST", f"{_BASE}/{ID_PATH}/versions/retrieve", version),
]
