"""An HTTP proxy before Opik that applies writes late: the client has long gone on when its request arrives.

A request that timed out is not undone: it may wait in a load balancer, a queue or a paused server, and be applied when
something newer was written in between.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, Literal

import aiohttp
from aiohttp import web

Mode = Literal["pass", "late", "refuse"]
_HOP = frozenset(("connection", "content-length", "host", "keep-alive", "transfer-encoding", "content-encoding"))


class LateProxy:
    """Forwards to `target` ("http://host:port") in a thread of its own, from its construction until close().

    Mode `late`: a write gets no answer, or its connection is reset at once, in turns; either way it is applied
    `seconds` after it came. Mode `refuse`: every second request gets 503 without being applied, the others 503 after
    they were.
    """

    def __init__(self, target: str) -> None:
        self._target, self._mode, self._seconds = target, "pass", 0.0
        self._held: set[asyncio.Task[None]] = set()
        self._turn = 0
        self.late = 0
        """Writes that were applied late, or will be."""
        self.port = 0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="late-proxy", daemon=True)
        self._thread.start()
        self._do(self._listen())

    def be(self, mode: Mode, seconds: float = 0.0) -> None:
        """Has taken effect for each request that comes from now on."""
        self._mode, self._seconds = mode, seconds

    @property
    def waiting(self) -> int:
        """Writes that are still to be applied."""
        return len(self._held)

    def close(self) -> None:
        self._do(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)

    def _do(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(30)

    async def _listen(self) -> None:
        self._client = aiohttp.ClientSession(auto_decompress=False, timeout=aiohttp.ClientTimeout(60))
        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.router.add_route("*", "/{path:.*}", self._serve)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.port = int(self._runner.addresses[0][1])

    async def _end(self) -> None:
        for task in self._held:
            task.cancel()
        await self._runner.cleanup()
        await self._client.close()

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        headers = {name: value for name, value in request.headers.items() if name.lower() not in _HOP}
        call = request.method, request.path_qs, headers, body
        self._turn += 1
        if self._mode == "late" and "feedback-scores" in request.path:
            self._hold(call)
            if self._turn % 2:
                await asyncio.sleep(self._seconds)
            if request.transport is not None:
                request.transport.abort()
            return web.Response(status=500)
        if self._mode == "refuse":
            if self._turn % 2:
                await self._forward(*call)
            return web.Response(status=503)
        return await self._forward(*call)

    def _hold(self, call: tuple[str, str, dict[str, str], bytes]) -> None:
        async def later(seconds: float) -> None:
            await asyncio.sleep(seconds)
            await self._forward(*call)

        self.late += 1
        task = self._loop.create_task(later(self._seconds))
        self._held.add(task)
        task.add_done_callback(self._held.discard)

    async def _forward(self, method: str, path: str, headers: dict[str, str], body: bytes) -> web.Response:
        async with self._client.request(method, self._target + path, headers=headers, data=body) as answer:
            content = await answer.read()
            kept = {name: value for name, value in answer.headers.items() if name.lower() not in _HOP}
            encoding = answer.headers.get("Content-Encoding")
            if encoding:
                kept["Content-Encoding"] = encoding
            return web.Response(status=answer.status, body=content, headers=kept)
