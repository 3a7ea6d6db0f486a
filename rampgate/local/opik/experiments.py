"""Serves experiments: what the SDK's `evaluate` writes of a run over a dataset, and what is read of it again."""

from __future__ import annotations

from typing import Any

import orjson
from aiohttp import web

from rampgate.local.opik import wire
from rampgate.local.opik.datasets import find_by_name, insert
from rampgate.local.opik.projects import USER
from rampgate.local.opik.wire import ID_PATH, STORE, Routes

_COLUMNS = "id, dataset_id, doc, created_at"
_KEPT = ("name", "type", "metadata", "tags", "dataset_version_id", "project_name")


async def create(request: web.Request) -> web.Response:
    """A dataset that does not exist is made, as Opik makes it."""
    store, value = request.app[STORE], await wire.body(request)
    name = wire.required_text(value, "dataset_name")
    identifier = wire.version_7(value["id"], "Experiment") if value.get("id") else wire.new_id()
    if store.value("SELECT 1 FROM experiments WHERE id = ?", (identifier,)):
        raise wire.taken("Experiment")
    project = {"project_name": value.get("project_name")}
    dataset = find_by_name(store, name, value.get("project_name")) or insert(store, name, project)
    doc = orjson.dumps({key: value.get(key) for key in _KEPT}).decode()
    store.write(f"INSERT INTO experiments ({_COLUMNS}) VALUES (?, ?, ?, ?)", (identifier, dataset, doc, wire.now()))
    return wire.created(request, identifier)


async def get(request: web.Request) -> web.Response:
    store, identifier = request.app[STORE], wire.path_id(request)
    row = store.row(f"SELECT {_COLUMNS} FROM experiments WHERE id = ?", (identifier,))
    if row is None:
        raise wire.not_found("Experiment", identifier)
    _, dataset, doc, created_at = row
    traces = store.value("SELECT count(*) FROM experiment_items WHERE experiment_id = ?", (identifier,))
    found: dict[str, Any] = {"id": identifier, "dataset_id": dataset, **orjson.loads(doc), "trace_count": traces}
    named = store.value("SELECT name FROM datasets WHERE id = ?", (dataset,))
    found |= {"dataset_name": named, "created_at": created_at, "last_updated_at": created_at}
    return wire.answer({**found, "created_by": USER, "last_updated_by": USER})


async def put_items(request: web.Request) -> web.Response:
    """Links traces with the dataset's items that they answer; a link that is there stays."""
    store, value = request.app[STORE], await wire.body(request)
    rows = [
        (
            wire.version_7(one["id"], "Experiment Item") if one.get("id") else wire.new_id(),
            *(wire.version_7(one.get(key), entity) for key, entity in _LINKED),
            wire.now(),
        )
        for one in wire.batch(value, "experiment_items")
    ]
    with store.transaction():
        store.write_many("INSERT OR IGNORE INTO experiment_items VALUES (?, ?, ?, ?, ?)", rows)
    return wire.done()


_LINKED = (("experiment_id", "Experiment"), ("dataset_item_id", "Dataset Item"), ("trace_id", "Trace"))


async def finish(request: web.Request) -> web.Response:
    wire.ids(await wire.body(request))
    return wire.done()


_BASE = "/v1/private/experiments"
ROUTES: Routes = [
    ("POST", _BASE, create),
    ("GET", f"{_BASE}/{ID_PATH}", get),
    ("POST", f"{_BASE}/items", put_items),
    ("POST", f"{_BASE}/finish", finish),
]
