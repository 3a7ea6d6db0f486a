"""Reads a run of a suite from JSON Lines; what can't be right is refused with file, line and field (contracts §5)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson
from pydantic import ValidationError

from evalcore.suite.results import Case, Gone, Sample
from rampgate.ci_gate.inputs import BadFile, lines
from schemas.checks.suite_results import NOT_APPLICABLE, ResultLine


def read_run(path: Path) -> dict[str, Case]:
    """Returns the cases by id. Raises BadFile, for a sample that comes twice, too."""
    cases: dict[str, Case] = {}
    places: dict[tuple[str, int], int] = {}
    told: dict[tuple[tuple[str, str], ...], dict[str, str]] = {}
    for number, fields in lines(path):
        line = _parsed(path, number, fields)
        before = places.setdefault((line.case_id, line.sample), number)
        if before != number:
            raise BadFile(
                f"{path}:{number}: case_id: {line.case_id[:80]!r} has sample {line.sample} on line {before} too; "
                "each sample of a case is there once"
            )
        case = cases.setdefault(line.case_id, Case(line.case_id))
        if line.cluster is not None and case.samples and case.cluster != line.cluster:
            raise BadFile(f"{path}:{number}: cluster: {line.case_id[:80]!r} is in another on a line before")
        if case.samples and case.question != (line.question_hash or ""):
            raise BadFile(f"{path}:{number}: question_hash: {line.case_id[:80]!r} has another on a line before")
        case.cluster, case.question = line.cluster or case.cluster, line.question_hash or ""
        case.slices.update(line.slices)
        versions = line.versions or {}
        # A run has few sets of versions, and thousands of samples.
        case.samples.append(_sample(path, number, line, told.setdefault(tuple(versions.items()), versions)))
    if not cases:
        raise BadFile(f"{path}: has no lines; one is {{case_id, slices, sample, scores}}")
    return cases


def _parsed(path: Path, number: int, fields: dict[str, Any]) -> ResultLine:
    try:
        return ResultLine.model_validate(fields)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = ".".join(str(part)[:80] for part in first["loc"] if part not in _KINDS) or "line"
        said = first["msg"].removeprefix("Value error, ")
        said = "is missing" if first["type"] == "missing" else said
        raise BadFile(f"{path}:{number}: {field}: {said}") from error


_KINDS = ("function-before", "float", "literal['N/A']")


def _sample(path: Path, number: int, line: ResultLine, versions: Mapping[str, str]) -> Sample:
    if not line.scores and line.error is None:
        raise BadFile(f"{path}:{number}: scores: a line has some, or an error that says why the agent gave no output")
    scores: dict[str, float | Gone] = {}
    for name, value in line.scores.items():
        if value is None:
            scores[name] = Gone.UNSCORED
        else:
            scores[name] = Gone.NOT_APPLICABLE if value == NOT_APPLICABLE else float(value)
    return Sample(
        line.sample, scores, line.error or ("no reason given" if line.error is not None else ""),
        _text(line.output), line.reasons or {}, (line.trace.url or line.trace.hash or "") if line.trace else "",
        line.pairwise or {}, line.cost_usd, line.latency_ms, versions,
    )  # fmt: skip


def _text(output: Any) -> str:
    if output is None or isinstance(output, str):
        return output or ""
    return orjson.dumps(output, option=orjson.OPT_INDENT_2).decode()
