"""Makes a trace of spans that OpenAI's Agents SDK exports (`span.export()` of a tracing processor). Pure.

An exported span of a response has no calls; a processor that keeps the response beside it says them:
`exported["span_data"]["response"] = span.span_data.response.model_dump(mode="json")`. Tasks' and turns' spans are sums.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TypeGuard

from evalcore.trajectory.calls import opened
from evalcore.trajectory.opik import nanoseconds
from evalcore.trajectory.spans import Span, trace_of

HOSTED: Final = frozenset({
    "web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call", "mcp_call",
})  # fmt: skip
"""Parts of a response that are calls which the model's provider executed; they have no span."""


def are_agents_spans(value: Any) -> TypeGuard[list[Mapping[str, Any]]]:
    """Says whether these are spans of OpenAI's Agents SDK."""
    return isinstance(value, list) and bool(value) and all(
        isinstance(one, Mapping) and one.get("object") in ("trace", "trace.span") for one in value
    )  # fmt: skip


def trace_of_agents(exported: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Returns the trace in the contracts' form. `exported` may have the trace itself among its spans."""
    spans = [made for one in exported if one.get("object") == "trace.span" for made in _spans(one)]
    return trace_of(spans)


def _spans(one: Mapping[str, Any]) -> Iterator[Span]:
    data = one.get("span_data") or {}
    kind = data.get("type")
    if kind in ("generation", "response"):
        yield _made(one, _model(data))
        answer = (data.get("response") or {}).get("output") or ()
        for number, part in enumerate(answer):
            if part.get("type") in HOSTED:
                name = part.get("name") or part["type"].removesuffix("_call")
                said = {"arguments": part.get("arguments"), "result": part.get("output")}
                yield _made(one, _tool(name, **said), f":{number}", below=str(one.get("id")))
    elif kind == "function":
        yield _made(one, _tool(str(data.get("name")), data.get("input"), data.get("output")))
    elif kind == "handoff":
        yield _made(one, _tool(f"transfer_to_{data.get('to_agent')}"))
    else:
        yield _made(one, {"gen_ai.operation.name": "agent"})


def _made(one: Mapping[str, Any], said: Mapping[str, Any], suffix: str = "", below: str = "") -> Span:
    error = one.get("error")
    failed = None
    if isinstance(error, Mapping):
        detail = (error.get("data") or {}).get("error") if isinstance(error.get("data"), Mapping) else None
        failed = str(detail or error.get("message") or "failed")
    start = nanoseconds(one.get("started_at"))
    return Span(
        str(one.get("trace_id")), f"{one.get('id')}{suffix}", below or str(one.get("parent_id") or ""),
        str((one.get("span_data") or {}).get("type")), start, nanoseconds(one.get("ended_at")) or start, said, failed,
        scope="openai.agents",
    )  # fmt: skip


def _model(data: Mapping[str, Any]) -> dict[str, Any]:
    response = data.get("response") or {}
    usage = data.get("usage") or response.get("usage") or {}
    said = {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": data.get("model") or response.get("model") or "unknown",
        "gen_ai.response.id": data.get("response_id") or response.get("id"),
        "gen_ai.input.messages": data.get("input"),
        "gen_ai.output.messages": response.get("output") or data.get("output"),
    }
    said |= {f"gen_ai.usage.{name}": usage.get(name) for name in ("input_tokens", "output_tokens")}
    return {name: value for name, value in said.items() if value is not None}


def _tool(name: str, arguments: Any = None, result: Any = None) -> dict[str, Any]:
    said = {
        "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name,
        "gen_ai.tool.call.arguments": opened(arguments), "gen_ai.tool.call.result": result,
    }  # fmt: skip
    return {key: value for key, value in said.items() if value is not None}
