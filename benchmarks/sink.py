"""A stand-in for Opik's score endpoint that costs next to nothing: `python -m benchmarks.sink PORT`.

It counts scores by counting a byte string in the body (in C), and answers 204 after a set delay. `/_bench` is the
harness's own door: PUT sets the delay and starts a new count, GET tells the count, GET `/_bench/kept` the trace ids.
Times are of the machine's monotonic clock, which all processes share.
"""

from __future__ import annotations

import asyncio
import re
import sys
import time
from typing import Any
from urllib.parse import parse_qs, urlsplit

import orjson
import uvloop

SCORE, THUMBS = b'"name":', b"user_signal_thumbs"
LENGTH = re.compile(rb"(?i)\r\ncontent-length: *(\d+)")
NO_CONTENT = b"HTTP/1.1 204 No Content\r\n\r\n"
EMPTY_PAGE = b'{"page":1,"size":0,"total":0,"content":[]}'


class Tally:
    """`marks`: (when, scores so far), a call each. `kept`: (when, body) where bodies are asked for."""

    def __init__(self, delay: float = 0.02, keep: bool = False) -> None:
        self.delay, self.keep = delay, keep
        self.scores = self.calls = 0
        self.marks: list[tuple[float, int]] = []
        self.kept: list[tuple[float, bytes]] = []

    def take(self, body: bytes) -> None:
        now = time.monotonic()
        self.calls += 1
        self.scores += body.count(SCORE)
        self.marks.append((now, self.scores))
        if self.keep:
            self.kept.append((now, body))

    def trace_ids(self) -> list[tuple[float, list[str]]]:
        """When each thumbs score came in, by the call; the bodies are parsed only now."""
        name = THUMBS.decode()
        return [(at, [s["id"] for s in orjson.loads(body)["scores"] if s["name"] == name]) for at, body in self.kept]


class Server(asyncio.Protocol):
    tally = Tally()

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._have = self._need = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: Any = transport

    def data_received(self, data: bytes) -> None:
        self._parts.append(data)
        self._have += len(data)
        if self._have < self._need:
            return
        text = b"".join(self._parts)
        head = text.find(b"\r\n\r\n")
        if head >= 0:
            found = LENGTH.search(text, 0, head)
            self._need = head + 4 + (int(found[1]) if found else 0)
        if head < 0 or self._have < self._need:
            self._parts = [text]
            return
        rest, self._need = text[self._need :], 0
        self._parts, self._have = ([rest] if rest else []), len(rest)
        method, target, _ = text[: text.index(b"\r\n")].split(b" ", 2)
        self._answer(method.decode(), target.decode(), text[head + 4 : len(text) - len(rest)])

    def _answer(self, method: str, target: str, body: bytes) -> None:
        tally = Server.tally
        if target.startswith("/_bench"):
            self._bench(method, target)
        elif method == "PUT" and target.endswith("/feedback-scores"):
            tally.take(body)
            if tally.delay:
                asyncio.get_running_loop().call_later(tally.delay, self._send, NO_CONTENT)
            else:
                self._send(NO_CONTENT)
        else:
            self._json(EMPTY_PAGE)

    def _bench(self, method: str, target: str) -> None:
        url = urlsplit(target)
        if method == "PUT":
            options = parse_qs(url.query)
            Server.tally = Tally(float(options["delay"][0]), options.get("keep") == ["1"])
        tally = Server.tally
        if url.path.endswith("/kept"):
            self._json(orjson.dumps(tally.trace_ids()))
        elif url.path.endswith("/marks"):
            self._json(orjson.dumps(tally.marks))
        else:
            self._json(orjson.dumps({"scores": tally.scores, "calls": tally.calls}))

    def _json(self, body: bytes) -> None:
        self._send(
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body
        )

    def _send(self, answer: bytes) -> None:
        if not self._transport.is_closing():
            self._transport.write(answer)


async def serve(port: int) -> None:
    server = await asyncio.get_running_loop().create_server(Server, "127.0.0.1", port)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.install()
    asyncio.run(serve(int(sys.argv[1])))
