"""Defines a check of the linter, and the subjects by which the checks are grouped."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import wraps
from typing import Any

from evalcore.registry.files import RegistryFiles, finding
from evalcore.yaml.findings import Finding, Severity
from evalcore.yaml.loader import FieldPath, Parsed
from schemas.manifests import ManifestFile

Manifest = Parsed[ManifestFile]


@dataclass(frozen=True)
class Check:
    """`name` is kebab-case and part of every finding; `clause` says where the demand comes from; `summary` is what
    holds when the check finds nothing. `run` is pure and raises nothing on files that fit their models."""

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


class Subject:
    """Checks under one heading of their page, in the order of their definition; `clause` is that of every check that
    names no other.

    A check is a function that yields its findings. Its name is the function's, in kebab case; its summary is the
    function's docstring.
    """

    def __init__(self, title: str, clause: str = "") -> None:
        self.title, self.clause = title, clause
        self.checks: list[Check] = []

    def error(self, clause: str = "") -> Callable[[Body], Body]:
        """Adds a check whose findings are errors."""
        return self._adding(clause or self.clause, Severity.ERROR)

    def warning(self, clause: str = "") -> Callable[[Body], Body]:
        """Adds a check whose findings are warnings."""
        return self._adding(clause or self.clause, Severity.WARNING)

    def _adding(self, clause: str, severity: Severity) -> Callable[[Body], Body]:
        def add(body: Body) -> Body:
            name = body.__name__.replace("_", "-")
            summary = " ".join((body.__doc__ or "").split())
            find = Find(name, clause, severity)
            self.checks.append(Check(name, clause, summary, lambda files: body(files, find), severity))
            return body

        return add


def of_manifest(body: Callable[[RegistryFiles, Manifest, Find], Iterator[Finding]]) -> Body:
    """Hands the manifest to a check's function; a registry without one has nothing to check."""

    @wraps(body)
    def checked(files: RegistryFiles, find: Find) -> Iterator[Finding]:
        if files.manifest is not None:
            yield from body(files, files.manifest, find)

    return checked
