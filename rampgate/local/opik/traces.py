"""Serves traces and spans: creates and changes them; reads pages, streams and single ones."""

from __future__ import annotations

from typing import Any

import orjson
from aiohttp import web

from rampgate.local.opik import filters, scores, wire
from rampgate.local.opik.projects import project_for_reading
from rampgate.local.opik.recordings import SPAN, TRACE, Kind, change, shown, store_all, store_one
from rampgate.local.opik.store import Store
from rampgate.local.opik.wire import ID_PATH, STORE, Handler, Routes


def _span_figures(store: Store, traces: list[str]) -> dict[str, dict[str, Any]]:
    """The figures of each trace's spans: their number, usage, cost and providers."""
    rows = store.rows(
        "SELECT trace_id, type, provider, usage, total_estimated_cost FROM spans"
        " WHERE trace_id IN (SELECT value FROM json_each(?))",
        (orjson.dumps(traces).decode(),),
    )
    figures: dict[str, dict[str, Any]] = {}
    for trace, kind, provider, usage, cost in rows:
        of_trace = figures.setdefault(trace, {"span_count": 0, "llm_span_count": 0, "has_tool_spans": False})
        of_trace["span_count"] += 1
        of_trace["llm_span_count"] += kind == "llm"
        of_trace["has_tool_spans"] |= kind == "tool"
        if provider:
            of_trace["providers"] = sorted({*of_trace.get("providers", ()), provider})
        if cost is not None:
            of_trace["total_estimated_cost"] = of_trace.get("total_estimated_cost", 0) + cost
        for name, count in orjson.loads(usage or "{}").items():
            total = of_trace.setdefault("usage", {})
            total[name] = total.get(name, 0) + count
    return figures


def _present(
    store: Store, kind: Kind, rows: list[tuple[Any, ...]], project: str | None, exclude: Any, truncate: bool
) -> list[dict[str, Any]]:
    entities = [row[0] for row in rows]
    excluded = [str(name) for name in exclude or ()]
    given = {} if "feedback_scores" in excluded else scores.of_entities(store, kind.name, entities, project)
    figures = _span_figures(store, entities) if kind is TRACE else {}
    content = []
    for row in rows:
        more: dict[str, Any] = {"feedback_scores": given[row[0]]} if row[0] in given else {}
        if kind is TRACE:
            more |= {"span_count": 0, "llm_span_count": 0, "visibility_mode": "default"} | figures.get(row[0], {})
        content.append(shown(kind, row, more, excluded, truncate))
    return content


def _where(kind: Kind, project: str, wanted: Any, asked: dict[str, Any]) -> filters.Condition:
    """The condition that list and search share: project, filters, from/to times, and for spans trace and type."""
    sql, parameters = filters.conditions(filters.parse(wanted), kind.name, project, kind.columns)
    parts, values = ["t.project_id = ?", sql], [project, *parameters]
    for name, comparison in (("from_time", ">="), ("to_time", "<=")):
        if asked.get(name):
            parts.append(f"t.id {comparison} ?")
            values.append(wire.id_floor(asked[name], name))
    if kind is SPAN:
        if asked.get("trace_id"):
            parts.append("t.trace_id = ?")
            values.append(wire.parsed_id(asked["trace_id"], "trace_id"))
        if asked.get("type"):
            parts.append("t.type = ?")
            values.append(asked["type"])
    return " AND ".join(parts), values


def _excluded(text: str | None) -> list[Any]:
    """Field names from a JSON list as text; Refusal 400 otherwise."""
    try:
        names = orjson.loads(text or "[]")
    except orjson.JSONDecodeError:
        names = None
    if not isinstance(names, list):
        raise wire.bad_request(f"Invalid exclude query parameter '{text}'")
    return names


def page_handler(kind: Kind) -> Handler:
    async def handle(request: web.Request) -> web.Response:
        store, query = request.app[STORE], request.query
        page, size = wire.page_of(request)
        project = project_for_reading(store, query.get("project_name"), query.get("project_id"))
        where, values = _where(kind, project, query.get("filters"), dict(query))
        source = f"{kind.table} t WHERE {where}"
        total, rows = store.page(page, size, ", ".join(kind.columns), source, values)
        exclude = _excluded(query.get("exclude"))
        truncate = query.get("truncate", "").lower() == "true"
        return wire.paged(page, total, _present(store, kind, rows, project, exclude, truncate))

    return handle


def search_handler(kind: Kind) -> Handler:
    """Newest first; the cursor is the last id of the page before."""

    async def handle(request: web.Request) -> web.Response:
        store, asked = request.app[STORE], await wire.body(request)
        limit = wire.stream_limit(asked, "limit")
        project = project_for_reading(store, asked.get("project_name"), asked.get("project_id"))
        where, values = _where(kind, project, asked.get("filters"), asked)
        if asked.get("last_retrieved_id"):
            where += " AND t.id < ?"
            values.append(wire.parsed_id(asked["last_retrieved_id"], "last_retrieved_id"))
        rows = store.rows(
            f"SELECT {', '.join(kind.columns)} FROM {kind.table} t WHERE {where} ORDER BY t.id DESC LIMIT ?",
            [*values, limit],
        )
        return wire.lines(_present(store, kind, rows, project, asked.get("exclude"), bool(asked.get("truncate", True))))

    return handle


def get_handler(kind: Kind) -> Handler:
    """Answer one recording with its scores in every project."""

    async def handle(request: web.Request) -> web.Response:
        store, identifier = request.app[STORE], wire.path_id(request)
        row = store.row(f"SELECT {', '.join(kind.columns)} FROM {kind.table} WHERE id = ?", (identifier,))
        if row is None:
            raise wire.not_found(kind.name.capitalize(), identifier)
        value = _present(store, kind, [row], None, (), truncate=False)[0]
        if kind is SPAN:
            value["project_name"] = store.value("SELECT name FROM projects WHERE id = ?", (value["project_id"],))
        return wire.answer(value)

    return handle


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


def _routes(kind: Kind) -> Routes:
    base = f"/v1/private/{kind.table}"
    return [
        ("POST", base, _create(kind)),
        ("GET", base, page_handler(kind)),
        ("POST", f"{base}/batch", _create_batch(kind)),
        ("POST", f"{base}/search", search_handler(kind)),
        ("GET", f"{base}/{ID_PATH}", get_handler(kind)),
        ("PATCH", f"{base}/{ID_PATH}", _update(kind)),
    ]


ROUTES: Routes = _routes(TRACE) + _routes(SPAN)
