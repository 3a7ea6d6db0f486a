"""Makes a spec of what there is already: tests of promptfoo, a suite's cases, a dataset's items, traces. Pure.

What a spec can't say is not guessed: it is left out, and named.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from evalcore.trajectory.reading import in_one_form
from evalcore.trajectory.record import trajectory_of
from schemas.checks.suite import SuiteFile

Query = dict[str, Any]
_PLACE: Final = re.compile(r"\{\{\s*(\w+)\s*\}\}")
_INPUTS: Final = ("query", "question", "input", "text", "prompt", "message")
_ID: Final = re.compile(r"[^A-Za-z0-9._-]+")
_TERMS: Final = {
    "contains": "expected_in_answer", "icontains": "expected_in_answer",
    "contains-all": "expected_in_answer", "icontains-all": "expected_in_answer",
    "not-contains": "not_in_answer", "not-icontains": "not_in_answer",
}  # fmt: skip
"""promptfoo's assertions about parts of the answer."""


@dataclass(frozen=True)
class Converted:
    """Queries as a spec's file has them, what was left out, and candidate and agent where they are known."""

    queries: Sequence[Query]
    left: Sequence[str] = ()
    candidate: Mapping[str, Any] | None = None
    agent: str | None = None


def of_promptfoo(data: Mapping[str, Any]) -> Converted:
    """Returns the spec of a promptfoo configuration: each test with its prompt, and those of its assertions that a spec
    has."""
    left: list[str] = []
    prompts = [one for one in _list(data.get("prompts")) if isinstance(one, str)]
    prompt = prompts[0] if prompts and not prompts[0].startswith("file://") else None
    if len(_list(data.get("prompts"))) > 1 or (prompts and prompt is None):
        left.append("prompts: a spec asks its agent one question; the first prompt that is a text counts")
    shared = data.get("defaultTest")
    base = shared if isinstance(shared, Mapping) else {}
    if not isinstance(data.get("tests"), list):
        left.append("tests: must be a list in the file itself, got something else")
    queries: list[Query] = []
    for number, test in enumerate(_list(data.get("tests")), 1):
        if not isinstance(test, Mapping):
            left.append(f"test {number}: is no mapping")
            continue
        variables = {**_mapping(base.get("vars")), **_mapping(test.get("vars"))}
        text = _filled(prompt, variables)
        if text is None:
            left.append(f"test {number}: has no question: no prompt, and no variable that is a text")
            continue
        query: Query = {"query": text}
        if isinstance(test.get("description"), str) and test["description"].strip():
            query["description"] = test["description"]
        for one in [*_list(base.get("assert")), *_list(test.get("assert"))]:
            if not isinstance(one, Mapping) or not _asserted(query, one):
                kind = one.get("type") if isinstance(one, Mapping) else one
                left.append(f"test {number}: the assertion {str(kind)[:80]!r} has none like it in a spec")
        queries.append(query)
    return Converted(_named(queries, "test"), left)


def of_suite(file: SuiteFile, rows: Iterable[Mapping[str, Any]], schemas: Mapping[str, Any]) -> Converted:
    """Returns the spec of a suite with these cases: its candidate, and of its checks those about the whole answer.
    `schemas` has the JSON Schemas of its checks by their name."""
    left = [f"judges: {name}: a rubric of the registry; write its rule as `llm_judge`" for name in file.judges]
    checks = dict(file.checks)
    for name, check in file.checks.items():
        if check.absent or check.field != "output" or (check.equals not in (None, "expected_output")):
            left.append(f"checks: {name}: a spec has none like it")
            del checks[name]
    queries: list[Query] = []
    for row in rows:
        text = question(row.get("input"))
        if text is None:
            left.append(f"case {row.get('id')}: its input has no question that is a text")
            continue
        correctness: dict[str, Any] = {}
        for name, check in checks.items():
            if check.regex is not None:
                _once(correctness, "regex_match", check.regex, name, left)
            elif check.json_schema is not None:
                _once(correctness, "json_schema", schemas.get(name), name, left)
            elif isinstance(row.get("expected_output"), str):
                _once(correctness, "exact_match", row["expected_output"], name, left)
        query: Query = {"query": text, "id": _ID.sub("-", str(row.get("id"))).strip("-._")[:100]}
        query |= {"tags": [*row["tags"]]} if row.get("tags") else {}
        queries.append(query | ({"correctness": correctness} if correctness else {}))
    candidate = file.candidate.model_dump(mode="json", exclude_defaults=True)
    return Converted(_named(queries, "case"), list(dict.fromkeys(left)), candidate, file.agent)


def of_items(rows: Iterable[Mapping[str, Any]]) -> Converted:
    """Returns the spec of a dataset's items: the answer comes near to the expected one."""
    queries, left = [], []
    for number, row in enumerate(rows, 1):
        text = question(row.get("input"))
        if text is None:
            left.append(f"item {number}: its input has no question that is a text")
            continue
        expected = question(row.get("expected_output")) or _text(row.get("expected_output"))
        tags = [one for one in _list(_mapping(row.get("metadata")).get("tags")) if isinstance(one, str)]
        query: Query = {"query": text} | ({"tags": tags} if tags else {})
        queries.append(query | ({"correctness": _near(expected)} if expected else {}))
    return Converted(_named(queries, "item"), left)


def of_traces(rows: Iterable[Mapping[str, Any]]) -> Converted:
    """Returns the spec of what was seen: each question once, with the tools that its first answer called."""
    queries, left, seen = [], [], set[str]()
    for number, row in enumerate(rows, 1):
        case = _mapping(row.get("case"))
        text = question(row.get("input")) or question(case.get("input")) or question(row)
        if text is None:
            left.append(f"trace {number}: has no question that is a text")
            continue
        if text in seen:
            left.append(f"trace {number}: asks what an earlier one asks")
            continue
        seen.add(text)
        made = trajectory_of(in_one_form(row))
        query: Query = {"query": text}
        if answer := _text(made.output):
            query["correctness"] = _near(answer)
        if made.tools is not None:
            tools = list(dict.fromkeys(made.tools))
            query["path"] = {"expected_tools": tools, "max_tool_calls": len(made.tools)}
        if made.handoffs:
            query.setdefault("path", {})["expected_handoff"] = made.handoffs[-1]
        if made.llm_calls:
            query["cost"] = {"max_llm_calls": len(made.llm_calls)}
        queries.append(query)
    return Converted(queries, left)


def question(value: Any) -> str | None:
    """Returns the question of an input: a text, a field that has it, or the last message of a user."""
    if isinstance(value, str):
        return value if value.strip() else None
    if not isinstance(value, Mapping):
        return None
    messages = [one for one in _list(value.get("messages")) if isinstance(one, Mapping)]
    users = [one.get("content") for one in messages if one.get("role", one.get("type")) in ("user", "human")]
    if users and isinstance(users[-1], str) and users[-1].strip():
        return users[-1]
    return next((found for name in _INPUTS if (found := _text(value.get(name)))), None)


def _asserted(query: Query, one: Mapping[str, Any]) -> bool:
    """Adds an assertion of promptfoo's to the query; says whether a spec has one like it."""
    kind, value, threshold = one.get("type"), one.get("value"), one.get("threshold")
    of = query.setdefault("correctness", {})
    if kind in _TERMS and (terms := [term for term in _list(value) if isinstance(term, str) and term]):
        of[_TERMS[kind]] = [*of.get(_TERMS[kind], []), *terms]
        of["substrings"] = True  # promptfoo finds them within words, too
        return True
    found: dict[str, Any] = {}
    if kind == "equals" and isinstance(value, str):
        found = {"exact_match": value}
    elif kind == "regex" and isinstance(value, str) and value:
        found = {"regex_match": value}
    elif kind == "is-json" and (value is None or isinstance(value, Mapping)):
        found = {"json_schema": dict(value or {})}
    elif kind == "llm-rubric" and isinstance(value, str) and value.strip():
        rubric = {"rule": value} | ({"threshold": threshold} if isinstance(threshold, (int, float)) else {})
        of["llm_judge"] = [*of.get("llm_judge", []), rubric]
        return True
    elif kind in ("cost", "latency") and isinstance(threshold, (int, float)):
        limit = {"max_cost_usd": threshold} if kind == "cost" else {"max_latency_ms": int(threshold)}
        query.setdefault("cost", {}).update(limit)
        if not of:
            del query["correctness"]
        return True
    taken = bool(found) and not {*found} & {*of}
    of.update(found if taken else {})
    if not of:
        del query["correctness"]
    return taken


def _filled(prompt: str | None, variables: Mapping[str, Any]) -> str | None:
    texts = {name: _text(value) for name, value in variables.items()}
    if prompt is not None:
        filled = _PLACE.sub(lambda found: texts.get(found[1]) or found[0], prompt)
        return filled if filled.strip() else None
    return next((text for name in _INPUTS if (text := texts.get(name))), next(filter(None, texts.values()), None))


def _near(answer: str) -> dict[str, Any]:
    return {"similar_to": {"text": answer, "min_similarity": 0.5}}


def _once(of: dict[str, Any], name: str, value: Any, check: str, left: list[str]) -> None:
    if name in of:
        left.append(f"checks: {check}: a spec has one {name} a query")
    else:
        of[name] = value


def _named(queries: Sequence[Query], what: str) -> list[Query]:
    """Gives queries with the same text ids of their own."""
    many = [one["query"] for one in queries]
    return [
        one
        if "id" in one or many.count(one["query"]) == 1
        else {"query": one["query"], "id": f"{what}-{number}", **one}
        for number, one in enumerate(queries, 1)
    ]


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, (Mapping, list)):
        return None if value is None or not value else json.dumps(value, ensure_ascii=False)
    text = str(value)
    return text if text.strip() else None


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
