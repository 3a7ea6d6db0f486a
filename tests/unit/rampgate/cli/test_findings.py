"""Findings as text, annotations and JSON: each has place, rule and remedy, and no file's text becomes a command."""

from __future__ import annotations

from pathlib import Path

import pytest

from evalcore.yaml.findings import Finding, Severity, ValidationResult
from rampgate.registry.view import validation_answer
from rampgate.report.console import show
from rampgate.report.findings import validation_report
from rampgate.report.github import ANNOTATIONS_PER_LEVEL, escape_message, escape_property, workflow_commands
from rampgate.report.model import Report

BAD = Finding("r/a.yaml", 3, 5, "score_type", "enum", "'INT' is none of INTEGER, FLOAT", "PC5 FR-3", "write INTEGER")
OLD = Finding("r/a.yaml", 9, 1, "", "cadence", "is overdue", severity=Severity.WARNING)


def reported(*findings: Finding) -> Report:
    return validation_report(validation_answer(ValidationResult.of(Path("r"), findings)))


def finding_command(finding: Finding) -> str:
    (line,) = workflow_commands(reported(finding))
    return line


@pytest.mark.parametrize(
    ("text", "data", "property_"),
    [
        ("plain", "plain", "plain"),
        ("100%", "100%25", "100%25"),
        ("%0A", "%250A", "%250A"),
        ("%25", "%2525", "%2525"),
        ("a\nb", "a%0Ab", "a%0Ab"),
        ("a\r\nb", "a%0D%0Ab", "a%0D%0Ab"),
        ("a:b", "a:b", "a%3Ab"),
        ("a,b", "a,b", "a%2Cb"),
        ("::error::x", "::error::x", "%3A%3Aerror%3A%3Ax"),
        ("C:\\a,%", "C:\\a,%25", "C%3A\\a%2C%25"),
        ("é✓", "é✓", "é✓"),
    ],
)
def test_escaping_is_that_of_workflow_commands(text: str, data: str, property_: str) -> None:
    assert escape_message(text) == data
    assert escape_property(text) == property_


def test_an_annotation_tells_place_rule_and_remedy() -> None:
    assert finding_command(BAD) == (
        "::error file=r/a.yaml,line=3,col=5,title=enum (PC5 FR-3)::"
        "score_type: 'INT' is none of INTEGER, FLOAT%0Awrite INTEGER"
    )
    assert finding_command(OLD) == "::warning file=r/a.yaml,line=9,col=1,title=cadence::is overdue"


def test_a_problem_without_a_place_names_its_file_only() -> None:
    assert finding_command(Finding("a,b.yaml", 0, 0, "", "gone", "x")) == "::error file=a%2Cb.yaml,title=gone::x"


def test_a_files_text_cannot_begin_a_command_of_its_own() -> None:
    line = finding_command(
        Finding("a\n::stop-commands::x", 1, 1, "f\r\n::add-mask::y", "c\n::error::", "m\n::debug::z")
    )
    assert len(line.splitlines()) == 1
    assert line.startswith("::error file=a%0A")


def test_ten_of_each_level_are_shown_and_the_rest_is_counted() -> None:
    errors = [Finding("a.yaml", line, 1, "", "c", "m") for line in range(1, 26)]
    warnings = [
        Finding("a.yaml", line, 1, "", "c", "m", severity=Severity.WARNING)
        for line in range(1, ANNOTATIONS_PER_LEVEL + 1)
    ]
    lines = workflow_commands(reported(*warnings, *errors))
    told = [line for line in lines if line.startswith("::error")]
    assert len(told) == ANNOTATIONS_PER_LEVEL
    assert told[-1].startswith("::error::16 more errors")
    assert len([line for line in lines if line.startswith("::warning")]) == ANNOTATIONS_PER_LEVEL
    assert "more warnings" not in "".join(lines)


def test_the_document_has_every_field() -> None:
    answer = validation_answer(ValidationResult.of(Path("r"), [BAD, OLD]))
    assert answer["valid"] is False
    assert answer["errors"] == [
        {
            "file": "r/a.yaml",
            "line": 3,
            "column": 5,
            "field": "score_type",
            "check": "enum",
            "clause": "PC5 FR-3",
            "message": "'INT' is none of INTEGER, FLOAT",
            "fix": "write INTEGER",
            "severity": "error",
        }
    ]
    assert [one["severity"] for one in answer["warnings"]] == ["warning"]


def test_warnings_alone_hold() -> None:
    report = reported(OLD)
    assert (report.tone, report.result) == ("warn", "valid, 0 errors, 1 warning")
    assert workflow_commands(report)[0].startswith("::warning file=")


def test_text_shows_a_files_words_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    odd = Finding("r/[red]a.yaml", 1, 2, "x[0]", "c", "[bold]no\x1b[31m markup", fix="do [/] this")
    show(reported(odd, BAD))
    out = capsys.readouterr().out
    assert "r/[red]a.yaml:1:2" in out
    assert "x[0]: [bold]no" in out
    assert "\x1b" not in out
    assert "fix: do [/] this" in out
    assert "2 errors, 0 warnings" in out
