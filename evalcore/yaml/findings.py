"""A finding: what is wrong with a file, with place, rule and fix (PC5 AC-6)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path


class Severity(StrEnum):
    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, order=True)
class Finding:
    """One finding. `file` as it was given; `line` and `column` from 1, 0 where there is none; `field` a dotted path,
    "" for the file; `check` the rule's name; `clause` where it comes from; `fix` what to do."""

    file: str
    line: int
    column: int
    field: str
    check: str
    message: str
    clause: str = ""
    fix: str = ""
    severity: Severity = Severity.ERROR

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}:{self.column}" if self.line else self.file
        what = f"{self.field}: {self.message}" if self.field else self.message
        clause = f" ({self.clause})" if self.clause else ""
        return f"{place}: {self.severity}: {what} [{self.check}]{clause}" + (f" — {self.fix}" if self.fix else "")


@dataclass(frozen=True)
class ValidationResult:
    """The findings about a file or the whole registry, sorted by place; valid as long as none is an error."""

    path: Path
    findings: tuple[Finding, ...] = field(default=())

    @classmethod
    def of(cls, path: Path, findings: Iterable[Finding]) -> ValidationResult:
        return cls(path, tuple(sorted(set(findings))))

    @property
    def valid(self) -> bool:
        return not self.errors

    @property
    def errors(self) -> list[Finding]:
        return [finding for finding in self.findings if finding.severity is Severity.ERROR]

    @property
    def warnings(self) -> list[Finding]:
        return [finding for finding in self.findings if finding.severity is Severity.WARNING]

    def __bool__(self) -> bool:
        return self.valid
