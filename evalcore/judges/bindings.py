"""Values for a prompt's variables, out of a dataset item or a trace (PC5 §5.2 `variables`, AC-9). Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal

from schemas.judges import Variables

Context = Literal["offline", "online", "playground"]
CONTEXTS: tuple[Context, ...] = ("offline", "online", "playground")
_PART = re.compile(r"([A-Za-z_][\w-]*)|\[(-?\d+)\]")


class Unbound(LookupError):
    """A path that leads nowhere; says how far it led."""


def resolve(path: str, source: Any) -> Any:
    """What stands at a dotted path with list indices, which count from the end where negative:
    `output.messages[-1].content`. Only mappings and lists are followed. Raises Unbound."""
    found = source
    for part, upto in parts(path):
        if isinstance(part, int):
            if not isinstance(found, (list, Sequence)) or isinstance(found, (str, bytes)):
                raise Unbound(f"{path}: {upto or 'the item'} is {_kind(found)}, not a list")
            if not -len(found) <= part < len(found):
                raise Unbound(f"{path}: {upto or 'the item'} has {len(found)} items, none at [{part}]")
        elif not isinstance(found, (dict, Mapping)):
            raise Unbound(f"{path}: {upto or 'the item'} is {_kind(found)}, not an object")
        elif part not in found:
            raise Unbound(f"{path}: {upto or 'the item'} has no {part!r}")
        found = found[part]
    return found


@lru_cache(maxsize=4096)
def parts(path: str) -> tuple[tuple[str | int, str], ...]:
    """Each step of a path with what lies before it."""
    steps = _PART.finditer(path)
    return tuple((int(m[2]) if m[2] is not None else m[1], path[: m.start()].rstrip(".")) for m in steps)


def bind(variables: Variables, context: Context, source: Mapping[str, Any]) -> dict[str, str]:
    """Every variable as the prompt's text has it. A variable that this context does not bind is empty, so that the same
    prompt serves all contexts; one that it binds and that is not there raises Unbound."""
    paths: Mapping[str, str] = getattr(variables, context)
    return {name: as_text(resolve(paths[name], source)) if name in paths else "" for name in names(variables)}


def names(variables: Variables) -> tuple[str, ...]:
    """Of all contexts, in order of appearance."""
    return tuple(dict.fromkeys(name for context in CONTEXTS for name in getattr(variables, context)))


def as_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False, default=str)


def _kind(value: Any) -> str:
    kinds = {dict: "an object", list: "a list", str: "a text", bool: "true or false", type(None): "null"}
    return kinds.get(type(value), "a number" if isinstance(value, (int, float)) else type(value).__name__)
