"""Translates Opik's filters to SQL: `[{"field", "operator", "key", "value"}]`, all of which must match.

Text comparison ignores case, as Opik's does; numbers in JSON compare as numbers; an absent value matches no comparison.
An unknown field, or an operator that its kind lacks, is refused with 400.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

import orjson

from rampgate.local.opik.wire import bad_request, normal_time

_JSON = {"metadata": "metadata", "input_json": "input", "output_json": "output", "data": "data"}
_TEXTS = {
    *("id", "name", "input", "output", "thread_id", "source", "environment", "model", "provider", "trace_id"),
    *("parent_span_id", "type", "full_data"),
}
_TIMES = {"start_time", "end_time", "created_at", "last_updated_at"}
_NUMBERS = {"duration", "ttft", "total_estimated_cost"}
_COMPARE = {"=", "!=", ">", ">=", "<", "<="}
_TEXT_SQL = {
    "contains": "instr(lower({x}), lower(?)) > 0",
    "not_contains": "instr(lower({x}), lower(?)) = 0",
    "starts_with": "substr(lower({x}), 1, length(?)) = lower(?)",
    "ends_with": "length({x}) >= length(?) AND substr(lower({x}), -length(?)) = lower(?)",
    **{operator: f"lower({{x}}) {operator} lower(?)" for operator in _COMPARE},
}
_PATH = re.compile(r"\$(\.[A-Za-z_][A-Za-z0-9_]*|\.\"[^\"]*\"|\[[0-9]+\])*")
_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
Condition = tuple[str, list[Any]]


def parse(value: Any) -> list[dict[str, Any]]:
    """Filters from a list, or from a list written as a JSON text (GET); Refusal 400 otherwise."""
    if isinstance(value, str):
        try:
            value = orjson.loads(value) if value.strip() else None
        except orjson.JSONDecodeError:
            raise bad_request(f"Invalid filters query parameter '{value}'") from None
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise bad_request(f"Invalid filters query parameter '{value}'")
    return value


def conditions(filters: list[dict[str, Any]], kind: str, project: str, columns: Collection[str]) -> Condition:
    """The SQL condition for rows (alias `t`) that match every filter, and its parameters.

    `kind` and `project` select the scores; `columns` are the row's.
    """
    parts: list[str] = []
    parameters: list[Any] = []
    for item in filters:
        sql, values = _condition(item, kind, project, columns)
        parts.append(f"({sql})")
        parameters += values
    return " AND ".join(parts) or "1", parameters


def _condition(item: dict[str, Any], kind: str, project: str, columns: Collection[str]) -> Condition:
    field, operator, key, value = (item.get(name) for name in ("field", "operator", "key", "value"))
    if not isinstance(field, str) or not isinstance(operator, str):
        raise bad_request(f"Invalid filters query parameter '{item}'")
    if "." in field and not key:
        field, _, key = field.partition(".")
    text = "" if value is None else str(value)
    column = f"t.{field}"
    if field == "feedback_scores":
        return _score(kind, project, operator, str(key or ""), text)
    if field == "annotation_queue_ids" and kind == "trace" and operator == "contains":
        return "t.id IN (SELECT item_id FROM queue_items WHERE queue_id = ?)", [text.lower()]
    stored = _JSON.get(field, field)
    if stored not in columns:
        raise bad_request(f"Invalid filter field '{field}' for a {kind}")
    if field in _JSON:
        return _json(f"t.{stored}", operator, str(key or ""), text)
    if field in _TIMES and operator in _COMPARE:
        return f"{column} {operator} ?", [normal_time(value, field)]
    if field in _NUMBERS:
        return _number(column, operator, text)
    if field in ("tags", "error_info"):
        return _list(column, operator, text)
    if field == "id" and operator == "=" and kind in ("trace", "span"):
        return "t.id = ?", [text.lower()]
    if field in _TEXTS:
        return _text(column, operator, text)
    raise bad_request(f"Invalid operator '{operator}' for field '{field}', or a field that can't be filtered on")


def _text(expression: str, operator: str, value: str) -> Condition:
    if operator == "is_empty":
        return f"coalesce({expression}, '') = ''", []
    if operator == "is_not_empty":
        return f"coalesce({expression}, '') <> ''", []
    if operator in ("in", "not_in"):
        members = orjson.dumps([part.strip() for part in value.split(",")]).decode()
        return f"{expression} {operator.replace('_', ' ')} (SELECT value FROM json_each(?))", [members]
    if operator not in _TEXT_SQL:
        raise bad_request(f"Invalid operator '{operator}' for a text")
    sql = _TEXT_SQL[operator].format(x=expression)
    return sql, [value] * sql.count("?")


def _as_number(value: str) -> float:
    try:
        return float(value)
    except ValueError:
        raise bad_request(f"Invalid value '{value}' for a number") from None


def _number(expression: str, operator: str, value: str) -> Condition:
    if operator not in _COMPARE:
        raise bad_request(f"Invalid operator '{operator}' for a number")
    return f"{expression} {operator} ?", [_as_number(value)]


def _list(expression: str, operator: str, value: str) -> Condition:
    if operator == "is_empty":
        return f"coalesce({expression}, '[]') IN ('[]', '')", []
    if operator == "is_not_empty":
        return f"coalesce({expression}, '[]') NOT IN ('[]', '')", []
    member = {"=": "j.value = ?", "contains": "instr(lower(j.value), lower(?)) > 0"}
    test = member.get({"!=": "=", "not_contains": "contains"}.get(operator, operator))
    if test is None:
        raise bad_request(f"Invalid operator '{operator}' for a list")
    negated = "NOT " if operator in ("!=", "not_contains") else ""
    return f"{negated}EXISTS (SELECT 1 FROM json_each({expression}) j WHERE {test})", [value]


def _key(key: str) -> str:
    """A JSON path as an SQL literal, so that the index on metadata.response_id is found. Dots go one level down."""
    if _PATH.fullmatch(key):
        path = key
    elif all(_PLAIN_KEY.fullmatch(part) for part in key.split(".")):
        path = f"$.{key}"
    else:
        path = '$."' + key.replace('"', "") + '"'
    return "'" + path.replace("'", "''") + "'"


def _json(column: str, operator: str, key: str, value: str) -> Condition:
    if not key:
        return _text(column, operator, value)
    extracted = f"json_extract({column}, {_key(key)})"
    if operator in (">", ">=", "<", "<="):
        number = f"(CASE WHEN json_type({column}, {_key(key)}) IN ('integer', 'real') THEN {extracted} END)"
        return _number(number, operator, value)
    if operator in ("=", "!=") and value.lower() in ("true", "false"):
        extracted = f"(CASE json_type({column}, {_key(key)}) WHEN 'true' THEN 'true' WHEN 'false' THEN 'false' END)"
    return _text(extracted, operator, value)


def _score(kind: str, project: str, operator: str, key: str, value: str) -> Condition:
    """A condition on the mean over authors of the scores in that project. Not correlated with `t`: it runs once."""
    named = "SELECT s.entity_id FROM scores s WHERE s.kind = ? AND s.project_id = ? AND s.name = ? COLLATE NOCASE"
    if not key:
        raise bad_request("A filter on feedback scores needs a key: the score's name")
    found = [kind, project, key]
    if operator == "is_empty":
        return f"t.id NOT IN ({named})", found
    if operator == "is_not_empty":
        return f"t.id IN ({named})", found
    if operator not in _COMPARE:
        raise bad_request(f"Invalid operator '{operator}' for a feedback score")
    negated, compared = ("NOT ", "=") if operator == "!=" else ("", operator)
    mean = f"{named} GROUP BY s.entity_id HAVING avg(s.value) {compared} ?"
    return f"t.id {negated}IN ({mean})", [*found, _as_number(value)]
