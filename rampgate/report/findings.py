"""Makes reasons of what a validation finds, from the documents of `--json`. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rampgate.report.model import Reason, Report
from schemas.counting import counted


def validation_report(answer: Mapping[str, Any]) -> Report:
    """The report of `rules validate` and `manifest validate`."""
    return Report("Validation", *result_of(answer), reasons=reasons_of(answer))


def result_of(answer: Mapping[str, Any]) -> tuple[str, str]:
    """How many errors and warnings there are, and the tone of the whole."""
    errors, warnings = len(answer["errors"]), len(answer["warnings"])
    many = f"{counted(errors, 'error')}, {counted(warnings, 'warning')}"
    return (many, "fail") if errors else (f"valid, {many}", "warn" if warnings else "pass")


def reasons_of(answer: Mapping[str, Any]) -> list[Reason]:
    return [*map(reason_of, answer["errors"]), *map(reason_of, answer["warnings"])]


def reason_of(finding: Mapping[str, Any]) -> Reason:
    """The reason that a finding is, with its place, check and remedy."""
    code = f"{finding['check']} ({finding['clause']})" if finding["clause"] else finding["check"]
    place = (finding["file"], finding["line"], finding["column"])
    return Reason(finding["severity"], finding["message"], code, finding["field"], *place, finding["fix"])
