"""Automation rule evaluators: kept and given back, never run. Judging is Rampgate's own."""

from __future__ import annotations

from typing import Any

from aiohttp import web

from rampgate.localopik.documents import Documents, project_names
from rampgate.localopik.identifiers import ID_PATH, parsed_id
from rampgate.localopik.refusals import invalid, unreadable
from rampgate.localopik.store import Store
from rampgate.localopik.wire import STORE, Routes, answer, body, created, done, ids, page_of, paged, required_text

_RULES = Documents("rule", "AutomationRuleEvaluator")
_NEEDED = {"llm_as_judge": ("model", "messages", "schema"), "user_defined_metric_python": ("metric",)}
_TYPES = {f"{scope}{judge}": needs for scope in ("", "trace_thread_", "span_") for judge, needs in _NEEDED.items()}


def _check(value: dict[str, Any]) -> None:
    kind, code, rate = value.get("type"), value.get("code"), value.get("sampling_rate")
    if kind not in _TYPES:
        raise unreadable(f"type: {kind!r} is none of {', '.join(_TYPES)}")
    if value.get("action") != "evaluator":
        raise unreadable(f"action: {value.get('action')!r} is not evaluator")
    if not isinstance(code, dict):
        raise invalid("code must not be null")
    for part in _TYPES[kind]:
        if not code.get(part):
            raise invalid(f"code.{part} must not be null")
    if kind in ("user_defined_metric_python", "span_user_defined_metric_python") and not code.get("arguments"):
        raise invalid("code.arguments must not be empty")
    if rate is not None and not (isinstance(rate, int | float) and 0 <= rate <= 1):
        raise invalid("sampling_rate must be between 0 and 1")


def _projects(value: dict[str, Any]) -> list[str]:
    given = value.get("project_ids") or ([value["project_id"]] if value.get("project_id") else [])
    return sorted({parsed_id(project, "project_ids") for project in given})


def _public(store: Store, value: dict[str, Any]) -> dict[str, Any]:
    projects = value.pop("project_ids")
    value["projects"] = project_names(store, projects)
    if value["projects"]:
        value |= value["projects"][0]
    return value


async def find(request: web.Request) -> web.Response:
    store, (page, size), query = request.app[STORE], page_of(request), request.query
    total, content = _RULES.find(store, query.get("name", ""), query.get("project_id"), page, size)
    return paged(page, total, [_public(store, value) for value in content], ("name", "created_at"))


async def create(request: web.Request) -> web.Response:
    store, value = request.app[STORE], await body(request)
    name = required_text(value, "name")
    _check(value)
    rule = {"enabled": True, "sampling_rate": 1.0} | {k: v for k, v in value.items() if v is not None}
    return created(request, _RULES.insert(store, name, _projects(value), rule))


async def get(request: web.Request) -> web.Response:
    store = request.app[STORE]
    return answer(_public(store, _RULES.get(store, request.match_info["id"].lower())))


async def update(request: web.Request) -> web.Response:
    store, identifier, value = request.app[STORE], request.match_info["id"].lower(), await body(request)
    _check(_RULES.get(store, identifier) | {k: v for k, v in value.items() if v is not None})
    changes = value | ({"project_ids": _projects(value)} if _projects(value) else {})
    _RULES.update(store, identifier, changes)
    return done()


async def delete(request: web.Request) -> web.Response:
    _RULES.delete(request.app[STORE], ids(await body(request)))
    return done()


async def logs(request: web.Request) -> web.Response:
    """Nothing: rules are not run here."""
    return answer({"page": 1, "size": 0, "total": 0, "content": []})


_BASE = "/v1/private/automations/evaluators"
ROUTES: Routes = [
    ("GET", _BASE, find),
    ("POST", _BASE, create),
    ("POST", f"{_BASE}/delete", delete),
    ("GET", f"{_BASE}/{ID_PATH}", get),
    ("PATCH", f"{_BASE}/{ID_PATH}", update),
    ("GET", f"{_BASE}/{ID_PATH}/logs", logs),
]
