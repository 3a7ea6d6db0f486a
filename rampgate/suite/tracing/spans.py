"""Reads OpenTelemetry spans as an exporter sends them (OTLP over HTTP, protobuf or JSON), and what they tell of a
candidate's answer: prompt, retrieval, tools, model, tokens."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import orjson
from google.protobuf.json_format import ParseDict, ParseError
from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span as Sent
from opentelemetry.proto.trace.v1.trace_pb2 import Status

IDS: Final = ("traceId", "spanId", "parentSpanId")
"""Fields that OTLP writes in JSON as hexadecimal digits, and protobuf's own JSON, as some exporters do, as base64."""
HEXADECIMAL: Final = re.compile(r"([0-9a-fA-F]{16}){0,2}", re.ASCII)
"""An id of a trace has 32 digits, one of a span 16, and one that is not there none; in base64 24 and 12 characters."""
DEEPEST: Final = 16
"""Levels of lists and maps in an attribute; what is deeper is left out."""

# The names below are the GenAI semantic conventions of OpenTelemetry, those of before, and OpenInference's.
OPERATION: Final = ("gen_ai.operation.name", "openinference.span.kind")
PROMPT: Final = ("gen_ai.input.messages", "gen_ai.prompt", "llm.input_messages", "input.value")
MODEL: Final = ("gen_ai.response.model", "gen_ai.request.model", "llm.model_name")
INPUT_TOKENS: Final = ("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens", "llm.token_count.prompt")
OUTPUT_TOKENS: Final = ("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens", "llm.token_count.completion")
TOOL: Final = ("gen_ai.tool.name", "tool.name")
ARGUMENTS: Final = ("gen_ai.tool.call.arguments", "tool.parameters", "input.value")
DOCUMENTS: Final = ("gen_ai.retrieval.documents", "retrieval.documents", "output.value")
TOOLS: Final = frozenset({"execute_tool", "tool"})
RETRIEVALS: Final = frozenset({"retrieval", "retriever"})


class BadSpans(ValueError):
    """What was sent is no OTLP."""


@dataclass(frozen=True)
class Span:
    """One step of a candidate. Ids are hexadecimal digits, `start` and `end` nanoseconds since 1970; `error` is the
    status's message where the step failed, `size` the bytes in which it was sent."""

    trace_id: str
    span_id: str
    parent_id: str
    name: str
    start: int
    end: int
    attributes: Mapping[str, Any] = field(default_factory=dict)
    error: str | None = None
    size: int = 0

    def told(self) -> dict[str, Any]:
        """The span as a trace keeps it."""
        found: dict[str, Any] = {
            "span_id": self.span_id, "parent_id": self.parent_id, "name": self.name,
            "start_ns": self.start, "ms": round((self.end - self.start) / 1e6, 3),
        }  # fmt: skip
        if self.error is not None:
            found["error"] = self.error
        return found | ({"attributes": dict(self.attributes)} if self.attributes else {})

    def first(self, names: Sequence[str]) -> Any:
        return next((self.attributes[name] for name in names if name in self.attributes), None)

    @property
    def operation(self) -> str:
        return str(self.first(OPERATION) or "").lower()


def read(body: bytes, *, as_json: bool) -> list[Span]:
    """Returns the spans of a request. Raises BadSpans."""
    sent = ExportTraceServiceRequest()
    try:
        if as_json:
            ParseDict(_with_base64(_object(orjson.loads(body))), sent, ignore_unknown_fields=True)
        else:
            sent.ParseFromString(body)
    except (DecodeError, ParseError, ValueError, TypeError, RecursionError) as error:
        raise BadSpans(f"no OTLP: {error}") from error
    return [_span(span) for resource in sent.resource_spans for scope in resource.scope_spans for span in scope.spans]


def told_by(spans: Sequence[Span]) -> dict[str, Any]:
    """Returns what the spans tell of an answer, as `{prompt, retrieval, tool_calls, model, tokens, spans}`; what none
    tells is absent."""
    ordered = sorted(spans, key=lambda span: (span.start, span.end, span.span_id))
    found: dict[str, Any] = {"spans": [span.told() for span in ordered]} if ordered else {}
    parents = {span.span_id: span for span in ordered}
    asked = [span for span in ordered if span.first(MODEL) is not None]
    if asked:
        found["model"] = str(asked[-1].first(MODEL))
    prompts = [prompt for span in asked if (prompt := span.first(PROMPT)) is not None]
    if prompts:
        found["prompt"] = _opened(prompts[0])
    tokens = _tokens(ordered, parents)
    if tokens:
        found["tokens"] = tokens
    tools = [span for span in ordered if span.operation in TOOLS or span.first(TOOL) is not None]
    if tools:
        found["tool_calls"] = [
            {"name": str(span.first(TOOL) or span.name)}
            | ({"arguments": _opened(arguments)} if (arguments := span.first(ARGUMENTS)) is not None else {})
            for span in tools
        ]
    retrievals = [span for span in ordered if span.operation in RETRIEVALS]
    if retrievals:
        found["retrieval"] = [_documents(span) for span in retrievals]
    return found


def _tokens(spans: Sequence[Span], parents: Mapping[str, Span]) -> dict[str, int]:
    """An agent's span may sum up what the calls below it used: only the lowest spans that tell are added."""
    telling = {span.span_id for span in spans if _count(span, INPUT_TOKENS) or _count(span, OUTPUT_TOKENS)}
    summed_up = {above for name in telling for above in _above(name, parents)}
    lowest = [span for span in spans if span.span_id in telling - summed_up]
    found = {
        "input": sum(_count(span, INPUT_TOKENS) for span in lowest),
        "output": sum(_count(span, OUTPUT_TOKENS) for span in lowest),
    }
    return found if any(found.values()) else {}


def _above(name: str, parents: Mapping[str, Span]) -> Iterator[str]:
    met = {name}
    while (span := parents.get(name)) is not None and span.parent_id not in met:
        name = span.parent_id
        met.add(name)
        yield name


def _count(span: Span, names: Sequence[str]) -> int:
    told = span.first(names)
    return told if isinstance(told, int) and not isinstance(told, bool) and told > 0 else 0


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


def _span(sent: Sent) -> Span:
    failed = sent.status.code == Status.STATUS_CODE_ERROR
    return Span(
        sent.trace_id.hex(), sent.span_id.hex(), sent.parent_span_id.hex(), sent.name,
        sent.start_time_unix_nano, sent.end_time_unix_nano,
        {one.key: _value(one.value) for one in sent.attributes},
        sent.status.message or "failed" if failed else None, sent.ByteSize(),
    )  # fmt: skip


def _value(value: AnyValue, depth: int = 0) -> Any:
    kind = value.WhichOneof("value")
    if kind is None or depth >= DEEPEST:
        return None
    if kind == "array_value":
        return [_value(one, depth + 1) for one in value.array_value.values]
    if kind == "kvlist_value":
        return {one.key: _value(one.value, depth + 1) for one in value.kvlist_value.values}
    if kind == "bytes_value":
        return base64.b64encode(value.bytes_value).decode()
    return getattr(value, kind)


def _object(sent: Any) -> dict[str, Any]:
    if not isinstance(sent, dict):
        raise TypeError("no object")
    return sent


def _with_base64(sent: Any) -> Any:
    """OTLP's JSON as protobuf's reader wants it."""
    if isinstance(sent, list):
        return [_with_base64(one) for one in sent]
    if not isinstance(sent, dict):
        return sent
    return {
        name: base64.b64encode(bytes.fromhex(value)).decode()
        if name in IDS and isinstance(value, str) and HEXADECIMAL.fullmatch(value)
        else _with_base64(value)
        for name, value in sent.items()
    }
