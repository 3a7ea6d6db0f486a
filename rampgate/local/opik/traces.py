"""The paths of traces and spans."""

from __future__ import annotations

from aiohttp import web

from rampgate.local.opik import wire
from rampgate.local.opik.identifiers import ID_PATH
from rampgate.local.opik.listings import get_handler, page_handler, search_handler
from rampgate.local.opik.recordings import SPAN, TRACE, Kind, change, store_all, store_one
from rampgate.local.opik.wire import STORE, Handler, Routes, invalid


def _create(kind: Kind) -> Handler:
    async def handle(request: web.Request) -> web.Response:
        return wire.created(request, store_one(request.app[STORE], kind, await wire.body(request)))

    return handle


def _create_batch(kind: Kind) -> Handler:
    async def handle(request: web.Request) -> web.Response:
        store_all(request.app[STORE], kind, wire.batch(await wire.body(request), kind.table))
        return wire.done()

    return handle


def _update(kind: Kind) -> Handler:
    async def handle(request: web.Request) -> web.Response:
        change(request.app[STORE], kind, request.match_info["id"], await wire.body(request))
        return wire.done()

    return handle


def _update_batch(kind: Kind) -> Handler:
    """`{"ids", "update", "merge_tags"}`: the same change for each."""

    async def handle(request: web.Request) -> web.Response:
        store, value = request.app[STORE], await wire.body(request)
        update = value.get("update")
        if not isinstance(update, dict):
            raise invalid("update must not be null")
        if value.get("merge_tags") and update.get("tags"):
            update = {**update, "tags_to_add": update["tags"], "tags": None}
        with store.transaction():
            for identifier in wire.ids(value):
                change(store, kind, identifier, update)
        return wire.done()

    return handle


def _delete(kind: Kind) -> Handler:
    """By path or by `{"ids"}`; a trace takes its spans and scores along. Unknown ids are no error."""

    async def handle(request: web.Request) -> web.Response:
        store, named = request.app[STORE], request.match_info.get("id")
        doomed = [(i,) for i in ([named.lower()] if named else wire.ids(await wire.body(request)))]
        with store.transaction():
            if kind is TRACE:
                spans = "SELECT id FROM spans WHERE trace_id = ?"
                store.write_many(f"DELETE FROM scores WHERE kind = 'span' AND entity_id IN ({spans})", doomed)
                store.write_many("DELETE FROM spans WHERE trace_id = ?", doomed)
            store.write_many(f"DELETE FROM scores WHERE kind = '{kind.name}' AND entity_id = ?", doomed)
            store.write_many(f"DELETE FROM {kind.table} WHERE id = ?", doomed)
        return wire.done()

    return handle


def _routes(kind: Kind) -> Routes:
    base = f"/v1/private/{kind.table}"
    return [
        ("POST", base, _create(kind)),
        ("GET", base, page_handler(kind)),
        ("POST", f"{base}/batch", _create_batch(kind)),
        ("PATCH", f"{base}/batch", _update_batch(kind)),
        ("POST", f"{base}/search", search_handler(kind)),
        ("POST", f"{base}/delete", _delete(kind)),
        ("GET", f"{base}/{ID_PATH}", get_handler(kind)),
        ("PATCH", f"{base}/{ID_PATH}", _update(kind)),
        ("DELETE", f"{base}/{ID_PATH}", _delete(kind)),
    ]


ROUTES: Routes = _routes(TRACE) + _routes(SPAN)
