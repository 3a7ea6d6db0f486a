"""What a candidate's OpenTelemetry spans tell of its answer, whoever wrote them down."""

from __future__ import annotations

import base64
import contextlib
from typing import Any

import orjson
import pytest
from google.protobuf.json_format import MessageToDict
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue, KeyValueList
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span, Status

from evalcore.trajectory.spans import trace_of
from rampgate.suite.tracing.spans import BadSpans, read

TRACE = bytes(range(16))


def value(told: Any) -> AnyValue:
    if isinstance(told, bool):
        return AnyValue(bool_value=told)
    if isinstance(told, int):
        return AnyValue(int_value=told)
    if isinstance(told, float):
        return AnyValue(double_value=told)
    if isinstance(told, bytes):
        return AnyValue(bytes_value=told)
    if isinstance(told, list):
        return AnyValue(array_value=ArrayValue(values=[value(one) for one in told]))
    if isinstance(told, dict):
        pairs = [KeyValue(key=name, value=value(one)) for name, one in told.items()]
        return AnyValue(kvlist_value=KeyValueList(values=pairs))
    return AnyValue(string_value=told)


def span(number: int, parent: int, name: str = "step", error: str | None = None, **attributes: Any) -> Span:
    return Span(
        trace_id=TRACE, span_id=bytes([0] * 7 + [number]), parent_span_id=bytes([0] * 7 + [parent]), name=name,
        start_time_unix_nano=1_000_000 * number, end_time_unix_nano=1_000_000 * (number + 5),
        attributes=[KeyValue(key=key.replace("__", "."), value=value(one)) for key, one in attributes.items()],
        status=Status(code=Status.STATUS_CODE_ERROR, message=error) if error is not None else None,
    )  # fmt: skip


def request(*spans: Span) -> ExportTraceServiceRequest:
    return ExportTraceServiceRequest(resource_spans=[ResourceSpans(scope_spans=[ScopeSpans(spans=spans)])])


def told(*spans: Span) -> dict[str, Any]:
    return trace_of(read(request(*spans).SerializeToString(), as_json=False))


def test_model_prompt_tools_retrieval_and_tokens_are_found_by_the_names_of_the_conventions() -> None:
    found = told(
        span(1, 9, "invoke_agent", gen_ai__operation__name="invoke_agent"),
        span(2, 1, "search", gen_ai__operation__name="retrieval", gen_ai__retrieval__documents='[{"id": "d1"}]'),
        span(
            3, 1, "chat", gen_ai__operation__name="chat", gen_ai__request__model="small",
            gen_ai__response__model="small-2", gen_ai__input__messages='[{"role": "user"}]',
            gen_ai__usage__input_tokens=100, gen_ai__usage__output_tokens=7,
        ),
        span(
            4, 1, "execute_tool", gen_ai__operation__name="execute_tool", gen_ai__tool__name="refund",
            gen_ai__tool__call__arguments='{"order": 7}',
        ),
    )  # fmt: skip
    used = {"input_tokens": 100, "output_tokens": 7}
    assert found["llm_calls"] == [{"model": "small-2", **used, "latency_ms": 5.0}]
    assert found["prompt"] == [{"role": "user"}]
    assert found["usage"] == used | {"total_tokens": 107}
    assert found["tool_calls"] == [{"name": "refund", "arguments": {"order": 7}}]
    assert found["retrieval"] == [[{"id": "d1"}]]
    assert [one["name"] for one in found["spans"]] == ["invoke_agent", "search", "chat", "execute_tool"]
    assert [one["ms"] for one in found["spans"]] == [5.0] * 4


def test_openinference_names_are_read_too() -> None:
    found = told(
        span(
            1, 9, "llm", openinference__span__kind="LLM", llm__model_name="small", llm__token_count__prompt=3,
            llm__token_count__completion=4, input__value="hello",
        ),
        span(2, 9, "look", openinference__span__kind="TOOL", tool__name="look", tool__parameters='{"a": 1}'),
        span(
            3, 9, "find", openinference__span__kind="RETRIEVER",
            **{"retrieval.documents.0.document.content": "a page"},
        ),
    )  # fmt: skip
    assert (found["llm_calls"][0]["model"], found["prompt"]) == ("small", "hello")
    assert found["usage"] == {"input_tokens": 3, "output_tokens": 4, "total_tokens": 7}
    assert found["tool_calls"] == [{"name": "look", "arguments": {"a": 1}}]
    assert found["retrieval"] == [{"0.document.content": "a page"}]


def test_what_an_agents_span_sums_up_is_not_added_again() -> None:
    used = {"gen_ai__usage__input_tokens": 10, "gen_ai__usage__output_tokens": 1}
    summed = {"gen_ai__usage__input_tokens": 20, "gen_ai__usage__output_tokens": 2}
    found = told(span(1, 9, **summed), span(2, 1), span(3, 2, **used), span(4, 2, **used))
    assert found["usage"] == {"input_tokens": 20, "output_tokens": 2, "total_tokens": 22}
    assert len(found["llm_calls"]) == 2


def test_spans_that_are_their_own_parents_end() -> None:
    used = {"gen_ai__usage__input_tokens": 10}
    assert "spans" in told(span(1, 2, **used), span(2, 1, **used), span(3, 3, **used))


def test_no_spans_tell_nothing() -> None:
    assert told() == {}


def test_a_step_that_failed_says_why() -> None:
    assert told(span(1, 9, error="no such order"))["spans"][0]["error"] == "no such order"


@pytest.mark.parametrize("ids", ["hexadecimal", "base64"])
def test_json_says_the_same_as_protobuf(ids: str) -> None:
    sent = request(span(1, 9, text="a", many=[1, 2.5, True], more={"x": [b"\0"]}))
    body = MessageToDict(sent)
    for one in body["resourceSpans"][0]["scopeSpans"][0]["spans"]:
        for name in ("traceId", "spanId", "parentSpanId") if ids == "hexadecimal" else ():
            one[name] = base64.b64decode(one[name]).hex()
    assert read(orjson.dumps(body), as_json=True) == read(sent.SerializeToString(), as_json=False)


def test_fields_of_a_later_otlp_are_passed_over() -> None:
    assert read(b'{"resourceSpans": [{"scopeSpans": [{"spans": [{"name": "a", "invented": 1}]}]}]}', as_json=True)


@given(st.binary(max_size=300), st.booleans())
def test_what_is_no_otlp_is_refused_and_nothing_else_happens(body: bytes, as_json: bool) -> None:
    with contextlib.suppress(BadSpans):
        trace_of(read(body, as_json=as_json))


@pytest.mark.parametrize("body", [b"[]", b"1", b'{"resourceSpans": 5}', b"{", b"[" * 100_000, b'"' + b"\xff"])
def test_json_that_is_something_else_is_refused(body: bytes) -> None:
    with pytest.raises(BadSpans):
        read(body, as_json=True)
