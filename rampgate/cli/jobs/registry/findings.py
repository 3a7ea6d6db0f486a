"""Writes a validation's findings as text for a person, as JSON, or as GitHub annotations (PC5 AC-6).

The document of `--json` and the text go to stdout. Annotations are workflow commands on stderr, which GitHub reads
too, so that they can accompany a JSON document.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rich.console import Console

from evalcore.yaml.findings import Finding, Severity, ValidationResult
from rampgate.console import LONGEST_MESSAGE, Format, plain, print_json
from rampgate.metrics_file import leave
from rampgate.registry.metrics import count_findings
from rampgate.registry.view import finding_answer
from rampgate.report.github import annotation, limited_annotations
from schemas.counting import counted
from schemas.dead_letters import clean
from streams.metrics import Metrics


def show(result: ValidationResult, format: Format | str = Format.TEXT) -> int:
    """Write the result, and return the exit code: 0 where it is valid, also with warnings, else 1."""
    match Format(format):
        case Format.JSON:
            print_json(document(result))
        case Format.GITHUB:
            sys.stderr.write("".join(f"{line}\n" for line in workflow_commands(result.findings)))
        case Format.TEXT:
            show_text(result)
    return 0 if result.valid else 1


def tell(result: ValidationResult, format: Format, as_json: bool, metrics_file: Path | None = None) -> int:
    """As `show`; `--json` with `--format github` gives both: the document on stdout, annotations on stderr. The
    findings' metrics go to `metrics_file`."""
    if metrics_file is not None:
        metrics = Metrics()
        count_findings(metrics, result.findings)
        leave(metrics, metrics_file, "eval_rule_validation_failed_total", "eval_manifest_drift_total")
    if as_json and format is Format.GITHUB:
        show(result, Format.GITHUB)
    return show(result, Format.JSON if as_json else format)


def document(result: ValidationResult) -> dict[str, Any]:
    """`{"valid", "errors": […], "warnings": […]}`, each finding with its place, rule and remedy."""
    return {
        "valid": result.valid,
        "errors": [as_dict(finding) for finding in result.errors],
        "warnings": [as_dict(finding) for finding in result.warnings],
    }


def as_dict(finding: Finding) -> dict[str, Any]:
    return finding_answer(finding).model_dump()


def workflow_commands(findings: Iterable[Finding]) -> list[str]:
    """Return one GitHub workflow command a finding, at most as many of a level as GitHub shows."""
    by_level: dict[str, list[str]] = {severity.value: [] for severity in Severity}
    for finding in findings:
        by_level[finding.severity].append(finding_command(finding))
    return limited_annotations(by_level, {})


def finding_command(finding: Finding) -> str:
    """A finding as one GitHub workflow command, which shows it at its line in the pull request."""
    properties = {"file": finding.file}
    if finding.line:
        properties["line"] = str(finding.line)
    if finding.line and finding.column:
        properties["col"] = str(finding.column)
    properties["title"] = f"{finding.check} ({finding.clause})" if finding.clause else finding.check
    message = f"{finding.field}: {finding.message}" if finding.field else finding.message
    return annotation(finding.severity, properties, f"{message}\n{finding.fix}" if finding.fix else message)


def show_text(result: ValidationResult) -> None:
    """A line or two for each finding, then the sum; coloured where stdout is a terminal."""
    console = Console(soft_wrap=True, highlight=False)
    show_findings(result.findings, console)
    errors, warnings = len(result.errors), len(result.warnings)
    where = clean(str(result.path), 500)
    many = f"{counted(errors, 'error')}, {counted(warnings, 'warning')}"
    console.print(f"{plain(where, 500)}: " + (f"[green]valid[/], {many}" if result.valid else f"[red]{many}[/]"))


def show_findings(findings: Iterable[Finding], console: Console) -> None:
    for finding in findings:
        colour = "red" if finding.severity is Severity.ERROR else "yellow"
        place = f"{finding.file}:{finding.line}:{finding.column}" if finding.line else finding.file
        field = f"[bold]{plain(finding.field)}[/]: " if finding.field else ""
        clause = f", {plain(finding.clause)}" if finding.clause else ""
        console.print(
            f"{plain(place, 500)}: [{colour}]{finding.severity}[/]: {field}{plain(finding.message, LONGEST_MESSAGE)} "
            f"[dim]({plain(finding.check)}{clause})[/]"
        )
        if finding.fix:
            console.print(f"    fix: {plain(finding.fix, LONGEST_MESSAGE)}")
