"""Defines a check of the linter: a named function with the clause that demands it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from evalcore.registry.files import RegistryFiles, finding
from evalcore.yaml.findings import Finding, Severity
from evalcore.yaml.loader import FieldPath, Parsed


@dataclass(frozen=True)
class Check:
    """`name` is kebab-case and part of every finding; `clause` says where the demand comes from; `summary` is what
    holds when the check finds nothing. `run` is pure and never raises on a files of valid models."""

    name: str
    clause: str
    summary: str
    run: Callable[[RegistryFiles], Iterable[Finding]]
    severity: Severity = Severity.ERROR
    """The severity of its findings, unless the check gives a single finding another."""


@dataclass(frozen=True)
class Find:
    """Makes a check's findings, each at a field of a file."""

    check: str
    clause: str
    severity: Severity

    def __call__(
        self, parsed: Parsed[Any], path: FieldPath, message: str, fix: str = "", severity: Severity | None = None
    ) -> Finding:
        return finding(self.check, self.clause, parsed, path, message, fix, severity or self.severity)


Body = Callable[[RegistryFiles, Find], Iterator[Finding]]


def check(name: str, clause: str, summary: str, severity: Severity = Severity.ERROR) -> Callable[[Body], Check]:
    """Makes a check of a function that yields its findings; they carry the check's name and clause."""
    find = Find(name, clause, severity)

    def checked(body: Body) -> Check:
        return Check(name, clause, summary, lambda files: body(files, find), severity)

    return checked
