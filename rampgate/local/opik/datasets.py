"""Datasets and their versions. A name is unique within its project (or within the workspace, when it has none)."""

from __future__ import annotations

from typing import Any

import orjson
from aiohttp import web

from rampgate.local.opik.identifiers import ID_PATH, new_id, now, parsed_id
from rampgate.local.opik.projects import USER, project_for_writing
from rampgate.local.opik.store import Store
from rampgate.local.opik.wire import (
    STORE,
    Routes,
    answer,
    body,
    coded,
    created,
    done,
    ids,
    invalid,
    not_found,
    page_of,
    paged,
    required_text,
    taken,
    unreadable,
)

_COLUMNS = "id, name, project_id, type, description, tags, created_at, last_updated_at"
_VERSION = "number, id, hash, added, modified, deleted, created_at"


def find_by_name(store: Store, name: str, project_name: str | None) -> str | None:
    """The dataset's id: in that project if it has one of the name, else anywhere in the workspace."""
    found = store.row(
        "SELECT d.id FROM datasets d LEFT JOIN projects p ON p.id = d.project_id WHERE d.name = ?"
        " ORDER BY coalesce(p.name = ? COLLATE NOCASE, 0) DESC, d.id DESC LIMIT 1",
        (name, project_name),
    )
    return None if found is None else str(found[0])


def insert(store: Store, name: str, value: dict[str, Any]) -> str:
    """Refusal 409 when the name is taken."""
    project = None
    if value.get("project_name") or value.get("project_id"):
        given_id = value.get("project_id")
        project = project_for_writing(store, None if given_id else value.get("project_name"), given_id)
    if store.value("SELECT 1 FROM datasets WHERE name = ? AND project_id IS ?", (name, project)):
        raise taken("Dataset")
    identifier = parsed_id(value["id"], "id") if value.get("id") else new_id()
    moment, tags = now(), orjson.dumps(value.get("tags") or []).decode()
    row = (identifier, name, project, value.get("type") or "dataset", value.get("description"), tags, moment, moment)
    store.write(f"INSERT INTO datasets ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
    return identifier


def live_count(store: Store, dataset: str, version: int | None = None) -> int:
    """Items in the version, or now."""
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
        raise not_found("Dataset", identifier)
    return _public(store, row)


async def find(request: web.Request) -> web.Response:
    store, (page, size) = request.app[STORE], page_of(request)
    project, part = request.query.get("project_id"), f"%{request.query.get('name', '')}%"
    where = "name LIKE ? AND (? IS NULL OR project_id = ?)"
    parameters = (part, project, project)
    total = store.value(f"SELECT count(*) FROM datasets WHERE {where}", parameters)
    rows = store.rows(
        f"SELECT {_COLUMNS} FROM datasets WHERE {where} ORDER BY id DESC LIMIT ? OFFSET ?",
        (*parameters, size, (page - 1) * size),
    )
    return paged(page, total, [_public(store, row) for row in rows], ("name", "created_at"))


async def create(request: web.Request) -> web.Response:
    value = await body(request)
    name = required_text(value, "name")
    if len(value.get("description") or "") > 255:
        raise invalid("description cannot exceed 255 characters")
    if value.get("type") not in (None, "dataset", "evaluation_suite"):
        raise unreadable(f"type: {value['type']!r} is none of dataset, evaluation_suite")
    return created(request, insert(request.app[STORE], name, value))


async def get(request: web.Request) -> web.Response:
    return answer(_by_id(request.app[STORE], request.match_info["id"].lower()))


async def retrieve(request: web.Request) -> web.Response:
    store, value = request.app[STORE], await body(request)
    name = required_text(value, "dataset_name")
    found = find_by_name(store, name, value.get("project_name"))
    if found is None:
        raise coded(404, f"Dataset name: {name} not found")
    return answer(_by_id(store, found))


def _remove(store: Store, identifiers: list[str]) -> None:
    with store.transaction():
        for table, column in (("dataset_items", "dataset_id"), ("dataset_versions", "dataset_id"), ("datasets", "id")):
            store.write_many(f"DELETE FROM {table} WHERE {column} = ?", [(each,) for each in identifiers])


async def delete(request: web.Request) -> web.Response:
    named = request.match_info.get("id")
    _remove(request.app[STORE], [named.lower()] if named else ids(await body(request)))
    return done()


async def delete_by_name(request: web.Request) -> web.Response:
    store, value = request.app[STORE], await body(request)
    name = required_text(value, "dataset_name")
    found = find_by_name(store, name, value.get("project_name"))
    if found is None:
        raise coded(404, f"Dataset name: {name} not found")
    _remove(store, [found])
    return done()


async def versions(request: web.Request) -> web.Response:
    store, (page, size), dataset = request.app[STORE], page_of(request), request.match_info["id"].lower()
    total = store.value("SELECT count(*) FROM dataset_versions WHERE dataset_id = ?", (dataset,))
    rows = store.rows(
        f"SELECT {_VERSION} FROM dataset_versions WHERE dataset_id = ? ORDER BY number DESC LIMIT ? OFFSET ?",
        (dataset, size, (page - 1) * size),
    )
    return paged(page, total, [_version(store, dataset, row) for row in rows])


async def version(request: web.Request) -> web.Response:
    store, dataset = request.app[STORE], request.match_info["id"].lower()
    name = required_text(await body(request), "version_name")
    row = store.row(
        f"SELECT {_VERSION} FROM dataset_versions WHERE dataset_id = ? AND 'v' || number = ?", (dataset, name)
    )
    if row is None:
        raise coded(404, f"Dataset version name: {name} not found")
    return answer(_version(store, dataset, row))


_BASE = "/v1/private/datasets"
ROUTES: Routes = [
    ("GET", _BASE, find),
    ("POST", _BASE, create),
    ("POST", f"{_BASE}/retrieve", retrieve),
    ("POST", f"{_BASE}/delete", delete_by_name),
    ("POST", f"{_BASE}/delete-batch", delete),
    ("GET", f"{_BASE}/{ID_PATH}", get),
    ("DELETE", f"{_BASE}/{ID_PATH}", delete),
    ("GET", f"{_BASE}/{ID_PATH}/versions", versions),
    ("POST", f"{_BASE}/{ID_PATH}/versions/retrieve", version),
]
