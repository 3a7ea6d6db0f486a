"""Reads a file as its model, or reports everything that keeps it from being one (PC5 AC-6)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError

from evalcore.yaml.field_help import kind, remedy
from evalcore.yaml.findings import Finding
from evalcore.yaml.loader import Document, Parsed, field_name, read_yaml
from evalcore.yaml.model_fields import nulls
from evalcore.yaml.validation_errors import findings_of

AnyModel = TypeVar("AnyModel", bound=BaseModel)


@dataclass(frozen=True)
class Reading(Generic[AnyModel]):
    """A file that was read. `parsed` is set where there is no finding. `partial` is set where only some fields could be
    read; it raises AttributeError for the others, so that no check judges a value that is not there."""

    findings: list[Finding]
    parsed: Parsed[AnyModel] | None = None
    partial: Parsed[AnyModel] | None = None


def read(model: type[AnyModel], file: str, raw: bytes) -> Reading[AnyModel]:
    """Reads a file as its model, with every finding about it."""
    document, findings = read_yaml(file, raw)
    if document is None:
        return Reading(findings)
    if not isinstance(document.data, dict):
        what = "a list" if isinstance(document.data, list) else "text"
        message = f"{kind(model.__name__)} is a mapping of fields, not {what}"
        place = document.at(())
        clause = remedy(model.__name__, ()).clause
        return Reading([*findings, Finding(file, *place, "", "wrong-type", message, clause, "write 'field: value'")])
    empty = list(dict.fromkeys(nulls(model, document.data)))
    try:
        value = model.model_validate(document.data)
    except ValidationError as error:
        findings += findings_of(model, document, error.errors(include_url=False))
    told = {finding.field for finding in findings}
    for path in empty:
        if field_name(path) not in told:
            fix = f"fill it in, or remove {str(path[-1])!r}"
            clause = remedy(model.__name__, path).clause
            findings.append(
                Finding(file, *document.at(path), field_name(path), "empty-value", "has no value", clause, fix)
            )
    if not findings:
        return Reading(findings, Parsed(document, value))
    return Reading(findings, None, _partial(model, document, findings))


def read_as(model: type[AnyModel], file: str, raw: bytes) -> tuple[Parsed[AnyModel] | None, list[Finding]]:
    """Returns the file as its model, or all that is wrong with it: each with line, column, field, clause and fix."""
    reading = read(model, file, raw)
    return reading.parsed, reading.findings


def _partial(model: type[AnyModel], document: Document, findings: list[Finding]) -> Parsed[AnyModel] | None:
    """Returns a file's fields that have no finding; absent optional fields have their default."""
    bad = {finding.field.partition(".")[0].partition("[")[0] for finding in findings}
    values = {}
    for written, adapter in _adapters(model).items():
        if written in document.data and written not in bad:
            try:
                values[written] = adapter.validate_python(document.data[written])
            except ValidationError:
                bad.add(written)
    if not values:
        return None
    partial = model.model_construct(set(values), **values)
    for name, info in model.model_fields.items():
        written = info.alias or name
        if written in bad or (info.is_required() and written not in values):
            partial.__dict__.pop(name, None)
    return Parsed(document, partial)


@cache
def _adapters(model: type[BaseModel]) -> dict[str, TypeAdapter[Any]]:
    """Returns, by the name that files write, what validates a field's value alone."""
    found = model.model_fields.items()
    return {info.alias or name: TypeAdapter(info.rebuild_annotation()) for name, info in found}
