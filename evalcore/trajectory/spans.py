"""Makes a trace in the contracts' form of an agent's OpenTelemetry spans. Pure.

Two instrumentations may see one call, each with a span of its own: the call counts once. An agent's span, a task's or a
turn's may sum up the calls below it: only spans of inference are added. What no span says is absent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from evalcore.nesting import DEEPEST
from evalcore.trajectory.calls import Executed, Requested, calls_of, opened, requests_in, results_in
from evalcore.trajectory.record import next_agent, number, plain_name, sums

# The names below are the GenAI semantic conventions of OpenTelemetry, those of before, and OpenInference's.
OPERATION: Final = ("gen_ai.operation.name", "openinference.span.kind", "traceloop.span.kind")
PROMPT: Final = ("gen_ai.input.messages", "gen_ai.prompt", "llm.input_messages", "input.value")
ANSWER: Final = ("gen_ai.output.messages", "gen_ai.choice", "gen_ai.completion", "llm.output_messages", "output.value")
"""What a model answered. Its events have it in 1.36 and before (`gen_ai.choice`); others number its parts."""
FINISH: Final = "gen_ai.response.finish_reasons"
ASKING: Final = frozenset({"tool_calls", "tool_call", "tool_use", "function_call"})
"""Why a model ends its answer where it asks for calls."""
MODEL: Final = ("gen_ai.response.model", "gen_ai.request.model", "llm.model_name")
RESPONSE: Final = ("gen_ai.response.id", "llm.response.id")
NUMBERS: Final = {
    "input_tokens": ("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens", "llm.token_count.prompt"),
    "output_tokens": ("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens", "llm.token_count.completion"),
    "cost_usd": ("gen_ai.usage.cost", "llm.cost.total"),
}
TOOL: Final = ("gen_ai.tool.name", "tool.name")
CALL: Final = ("gen_ai.tool.call.id", "tool_call.id")
ARGUMENTS: Final = ("gen_ai.tool.call.arguments", "tool_arguments", "tool.parameters", "input.value")
RESULT: Final = ("gen_ai.tool.call.result", "tool_response", "output.value")
DOCUMENTS: Final = ("gen_ai.retrieval.documents", "retrieval.documents", "output.value")
TOOLS: Final = frozenset({"execute_tool", "tool"})
RETRIEVALS: Final = frozenset({"retrieval", "retriever"})
NO_INFERENCE: Final = frozenset({
    "invoke_agent", "create_agent", "invoke_workflow", "agent", "workflow", "task", "turn", "chain", "embeddings",
    "embedding", "reranker", "guardrail", "evaluator",
}) | RETRIEVALS  # fmt: skip
"""Operations whose tokens are a sum over others, or no model call's."""


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

    def whole(self, names: Sequence[str]) -> Any:
        """The value of the first attribute that is there, also where it is sent as one attribute for each part."""
        for name in names:
            if name in self.attributes:
                return opened(self.attributes[name])
            parts = {
                key[len(name) + 1 :]: value for key, value in self.attributes.items() if key.startswith(f"{name}.")
            }
            if parts:
                return _nested(parts)
        return None

    def number(self, name: str) -> float | None:
        return number(self.first(NUMBERS[name]))

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
        return next_agent(self.tool)

    @cached_property
    def called(self) -> str:
        """The name of what is called, however it is spelled."""
        return plain_name(self.next_agent or self.tool)

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
        "usage": sums(made),
        "llm_calls": made,
        "prompt": next((opened(prompt) for call in models if (prompt := _first(call, PROMPT)) is not None), None),
        "retrieval": [_documents(span) for span in ordered if span.operation in RETRIEVALS],
        "spans": [span.kept() for span in ordered],
    }
    return {name: value for name, value in found.items() if value} | _called(models, tools)


def _called(models: Sequence[Call], tools: Sequence[Call]) -> dict[str, list[Any] | None]:
    """What was called, and what was asked for in vain. No tool's span says nothing where the models do not say that
    they asked for none; nor does no handoff's, which is null beside calls that are known."""
    answers = [(min(one.start for one in call), _whole(call, ANSWER)) for call in models]
    asked = [one for start, answer in answers for one in requests_in(answer, start)]
    executed = [_executed(call) for call in tools]
    last = max((start for start, _ in answers), default=0)
    if not tools and asked:  # only the models are instrumented: what they are given says what was executed
        executed = _returned(models, asked)
    found = calls_of(asked, executed, until=last)
    known = bool(models) and all(
        _finished(call) or isinstance(answer, (list, dict)) for call, (_, answer) in zip(models, answers, strict=True)
    )
    if not executed and any(one.turn < last for one in asked):
        known = False  # the model got on, so something may have been executed
    said = {name: value for name, value in found.items() if value or (known and name != "requested_calls")}
    unsaid: dict[str, list[Any] | None] = {"handoffs": None} if "tool_calls" in said else {}
    return unsaid | said


def _returned(models: Sequence[Call], asked: Sequence[Requested]) -> list[Executed]:
    results = {found: value for call in models for found, value in results_in(_whole(call, PROMPT))}
    return [
        Executed(one.name, one.turn, one.id, {"result": results[one.id]})
        for one in asked
        if one.id is not None and one.id in results
    ]


def _finished(call: Call) -> bool:
    """Whether the model says that it asked for no call."""
    reasons = opened(_first(call, (FINISH,)))
    return isinstance(reasons, (list, tuple)) and bool(reasons) and not ASKING.intersection(map(str, reasons))


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
    given = opened(one.first(ARGUMENTS)), opened(other.first(ARGUMENTS))
    return one.instrumentation != other.instrumentation or None in given or bool(given[0] == given[1])


def _model_call(call: Call) -> dict[str, Any]:
    numbers = {name: next((known for one in call if (known := one.number(name)) is not None), None) for name in NUMBERS}
    said = {name: value for name, value in numbers.items() if value is not None}
    if not said and any(one.error is not None for one in call):
        said = {"input_tokens": 0, "output_tokens": 0, "cost_usd": 0.0}  # it failed before it used any
    latency = max(one.end - one.start for one in call)
    return {"model": str(_first(call, MODEL) or "unknown"), **said, "latency_ms": round(latency / 1e6, 3)}


def _executed(call: Call) -> Executed:
    error = next((one.error for one in call if one.error is not None), None)
    said = {"arguments": opened(_first(call, ARGUMENTS)), "result": opened(_first(call, RESULT)), "error": error}
    found = _first(call, CALL)
    return Executed(
        call[0].tool, call[0].start, str(found) if found else None,
        {name: value for name, value in said.items() if value is not None},
    )  # fmt: skip


def _whole(call: Call, names: Sequence[str]) -> Any:
    return next((value for one in call if (value := one.whole(names)) is not None), None)


def _nested(parts: Mapping[str, Any]) -> Any:
    """The value whose parts have such names as `0.tool_calls.1.name`."""
    made: dict[str, Any] = {}
    for name, value in parts.items():
        *way, last = name.split(".", DEEPEST)
        inner = made
        for step in way:
            inner = inner.setdefault(step, {})
            if not isinstance(inner, dict):
                break
        else:
            inner[last] = value
    return _listed(made)


def _listed(made: Any) -> Any:
    if not isinstance(made, dict):
        return made
    if made and all(name.isdecimal() for name in made):
        return [_listed(made[name]) for name in sorted(made, key=lambda name: (len(name), name))]
    return {name: _listed(value) for name, value in made.items()}


def _first(call: Call, names: Sequence[str]) -> Any:
    return next((value for one in call if (value := one.first(names)) is not None), None)


def _documents(span: Span) -> Any:
    whole = span.first(DOCUMENTS)
    if whole is not None:
        return opened(whole)
    start = f"{DOCUMENTS[1]}."
    return {name[len(start) :]: value for name, value in span.attributes.items() if name.startswith(start)}
