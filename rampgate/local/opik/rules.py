"""Serves automation rule evaluators: stores them and never runs them, because judging is Rampgate's own."""

from __future__ import annotations

import struct
from typing import Any

import orjson
from aiohttp import web

from rampgate.local.opik import wire
from rampgate.local.opik.projects import USER
from rampgate.local.opik.store import Store
from rampgate.local.opik.wire import ID_PATH, STORE, Routes

_ENTITY = "AutomationRuleEvaluator"
_COLUMNS = "id, name, project_ids, doc, created_at, last_updated_at"
_NEEDED = {"llm_as_judge": ("model", "messages", "schema"), "user_defined_metric_python": ("metric",)}
_TYPES = {f"{scope}{judge}": needs for scope in ("", "trace_thread_", "span_") for judge, needs in _NEEDED.items()}
_ROLES = frozenset({"SYSTEM", "USER", "AI", "TOOL_EXECUTION_RESULT", "CUSTOM"})
_OUTPUTS = frozenset({"BOOLEAN", "INTEGER", "DOUBLE"})
_LONGEST_NAME = 150
_FIELDS = frozenset(
    {
        *("id", "name", "start_time", "end_time", "input", "output", "input_json", "output_json", "metadata", "tags"),
        *("total_estimated_cost", "usage.completion_tokens", "usage.prompt_tokens", "usage.total_tokens"),
        *("feedback_scores", "duration", "thread_id", "guardrails", "error_info"),
    }
)
_OPERATORS = frozenset(
    {
        *("contains", "not_contains", "starts_with", "ends_with", "=", "!=", ">", ">=", "<", "<="),
        *("is_empty", "is_not_empty", "in", "not_in"),
    }
)


def _check(value: dict[str, Any]) -> None:
    kind, code, rate = value.get("type"), value.get("code"), value.get("sampling_rate")
    if kind not in _TYPES:
        raise wire.unreadable(f"type: {kind!r} is none of {', '.join(_TYPES)}")
    if value.get("action") != "evaluator":
        raise wire.unreadable(f"action: {value.get('action')!r} is not evaluator")
    if not isinstance(code, dict):
        raise wire.invalid("code must not be null")
    for part in _TYPES[kind]:
        if not code.get(part):
            raise wire.invalid(f"code.{part} must not be null")
    if kind in ("user_defined_metric_python", "span_user_defined_metric_python") and not code.get("arguments"):
        raise wire.invalid("code.arguments must not be empty")
    if rate is not None and not (isinstance(rate, int | float) and 0 <= rate <= 1):
        raise wire.invalid("sampling_rate must be between 0 and 1")
    if kind.endswith("llm_as_judge"):
        _check_judge(code)
    if kind in ("llm_as_judge", "user_defined_metric_python"):
        for one in value.get("filters") or ():
            _check_filter(one)


def _check_judge(code: dict[str, Any]) -> None:
    """Check the parts of an LLM judge as Opik does: a value of a wrong type is unreadable (400)."""
    if not isinstance(code["model"], dict) or not isinstance(code["model"].get("name"), str):
        raise wire.invalid("code.model.name must not be null")
    variables = code.get("variables")
    if variables is not None and not (isinstance(variables, dict) and all(map(_is_text, variables.values()))):
        raise wire.unreadable("code.variables must be an object of texts")
    for one in _objects(code["messages"], "code.messages"):
        if one.get("role") not in _ROLES:
            raise wire.unreadable(f"code.messages.role: {one.get('role')!r} is none of {', '.join(sorted(_ROLES))}")
        if one.get("content") is None and one.get("content_array") is None:
            raise wire.invalid("code.messages.content must not be null")
    for one in _objects(code["schema"], "code.schema"):
        if one.get("type") not in _OUTPUTS:
            raise wire.unreadable(f"code.schema.type: {one.get('type')!r} is none of {', '.join(sorted(_OUTPUTS))}")
        if not _is_text(one.get("name")) or not _is_text(one.get("description")):
            raise wire.invalid("code.schema name and description must not be null")


def _check_filter(one: Any) -> None:
    if not isinstance(one, dict) or one.get("field") not in _FIELDS:
        raise wire.unreadable(f"Unknown field in filter {one!r}")
    if one.get("operator") not in _OPERATORS:
        raise wire.unreadable(f"Unknown Operator '{one.get('operator')}'")
    if "value" not in one:
        raise wire.unreadable("Missing required creator property 'value'")


def _objects(value: Any, where: str) -> list[dict[str, Any]]:
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
        raise wire.unreadable(f"{where} must be a list of objects")
    return value


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _stored(value: dict[str, Any]) -> dict[str, Any]:
    """The rule as Opik stores it, with the rate in single precision."""
    rate = value.get("sampling_rate")
    return value if rate is None else value | {"sampling_rate": float(f"{_single(rate):.6g}")}


def _single(rate: float) -> float:
    return float(struct.unpack("f", struct.pack("f", rate))[0])


def _insert(store: Store, name: str, projects: list[str], value: dict[str, Any]) -> str:
    """Store a rule and return its id. Refusal 409 for an id that exists."""
    identifier = wire.parsed_id(value["id"], "id") if value.get("id") else wire.new_id()
    if store.value("SELECT 1 FROM rules WHERE id = ?", (identifier,)):
        raise wire.taken(_ENTITY)
    moment, doc, placed = wire.now(), orjson.dumps(value).decode(), orjson.dumps(projects).decode()
    store.write("INSERT INTO rules VALUES (?, ?, ?, ?, ?, ?)", (identifier, name, placed, doc, moment, moment))
    return identifier


def _get(store: Store, identifier: str) -> dict[str, Any]:
    """The rule as stored, with `project_ids`. Refusal 404 for an unknown id."""
    row = store.row(f"SELECT {_COLUMNS} FROM rules WHERE id = ?", (identifier,))
    if row is None:
        raise wire.not_found(_ENTITY, identifier)
    return _loaded(row)


def _update(store: Store, identifier: str, changes: dict[str, Any]) -> None:
    """Set the given fields that are not null. Refusal 404 for an unknown rule."""
    value = _get(store, identifier) | {key: item for key, item in changes.items() if item is not None}
    projects = orjson.dumps(value.pop("project_ids")).decode()
    store.write(
        "UPDATE rules SET name = ?, project_ids = ?, doc = ?, last_updated_at = ? WHERE id = ?",
        (value["name"], projects, orjson.dumps(value).decode(), wire.now(), identifier),
    )


def _find(store: Store, name: str, project: str | None, page: int, size: int) -> tuple[int, list[dict[str, Any]]]:
    """The number of rules whose name contains `name`, of one project or of all; and a page of them, newest first."""
    source = (
        "rules WHERE instr(lower(name), lower(?)) > 0"
        " AND (? IS NULL OR EXISTS (SELECT 1 FROM json_each(project_ids) WHERE value = ?))"
    )
    total, rows = store.page(page, size, _COLUMNS, source, [name, project, project])
    return total, [_loaded(row) for row in rows]


def _loaded(row: tuple[Any, ...]) -> dict[str, Any]:
    identifier, name, projects, doc, created_at, updated_at = row
    value: dict[str, Any] = orjson.loads(doc)
    value |= {"id": identifier, "name": name, "project_ids": orjson.loads(projects), "created_at": created_at}
    return value | {"last_updated_at": updated_at, "created_by": USER, "last_updated_by": USER}


def _project_names(store: Store, projects: list[str]) -> list[dict[str, str]]:
    """`[{"project_id", "project_name"}]`, by name."""
    rows = store.rows(
        "SELECT id, name FROM projects WHERE id IN (SELECT value FROM json_each(?)) ORDER BY name",
        (orjson.dumps(projects).decode(),),
    )
    return [{"project_id": identifier, "project_name": name} for identifier, name in rows]


def _free_name(store: Store, name: str, projects: list[str], own: str | None = None) -> str:
    """The name, with the smallest free number behind it where another rule of its projects has that name."""
    if len(name) > _LONGEST_NAME:
        raise wire.coded(500, "There was an error processing your request.")
    names = {
        rule["name"].rstrip().lower()
        for project in projects
        for rule in _find(store, "", project, 1, 100_000)[1]
        if rule["id"] != own
    }
    found, number = name, 0
    while found.rstrip().lower() in names:
        number += 1
        found = f"{name[: _LONGEST_NAME - len(str(number)) - 1]}-{number}"
    return found


def _projects(value: dict[str, Any]) -> list[str]:
    given = value.get("project_ids") or ([value["project_id"]] if value.get("project_id") else [])
    return sorted({wire.parsed_id(project, "project_ids") for project in given})


def _public(store: Store, value: dict[str, Any]) -> dict[str, Any]:
    projects = value.pop("project_ids")
    value["projects"] = _project_names(store, projects)
    if value["projects"]:
        value |= value["projects"][0]
    return value


async def find(request: web.Request) -> web.Response:
    store, (page, size), query = request.app[STORE], wire.page_of(request), request.query
    total, content = _find(store, query.get("name", ""), query.get("project_id"), page, size)
    return wire.paged(page, total, [_public(store, value) for value in content])


async def create(request: web.Request) -> web.Response:
    store, value = request.app[STORE], await wire.body(request)
    name = wire.required_text(value, "name")
    _check(value)
    rule = {"enabled": True, "sampling_rate": 1.0} | {k: v for k, v in value.items() if v is not None}
    name = _free_name(store, name, projects := _projects(value))
    return wire.created(request, _insert(store, name, projects, _stored(rule) | {"name": name}))


async def update(request: web.Request) -> web.Response:
    store, identifier, value = request.app[STORE], wire.path_id(request), await wire.body(request)
    here = _get(store, identifier)
    _check(here | {k: v for k, v in value.items() if v is not None})
    changes = _stored(value) | ({"project_ids": _projects(value)} if _projects(value) else {})
    if value.get("name") not in (None, here["name"]):
        changes["name"] = _free_name(
            store, value["name"], changes.get("project_ids") or here["project_ids"], identifier
        )
    _update(store, identifier, changes)
    return wire.done()


async def delete(request: web.Request) -> web.Response:
    doomed = [(identifier,) for identifier in wire.ids(await wire.body(request))]
    request.app[STORE].write_many("DELETE FROM rules WHERE id = ?", doomed)
    return wire.done()


_BASE = "/v1/private/automations/evaluators"
ROUTES: Routes = [
    ("GET", _BASE, find),
    ("POST", _BASE, create),
    ("POST", f"{_BASE}/delete", delete),
    ("PATCH", f"{_BASE}/{ID_PATH}", update),
]
