"""Reads a suite with all that it names: cases, parts of the candidate, schemas of checks. Says what is wrong where."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from evalcore.registry.judge import digest
from evalcore.suite.checks import Checker
from evalcore.suite.draw import smoke_set
from evalcore.yaml.models import read_as
from rampgate.ci_gate.inputs import BadFile, lines
from rampgate.suite.generation import configuration_of
from schemas.checks.suite import Check, Part, SuiteFile


@dataclass(frozen=True)
class SuiteCase:
    """One case. `row` is its line; `tags` are its slices."""

    id: str
    row: Mapping[str, Any]
    tags: tuple[str, ...]
    cluster: str | None


@dataclass(frozen=True)
class Suite:
    """A suite, read whole. `parts` are the hashes of the candidate's parts, `values` those that it is told."""

    file: SuiteFile
    folder: Path
    cases: Sequence[SuiteCase]
    checks: Mapping[str, Checker]
    parts: Mapping[str, str]
    values: Mapping[str, str]

    @property
    def configuration(self) -> str:
        """The hash of all parts."""
        return configuration_of(self.parts)

    def drawn(self, *, smoke: bool) -> list[SuiteCase]:
        """The cases of the smoke set, or all."""
        if not smoke:
            return list(self.cases)
        by_id = {case.id: case for case in self.cases}
        return [
            by_id[name]
            for name in smoke_set({one.id: one.tags for one in self.cases}, self.file.safety, self.file.smoke)
        ]


def read_suite(path: Path) -> Suite:
    """Raises BadFile with all that is wrong in the suite's file, or with the first that is in what it names."""
    try:
        parsed, findings = read_as(SuiteFile, str(path), path.read_bytes())
    except OSError as error:
        raise BadFile(f"{path}: can't be read: {error.strerror or error}") from error
    if parsed is None or findings:
        raise BadFile("; ".join(str(finding) for finding in findings))
    file, folder = parsed.model, path.parent
    if file.cases.file is None:
        raise BadFile(f"{path}: cases.dataset: write its items into a file; `cases.file` names it")
    cases = _cases(folder / file.cases.file)
    known = {tag for case in cases for tag in case.tags}
    for field, named in (("safety", file.safety), ("slices", file.slices)):
        if strange := sorted(set(named) - known):
            raise BadFile(f"{path}: {field}: no case has the tag {strange[0]!r}")
    parts = {name: _hash(folder, path, name, part) for name, part in file.candidate.parts.items()}
    values = {name: part.value for name, part in file.candidate.parts.items() if part.value is not None}
    checks = {name: _checker(folder, path, name, check) for name, check in file.checks.items()}
    return Suite(file, folder, cases, checks, parts, values)


def _cases(path: Path) -> list[SuiteCase]:
    cases: list[SuiteCase] = []
    places: dict[str, int] = {}
    for line, row in lines(path):
        known = row.get("id")
        if isinstance(known, bool) or not isinstance(known, (str, int)) or known == "":
            raise BadFile(f"{path}:{line}: id: a case has one, a text or a whole number")
        if (before := places.setdefault(str(known), line)) != line:
            raise BadFile(f"{path}:{line}: id: {str(known)[:80]!r} is the id of line {before} too")
        if row.get("input") is None:
            raise BadFile(f"{path}:{line}: input: a case has one")
        tags = row.get("tags", [])
        if not isinstance(tags, list) or not all(isinstance(tag, str) and tag for tag in tags):
            raise BadFile(f"{path}:{line}: tags: a list of texts is required")
        cluster = row.get("cluster")
        if cluster is not None and (not isinstance(cluster, str) or not cluster):
            raise BadFile(f"{path}:{line}: cluster: a text is required")
        cases.append(SuiteCase(str(known), row, tuple(dict.fromkeys(tags)), cluster))
    if not cases:
        raise BadFile(f"{path}: has no case; one is {{id, input, tags}} on a line")
    return cases


def _hash(folder: Path, path: Path, name: str, part: Part) -> str:
    """The hash of a part's value, or of its files' names and contents."""
    if part.files is None:
        return digest({"value": part.value})
    found: dict[str, str] = {}
    for pattern in part.files:
        matched = sorted(one for one in folder.glob(pattern) if one.is_file())
        if not matched:
            raise BadFile(f"{path}: candidate.parts.{name}.files: no file is {pattern!r} in {folder}")
        try:
            found |= {
                one.relative_to(folder).as_posix(): hashlib.sha256(one.read_bytes()).hexdigest() for one in matched
            }
        except OSError as error:
            raise BadFile(f"{path}: candidate.parts.{name}.files: {error.filename}: {error.strerror}") from error
    return digest({"files": found})


def _checker(folder: Path, path: Path, name: str, check: Check) -> Checker:
    schema: Any = None
    try:
        if check.json_schema is not None:
            schema = orjson.loads((folder / check.json_schema).read_bytes())
        return Checker(check, schema)
    except OSError as error:
        raise BadFile(f"{folder / str(check.json_schema)}: can't be read: {error.strerror}") from error
    except orjson.JSONDecodeError as error:
        raise BadFile(f"{folder / str(check.json_schema)}: is no JSON: {error}") from error
    except ValueError as error:
        raise BadFile(f"{path}: checks.{name}: {error}") from error
