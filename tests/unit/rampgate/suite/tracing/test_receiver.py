"""A candidate that sends its OpenTelemetry spans by the official SDK has them in the trace of its answer."""

from __future__ import annotations

import asyncio
import gzip
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from rampgate.http.connections import MOST
from rampgate.store.sealed import SealedStore
from rampgate.store.sqlite_file import FileShelf
from rampgate.suite.tracing import receiver as module
from rampgate.suite.tracing.receiver import SpanReceiver
from schemas.checks.suite import Candidate
from tests.unit.rampgate.suite.suite_commands import ran, refused
from tests.unit.rampgate.suite.suite_folders import written

AGENT = """
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
tracer = provider.get_tracer("agent")


def answer(case):
    context = TraceContextTextMapPropagator().extract(case)
    with tracer.start_as_current_span("invoke_agent", context=context):
        with tracer.start_as_current_span("chat", attributes={
            "gen_ai.operation.name": "chat", "gen_ai.request.model": "small",
            "gen_ai.usage.input_tokens": 11, "gen_ai.usage.output_tokens": 3,
        }):
            pass
        with tracer.start_as_current_span("tool", attributes={"gen_ai.tool.name": "look", "question": case["input"]}):
            pass
    return {"output": "good " + case["input"]}


if __name__ == "__main__":
    import json, sys

    print(json.dumps(answer(json.load(sys.stdin))))
    provider.shutdown()
"""
PARTS = {"prompt": {"files": ["prompt.md", "agent.py"]}}


def traces(folder: Path, told: dict[str, Any]) -> list[dict[str, Any]]:
    """The traces of a run's results, in their order."""
    lines = [json.loads(line) for line in Path(told["results"]).read_text().splitlines()]
    store = SealedStore(FileShelf(folder / ".rampgate" / "store.db"))
    try:
        names = [line["trace"]["hash"] for line in lines]
        found = asyncio.run(store.kind("traces", 1 << 24).get_many(names))
        return [json.loads(one or b"null") for one in found]
    finally:
        store.close()


@pytest.mark.parametrize("way", ["entry", "command"])
def test_each_answer_has_the_spans_of_its_own_case(folder: Path, way: str) -> None:
    who = {"entry": "agent:answer", "python": sys.executable}
    command = {"command": [sys.executable, "agent.py"]}
    candidate = (who if way == "entry" else command) | {"parts": PARTS, "otlp": "127.0.0.1:0"}
    path = written(folder, agent=AGENT, candidate=candidate, samples=1)
    kept = traces(folder, ran(path))
    assert len(kept) == 10
    for trace in kept:
        first, chat, tool = trace["spans"]
        assert [first["name"], chat["name"], tool["name"]] == ["invoke_agent", "chat", "tool"]
        assert chat["parent_id"] == tool["parent_id"] == first["span_id"]
        assert tool["attributes"]["question"] == trace["case"]["input"]
        used = {"input_tokens": 11, "output_tokens": 3}
        assert trace["usage"] == used | {"total_tokens": 14}
        assert [one | {"latency_ms": 0} for one in trace["llm_calls"]] == [{"model": "small", "latency_ms": 0} | used]
        assert trace["tool_calls"] == [{"name": "look"}]
    assert ran(path)["answers"] == {"asked": 0, "kept": 10, "failed": 0}


def test_a_candidate_that_sends_none_is_soon_not_waited_for(capsys: pytest.CaptureFixture[str]) -> None:
    async def run() -> list[bool]:
        async with SpanReceiver(0.01).listening("127.0.0.1:0") as one:
            waited = []
            for _ in range(module.SILENT_AFTER + 2):
                waited.append(not one.silent)
                assert await one.told(one.begin(), {"output": "x"}) == {"output": "x"}
            return waited

    assert asyncio.run(run()) == [True] * module.SILENT_AFTER + [False] * 2
    assert capsys.readouterr().err.count("no span came at http://127.0.0.1:") == 1


def test_a_candidate_whose_first_answers_sent_spans_is_waited_for() -> None:
    async def run() -> bool:
        async with SpanReceiver(0.01).listening("127.0.0.1:0") as one, httpx.AsyncClient() as client:
            traceparent = one.begin()
            await client.post(f"{one.url}/v1/traces", content=sent(traceparent, "step", 1), headers=JSON)
            await one.told(traceparent, {"output": "x"})
            for _ in range(module.SILENT_AFTER + 1):
                await one.told(one.begin(), {"output": "x"})
            return one.silent

    assert not asyncio.run(run())


def test_an_address_that_is_taken_is_told(folder: Path) -> None:
    async def taken() -> str:
        async with SpanReceiver(1.0).listening("127.0.0.1:0") as one:
            port = one.url.rpartition(":")[2]
            candidate = {"entry": "agent:answer", "parts": PARTS, "otlp": f"127.0.0.1:{port}"}
            return await asyncio.to_thread(refused, written(folder, candidate=candidate))

    assert "candidate.otlp: can't listen on 127.0.0.1:" in asyncio.run(taken())


def test_an_agent_at_an_address_needs_a_port_that_it_can_be_told() -> None:
    with pytest.raises(ValueError, match="name a port"):
        Candidate.model_validate({"url": "http://127.0.0.1:9/", "parts": PARTS, "otlp": "127.0.0.1:0"})


def test_a_port_that_there_is_not_is_refused() -> None:
    with pytest.raises(ValueError, match="65535 at most"):
        Candidate.model_validate({"entry": "a:b", "parts": PARTS, "otlp": "127.0.0.1:99999"})


def sent(traceparent: str, name: str, number: int, **more: Any) -> bytes:
    _, trace, parent, _ = traceparent.split("-")
    span = {"traceId": trace, "spanId": f"{number:016x}", "parentSpanId": parent, "name": name} | more
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}).encode()


def received(posts: Callable[[str], list[tuple[bytes, dict[str, str]]]]) -> tuple[dict[str, Any], list[int], int]:
    """The answer's fields after these posts, given its traceparent; the posts' answers; how many were refused."""

    async def run() -> tuple[dict[str, Any], list[int], int]:
        async with SpanReceiver(5.0).listening("127.0.0.1:0") as one, httpx.AsyncClient() as client:
            traceparent = one.begin()
            url = f"{one.url}/v1/traces"
            codes = [
                (await client.post(url, content=body, headers=headers)).status_code
                for body, headers in posts(traceparent)
            ]
            return await one.told(traceparent, {"output": "x"}), codes, one.refused

    return asyncio.run(run())


JSON = {"content-type": "application/json"}


def test_spans_of_another_trace_are_dropped_and_counted() -> None:
    other = f"00-{'ab' * 16}-{'cd' * 8}-01"
    found, codes, refused_spans = received(lambda own: [(sent(other, "theirs", 1), JSON), (sent(own, "ours", 2), JSON)])
    assert codes == [200, 200]
    assert refused_spans == 1
    assert [span["name"] for span in found["spans"]] == ["ours"]


def test_a_compressed_request_is_taken_and_a_bomb_is_not() -> None:
    packed = JSON | {"content-encoding": "gzip"}
    bomb = gzip.compress(b" " * (module.LARGEST_REQUEST + 1))
    found, codes, _ = received(lambda own: [(bomb, packed), (gzip.compress(sent(own, "ours", 1)), packed)])
    assert codes == [413, 200]
    assert len(found["spans"]) == 1


def test_what_is_no_otlp_is_refused_and_the_next_is_taken() -> None:
    posts = [
        (b"{", JSON),
        (b"\xff\xff", {"content-type": "application/x-protobuf"}),
        (b"x", {"content-type": "text/x"}),
    ]
    found, codes, _ = received(lambda own: [*posts, (sent(own, "ours", 1), JSON)])
    assert codes == [400, 400, 415, 200]
    assert len(found["spans"]) == 1


def test_more_spans_than_a_trace_takes_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_SPANS", 3)
    found, _, _ = received(lambda own: [(sent(own, "step", number), JSON) for number in range(1, 6)])
    assert (len(found["spans"]), found["spans_dropped"]) == (3, 2)


def test_the_candidates_own_word_goes_before_what_its_spans_tell() -> None:
    async def run() -> dict[str, Any]:
        async with SpanReceiver(5.0).listening("127.0.0.1:0") as one, httpx.AsyncClient() as client:
            traceparent = one.begin()
            model = {"key": "gen_ai.request.model", "value": {"stringValue": "theirs"}}
            body = sent(traceparent, "chat", 1, attributes=[model])
            await client.post(f"{one.url}/v1/traces", content=body, headers=JSON)
            return await one.told(traceparent, {"output": "x", "model": "own", "spans": "invented"})

    found = asyncio.run(run())
    assert found["model"] == "own"
    assert found["spans"][0]["name"] == "chat"


def exported(traceparent: str, number: int, value: str) -> bytes:
    """A request with one span of this trace, which carries the value, and sixty small ones of another."""
    _, trace, parent, _ = traceparent.split("-")
    request = ExportTraceServiceRequest()
    spans = request.resource_spans.add().scope_spans.add().spans
    own = spans.add(name="step", trace_id=bytes.fromhex(trace), span_id=number.to_bytes(8, "big"))
    own.parent_span_id = bytes.fromhex(parent)
    own.attributes.add(key="x").value.string_value = value
    for other in range(1, 61):
        spans.add(name="theirs", trace_id=b"z" * 16, span_id=other.to_bytes(8, "big"))
    return request.SerializeToString()


def test_a_span_counts_whole_whatever_else_its_request_holds() -> None:
    """Shared out evenly, twelve requests of 15 MB were held, where a trace may take 1 MiB."""
    otlp = {"content-type": "application/x-protobuf"}
    found, codes, _ = received(lambda own: [(exported(own, number, "x" * 600_000), otlp) for number in range(1, 13)])
    assert codes == [200] * 12
    assert sum(len(json.dumps(span)) for span in found["spans"]) <= module.LARGEST_TRACE
    assert (len(found["spans"]), found["spans_dropped"]) == (1, 11)


async def test_half_open_connections_make_room_for_spans() -> None:
    async with SpanReceiver(5.0).listening("127.0.0.1:0") as one:
        port = int(one.url.rpartition(":")[2])
        held = [await asyncio.open_connection("127.0.0.1", port) for _ in range(MOST + 40)]
        async with httpx.AsyncClient() as client:
            traceparent = one.begin()
            answer = await client.post(f"{one.url}/v1/traces", content=sent(traceparent, "step", 1), headers=JSON)
        assert answer.status_code == 200
        async with asyncio.timeout(20):
            assert await held[0][0].read() == b"", "the oldest makes room"
        closed = [reader.at_eof() or reader.exception() is not None for reader, _ in held]
        assert closed.count(False) <= MOST
        for _, writer in held:
            writer.close()
