"""Serves feedback scores of traces and spans: upsert by (entity, name, author, project), last write wins.

A batch is accepted whether or not its traces exist; one bad item refuses all of it. The single PUT needs the trace.
"""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import orjson
from aiohttp import web

from rampgate.local.opik import wire
from rampgate.local.opik.projects import USER, project_for_writing
from rampgate.local.opik.store import Store
from rampgate.local.opik.wire import ID_PATH, STORE, Handler, Routes

SOURCES = ("ui", "sdk", "online_scoring")
LIMIT = Decimal("999999999.999999999")
_UPSERT = """
INSERT INTO scores VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET value = excluded.value, category_name = excluded.category_name, reason = excluded.reason,
  source = excluded.source, last_updated_at = excluded.last_updated_at
"""


def _check_value(score: dict[str, Any], where: str, raw: bytes, index: int | None) -> float:
    """The value as stored. Near the limit a float is too coarse, so the raw body is parsed again with exact numbers."""
    value = score.get("value")
    if value is None:
        raise wire.invalid(f"{where}value must not be null")
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise wire.unreadable(f"{where}value: {value!r} is not a number")
    if abs(value) >= 999_999_999:
        exact = json.loads(raw, parse_float=Decimal, parse_int=Decimal)
        written = (exact if index is None else exact["scores"][index])["value"]
        if written > LIMIT:
            raise wire.invalid(f"{where}value must be less than or equal to {LIMIT}")
        if written < -LIMIT:
            raise wire.invalid(f"{where}value must be greater than or equal to -{LIMIT}")
    return round(float(value), 9)


def _check_rest(score: dict[str, Any], where: str) -> tuple[str, str]:
    """Check and return (name, source)."""
    name, source = score.get("name"), score.get("source")
    if not isinstance(name, str) or not name.strip():
        raise wire.invalid(f"{where}name must not be blank")
    if source is None:
        raise wire.invalid(f"{where}source must not be null")
    if source not in SOURCES:
        raise wire.unreadable(f"{where}source: {source!r} is none of {', '.join(SOURCES)}")
    return name, source


def _write(store: Store, rows: list[tuple[Any, ...]]) -> None:
    store.write_many(_UPSERT, rows)
    if store.score_writes is not None:
        store.score_writes.update((row[1], row[2]) for row in rows)


def put_batch(kind: str) -> Handler:
    async def handle(request: web.Request) -> web.Response:
        store, raw = request.app[STORE], await request.read()
        items = wire.batch(wire.parsed_object(raw), "scores")
        moment, projects, rows = wire.now(), {}, []
        for index, score in enumerate(items):
            where = f"scores[{index}]."
            name, source = _check_rest(score, where)
            value = _check_value(score, where, raw, index)
            if score.get("id") is None:
                raise wire.invalid(f"{where}id must not be null")
            entity = wire.version_7(score["id"], kind)
            project = (score.get("project_name"), score.get("project_id"))
            author, category, reason = score.get("author") or USER, score.get("category_name"), score.get("reason")
            rows.append((entity, name, author, project, value, category, reason, source))
        with store.transaction():
            for project in {row[3] for row in rows}:
                projects[project] = project_for_writing(store, *project)
            _write(store, [(kind, *row[:3], projects[row[3]], *row[4:], moment, moment) for row in rows])
        return wire.done()

    return handle


async def put_one(request: web.Request) -> web.Response:
    store, raw, entity = request.app[STORE], await request.read(), wire.version_7(request.match_info["id"], "trace")
    score = wire.parsed_object(raw)
    name, source = _check_rest(score, "")
    value = _check_value(score, "", raw, None)
    project = store.value("SELECT project_id FROM traces WHERE id = ?", (entity,))
    if project is None:
        raise wire.not_found("Trace", entity)
    author, moment = score.get("author") or USER, wire.now()
    rest = (value, score.get("category_name"), score.get("reason"), source, moment, moment)
    _write(store, [("trace", entity, name, author, project, *rest)])
    return wire.done()


async def delete_one(request: web.Request) -> web.Response:
    """Delete the score of that name in every project, of every author or of the one that the body names."""
    value = wire.parsed_object(await request.read())
    entity, name, author = wire.path_id(request), wire.required_text(value, "name"), value.get("author")
    request.app[STORE].write(
        "DELETE FROM scores WHERE kind = 'trace' AND entity_id = ? AND name = ? AND (? IS NULL OR author = ?)",
        (entity, name, author, author),
    )
    return wire.done()


def of_entities(store: Store, kind: str, entities: list[str], project: str | None) -> dict[str, list[dict[str, Any]]]:
    """The scores by entity, one per name: the mean over authors, and each author's own.

    `project` selects the scores of one project, as Opik's lists do; None selects all, as its single reads do.
    """
    rows = store.rows(
        "SELECT entity_id, name, author, value, category_name, reason, source, created_at, last_updated_at FROM scores"
        " WHERE kind = ? AND entity_id IN (SELECT value FROM json_each(?)) AND (? IS NULL OR project_id = ?)"
        " ORDER BY entity_id, name, last_updated_at",
        (kind, orjson.dumps(entities).decode(), project, project),
    )
    shown: dict[str, list[dict[str, Any]]] = {}
    for entity, name, author, value, category, reason, source, created_at, updated_at in rows:
        of_entity = shown.setdefault(entity, [])
        own = {"value": value, "reason": reason, "category_name": category, "source": source}
        own["last_updated_at"] = updated_at
        if of_entity and of_entity[-1]["name"] == name:
            score = of_entity[-1]
            score["value_by_author"][author] = own
            every = score["value_by_author"].values()
            score["value"] = round(sum(each["value"] for each in every) / len(every), 9)
            score["last_updated_at"], score["last_updated_by"] = updated_at, author
            continue
        score = {"name": name, "category_name": category, "value": value, "reason": reason, "source": source}
        score |= {"created_at": created_at, "last_updated_at": updated_at, "created_by": author}
        of_entity.append(score | {"last_updated_by": author, "value_by_author": {author: own}})
    return shown


_TRACES = "/v1/private/traces"
ROUTES: Routes = [
    ("PUT", f"{_TRACES}/feedback-scores", put_batch("trace")),
    ("PUT", "/v1/private/spans/feedback-scores", put_batch("span")),
    ("PUT", f"{_TRACES}/{ID_PATH}/feedback-scores", put_one),
    ("POST", f"{_TRACES}/{ID_PATH}/feedback-scores/delete", delete_one),
]
