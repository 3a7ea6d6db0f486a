"""Reads the values of a prompt's variables from a dataset item or a trace (PC5 §5.2 `variables`, AC-9). Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal

from schemas.judges import Variables

Context = Literal["offline", "online", "playground"]
CONTEXTS: tuple[Context, ...] = ("offline", "online", "playground")
_JSON = json.JSONEncoder(ensure_ascii=False, default=str).encode
_PART = re.compile(r"([A-Za-z_][\w-]*)|\[(-?\d+)\]")


class Unbound(LookupError):
    """A path leads to nothing; the message says how far it led."""


def resolve(path: str, source: Any) -> Any:
    """Returns the value at a dotted path such as `output.messages[-1].content`; negative indices count from the end.
    Only mappings and lists are followed. Raises Unbound."""
    found = source
    for part, before in parts(path):
        if isinstance(part, int):
            if not isinstance(found, (list, Sequence)) or isinstance(found, (str, bytes)):
                raise Unbound(f"{path}: {before or 'the item'} is {_kind(found)}, not a list")
            if not -len(found) <= part < len(found):
                raise Unbound(f"{path}: {before or 'the item'} has {len(found)} items, none at [{part}]")
        elif not isinstance(found, (dict, Mapping)):
            raise Unbound(f"{path}: {before or 'the item'} is {_kind(found)}, not an object")
        elif part not in found:
            raise Unbound(f"{path}: {before or 'the item'} has no {part!r}")
        found = found[part]
    return found


@lru_cache(maxsize=4096)
def parts(path: str) -> tuple[tuple[str | int, str], ...]:
    """Returns each step of a path with the part of the path before it."""
    steps = _PART.finditer(path)
    return tuple((int(m[2]) if m[2] is not None else m[1], path[: m.start()].rstrip(".")) for m in steps)


def bind(variables: Variables, context: Context, source: Mapping[str, Any]) -> dict[str, str]:
    """Returns every variable's text. A variable that this context does not bind is empty, so that the same prompt
    serves all contexts. Raises Unbound where the source lacks what a variable reads."""
    paths: Mapping[str, str] = getattr(variables, context)
    return {name: as_text(resolve(paths[name], source)) if name in paths else "" for name in names(variables)}


def names(variables: Variables) -> tuple[str, ...]:
    """Returns the variables of all contexts in the order of their appearance."""
    return tuple(dict.fromkeys(name for context in CONTEXTS for name in getattr(variables, context)))


def as_text(value: Any) -> str:
    """Returns a value as prompts show it: a text as it is, "" for null, anything else as JSON."""
    if isinstance(value, str):
        return value
    return "" if value is None else _JSON(value)


def _kind(value: Any) -> str:
    """Returns what JSON calls the value."""
    kinds = {dict: "an object", list: "a list", str: "a text", bool: "true or false", type(None): "null"}
    return kinds.get(type(value), "a number" if isinstance(value, (int, float)) else type(value).__name__)
