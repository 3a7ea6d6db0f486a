"""Reads OpenTelemetry spans as an exporter sends them (OTLP over HTTP, protobuf or JSON)."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable
from typing import Any, Final

import orjson
from google.protobuf.json_format import ParseDict, ParseError
from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span as Sent
from opentelemetry.proto.trace.v1.trace_pb2 import Status

from evalcore.trajectory.calls import opened
from evalcore.trajectory.spans import Span

IDS: Final = ("traceId", "spanId", "parentSpanId")
"""Fields that OTLP writes in JSON as hexadecimal digits, and protobuf's own JSON, as some exporters do, as base64."""
HEXADECIMAL: Final = re.compile(r"([0-9a-fA-F]{16}){0,2}", re.ASCII)
"""An id of a trace has 32 digits, one of a span 16, and one that is not there none; in base64 24 and 12 characters."""
CHOICE: Final = "gen_ai.choice"
DETAILS: Final = "gen_ai.client.inference.operation.details"
"""Events with what a model answered."""
DEEPEST: Final = 16
"""Levels of lists and maps in an attribute; what is deeper is left out."""


class BadSpans(ValueError):
    """What was sent is no OTLP."""


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
    return [
        _span(span, scope.scope.name)
        for resource in sent.resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]


def _span(sent: Sent, scope: str) -> Span:
    failed = sent.status.code == Status.STATUS_CODE_ERROR
    return Span(
        sent.trace_id.hex(), sent.span_id.hex(), sent.parent_span_id.hex(), sent.name,
        sent.start_time_unix_nano, sent.end_time_unix_nano,
        _attributes(sent.attributes) | _of_events(sent),
        sent.status.message or _raised(sent) or "failed" if failed else None, sent.ByteSize(), scope,
    )  # fmt: skip


def _attributes(sent: Iterable[KeyValue]) -> dict[str, Any]:
    return {one.key: _value(one.value) for one in sent}


def _of_events(sent: Sent) -> dict[str, Any]:
    """What a model was asked and answered, where events of its span have it: to 1.36 one for each choice, also in an
    attribute `events`; from then on one with all attributes."""
    events = [(event.name, _attributes(event.attributes)) for event in sent.events]
    for one in sent.attributes:
        if one.key == "events" and isinstance(held := opened(_value(one.value)), list):
            events += [(str(event.get("event.name")), event) for event in held if isinstance(event, dict)]
    details = next((said for name, said in events if name == DETAILS), {})
    choices = [{key: opened(value) for key, value in said.items()} for name, said in events if name == CHOICE]
    return details | ({CHOICE: choices} if choices else {})


def _raised(sent: Sent) -> str:
    raised = (_attributes(event.attributes) for event in sent.events if event.name == "exception")
    return next((str(said["exception.message"]) for said in raised if said.get("exception.message")), "")


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
