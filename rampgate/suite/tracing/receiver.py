"""Listens for a candidate's OpenTelemetry spans (OTLP over HTTP, `POST /v1/traces`) and gives each answer its own.

A candidate gets a `traceparent` (W3C) with each case. Spans of a trace that no one asked for are dropped: one who
can reach the address and does not know a trace's id, which is drawn by chance, adds nothing to it.
"""

from __future__ import annotations

import asyncio
import secrets
import sys
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import httpx
from aiohttp import web

from evalcore.scoring.http_client import TooLong, bounded
from evalcore.trajectory.spans import Span, trace_of
from rampgate.console import Failure
from rampgate.http.connections import Connections
from rampgate.suite.tracing.spans import BadSpans, read

JSON: Final = "application/json"
PROTOBUF: Final = "application/x-protobuf"
LARGEST_REQUEST: Final = 16 << 20
LARGEST_TRACE: Final = 1 << 20
"""Bytes of the spans of one answer's trace, as OTLP has them; what comes after it is dropped."""
MOST_SPANS: Final = 1_000
SETTLED: Final = 0.3
"""Seconds without another span, once all steps that others name have come."""
SILENT_AFTER: Final = 10
"""Answers without any span before it is clear that none are sent."""


@dataclass
class Trace:
    """The spans of one answer. `first` is the id that its first steps name as their parent."""

    first: str
    spans: dict[str, Span] = field(default_factory=dict)
    dropped: int = 0
    size: int = 0
    last: float = 0.0

    @property
    def whole(self) -> bool:
        """Whether a first step has come, and every step that another one names as its parent; or more than is taken."""
        named = {span.parent_id for span in self.spans.values()}
        return bool(self.dropped) or (self.first in named and named <= {*self.spans, self.first, ""})


class SpanReceiver:
    """`seconds`: so long a trace is waited for after its answer."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._open: dict[str, Trace] = {}
        self._without = self._with = 0
        self.url = ""
        self.refused = 0
        """Spans of traces that no one waits for, and requests that are no OTLP."""

    @asynccontextmanager
    async def listening(self, address: str) -> AsyncIterator[SpanReceiver]:
        """Listens on `host:port`; port 0 takes any. Raises Failure."""
        connections = Connections()
        app = web.Application(middlewares=[connections.middleware()])
        app.router.add_post("/v1/traces", self._take)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.5, auto_decompress=False)
        host, _, number = address.rpartition(":")
        host = host.strip("[]")
        await runner.setup()
        server: Any = runner.server  # set by its setup
        listening: asyncio.Server | None = None
        try:
            try:
                listening = await asyncio.get_running_loop().create_server(
                    connections.accepting(server), host, int(number), backlog=128
                )
            except OSError as error:
                told = f"candidate.otlp: can't listen on {address}: {error.strerror or error}; name a free one"
                raise Failure(told) from error
            taken = listening.sockets[0].getsockname()[1]
            self.url = f"http://{f'[{host}]' if ':' in host else host}:{taken}"
            yield self
        finally:
            if listening is not None:
                listening.close()
            await runner.cleanup()

    @property
    def environment(self) -> dict[str, str]:
        """Variables by which any OpenTelemetry SDK sends its spans here, soon after each step's end."""
        return {
            "OTEL_EXPORTER_OTLP_ENDPOINT": self.url,
            "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
            "OTEL_TRACES_EXPORTER": "otlp",
            "OTEL_BSP_SCHEDULE_DELAY": "50",
        }

    @property
    def silent(self) -> bool:
        """Whether so many answers came without a span that none are waited for."""
        return self._without >= SILENT_AFTER and not self._with

    def begin(self) -> str:
        """The `traceparent` of a trace whose spans are taken from now on."""
        name, first = secrets.token_hex(16), secrets.token_hex(8)
        self._open[name] = Trace(first)
        return f"00-{name}-{first}-01"

    def drop(self, traceparent: str) -> None:
        """Takes no more spans of it."""
        self._open.pop(_name(traceparent), None)

    async def told(self, traceparent: str, answer: Mapping[str, Any]) -> dict[str, Any]:
        """The answer with what the trace's spans tell of it, as far as the answer does not say it itself. Waits for
        spans that are late."""
        trace = self._open[_name(traceparent)]
        await self._settled(trace)
        self.drop(traceparent)
        found = await asyncio.to_thread(trace_of, list(trace.spans.values()))
        if trace.dropped:
            found["spans_dropped"] = trace.dropped
            found.pop("usage", None)  # a part's sum
        return found | dict(answer) | ({"spans": found["spans"]} if "spans" in found else {})

    async def _settled(self, trace: Trace) -> None:
        if self.silent:
            return
        until = time.monotonic() + self._seconds
        while (now := time.monotonic()) < until:
            if trace.whole and now - trace.last >= SETTLED:
                break
            await asyncio.sleep(min(0.05, until - now))
        if trace.spans:
            self._with += 1
            return
        self._without += 1
        if self._without == SILENT_AFTER and not self._with:
            sys.stderr.write(
                f"candidate.otlp: no span came at {self.url}/v1/traces with the first {SILENT_AFTER} answers, and no "
                "more are waited for: does the candidate go on with the `traceparent` of its case?\n"
            )

    async def _take(self, request: web.Request) -> web.Response:
        kind = request.content_type
        if kind not in (JSON, PROTOBUF):
            return web.Response(status=415, text=f"send {PROTOBUF} or {JSON}\n")
        try:
            body = await bounded(
                request.content.iter_chunked(65_536), request.headers.get("content-encoding", ""), LARGEST_REQUEST
            )
            spans = await asyncio.to_thread(read, body, as_json=kind == JSON)
        except TooLong:
            self.refused += 1
            return web.Response(status=413, text=f"more than {LARGEST_REQUEST >> 20} MB\n")
        except (BadSpans, httpx.DecodingError) as error:
            self.refused += 1
            return web.Response(status=400, text=f"{error}\n")
        for span in spans:
            self._note(span)
        return web.Response(body=b"{}" if kind == JSON else b"", content_type=kind)

    def _note(self, span: Span) -> None:
        trace = self._open.get(span.trace_id)
        if trace is None:
            self.refused += 1
            return
        trace.last = time.monotonic()
        if len(trace.spans) >= MOST_SPANS or trace.size + span.size > LARGEST_TRACE:
            trace.dropped += 1
            return
        trace.size += span.size
        trace.spans[span.span_id] = span


def _name(traceparent: str) -> str:
    return traceparent.split("-")[1]
