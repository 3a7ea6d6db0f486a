"""Plants a text into one place of an item: one variable of a judge, or one field within it. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evalcore.judges.bindings import Context, meant, parts, place, resolve
from evalcore.registry.judge import Judge
from evalcore.scoring.items import REFERENCES

OURS = (*REFERENCES, "expected_tools")
"""Variables whose text no user, agent or tool writes."""


def positions(judge: Judge, context: Context, source: Mapping[str, Any]) -> list[str]:
    """Returns where in the item a stranger's text stands that the judge reads: the name of a variable, or
    `variable.field` for each field with text in a variable that is no text itself. Raises Unbound."""
    found: dict[str, None] = {}
    for name in getattr(judge.rule.variables, context):
        if name not in OURS:
            value = resolve(_path(judge, context, source, name), source)
            inner = dict.fromkeys(f"{name}.{field}" for field in _fields(value))
            found |= inner if isinstance(value, (Mapping, list)) else {name: None}
    return list(found)


def planted(judge: Judge, context: Context, source: Mapping[str, Any], position: str, text: str) -> dict[str, Any]:
    """Returns a copy of the item with the text before and after what stands at the position: a judge that obeys what
    it reads first, or last, is found alike. Raises Unbound."""
    name, _, field = position.partition(".")
    path = _path(judge, context, source, name)
    here = resolve(path, source)
    made = _with_field(here, field, text) if field else _around(here, text)
    return dict(_replaced(source, [step for step, _ in parts(path)], made))


def _path(judge: Judge, context: Context, source: Mapping[str, Any], variable: str) -> str:
    path, layout = meant(judge, context, source, getattr(judge.rule.variables, context)[variable])
    return place(path, source, layout) if layout is not None else path


def _replaced(value: Any, way: Sequence[str | int], made: Any) -> Any:
    """Returns a copy of the value with something else at the end of the way; what lies beside the way is shared."""
    if not way:
        return made
    copy: Any = dict(value) if isinstance(value, Mapping) else list(value)
    copy[way[0]] = _replaced(value[way[0]], way[1:], made)
    return copy


def _around(value: Any, text: str) -> Any:
    if isinstance(value, str):
        return f"{text}\n\n{value}\n\n{text}"
    if isinstance(value, Mapping):
        return {key: _around(inner, text) for key, inner in value.items()}
    if isinstance(value, list):
        return [_around(inner, text) for inner in value]
    return text if value is None else value


def _fields(value: Any) -> list[str]:
    """Returns the names of fields, at any depth, that hold text of more than a word; a tool's name is none."""
    found: dict[str, None] = {}
    for one in value if isinstance(value, list) else [value]:
        if isinstance(one, Mapping):
            found |= dict.fromkeys(str(key) for key, inner in one.items() if _speaks(inner))
    return list(found)


def _speaks(value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(map(_speaks, value.values()))
    if isinstance(value, list):
        return any(map(_speaks, value))
    return isinstance(value, str) and len(value.split()) > 1


def _with_field(value: Any, field: str, text: str) -> Any:
    if isinstance(value, list):
        return [_with_field(one, field, text) for one in value]
    if isinstance(value, Mapping):
        return {key: _around(inner, text) if key == field else inner for key, inner in value.items()}
    return value
