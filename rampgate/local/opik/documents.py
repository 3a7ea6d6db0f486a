"""Named documents that belong to projects, stored whole: what automation rules and annotation queues have in common."""

from __future__ import annotations

from typing import Any

import orjson

from rampgate.local.opik.identifiers import new_id, now, parsed_id
from rampgate.local.opik.projects import USER
from rampgate.local.opik.store import Store
from rampgate.local.opik.wire import not_found, taken

_COLUMNS = "id, name, project_ids, doc, created_at, last_updated_at"


class Documents:
    """One kind of document. `entity` is its name in refusals."""

    def __init__(self, kind: str, entity: str) -> None:
        self.kind, self.entity = kind, entity

    def insert(self, store: Store, name: str, projects: list[str], value: dict[str, Any]) -> str:
        """Refusal 409 when the id is taken."""
        identifier = parsed_id(value["id"], "id") if value.get("id") else new_id()
        if store.value("SELECT 1 FROM documents WHERE kind = ? AND id = ?", (self.kind, identifier)):
            raise taken(self.entity)
        moment, doc = now(), orjson.dumps(value).decode()
        placed = orjson.dumps(projects).decode()
        row = (self.kind, identifier, name, placed, doc, moment, moment)
        store.write("INSERT INTO documents VALUES (?, ?, ?, ?, ?, ?, ?)", row)
        return identifier

    def get(self, store: Store, identifier: str) -> dict[str, Any]:
        row = store.row(f"SELECT {_COLUMNS} FROM documents WHERE kind = ? AND id = ?", (self.kind, identifier))
        if row is None:
            raise not_found(self.entity, identifier)
        return _public(row)

    def update(self, store: Store, identifier: str, changes: dict[str, Any]) -> None:
        """Sets what is given and not null; Refusal 404 when there is no such document."""
        value = self.get(store, identifier) | {key: item for key, item in changes.items() if item is not None}
        projects = value.pop("project_ids")
        doc = orjson.dumps(value).decode()
        store.write(
            "UPDATE documents SET name = ?, project_ids = ?, doc = ?, last_updated_at = ? WHERE kind = ? AND id = ?",
            (value["name"], orjson.dumps(projects).decode(), doc, now(), self.kind, identifier),
        )

    def find(
        self, store: Store, name: str, project: str | None, page: int, size: int
    ) -> tuple[int, list[dict[str, Any]]]:
        """(total, page of them), newest first, whose name contains `name`, of that project if one is given."""
        where = (
            "kind = ? AND instr(lower(name), lower(?)) > 0"
            " AND (? IS NULL OR EXISTS (SELECT 1 FROM json_each(project_ids) WHERE value = ?))"
        )
        parameters = (self.kind, name, project, project)
        total = store.value(f"SELECT count(*) FROM documents WHERE {where}", parameters)
        rows = store.rows(
            f"SELECT {_COLUMNS} FROM documents WHERE {where} ORDER BY id DESC LIMIT ? OFFSET ?",
            (*parameters, size, (page - 1) * size),
        )
        return total, [_public(row) for row in rows]

    def delete(self, store: Store, identifiers: list[str]) -> None:
        rows = [(self.kind, identifier) for identifier in identifiers]
        store.write_many("DELETE FROM documents WHERE kind = ? AND id = ?", rows)


def _public(row: tuple[Any, ...]) -> dict[str, Any]:
    identifier, name, projects, doc, created_at, updated_at = row
    value: dict[str, Any] = orjson.loads(doc)
    value |= {"id": identifier, "name": name, "project_ids": orjson.loads(projects), "created_at": created_at}
    return value | {"last_updated_at": updated_at, "created_by": USER, "last_updated_by": USER}


def project_names(store: Store, projects: list[str]) -> list[dict[str, str]]:
    """`[{"project_id", "project_name"}]`, by name."""
    rows = store.rows(
        "SELECT id, name FROM projects WHERE id IN (SELECT value FROM json_each(?)) ORDER BY name",
        (orjson.dumps(projects).decode(),),
    )
    return [{"project_id": identifier, "project_name": name} for identifier, name in rows]
