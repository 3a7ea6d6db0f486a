"""Serves projects. Writing to an unknown project creates it; reading from one does not."""

from __future__ import annotations

from typing import Any

from aiohttp import web

from rampgate.local.opik import wire
from rampgate.local.opik.store import Store
from rampgate.local.opik.wire import ID_PATH, STORE, Routes

DEFAULT = "Default Project"
USER = "admin"
_COLUMNS = "id, name, description, created_at, last_updated_at"


def project_for_writing(store: Store, name: str | None, project_id: str | None = None) -> str:
    """The project's id; the name wins, none is "Default Project", and a missing one is created."""
    if project_id and not name:
        known = wire.parsed_id(project_id, "project_id")
        if store.value("SELECT 1 FROM projects WHERE id = ?", (known,)) is None:
            raise wire.not_found("Project", known)
        return known
    name = name.strip() if name and name.strip() else DEFAULT
    found = store.value("SELECT id FROM projects WHERE name = ?", (name,))
    return str(found) if found else _insert(store, name, None)


def project_for_reading(store: Store, name: str | None, project_id: str | None) -> str:
    """The project's id; Refusal 400 if none is named, 404 if it doesn't exist."""
    if project_id:
        return wire.parsed_id(project_id, "project_id")
    if not name:
        raise wire.bad_request("Either 'project_name' or 'project_id' query params must be provided")
    found = store.value("SELECT id FROM projects WHERE name = ?", (name.strip(),))
    if not found:
        raise wire.coded(404, f"Project name: {name} not found")
    return str(found)


def _insert(store: Store, name: str, description: str | None) -> str:
    identifier, moment = wire.new_id(), wire.now()
    store.write("INSERT INTO projects VALUES (?, ?, ?, ?, ?)", (identifier, name, description, moment, moment))
    return identifier


def _public(store: Store, row: tuple[Any, ...]) -> dict[str, Any]:
    identifier, name, description, created_at, updated_at = row
    latest = store.value("SELECT max(id) FROM traces WHERE project_id = ?", (identifier,))
    last_trace = store.value("SELECT last_updated_at FROM traces WHERE id = ?", (latest,)) if latest else None
    return {
        "id": identifier,
        "name": name,
        "visibility": "private",
        "description": description,
        "created_at": created_at,
        "created_by": USER,
        "last_updated_at": updated_at,
        "last_updated_by": USER,
        "last_updated_trace_at": last_trace,
    }


async def find(request: web.Request) -> web.Response:
    store = request.app[STORE]
    page, size = wire.page_of(request)
    source, part = "projects WHERE name LIKE ?", f"%{request.query.get('name', '')}%"
    total, rows = store.page(page, size, _COLUMNS, source, [part])
    return wire.paged(page, total, [_public(store, row) for row in rows])


async def create(request: web.Request) -> web.Response:
    store, value = request.app[STORE], await wire.body(request)
    name, description = wire.required_text(value, "name").strip(), value.get("description")
    if description is not None and len(str(description)) > 255:
        raise wire.invalid("description cannot exceed 255 characters")
    if store.value("SELECT 1 FROM projects WHERE name = ?", (name,)):
        raise wire.taken("Project")
    return wire.created(request, _insert(store, name, description))


async def get(request: web.Request) -> web.Response:
    store, identifier = request.app[STORE], wire.path_id(request)
    row = store.row(f"SELECT {_COLUMNS} FROM projects WHERE id = ?", (identifier,))
    if row is None:
        raise wire.not_found("Project", identifier)
    return wire.answer(_public(store, row))


async def retrieve(request: web.Request) -> web.Response:
    store, value = request.app[STORE], await wire.body(request)
    name = wire.required_text(value, "name")
    row = store.row(f"SELECT {_COLUMNS} FROM projects WHERE name = ?", (name.strip(),))
    if row is None:
        raise wire.coded(404, f"Project name: {name} not found")
    return wire.answer(_public(store, row))


_BASE = "/v1/private/projects"
ROUTES: Routes = [
    ("GET", _BASE, find),
    ("POST", _BASE, create),
    ("POST", f"{_BASE}/retrieve", retrieve),
    ("GET", f"{_BASE}/{ID_PATH}", get),
]
