"""Reads the values of a prompt's variables from a dataset item or a trace (PC5 §5.2 `variables`, AC-9). Pure.

Online, a path may be a name: `question`, `answer`, `context` or `tools` of the trace, wherever its vertical has it. A
dataset's input and an answer that are no plain text are read where the vertical's traces have them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Literal

from schemas.judges import Variables
from schemas.verticals import TraceLayout

if TYPE_CHECKING:
    from evalcore.registry.judge import Judge

Context = Literal["offline", "online", "playground"]
CONTEXTS: tuple[Context, ...] = ("offline", "online", "playground")
NAMES: Final = tuple(TraceLayout.model_fields)
PLAIN: Final = TraceLayout()
"""The layout of a vertical that states none."""
SAID: Final = {"question": "input", "answer": "output"}
"""Names that every judge reads, and the fields in which most traces have them."""
ITEMS: Final = {"input": "question", "output": "answer", "tool_calls": "tools"}
"""What a dataset's item and its answer call what traces have by name."""
_JSON = json.JSONEncoder(ensure_ascii=False, default=str).encode
_PART = re.compile(r"([A-Za-z_][\w-]*)|\[(-?\d+)\]")


class Unbound(LookupError):
    """A path leads to nothing; the message says how far it led."""


def resolve(path: str, source: Any, layout: TraceLayout | None = None) -> Any:
    """Returns the value at a dotted path such as `output.messages[-1].content`; negative indices count from the end.
    With a trace's `layout` the path may be one of NAMES. Only mappings and lists are followed. Raises Unbound."""
    if layout is not None and path in NAMES:
        return _named(path, source, layout)
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


def _named(name: str, trace: Any, layout: TraceLayout) -> Any:
    try:
        if (found := resolve(place(name, trace, layout), trace)) is None:
            raise Unbound("it is null there")
    except Unbound as error:
        remedy = f"`trace: {{{name}: PATH}}` in the vertical's file says where it is"
        remedy += ", or `tool_calls: []` in the trace that there were none" if name == "tools" else ""
        raise Unbound(f"no {name} that judges can read: {error}; {remedy}") from None
    return found


def unreadable(trace: Any, layout: TraceLayout, names: Iterable[str] = SAID) -> dict[str, str]:
    """Returns by name why judges can't read it in the trace; empty where they can read all of `names`."""
    found = {}
    for name in names:
        try:
            resolve(name, trace, layout)
        except Unbound as error:
            found[name] = str(error)
    return found


def place(path: str, trace: Mapping[str, Any], layout: TraceLayout) -> str:
    """Returns the dotted path that a rule's path means in this trace. Raises Unbound."""
    if path not in NAMES:
        return path
    stated: str | None = getattr(layout, path)
    root = SAID.get(path, "")
    if stated is not None:  # a candidate may give plain text where traces have more around it
        return root if str(parts(stated)[0][0]) == root and isinstance(trace.get(root), str) else stated
    if path == "context":
        return "input.context"
    if path == "tools":
        messages = "output" if isinstance(trace.get("output"), list) else "output.messages"
        return messages if trace.get("tool_calls") is None else "tool_calls"
    return _text_in(trace.get(root), root)


def _text_in(found: Any, path: str) -> str:
    """Returns the path at which plain text, `{content}` or the last of messages has its text: a content of several
    texts is read whole, so that none is hidden from a judge. Raises Unbound."""
    if isinstance(found, Mapping) and "messages" in found:
        found, path = found["messages"], f"{path}.messages"
    if isinstance(found, list) and found:
        found, path = found[-1], f"{path}[-1]"
    if isinstance(found, Mapping) and "content" in found:
        found, path = found["content"], f"{path}.content"
    if isinstance(found, str):
        return path
    if isinstance(found, list):
        texts = [at for at, one in enumerate(found) if isinstance(one, Mapping) and isinstance(one.get("text"), str)]
        if texts:
            return f"{path}[{texts[0]}].text" if len(texts) == 1 else path
    raise Unbound(f"{path} is {_kind(found)}, neither plain text nor `{{content}}` nor messages")


def layout_of(judge: Judge, trace: Mapping[str, Any]) -> TraceLayout:
    """Returns how a trace is laid out: as the vertical says that it names, else the judge's."""
    return judge.layouts.get(vertical_named(trace) or judge.vertical or "", PLAIN)


def vertical_named(source: Mapping[str, Any]) -> str:
    """Returns the vertical that a trace or an item names; "" where it names none."""
    metadata = source.get("metadata")
    vertical = metadata.get("vertical") if isinstance(metadata, Mapping) else None
    return vertical if isinstance(vertical, str) else ""


@lru_cache(maxsize=4096)
def parts(path: str) -> tuple[tuple[str | int, str], ...]:
    """Returns each step of a path with the part of the path before it."""
    steps = _PART.finditer(path)
    return tuple((int(m[2]) if m[2] is not None else m[1], path[: m.start()].rstrip(".")) for m in steps)


def bind(judge: Judge, context: Context, source: Mapping[str, Any]) -> dict[str, str]:
    """Returns every variable's text. A variable that this context does not bind is empty, so that the same prompt
    serves all contexts. Raises Unbound where the source lacks what a variable reads."""
    variables = judge.rule.variables
    paths: Mapping[str, str] = getattr(variables, context)
    found = dict.fromkeys(names(variables), "")
    for name, path in paths.items():
        where, layout = meant(judge, context, source, path)
        found[name] = as_text(resolve(where, source, layout))
    return found


def meant(judge: Judge, context: Context, source: Mapping[str, Any], path: str) -> tuple[str, TraceLayout | None]:
    """Returns the judge's path, or the name that it means where an item's input or the answer is no plain text, and the
    layout with which to resolve it."""
    layout = layout_of(judge, source)
    if context == "online":
        return path, layout
    name = ITEMS.get(path) if context == "offline" else None
    whole = source.get("input" if name == "question" else "output")
    if name is None or not isinstance(whole, (Mapping, list)) or (name == "tools" and layout.tools is None):
        return path, None
    return name, layout


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
