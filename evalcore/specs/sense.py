"""Says what no type can of a spec: what contradicts itself, can't be checked, or asserts nothing. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from evalcore.registry.patterns import refusal
from evalcore.specs.layers import asserts_correctness, limits_of
from evalcore.specs.rubric import exact, reaches, rubrics_of, scale_of
from evalcore.suite.checks import validator_of
from evalcore.trajectory.expected import unusable
from evalcore.yaml.findings import Finding, Severity
from evalcore.yaml.source_locations import Document, FieldPath, field_name
from schemas.specs import AgentSpec, Correctness, GoldenQuery, PathLimits, Rubric, SpecCandidate

FIRST: Final = "AgentCI Step 0.5"
_VARIABLE: Final = re.compile(r"\$\{[A-Za-z_]\w*\}")
_NAME: Final = re.compile(r"[A-Za-z_]\w*")


class Said(NamedTuple):
    """What was found about a field of the spec."""

    path: FieldPath
    check: str
    message: str
    fix: str
    severity: Severity = Severity.ERROR


def said_of(spec: AgentSpec, document: Document) -> list[Finding]:
    """Returns the findings about a spec whose queries have their ids, each at the line of its author."""
    found = [*_twice(spec, document), *_of_candidate(spec.candidate), *_of_ensemble(spec)]
    for place, query in enumerate(spec.queries):
        found += [one._replace(path=("queries", place, *one.path)) for one in _of_query(spec, query)]
    if spec.fail_on:
        limits = {name for query in spec.queries for name in limits_of(query)}
        found += [
            Said(("fail_on", place), "no-limit", f"{name} is set by no query: nothing blocks", "set it, or remove it",
                 Severity.WARNING)
            for place, name in enumerate(spec.fail_on) if name not in limits
        ]  # fmt: skip
    return [_finding(document, one) for one in found]


def _twice(spec: AgentSpec, document: Document) -> Iterator[Said]:
    before: dict[str, int] = {}
    for place, query in enumerate(spec.queries):
        first = before.setdefault(str(query.id), place)
        if first != place:
            path: FieldPath = ("queries", first, "id" if ("queries", first, "id") in document.places else "query")
            line = document.at(path)[0]
            if ("queries", place, "id") in document.places:
                message = f"must be there once, got {query.id!r} in line {line}, too"
                yield Said(("queries", place, "id"), "duplicate-id", message, "give this query another id")
            else:
                message = f"must be there once, got the same text in line {line}, too"
                fix = "give each of both an `id`, or remove one"
                yield Said(("queries", place, "query"), "duplicate-query", message, fix)


def _of_candidate(candidate: SpecCandidate | None) -> Iterator[Said]:
    told: dict[str, Any] = candidate.model_dump(exclude_defaults=True) if candidate is not None else {}
    for place, name in enumerate(told.pop("environment", ())):
        at = ("candidate", "environment", place)
        if name.startswith("RAMPGATE_"):
            message = f"must be none of our settings, got {name}: a candidate gets no key of its judges"
            yield Said(at, "setting-in-environment", message, "remove it")
        elif not _NAME.fullmatch(name):
            message = f"must be a variable's name, got {name[:80]!r}"
            yield Said(at, "no-variable", message, "write the name alone; the value comes from where the run starts")
    yield from _variables(told, ("candidate",), "name {} in candidate.environment, and have the agent read it")


def _variables(told: dict[str, Any], at: FieldPath, fix: str) -> Iterator[Said]:
    for path, text in _texts(told, at):
        if found := _VARIABLE.search(text):
            message = f"must be the text itself, got the variable {found[0]}: it is not filled in here"
            yield Said(path, "variable", message, fix.format(found[0][2:-1]))


def _texts(value: Any, path: FieldPath) -> Iterator[tuple[FieldPath, str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for name, one in value.items():
            yield from _texts(one, (*path, name))
    elif isinstance(value, (list, tuple)):
        for place, one in enumerate(value):
            yield from _texts(one, (*path, place))


def _of_ensemble(spec: AgentSpec) -> Iterator[Said]:
    config = spec.judge_config
    if config is None:
        return
    models = config.ensemble.models if config.ensemble is not None else ()
    yield from _variables(config.model_dump(exclude_defaults=True), ("judge_config",), "write the model's name")
    for place, name in enumerate(models):
        if name in models[:place]:
            message = f"{name} is named twice: it is asked twice, and has two votes"
            at = ("judge_config", "ensemble", "models", place)
            yield Said(at, "model-twice", message, "name models of other families", Severity.WARNING)


def _of_query(spec: AgentSpec, query: GoldenQuery) -> Iterator[Said]:
    if query.correctness is not None:
        yield from _of_correctness(query.correctness)
    if query.path is not None:
        yield from _of_path(query.path)
    if not limits_of(query) and not asserts_correctness(query.correctness):
        fix = "assert something in `correctness`, `path` or `cost`"
        yield Said((), "asserts-nothing", "asserts nothing: it passes whatever is answered", fix, Severity.WARNING)
    for place, name in enumerate(query.fail_on):
        if name not in limits_of(query):
            message, fix = f"{name} is not set: nothing blocks", "set it, or remove it"
            yield Said(("fail_on", place), "no-limit", message, fix, Severity.WARNING)


def _of_correctness(of: Correctness) -> Iterator[Said]:
    if of.regex_match is not None and (why := refusal(of.regex_match)) is not None:
        fix = "write it without lookaround and backreferences, shorter, or as two queries"
        yield Said(("correctness", "regex_match"), "pattern", f"must be a pattern that RE2 takes: {why}", fix)
    if of.json_schema is not None:
        yield from _of_schema(of.json_schema)
    wanted = {term.casefold() for term in of.expected_in_answer or ()}
    for place, term in enumerate(of.not_in_answer or ()):
        if term.casefold() in wanted:
            message = f"must be no term of expected_in_answer, got {term[:80]!r}: no answer passes"
            yield Said(("correctness", "not_in_answer", place), "contradiction", message, "remove it from one of both")
    if of.similar_to is not None and of.similar_to.min_similarity == 0:
        yield _cannot_fail(("correctness", "similar_to", "min_similarity"), "0 is reached by every answer")
    for placed in rubrics_of(of):
        yield from _of_rubric(placed.field, placed.rubric)


def _of_schema(schema: dict[str, Any]) -> Iterator[Said]:
    at: FieldPath = ("correctness", "json_schema")
    try:
        validator_of("it", schema)
    except ValueError as error:
        why = str(error).removeprefix("json_schema: it").removeprefix(":").strip()
        yield Said(at, "schema", f"must be a JSON Schema (2020-12): {why}", "correct the schema")


def _of_rubric(path: FieldPath, rubric: Rubric) -> Iterator[Said]:
    scale = scale_of(rubric)
    low, high = scale.low, scale.high
    if reaches(rubric, exact(low)):
        yield _cannot_fail((*path, "threshold"), f"{low:g} of {high:g}, the lowest score, reaches it")
    for place, one in enumerate(rubric.few_shot_examples or ()):
        if not low <= one.score <= high:
            message = f"must be on the rubric's scale, {low:g} to {high:g}, got {one.score:g}"
            at = (*path, "few_shot_examples", place, "score")
            yield Said(at, "out-of-range", message, f"write a number from {low:g} to {high:g}")


def _cannot_fail(path: FieldPath, why: str) -> Said:
    return Said(path, "cannot-fail", f"it can't fail: {why}", "raise it, or remove the assertion", Severity.WARNING)


def _of_path(of: PathLimits) -> Iterator[Said]:
    if of.expected_calls is not None and (why := unusable(of.expected_calls)) is not None:
        message = f"must be calls that can be looked for: {why}"
        yield Said(("path", "expected_calls"), "pattern", message, "correct the pattern or the schema")
    forbidden = {*(of.forbidden_tools or ())}
    for place, name in enumerate(of.expected_tools or ()):
        if name in forbidden:
            message = f"must be no tool of forbidden_tools, got {name!r}"
            yield Said(("path", "expected_tools", place), "contradiction", message, "remove it from one of both")
    for name in ("min_tool_recall", "min_tool_precision", "min_sequence_similarity"):
        value = getattr(of, name)
        if value is None:
            continue
        if name != "min_sequence_similarity" and not of.expected_tools:
            message = "asserts nothing without tools in expected_tools"
            yield Said(("path", name), "asserts-nothing", message, "name the tools, or remove it", Severity.WARNING)
        elif value == 0:
            yield _cannot_fail(("path", name), "0 is reached by every answer")


def _finding(document: Document, said: Said) -> Finding:
    file, path = document.source(said.path)
    place = document.at(said.path)
    return Finding(file, *place, field_name(path), said.check, said.message, FIRST, said.fix, said.severity)
