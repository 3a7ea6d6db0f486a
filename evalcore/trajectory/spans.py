"""Makes a trace in the contracts' form of an agent's OpenTelemetry spans. Pure.

Two instrumentations may see one call, each with a span of its own: the call counts once. An agent's span, a task's or a
turn's may sum up the calls below it: only spans of inference are added. What no span says is absent.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

import orjson

# The names below are the GenAI semantic conventions of OpenTelemetry, those of before, and OpenInference's.
OPERATION: Final = ("gen_ai.operation.name", "openinference.span.kind", "traceloop.span.kind")
PROMPT: Final = ("gen_ai.input.messages", "gen_ai.prompt", "llm.input_messages", "input.value")
MODEL: Final = ("gen_ai.response.model", "gen_ai.request.model", "llm.model_name")
RESPONSE: Final = ("gen_ai.response.id", "llm.response.id")
NUMBERS: Final = {
    "input_tokens": ("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens", "llm.token_count.prompt"),
    "output_tokens": ("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens", "llm.token_count.completion"),
    "cost_usd": ("gen_ai.usage.cost", "llm.cost.total"),
}
TOOL: Final = ("gen_ai.tool.name", "tool.name")
CALL: Final = ("gen_ai.tool.call.id", "tool_call.id")
ARGUMENTS: Final = ("gen_ai.tool.call.arguments", "tool.parameters", "input.value")
RESULT: Final = ("gen_ai.tool.call.result", "output.value")
DOCUMENTS: Final = ("gen_ai.retrieval.documents", "retrieval.documents", "output.value")
TOOLS: Final = frozenset({"execute_tool", "tool"})
RETRIEVALS: Final = frozenset({"retrieval", "retriever"})
NO_INFERENCE: Final = frozenset({
    "invoke_agent", "create_agent", "invoke_workflow", "agent", "workflow", "task", "turn", "chain", "embeddings",
    "embedding", "reranker", "guardrail", "evaluator",
}) | RETRIEVALS  # fmt: skip
"""Operations whose tokens are a sum over others, or no model call's."""
HANDOFF: Final = re.compile(r"(?:transfer|hand_?off)[_ ]to[_ ](.+)", re.IGNORECASE)
"""A tool, or a step, by which another agent takes over."""


@dataclass(frozen=True)
class Span:
    """One step of an agent. Ids are hexadecimal digits, `start` and `end` nanoseconds since 1970; `error` is the
    status's message where the step failed, `size` the bytes in which it was sent, `scope` who recorded it."""

    trace_id: str
    span_id: str
    parent_id: str
    name: str
    start: int
    end: int
    attributes: Mapping[str, Any] = field(default_factory=dict)
    error: str | None = None
    size: int = 0
    scope: str = ""

    def kept(self) -> dict[str, Any]:
        """Returns the span as a trace keeps it."""
        found: dict[str, Any] = {
            "span_id": self.span_id, "parent_id": self.parent_id, "name": self.name,
            "start_ns": self.start, "ms": round((self.end - self.start) / 1e6, 3),
        }  # fmt: skip
        if self.error is not None:
            found["error"] = self.error
        return found | ({"attributes": dict(self.attributes)} if self.attributes else {})

    def first(self, names: Sequence[str]) -> Any:
        return next((self.attributes[name] for name in names if name in self.attributes), None)

    def number(self, name: str) -> float | None:
        found = self.first(NUMBERS[name])
        known = isinstance(found, (int, float)) and not isinstance(found, bool) and 0 <= found < float("inf")
        return found if known else None

    @property
    def operation(self) -> str:
        return str(self.first(OPERATION) or "").lower()

    @property
    def is_tool(self) -> bool:
        return self.operation in TOOLS or self.first(TOOL) is not None

    @property
    def is_inference(self) -> bool:
        tells = self.first(MODEL) is not None or any(self.number(name) is not None for name in NUMBERS)
        return tells and not self.is_tool and self.operation not in NO_INFERENCE

    @property
    def tool(self) -> str:
        return str(self.first(TOOL) or self.name)

    @cached_property
    def next_agent(self) -> str | None:
        """The agent that takes over here."""
        found = HANDOFF.fullmatch(self.tool)
        return found[1] if found is not None else None

    @cached_property
    def called(self) -> str:
        """The name of what is called, however it is spelled."""
        return re.sub(r"[\W_]+", "", (self.next_agent or self.tool).lower())

    @cached_property
    def instrumentation(self) -> tuple[str, bool]:
        return self.scope, any(name.startswith("gen_ai.") for name in self.attributes)

    def seen_by_another(self, other: Span) -> bool:
        """Says whether another instrumentation recorded the other span, and one of both lies within the other."""
        within = (self.start - other.start) * (self.end - other.end) <= 0
        return within and self.instrumentation != other.instrumentation


Call = list[Span]  # all spans of one call, the one nearest to it first


def trace_of(spans: Sequence[Span]) -> dict[str, Any]:
    """Returns `{usage, llm_calls, tool_calls, handoffs, prompt, retrieval, spans}`, as far as the spans say."""
    ordered = sorted(spans, key=lambda span: (span.start, -span.end, span.span_id))
    by_id = {span.span_id: span for span in ordered}
    above = {span.span_id: list(_above(span, by_id)) for span in ordered}
    models = _model_calls([span for span in ordered if span.is_inference], above)
    tools = _calls([span for span in ordered if span.is_tool], above, _is_one_tool_call)
    made = [_model_call(call) for call in models]
    found = {
        "usage": _usage(made),
        "llm_calls": made,
        "tool_calls": [_tool_call(call) for call in tools if call[0].next_agent is None],
        "handoffs": [call[0].next_agent for call in tools if call[0].next_agent is not None],
        "prompt": next((_opened(prompt) for call in models if (prompt := _first(call, PROMPT)) is not None), None),
        "retrieval": [_documents(span) for span in ordered if span.operation in RETRIEVALS],
        "spans": [span.kept() for span in ordered],
    }
    return {name: value for name, value in found.items() if value}


def _above(span: Span, by_id: Mapping[str, Span]) -> Iterator[Span]:
    met = {span.span_id}
    while (span := by_id.get(span.parent_id, span)).span_id not in met:
        met.add(span.span_id)
        yield span


def _calls(
    spans: Sequence[Span], above: Mapping[str, Sequence[Span]], is_one: Callable[[Span, Span, bool], bool]
) -> list[Call]:
    """Puts spans together that `is_one` says are of one call; it gets two, and whether the second is below the first.
    A span joins the call that it is below, else the one that began last."""
    calls: list[Call] = []
    for span in spans:
        outer = {one.span_id for one in above[span.span_id]}
        fitting = [call for call in calls if all(is_one(one, span, one.span_id in outer) for one in call)]
        if fitting:
            max(fitting, key=lambda call: (any(one.span_id in outer for one in call), call[0].start)).append(span)
        else:
            calls.append([span])
    return calls


def _model_calls(spans: Sequence[Span], above: Mapping[str, Sequence[Span]]) -> list[Call]:
    """A span above one call is that call, seen from further out; a span above several is their sum. What a tool asks of
    a model, that is below the tool, is a call of its own."""
    asking, below = {span.span_id for span in spans}, dict[str, list[Span]]()
    for span in spans:
        for one in above[span.span_id]:
            if one.is_tool:
                break
            if one.span_id in asking:
                below.setdefault(one.span_id, []).append(span)
    calls = _calls([span for span in spans if span.span_id not in below], above, _is_one_model_call)
    for span in spans:
        inner = [call for call in calls if any(one is call[0] for one in below.get(span.span_id, ()))]
        if len(inner) == 1:
            inner[0].append(span)
    return calls


def _is_one_model_call(one: Span, other: Span, nested: bool) -> bool:
    ids = one.first(RESPONSE), other.first(RESPONSE)
    if None not in ids:
        return bool(ids[0] == ids[1])
    numbers = ((one.number(name), other.number(name)) for name in NUMBERS)
    models = sorted((str(one.first(MODEL) or ""), str(other.first(MODEL) or "")))
    alike = models[1].startswith(models[0]) and all(None in both or both[0] == both[1] for both in numbers)
    return alike and one.seen_by_another(other)


def _is_one_tool_call(one: Span, other: Span, nested: bool) -> bool:
    if one.called != other.called:
        return False
    ids = one.first(CALL), other.first(CALL)
    if None not in ids and ids[0] != ids[1]:
        return False
    if not nested:
        return one.seen_by_another(other)
    given = _opened(one.first(ARGUMENTS)), _opened(other.first(ARGUMENTS))
    return one.instrumentation != other.instrumentation or None in given or bool(given[0] == given[1])


def _model_call(call: Call) -> dict[str, Any]:
    numbers = {name: next((known for one in call if (known := one.number(name)) is not None), None) for name in NUMBERS}
    said = {name: value for name, value in numbers.items() if value is not None}
    if not said and any(one.error is not None for one in call):
        said = {"input_tokens": 0, "output_tokens": 0, "cost_usd": 0.0}  # it failed before it used any
    latency = max(one.end - one.start for one in call)
    return {"model": str(_first(call, MODEL) or "unknown"), **said, "latency_ms": round(latency / 1e6, 3)}


def _usage(made: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Sums what all calls say: a part's sum would be taken for the whole."""
    found = {name: sum(one[name] for one in made) for name in NUMBERS if made and all(name in one for one in made)}
    if {"input_tokens", "output_tokens"} <= found.keys():
        found["total_tokens"] = found["input_tokens"] + found["output_tokens"]
    return found


def _tool_call(call: Call) -> dict[str, Any]:
    error = next((one.error for one in call if one.error is not None), None)
    said = {"arguments": _opened(_first(call, ARGUMENTS)), "result": _opened(_first(call, RESULT)), "error": error}
    return {"name": call[0].tool} | {name: value for name, value in said.items() if value is not None}


def _first(call: Call, names: Sequence[str]) -> Any:
    return next((value for one in call if (value := one.first(names)) is not None), None)


def _documents(span: Span) -> Any:
    whole = span.first(DOCUMENTS)
    if whole is not None:
        return _opened(whole)
    start = f"{DOCUMENTS[1]}."
    return {name[len(start) :]: value for name, value in span.attributes.items() if name.startswith(start)}


def _opened(value: Any) -> Any:
    """Structured values come as JSON in a text where an exporter knows no other."""
    if not isinstance(value, str) or value[:1] not in "[{":
        return value
    try:
        return orjson.loads(value)
    except orjson.JSONDecodeError:
        return value
