"""Shows what is wrong with a spec: `rampgate spec validate` (AgentCI Step 0.5)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument

from rampgate.command import Context, Document, command
from rampgate.report.findings import reasons_of
from rampgate.report.model import Report, Section
from schemas.counting import counted

if TYPE_CHECKING:
    from collections.abc import Mapping


def validation(answer: Mapping[str, Any]) -> Report:
    """The report of a validation."""
    if not answer["valid"]:
        many = f"{counted(len(answer['errors']), 'error')}, {counted(len(answer['warnings']), 'warning')}"
        return Report("Validation", f"Invalid: {many}", "fail", reasons=reasons_of(answer))
    result = f"Valid: {counted(answer['queries'], 'query', 'queries')}, agent={answer['agent']!r}"
    off = [(one["query"], one["field"]) for one in answer["off"]]
    sections = [Section("Switched off by null", ("Query", "Assertion"), off)] if off else []
    return Report("Validation", result, "warn" if answer["warnings"] else "pass", sections, reasons_of(answer))


@command(validation)
def validate(
    context: Context,
    path: Annotated[Path, Argument(metavar="SPEC", help="the spec's YAML file")],
) -> Document:
    """Show every finding of a spec, with file, line, field and fix. Nothing is asked or run.

    Exit code 0 for a valid spec, with warnings too, 1 for an invalid one, 2 for a file that can't be read.

    Example: rampgate spec validate agentci_spec.yaml
    """
    from evalcore.yaml.findings import ValidationResult
    from evalcore.yaml.source_locations import field_name
    from rampgate.registry.view import validation_answer
    from rampgate.suite.spec_files import reading_of

    reading = reading_of(path)
    spec = reading.spec
    found = validation_answer(ValidationResult.of(path, reading.findings))
    off = [
        {"query": query, "field": field_name(one)} for query, fields in (reading.off or {}).items() for one in fields
    ]
    head = {"agent": spec.agent if spec else None, "queries": len(spec.queries) if spec else None}
    golden = [
        {"id": one.id, "query": one.query, "tags": one.tags, "line": reading.document.at(("queries", number))[0]}
        for number, one in enumerate(spec.queries if spec else ())
        if reading.document is not None
    ]
    return Document({**found, **head, "golden_queries": golden, "off": off}, 0 if found["valid"] else 1)
