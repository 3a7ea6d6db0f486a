"""Makes one document of a spec's files: what they include, and its defaults merged into each query (AgentCI Step 1).

Only what the author wrote is merged, mapping by mapping, before it becomes a model: a model's own defaults would stand
over the author's. Each part keeps the file and the line in which it is written. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Final

from pydantic import BaseModel

from evalcore.yaml.findings import Finding
from evalcore.yaml.loader import read_yaml
from evalcore.yaml.model_fields import fields, models_at
from evalcore.yaml.source_locations import UNREADABLE, Document, FieldPath, Place, Tagged, field_name
from schemas.specs import LAYERS

INCLUDE: Final = "!include"
RUBRICS: Final = "rubric:"
"""What an include begins with that names a template: no file of the author's."""
CLAUSE: Final = "AgentCI Step 1"
DEEPEST: Final = 8
"""Files that include one another, one within the other."""
MOST_VALUES: Final = 300_000
"""Values of all that is included: a file may be included often, and include others as often."""
WHOLE: Final = frozenset({"json_schema"})
"""A mapping that is one value: half of one schema and half of another asserts what no one wrote."""
Fetch = Callable[[str, str], tuple[str, bytes]]
"""Gives the name and the content of what a file includes by a text. Raises CantInclude."""


class CantInclude(ValueError):
    """What can't be included, and why; `fix` says what to write instead."""

    def __init__(self, why: str, fix: str) -> None:
        super().__init__(why)
        self.fix = fix


def with_includes(model: type[BaseModel], document: Document, fetch: Fetch) -> tuple[Document, list[Finding]]:
    """Returns the document with what it includes in its place, and a finding for each include that can't be."""
    if not any(isinstance(one, Tagged) for one in _values(document.data)):
        return document, []
    made = _Including(model, fetch)
    data = made.taken(document.data, (), document, (), (document.file,))
    incomplete = document.incomplete | made.incomplete
    return Document(document.file, data, made.places, incomplete, made.included), made.findings


def with_defaults(document: Document) -> Document:
    """Returns the document with `defaults` merged into each query: mappings field by field, anything else as a whole,
    the query's first. What is no mapping of queries is left as it is."""
    defaults, queries = (document.data.get(name) for name in ("defaults", "queries"))
    if not isinstance(defaults, dict) or not isinstance(queries, list):
        return document
    shared = {name: value for name, value in defaults.items() if name in LAYERS}
    moved: dict[FieldPath, FieldPath] = {}
    merged = [
        _merged(shared, query, ("defaults",), ("queries", place), moved) if isinstance(query, dict) else query
        for place, query in enumerate(queries)
    ]
    return replace(document, data={**document.data, "queries": merged}, moved=moved)


def switched_off(query: Any) -> list[FieldPath]:
    """Returns the assertions of a query, as it is written, that an explicit null switches off."""
    layers = {name: query[name] for name in LAYERS if name in query} if isinstance(query, dict) else {}
    return [*_nulls(layers, ())]


def _nulls(value: Any, path: FieldPath) -> Iterator[FieldPath]:
    if value is None:
        yield path
    elif isinstance(value, dict) and not (path and path[-1] in WHOLE):
        for name, inner in value.items():
            yield from _nulls(inner, (*path, name))


def _merged(
    base: dict[str, Any], own: dict[str, Any], written: FieldPath, path: FieldPath, moved: dict[FieldPath, FieldPath]
) -> dict[str, Any]:
    out = dict(own)
    for name, value in base.items():
        if name not in own:
            out[name] = value
            moved[*path, name] = (*written, name)
        elif isinstance(value, dict) and isinstance(own[name], dict) and name not in WHOLE:
            out[name] = _merged(value, own[name], (*written, name), (*path, name), moved)
    return out


class _Including:
    """Copies a document with what it includes, and notes the file and the place of each part."""

    def __init__(self, model: type[BaseModel], fetch: Fetch) -> None:
        self._model, self._fetch = model, fetch
        self.findings: list[Finding] = []
        self.places: dict[FieldPath, Place] = {}
        self.included: dict[FieldPath, str] = {}
        self.incomplete: set[FieldPath] = set()
        self._read: dict[str, Document | None] = {}

    def taken(self, data: Any, path: FieldPath, document: Document, own: FieldPath, chain: tuple[str, ...]) -> Any:
        """Returns the value at `path`, which its own document has at `own`. `chain`: the files that include it."""
        if isinstance(data, Tagged):
            return self._included(data, path, document, own, chain)
        self.places[path] = document.at(own)
        if isinstance(data, dict):
            return {name: self.taken(one, (*path, name), document, (*own, name), chain) for name, one in data.items()}
        if isinstance(data, list):
            return [self.taken(one, (*path, at), document, (*own, at), chain) for at, one in enumerate(data)]
        return data

    def _included(
        self, tagged: Tagged, path: FieldPath, document: Document, own: FieldPath, chain: tuple[str, ...]
    ) -> Any:
        self.places[path] = document.at(own)
        owners = models_at(self._model, path[:-1]) if path and isinstance(path[-1], str) else []
        if owners and not any(path[-1] in fields(owner) for owner in owners):
            return tagged.text  # the field is unknown, whatever it has
        try:
            file, content = self._fetch(document.file, tagged.text)
            if file in chain:
                circle = " includes ".join((*chain[chain.index(file) :], file))
                raise CantInclude(f"goes in a circle: {circle}", "remove one of these includes")
            if len(chain) >= DEEPEST:
                raise CantInclude(f"more than {DEEPEST} files include one another", "include the last one directly")
            if len(self.places) > MOST_VALUES:
                raise CantInclude(f"more than {MOST_VALUES:,} values are included", "include less, or split the spec")
        except CantInclude as error:
            place = document.at(own)
            message = f"must be a file that can be included, got {tagged.text[:80]!r}: {error}"
            found = Finding(document.file, *place, field_name(own), "include", message, CLAUSE, error.fix)
            self.findings.append(found)
            return UNREADABLE
        if file not in self._read:
            self._read[file], findings = read_yaml(file, content, (INCLUDE,))
            self.findings += [replace(one, clause=CLAUSE) for one in findings]
        inner = self._read[file]
        if inner is None:
            return UNREADABLE
        if file.startswith(RUBRICS):
            return inner.data  # it has the place of the line that includes it
        self.included[path] = file
        self.incomplete |= {(*path, *one) for one in inner.incomplete}
        return self.taken(inner.data, path, inner, (), (*chain, file))


def _values(data: Any) -> Iterator[Any]:
    yield data
    for inner in data.values() if isinstance(data, dict) else data if isinstance(data, list) else ():
        yield from _values(inner)
