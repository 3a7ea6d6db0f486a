"""Makes a trace of an Opik trace's spans, as Opik's API returns them. Pure.

A trace's own usage is not read: Opik may have added calls twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final, TypeGuard

from evalcore.trajectory.record import number
from evalcore.trajectory.spans import Span, trace_of

OPERATIONS: Final = {"llm": "chat", "tool": "execute_tool", "guardrail": "guardrail"}
"""By a span's type; a `general` one is a step of the agent."""
USED: Final = {
    "gen_ai.usage.input_tokens": ("prompt_tokens", "input_tokens"),
    "gen_ai.usage.output_tokens": ("completion_tokens", "output_tokens"),
}


def are_opik_spans(value: Any) -> TypeGuard[list[Mapping[str, Any]]]:
    """Says whether these are spans of Opik."""
    return isinstance(value, list) and bool(value) and all(
        isinstance(one, Mapping) and "trace_id" in one and "type" in one and "start_time" in one for one in value
    )  # fmt: skip


def trace_of_opik(spans: Sequence[Mapping[str, Any]], trace: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Returns the trace in the contracts' form; the `output` is the Opik trace's own. Spans of other traces are left
    out, and of two versions of a span the later one counts."""
    wanted = trace.get("id") if trace is not None else None
    latest = {
        str(one["id"]): one
        for one in sorted(spans, key=lambda one: str(one.get("last_updated_at") or ""))
        if wanted in (None, one["trace_id"])
    }
    found = trace_of([_span(one) for one in latest.values()])
    return found | ({"output": _answer(trace.get("output"))} if trace is not None else {})


def nanoseconds(time: Any) -> int:
    """Returns an ISO time as nanoseconds since 1970; 0 where there is none."""
    try:
        return int(datetime.fromisoformat(str(time)).timestamp() * 1_000_000) * 1_000
    except ValueError:
        return 0


def _span(one: Mapping[str, Any]) -> Span:
    kind = str(one.get("type") or "general")
    said: dict[str, Any] = {"gen_ai.operation.name": OPERATIONS.get(kind, "agent")}
    if kind == "tool":
        said |= {
            "gen_ai.tool.name": str(one.get("name")),
            "gen_ai.tool.call.arguments": _arguments(one.get("input")),
            "gen_ai.tool.call.result": _answer(one.get("output")),
        }
    elif kind == "llm":
        usage = one.get("usage") or {}
        said["gen_ai.request.model"] = str(one.get("model") or "unknown")
        for name, known in USED.items():
            said[name] = next((usage[given] for given in known if given in usage), None)
        said["gen_ai.usage.cost"] = number(one.get("total_estimated_cost"))
        said |= {"gen_ai.input.messages": one.get("input"), "gen_ai.output.messages": one.get("output")}
    error = one.get("error_info")
    failed = (
        str(error.get("message") or error.get("exception_type") or "failed") if isinstance(error, Mapping) else None
    )
    said = {name: value for name, value in said.items() if value is not None}
    return Span(
        str(one["trace_id"]), str(one["id"]), str(one.get("parent_span_id") or ""), str(one.get("name") or ""),
        nanoseconds(one["start_time"]), nanoseconds(one.get("end_time") or one["start_time"]), said, failed,
        scope="opik",
    )  # fmt: skip


def _arguments(given: Any) -> Any:
    """What the tool was called with; LangChain's tracer puts it below `input`, as Python writes it or as an object."""
    return given["input"] if isinstance(given, Mapping) and isinstance(given.get("input"), Mapping) else given


def _answer(given: Any) -> Any:
    """The one value that a step returned: Opik wraps what is no object."""
    return given["output"] if isinstance(given, Mapping) and set(given) == {"output"} else given
