"""Makes a trace of the messages that a LangGraph agent returns (`messages` of its state, one turn's). Pure.

A message comes as `model_dump()`, `messages_to_dict` or `dumpd` of LangChain write it. A transfer is a tool call there,
with an answer of its own, and so is executed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TypeGuard

from evalcore.trajectory.calls import Executed, Requested, calls_of, requests_in
from evalcore.trajectory.record import sums

CLASSES: Final = {"AIMessage": "ai", "AIMessageChunk": "ai", "ToolMessage": "tool", "HumanMessage": "human"}
KINDS: Final = frozenset({"ai", "AIMessageChunk", "tool", "human", "system", "function", "remove"})


def are_messages(value: Any) -> TypeGuard[list[Mapping[str, Any]]]:
    """Says whether these are LangChain's messages."""
    return isinstance(value, list) and bool(value) and all(_plain(one).get("type") in KINDS for one in value)


def trace_of_messages(messages: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Returns `{output, tool_calls, handoffs, requested_calls, llm_calls, usage}`. A message that came twice counts
    once; what the framework writes for a model, as when a supervisor gets back control, is no model's call."""
    requested: list[Requested] = []
    executed: list[Executed] = []
    models: list[dict[str, Any]] = []
    output: Any = None
    for turn, message in enumerate(_once(messages)):
        if (message.get("response_metadata") or {}).get("__is_handoff_back"):
            continue
        if message["type"] == "tool":
            failed = message.get("status") == "error"
            said = {"error" if failed else "result": _text(message.get("content"))}
            executed.append(Executed(_name(message, requested), turn, message.get("tool_call_id"), said))
        elif message["type"] in ("ai", "AIMessageChunk"):
            requested += requests_in(message, turn)
            models.append(_model_call(message))
            output = _text(message.get("content")) or output
    return {"output": output, **calls_of(requested, executed), "llm_calls": models, "usage": sums(models)}


def _once(messages: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    met: set[str] = set()
    for one in map(_plain, messages):
        if one.get("id") is None or one["id"] not in met:
            met.add(str(one.get("id")))
            yield one


def _plain(message: Any) -> dict[str, Any]:
    if not isinstance(message, Mapping):
        return {}
    if isinstance(message.get("data"), Mapping):
        return {**message["data"], "type": message.get("type")}
    if message.get("type") == "constructor" and isinstance(message.get("kwargs"), Mapping):
        return {**message["kwargs"], "type": CLASSES.get((message.get("id") or [""])[-1], "system")}
    return dict(message)


def _name(message: Mapping[str, Any], requested: Sequence[Requested]) -> str:
    """The tool that answers; a message may leave it to the call's id."""
    found = next((one.name for one in requested if one.id == message.get("tool_call_id")), None)
    return str(found or message.get("name") or "unknown")


def _model_call(message: Mapping[str, Any]) -> dict[str, Any]:
    about = message.get("response_metadata") or {}
    used = message.get("usage_metadata") or {}
    known = {name: used[name] for name in ("input_tokens", "output_tokens") if used.get(name) is not None}
    return {"model": str(about.get("model_name") or about.get("model") or "unknown"), **known}


def _text(content: Any) -> Any:
    """A message's text; its parts may be blocks, of which those that are no text are left out."""
    if not isinstance(content, list):
        return content
    return "".join(one if isinstance(one, str) else str(one.get("text") or "") for one in content if one)
