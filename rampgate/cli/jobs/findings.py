"""What a validation found, in one of three forms: text for a person, JSON, or GitHub's annotations (PC5 AC-6).

The document of `--json` and the text go to stdout. Annotations are workflow commands on stderr, which GitHub reads
too, so that they may stand beside a JSON document.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

from rich.console import Console

from evalcore.yaml.problems import Problem, Severity, ValidationResult
from rampgate.console import (
    ANNOTATIONS_PER_LEVEL,
    LONGEST_MESSAGE,
    Format,
    escape_message,
    escape_property,
    plain,
    print_json,
)
from schemas.dead_letters import clean


def show(result: ValidationResult, format: Format | str = Format.TEXT) -> int:
    """Write the result; the exit code: 0 where it is valid, warnings or not, else 1."""
    match Format(format):
        case Format.JSON:
            print_json(document(result))
        case Format.GITHUB:
            sys.stderr.write("".join(f"{line}\n" for line in workflow_commands(result.problems)))
        case Format.TEXT:
            show_text(result)
    return 0 if result.valid else 1


def tell(result: ValidationResult, format: Format, as_json: bool) -> int:
    """As `show`; `--json` beside `--format github` gives both, the document on stdout and annotations on stderr."""
    if as_json and format is Format.GITHUB:
        show(result, Format.GITHUB)
    return show(result, Format.JSON if as_json else format)


def document(result: ValidationResult) -> dict[str, Any]:
    """`{"valid", "errors": […], "warnings": […]}`, each problem with its place, rule and remedy."""
    return {
        "valid": result.valid,
        "errors": [as_dict(problem) for problem in result.errors],
        "warnings": [as_dict(problem) for problem in result.warnings],
    }


def as_dict(problem: Problem) -> dict[str, Any]:
    return {
        "file": problem.file,
        "line": problem.line,
        "column": problem.column,
        "field": problem.field,
        "check": problem.check,
        "clause": problem.clause,
        "message": problem.message,
        "fix": problem.fix,
        "severity": problem.severity.value,
    }


def workflow_commands(problems: Iterable[Problem]) -> list[str]:
    """Return one GitHub workflow command a problem, at most `ANNOTATIONS_PER_LEVEL` of a level.

    Where a level has more, its last command says how many are left out.
    """
    by_level: dict[Severity, list[Problem]] = {Severity.ERROR: [], Severity.WARNING: []}
    for problem in problems:
        by_level[problem.severity].append(problem)
    lines = []
    for level, found in by_level.items():
        shown = found if len(found) <= ANNOTATIONS_PER_LEVEL else found[: ANNOTATIONS_PER_LEVEL - 1]
        lines += [annotation(problem) for problem in shown]
        if len(shown) < len(found):
            left = len(found) - len(shown)
            lines.append(f"::{level}::{left} more {level}s are not shown here; `--format text` shows all")
    return lines


def annotation(problem: Problem) -> str:
    properties = {"file": problem.file}
    if problem.line:
        properties["line"] = str(problem.line)
    if problem.line and problem.column:
        properties["col"] = str(problem.column)
    properties["title"] = f"{problem.check} ({problem.clause})" if problem.clause else problem.check
    said = f"{problem.field}: {problem.message}" if problem.field else problem.message
    text = f"{said}\n{problem.fix}" if problem.fix else said
    return (
        f"::{problem.severity} {','.join(f'{key}={escape_property(value)}' for key, value in properties.items())}"
        + (f"::{escape_message(text)}")
    )


def show_text(result: ValidationResult) -> None:
    """A line or two for each problem, then the sum; coloured where stdout is a terminal."""
    console = Console(soft_wrap=True, highlight=False)
    show_problems(result.problems, console)
    errors, warnings = len(result.errors), len(result.warnings)
    where = clean(str(result.path), 500)
    counted = f"{errors} error{'' if errors == 1 else 's'}, {warnings} warning{'' if warnings == 1 else 's'}"
    console.print(f"{plain(where, 500)}: " + (f"[green]valid[/], {counted}" if result.valid else f"[red]{counted}[/]"))


def show_problems(problems: Iterable[Problem], console: Console) -> None:
    for problem in problems:
        colour = "red" if problem.severity is Severity.ERROR else "yellow"
        place = f"{problem.file}:{problem.line}:{problem.column}" if problem.line else problem.file
        field = f"[bold]{plain(problem.field)}[/]: " if problem.field else ""
        clause = f", {plain(problem.clause)}" if problem.clause else ""
        console.print(
            f"{plain(place, 500)}: [{colour}]{problem.severity}[/]: {field}{plain(problem.message, LONGEST_MESSAGE)} "
            f"[dim]({plain(problem.check)}{clause})[/]"
        )
        if problem.fix:
            console.print(f"    fix: {plain(problem.fix, LONGEST_MESSAGE)}")
