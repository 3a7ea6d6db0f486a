"""Checks, stores, changes and shows traces and spans, which are both recordings.

A create replaces what is stored unless that is newer (`last_updated_at`); a change of an unknown id stores a partial
row, which a later create completes. So start and end posts may come in any order.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import orjson

from rampgate.local.opik import wire
from rampgate.local.opik.projects import USER, project_for_writing
from rampgate.local.opik.store import Store
from rampgate.local.opik.wire import Refusal

_JSON = ("input", "output", "metadata", "tags", "error_info", "usage")
_TRUNCATED = ("input", "output", "metadata")
_TRUNCATE_AT = 10_000
_PLACE = ("trace_id", "parent_span_id")
_COMMON = ("name", "start_time", "end_time", "input", "output", "metadata", "tags", "error_info", "ttft", "source")


@dataclass(frozen=True)
class Kind:
    """A kind of recording. `fields` are the columns a client writes."""

    name: str
    table: str
    fields: tuple[str, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return ("id", "project_id", *self.fields, "duration", "created_at", "last_updated_at", "partial")

    def insert(self, merge: bool) -> str:
        """The upsert. `merge`: what the new one leaves out stays; else the new one replaces, if not older."""
        written = (*self.fields, "duration")
        if merge:
            changes = [f"{c} = coalesce(excluded.{c}, {self.table}.{c})" for c in written]
        else:
            filled = "iif({t}.partial, coalesce({t}.{c}, excluded.{c}), excluded.{c})"
            changes = [f"{c} = " + filled.format(t=self.table, c=c) for c in written]
        changes += ["project_id = excluded.project_id", "last_updated_at = excluded.last_updated_at", "partial = 0"]
        marks = ", ".join("?" * len(self.columns))
        return (
            f"INSERT INTO {self.table} ({', '.join(self.columns)}) VALUES ({marks})"
            f" ON CONFLICT DO UPDATE SET {', '.join(changes)}"
            f" WHERE {self.table}.partial OR excluded.last_updated_at >= {self.table}.last_updated_at"
        )


TRACE = Kind("trace", "traces", (*_COMMON, "thread_id", "environment"))
SPAN = Kind(
    "span",
    "spans",
    (*_COMMON, *_PLACE, "type", "model", "provider", "usage", "total_estimated_cost", "environment"),
)


def _check_tags(tags: Any, where: str) -> None:
    if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
        raise wire.unreadable(f"{where}tags must be a list of texts")
    if len(tags) > 50:
        raise wire.invalid(f"{where}tags size must be between 0 and 50")
    if any(len(tag) > 100 for tag in tags):
        raise wire.invalid(f"{where}tags[] size must be between 0 and 100")


def _field(name: str, value: Any, where: str) -> Any:
    if value is None:
        return None
    if name in ("start_time", "end_time"):
        return wire.normal_time(value, where + name)
    if name in _PLACE:
        return wire.version_7(value, "trace" if name == "trace_id" else "span")
    if name == "tags":
        _check_tags(value, where)
    if name in _JSON:
        return orjson.dumps(value).decode()
    return value


def _duration(start: str | None, end: str | None) -> float | None:
    """The time between start and end in milliseconds; None where one of them is missing."""
    if not start or not end:
        return None
    return (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds() * 1000


def _row(kind: Kind, item: dict[str, Any], where: str, moment: str) -> tuple[Any, ...]:
    """An item as the columns after project_id, id first."""
    if item.get("start_time") is None:
        raise wire.invalid(f"{where}start_time must not be null")
    if kind is SPAN and item.get("trace_id") is None:
        raise wire.invalid(f"{where}trace_id must not be null")
    identifier = wire.version_7(item["id"], kind.name) if item.get("id") is not None else wire.new_id()
    values = {name: _field(name, item.get(name), where) for name in kind.fields}
    given = item.get("last_updated_at")
    updated = wire.normal_time(given, f"{where}last_updated_at") if given else moment
    duration = _duration(values["start_time"], values["end_time"])
    return (identifier, *values.values(), duration, moment, updated, 0)


def store_all(store: Store, kind: Kind, items: list[dict[str, Any]]) -> None:
    """Checks every item before it stores any."""
    moment, projects = wire.now(), {}
    rows = [_row(kind, item, f"{kind.table}[{index}].", moment) for index, item in enumerate(items)]
    with store.transaction():
        for name in {item.get("project_name") for item in items}:
            projects[name] = project_for_writing(store, name)
        placed = zip(rows, items, strict=True)
        store.write_many(
            kind.insert(merge=False),
            ((row[0], projects[item.get("project_name")], *row[1:]) for row, item in placed),
        )


def store_one(store: Store, kind: Kind, item: dict[str, Any]) -> str:
    """The stored id. Refusal 409 when it exists in another project."""
    row = _row(kind, item, "", wire.now())
    project = project_for_writing(store, item.get("project_name"))
    _same_project(store, kind, row[0], project)
    store.write(kind.insert(merge=True), (row[0], project, *row[1:]))
    return str(row[0])


def _same_project(store: Store, kind: Kind, identifier: str, project: str) -> None:
    known = store.value(f"SELECT project_id FROM {kind.table} WHERE id = ?", (identifier,))
    if known is not None and known != project:
        message = f"Project name and workspace name do not match the existing {kind.name}"
        raise Refusal(409, {"errors": [message]})


def change(store: Store, kind: Kind, identifier: str, update: dict[str, Any]) -> None:
    """Sets the fields that are given and not null; an unknown id becomes a partial row."""
    identifier = wire.version_7(identifier, kind.name)
    values = {name: _field(name, update[name], "") for name in kind.fields if update.get(name) is not None}
    columns = ("project_id", "start_time", "end_time")
    row = store.row(f"SELECT {', '.join(columns)} FROM {kind.table} WHERE id = ?", (identifier,))
    known = dict(zip(columns, row, strict=True)) if row else {}
    if update.get("project_name") or update.get("project_id") or not known:
        project = project_for_writing(store, update.get("project_name"), update.get("project_id"))
        _same_project(store, kind, identifier, project)
        values["project_id"] = project
    now_known = known | values
    values["duration"] = _duration(now_known.get("start_time"), now_known.get("end_time"))
    values["last_updated_at"] = wire.now()
    if not known:
        values |= {"id": identifier, "created_at": values["last_updated_at"], "partial": 1}
        marks = ", ".join("?" * len(values))
        store.write(f"INSERT INTO {kind.table} ({', '.join(values)}) VALUES ({marks})", tuple(values.values()))
        return
    changes = ", ".join(f"{name} = ?" for name in values)
    store.write(f"UPDATE {kind.table} SET {changes} WHERE id = ?", (*values.values(), identifier))


def shown(
    kind: Kind, row: tuple[Any, ...], more: dict[str, Any], exclude: Iterable[str] = (), truncate: bool = False
) -> dict[str, Any]:
    """A row of `kind.columns` as Opik shows it, with `more` beside it. JSON values pass as they are stored."""
    value = {name: column for name, column in zip(kind.columns, row, strict=True) if column is not None}
    for name in _JSON:
        text = value.get(name)
        if text is not None:
            cut = truncate and name in _TRUNCATED and len(text) > _TRUNCATE_AT
            value[name] = text[:_TRUNCATE_AT] if cut else orjson.Fragment(text)
    value.setdefault("start_time", wire.EPOCH)
    del value["partial"]
    value |= more
    value["created_by"] = value["last_updated_by"] = USER
    for name in exclude:
        if name not in ("id", "start_time"):
            value.pop(name, None)
    return value
