"""Reads a spec: its files as one document, that as a model, and what no type can say (AgentCI Step 0.5). Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from pydantic import ValidationError

from evalcore.registry.judge import digest
from evalcore.specs.merging import INCLUDE, Fetch, switched_off, with_defaults, with_includes
from evalcore.specs.sense import said_of
from evalcore.yaml.field_help import remedy
from evalcore.yaml.findings import Finding, Severity
from evalcore.yaml.loader import read_yaml
from evalcore.yaml.model_fields import nulls
from evalcore.yaml.source_locations import Document, FieldPath, field_name
from evalcore.yaml.validation_errors import findings_of
from schemas.specs import LAYERS, AgentSpec, Layers

MODEL: Final = AgentSpec.__name__
OF_MODELS: Final = (
    "api_key",
    "key",
    "token",
    "secret",
    "password",
    "base_url",
    "endpoint",
    "url",
    "address",
    "headers",
)
"""Names of fields by which a spec would say where a model is asked, and by which key."""


@dataclass(frozen=True)
class SpecReading:
    """A spec that was read, with all that was found. `spec` is None where there is an error; each of its queries has an
    id, and `defaults` merged in. `document` has the places; `off` the assertions, by query, that null switches off."""

    findings: tuple[Finding, ...]
    spec: AgentSpec | None = None
    document: Document | None = None
    off: Mapping[str, tuple[FieldPath, ...]] | None = None

    @property
    def errors(self) -> list[Finding]:
        return [one for one in self.findings if one.severity is Severity.ERROR]

    @property
    def warnings(self) -> list[Finding]:
        return [one for one in self.findings if one.severity is Severity.WARNING]


def read_spec(file: str, raw: bytes, fetch: Fetch) -> SpecReading:
    """Returns the spec, or all that is wrong with it: each finding with its file, line, field and fix. `fetch` gives
    what is included."""
    written, findings = read_yaml(file, raw, (INCLUDE,))
    findings = [replace(one, clause=remedy(MODEL, ()).clause) for one in findings]
    if written is None:
        return _reading(findings)
    written, more = with_includes(AgentSpec, written, fetch)
    findings += more
    if not isinstance(written.data, dict):
        message = f"must be a mapping of fields, got {'a list' if isinstance(written.data, list) else 'a text'}"
        place, clause = written.at(()), remedy(MODEL, ()).clause
        return _reading([*findings, Finding(file, *place, "", "wrong-type", message, clause, "write 'agent: …'")])
    document = with_defaults(written)
    spec, errors = _validated(document.data)
    found = [_of_settings(one) for one in findings_of(AgentSpec, document, errors)]
    findings += [*found, *_empty(document, {(one.file, one.line, one.field) for one in found})]
    if spec is None or findings:
        return _reading(findings)
    spec = with_ids(spec)
    findings += said_of(spec, document)
    off = {
        str(query.id): tuple(switched_off(own))
        for query, own in zip(spec.queries, written.data["queries"], strict=True)
    }
    return _reading(findings, spec, document, {name: fields for name, fields in off.items() if fields})


def with_ids(spec: AgentSpec) -> AgentSpec:
    """Returns the spec with an id for each query: the hash of its text, where it has none."""
    queries = [one if one.id else one.model_copy(update={"id": digest(one.query)}) for one in spec.queries]
    return spec.model_copy(update={"queries": tuple(queries)})


def spec_hash(spec: AgentSpec) -> str:
    """Returns the hash of all that the spec says, its defaults merged, however it is written."""
    said = spec.model_dump(mode="json", exclude={"defaults"}, exclude_defaults=True)
    text = json.dumps(said, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def _validated(data: Mapping[str, Any]) -> tuple[AgentSpec | None, list[Mapping[str, Any]]]:
    """Returns the model, or pydantic's errors. What `defaults` leaves out a query may have, and the other way round."""
    spec, errors = None, list[Mapping[str, Any]]()
    defaults = data.get("defaults")
    if isinstance(defaults, dict):
        try:
            Layers.model_validate(defaults)
        except ValidationError as error:
            every = error.errors(include_url=False)
            errors = [{**one, "loc": ("defaults", *one["loc"])} for one in every if one["type"] != "missing"]
    try:
        spec = AgentSpec.model_validate(
            {name: one for name, one in data.items() if name != "defaults" or not isinstance(one, dict)}
        )
    except ValidationError as error:
        errors += error.errors(include_url=False)
    return (spec if not errors else None), errors


def _of_settings(found: Finding) -> Finding:
    """Returns the finding, with a better fix for a model's endpoint or key: a pull request may edit its spec."""
    if found.check != "unknown-field" or found.field.rpartition(".")[2] not in OF_MODELS:
        return found
    fix = "remove it; a model's endpoint and key are settings, RAMPGATE_MODEL_URL and RAMPGATE_MODEL_KEY"
    return replace(found, fix=fix)


def _empty(document: Document, told: set[tuple[str, int, str]]) -> Iterator[Finding]:
    """Yields findings for fields without a value, other than assertions, which that switches off."""
    for path in dict.fromkeys(nulls(AgentSpec, document.data)):
        if path[:1] == ("defaults",) and len(path) > 1 and path[1] in LAYERS:
            continue
        if path[:1] == ("queries",) and len(path) > 2 and path[2] in LAYERS:
            continue
        file, field = document.source(path)
        place, name = document.at(path), field_name(field)
        if (file, place[0], name) not in told:
            fix = f"fill it in, or remove {str(path[-1])!r}"
            yield Finding(file, *place, name, "empty-value", "has no value", remedy(MODEL, path).clause, fix)


def _reading(
    findings: list[Finding],
    spec: AgentSpec | None = None,
    document: Document | None = None,
    off: Mapping[str, tuple[FieldPath, ...]] | None = None,
) -> SpecReading:
    # What is wrong in `defaults` or in an included file is so in each query that has it.
    once = {(one.file, one.line, one.column, one.field, one.check): one for one in reversed(findings)}
    found = tuple(sorted(once.values()))
    wrong = any(one.severity is Severity.ERROR for one in found)
    return SpecReading(found, None if wrong else spec, document, off)
